"""Reads what a promptfoo configuration names: files, references, variables of the environment."""

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Final

from producer.cases.bench_files import DataFile, data_files
from producer.convert.promptfoo.csv_rows import rows_of
from producer.convert.report import ForeignFile
from producer.load.problems import Place
from producer.load.yaml_text import MOST_VALUES, parse_yaml
from producer.text import shown
from shared.errors import WrongInput

FILE: Final = "file://"
REF: Final = "$ref"
FILE_BYTES: Final = 10 << 20
"""The largest file that a configuration names."""
CODE: Final = frozenset({".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb"})
"""Suffixes of files that are programs."""
EXECUTED: Final = frozenset({".sh", ".bash", ".exe", ".bat", ".cmd", ".ps1", ".pl", *CODE})
"""Suffixes of prompts that are programs."""
_PROMPT_FILES: Final = frozenset(
    {".txt", ".md", ".json", ".jsonl", ".yaml", ".yml", ".csv", ".j2", *EXECUTED}
)
NOT_COPIED: Final = "values of the environment may be secrets: write it here, or under `env`"
PATTERN: Final = re.compile(r"[*?\[]")
_ENV: Final = re.compile(r"\{\{(?:[^}]|\}(?!\}))*\}\}")
_ENV_NAME: Final = re.compile(r"\benv\.(\w+)|\benv\[['\"]([^'\"]+)['\"]\]")
_ENV_DEFAULT: Final = re.compile(r"(?:\|\s*(?:default|d)\(|\bor)\s*(['\"])(.*?)\1")
_CREDENTIALS: Final = frozenset({"apiKey", "headers"})
"""Keys of providers whose variables are named in the bench, and read by workers."""
_NOTHING: Final = object()


def is_code(written: str) -> bool:
    """Returns whether a path is that of a program, with or without the name of a function.

    >>> is_code("file://a.py:check"), is_code("file://a.yaml")
    (True, False)
    """
    path = written.removeprefix(FILE)
    head, _, name = path.rpartition(":")
    return PurePath(path).suffix.lower() in CODE or (bool(name) and PurePath(head).suffix.lower() in CODE)


def is_prompt_file(written: str) -> bool:
    """Returns whether a prompt is the path of a file."""
    if written.startswith(FILE):
        return True
    if "\n" in written or "{{" in written or "://" in written or len(written) > 1_000:  # noqa: PLR2004 - no path is longer
        return False
    path = written.partition(":")[0] if PurePath(written.partition(":")[0]).suffix in CODE else written
    return PurePath(path).suffix.lower() in _PROMPT_FILES and (" " not in path or "/" in path)


class NamedFiles:
    """What a configuration names.

    Args:
        file: the configuration.
    """

    def __init__(self, file: ForeignFile) -> None:
        self._file = file
        self._size = 0
        self._count = 0
        self._open = list[Path]()
        self.env: Mapping[str, str] = {}
        """Variables of the environment that the configuration sets."""
        self.unread = dict[str, Place]()
        """Others that it names, with the first place of each, but for keys of models, which benches name."""

    def dereferenced(self, value: Any, place: Place, seen: tuple[str, ...]) -> Any:
        """Replaces `$ref` by what it refers to.

        Raises:
            InputError: a reference is to itself, or the values have no end.
        """
        self._size += 1
        if self._size > MOST_VALUES:
            raise place.error(f"more than {MOST_VALUES:,} values, references unfolded", "make it smaller")
        if isinstance(value, list):
            return [self.dereferenced(each, place.at(at), seen) for at, each in enumerate(value)]
        if not isinstance(value, dict):
            return value
        reference = value.get(REF)
        if isinstance(reference, str):
            if reference in seen:
                raise place.at(REF).error(f"{shown(reference)} refers to itself", "write the value here")
            found = self._referred(reference, place.at(REF))
            if found is not _NOTHING:
                whole = self.dereferenced(found, place, (*seen, reference))
                others = {key: each for key, each in value.items() if key != REF}
                return {**whole, **others} if isinstance(whole, dict) else whole
        return {key: self.dereferenced(each, place.at(key), seen) for key, each in value.items()}

    def _referred(self, reference: str, place: Place) -> Any:
        """What a reference names; nothing where it is one of a JSON schema."""
        name, _, pointer = reference.partition("#")
        found = self._file.document if not name else self.loaded(name.removeprefix(FILE), place)
        for step in filter(None, pointer.split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return _NOTHING
        return found

    def with_env(self, value: Any, place: Place) -> Any:
        """Fills in variables of the environment that the configuration sets; what it does not set stays.

        Values of the environment itself may be secrets, whatever they are called: they are not copied.
        """
        if isinstance(value, str):
            return _ENV.sub(partial(self._env_value, place), value) if "env" in value else value
        if isinstance(value, list):
            return [self.with_env(each, place.at(at)) for at, each in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.with_env(each, place.at(key)) for key, each in value.items()}
        return value

    def _env_value(self, place: Place, found: re.Match[str]) -> str:
        """The value of one variable of the environment, or its default."""
        named = _ENV_NAME.search(found[0])
        if named is None:
            return found[0]
        name = named[1] or named[2]
        if name in self.env:
            return self.env[name]
        default = _ENV_DEFAULT.search(found[0])
        if (name in os.environ or not default) and _CREDENTIALS.isdisjoint(place.path[-2:]):
            self.unread.setdefault(name, place)
        return default[2] if default else found[0]

    def is_there(self, written: str) -> bool:
        """Returns whether the file of a path exists; of patterns nothing is known."""
        path = written.removeprefix(FILE)
        try:
            return bool(PATTERN.search(path)) or (self._file.path.parent / path).exists()
        except (OSError, ValueError):  # too long, or with a NUL
            return False

    def files(self, written: str, place: Place) -> list[DataFile]:
        """Finds the files that a path or a pattern names.

        Raises:
            InputError: there is none, or one is outside of the folder.
        """
        path = PurePath(written.removeprefix(FILE))
        if PATTERN.search(str(path)) and (path.is_absolute() or ".." in path.parts):
            what = f"{shown(str(path))} is a pattern that leads out of the folder of the configuration"
            raise place.error(what, "copy the files there")
        return data_files(self._file.path, [(place, written.removeprefix(FILE))])

    def loaded(self, written: str, place: Place) -> Any:
        """Reads a file by its suffix; several become one list.

        Raises:
            InputError: it is missing, broken, or outside of the folder.
        """
        found = self.files(written, place)
        values = [self.parsed(each, place) for each in found]
        if len(values) == 1 and not PATTERN.search(written):
            return values[0]
        return [each for value in values for each in (value if isinstance(value, list) else [value])]

    def parsed(self, file: DataFile, place: Place) -> Any:
        """Reads one file.

        Raises:
            InputError: it is broken, or files name each other in a ring.
        """
        if file.path in self._open:
            raise place.error(f"{file.name} is named by itself", "write the values themselves")
        self._open.append(file.path)
        try:
            return self._content(file, place)
        finally:
            self._open.pop()

    def _content(self, file: DataFile, place: Place) -> Any:
        """The content of one file."""
        suffix = PurePath(file.name).suffix.lower()
        text = file.text(FILE_BYTES)
        if suffix in {".yaml", ".yml", ".json"}:
            try:
                return self.resolved(self.with_env(parse_yaml(text), Place(file.name, text)), place)
            except WrongInput as error:
                raise Place(file.name, line=error.line).error(error.what, error.hint) from None
        if suffix == ".csv":
            rows = [dict(row) for _, row in rows_of(text, Place(file.name))]
            return [next(iter(row.values())) for row in rows] if rows and len(rows[0]) == 1 else rows
        return text

    def resolved(self, value: Any, place: Place, key: str = "") -> Any:
        """Reads the files that are named anywhere in a value, but for variables and code.

        Raises:
            InputError: as `loaded`.
        """
        self._count += 1
        if self._count > MOST_VALUES:
            raise place.error("files name each other without end", "write the values themselves")
        if isinstance(value, list):
            return [self.resolved(each, place, key) for each in value]
        if isinstance(value, dict):
            return {
                name: each if name == "vars" else self.resolved(each, place, name)
                for name, each in value.items()
            }
        if isinstance(value, str) and value.startswith(FILE) and not is_code(value):
            return self.loaded(value, place)
        return value
