"""Reads a promptfoo configuration with the files that it names; nothing of them is executed."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

from producer.cases.bench_files import DataFile, data_files
from producer.convert.promptfoo.csv_rows import rows_of, test_of_row
from producer.convert.promptfoo.suite import Assertion, PromptTemplate, Provider, Suite, Test
from producer.convert.report import ForeignFile, Left
from producer.load.problems import MOST_CASES, Place
from producer.load.yaml_text import MOST_VALUES, parse_yaml
from producer.text import shown
from shared.errors import WrongInput
from shared.upstream.key_variables import SENT, SENT_ENDINGS

FILE: Final = "file://"
GENERATOR: Final = "generator"
"""Option of a test that stands for those that a program writes."""
FILE_BYTES: Final = 10 << 20
"""The largest file that a configuration names."""
CODE: Final = frozenset({".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb"})
"""Suffixes of files that are programs."""
EXECUTED: Final = frozenset({".sh", ".bash", ".exe", ".bat", ".cmd", ".ps1", ".pl", *CODE})
"""Suffixes of prompts that are programs."""
_PROMPT_FILES: Final = frozenset(
    {".txt", ".md", ".json", ".jsonl", ".yaml", ".yml", ".csv", ".j2", *EXECUTED}
)
_KEYS: Final = frozenset({"providers", "targets", "prompts", "tests", "scenarios", "defaultTest"})
_ENV: Final = re.compile(r"\{\{(?:[^}]|\}(?!\}))*\}\}")
_ENV_NAME: Final = re.compile(r"\benv\.(\w+)|\benv\[['\"]([^'\"]+)['\"]\]")
_ENV_DEFAULT: Final = re.compile(r"\|\s*(?:default|d)\(\s*(['\"])(.*?)\1")
_IGNORED: Final = frozenset(
    {
        "$schema",
        "outputPath",
        "sharing",
        "tags",
        "metadata",
        "writeLatestResults",
        "author",
        "commandLineOptions",
    }
)
"""Keys that change neither prompts nor verdicts."""
_UNUSUAL: Final[Mapping[str, str]] = {
    "extensions": "code that is run around tests: do its work before `proctor run`",
    "redteam": "attacks are made by tools for it (garak, deepteam, pyrit); import their cases",
    "plugins": "attacks are made by tools for it (garak, deepteam, pyrit); import their cases",
    "strategies": "attacks are made by tools for it (garak, deepteam, pyrit); import their cases",
    "tracing": "traces are not recorded",
    "derivedMetrics": "metrics computed of others are not in reports: compute them from `proctor results`",
}
_TEST_KEYS: Final = frozenset(
    {"description", "vars", "assert", "threshold", "options", "metadata", "provider", "providers", "prompts"}
    | {"providerOutput", "config", "assertScoringFunction", "id", "assertionTemplates"}
)


def fits(file: ForeignFile) -> bool:
    """Returns whether a file is a configuration of promptfoo."""
    if file.path.suffix.lower() not in {".yaml", ".yml", ".json"}:
        return False
    document = file.document
    return isinstance(document, dict) and len(_KEYS & document.keys()) > 0 and "test_cases" not in document


def read_suite(file: ForeignFile) -> tuple[Suite, list[Left]]:
    """Reads a configuration, and what of it has no meaning for benches.

    Raises:
        InputError: it, or a file that it names, is broken, missing or outside of its folder.
    """
    reader = _Reader(file)
    return reader.suite(), reader.left


class _Reader:
    """Reads one configuration."""

    def __init__(self, file: ForeignFile) -> None:
        self._file = file
        self._root = file.place
        self._written: dict[str, Any] = file.document
        self._size = 0
        self._env = dict[str, str]()
        self._count = 0
        self.left = list[Left]()

    def leave(self, place: Place, what: str, reason: str) -> None:
        """Lists something that benches do not have."""
        self.left.append(Left(place, what, reason))

    def suite(self) -> Suite:
        """Reads all."""
        document = self._dereferenced(self._written, self._root, ())
        self._env = {
            name: str(value) for name, value in (document.get("env") or {}).items() if value is not None
        }
        self._env = {name: self._with_env(value) for name, value in self._env.items()}
        document = self._with_env(document)
        place = self._root
        known = {"description", "providers", "targets", "prompts", "tests", "scenarios", "defaultTest", "env"}
        known |= {"evaluateOptions", "nunjucksFilters", "assertionTemplates"}
        for key in document:
            if key in _UNUSUAL:
                self.leave(place.at(key), key, _UNUSUAL[key])
            elif key not in known | _IGNORED and not self._is_template(document[key]):
                self.leave(place.at(key), key, "promptfoo has no such key")
        default = self._default(document.get("defaultTest"), place.at("defaultTest"))
        tests = list(self._tests(document.get("tests"), place.at("tests")))
        scenarios = list(self._scenarios(document.get("scenarios"), place.at("scenarios")))
        targets = "targets" if "targets" in document else "providers"
        return Suite(
            place,
            document.get("description"),
            list(self._providers(document.get(targets), place.at(targets))),
            list(self._prompts(document.get("prompts"), place.at("prompts"))),
            [*tests, *scenarios] or [Test(place)],
            default,
            self._env,
            _mapping(document.get("evaluateOptions")),
            _mapping(document.get("nunjucksFilters")),
        )

    @staticmethod
    def _is_template(value: Any) -> bool:
        """Whether a key of the first level only holds what others refer to."""
        return isinstance(value, dict | list)

    # References and the environment

    def _dereferenced(self, value: Any, place: Place, seen: tuple[str, ...]) -> Any:
        """Replaces `$ref` by what it refers to."""
        self._size += 1
        if self._size > MOST_VALUES:
            raise place.error(f"more than {MOST_VALUES:,} values, references unfolded", "make it smaller")
        if isinstance(value, list):
            return [self._dereferenced(each, place.at(at), seen) for at, each in enumerate(value)]
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str):
            if reference in seen:
                raise place.at("$ref").error(f"{shown(reference)} refers to itself", "write the value here")
            found = self._referred(reference, place.at("$ref"))
            if found is not _NOTHING:
                whole = self._dereferenced(found, place, (*seen, reference))
                others = {key: each for key, each in value.items() if key != "$ref"}
                return {**whole, **others} if isinstance(whole, dict) else whole
        return {key: self._dereferenced(each, place.at(key), seen) for key, each in value.items()}

    def _referred(self, reference: str, place: Place) -> Any:
        """What a reference names; nothing where it is one of a JSON schema."""
        name, _, pointer = reference.partition("#")
        found = self._written if not name else self._loaded(name.removeprefix(FILE), place)
        for step in filter(None, pointer.split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                return _NOTHING
        return found

    def _with_env(self, value: Any) -> Any:
        """Fills in variables of the environment, but for those that hold secrets."""
        if isinstance(value, str):
            return _ENV.sub(self._env_value, value) if "env" in value else value
        if isinstance(value, list):
            return [self._with_env(each) for each in value]
        if isinstance(value, dict):
            return {key: self._with_env(each) for key, each in value.items()}
        return value

    def _env_value(self, found: re.Match[str]) -> str:
        """The value of one variable of the environment; what is not known stays."""
        named = _ENV_NAME.search(found[0])
        if named is None:
            return found[0]
        name = named[1] or named[2]
        if name in self._env:
            return self._env[name]
        default = _ENV_DEFAULT.search(found[0])
        if name in SENT or name.endswith((*SENT_ENDINGS, "SECRET", "PASSWORD", "_KEY")):
            return found[0]
        return os.environ.get(name, default[2] if default else found[0])

    # Files

    def _files(self, written: str, place: Place) -> list[DataFile]:
        """The files that a path or a pattern names."""
        return data_files(self._file.path, [(place, written.removeprefix(FILE))])

    def _text(self, written: str, place: Place) -> str:
        """The text of a file."""
        return self._files(written, place)[0].text(FILE_BYTES)

    def _loaded(self, written: str, place: Place) -> Any:
        """The content of a file by its suffix: of several, one list."""
        found = self._files(written, place)
        values = [self._parsed(each, place) for each in found]
        if len(values) == 1 and not re.search(r"[*?\[]", written):
            return values[0]
        return [each for value in values for each in (value if isinstance(value, list) else [value])]

    def _parsed(self, file: DataFile, place: Place) -> Any:
        """The content of one file."""
        suffix = PurePath(file.name).suffix.lower()
        text = file.text(FILE_BYTES)
        if suffix in {".yaml", ".yml", ".json"}:
            try:
                return self._resolved(self._with_env(parse_yaml(text)), place)
            except WrongInput as error:
                raise Place(file.name, line=error.line).error(error.what, error.hint) from None
        if suffix == ".csv":
            rows = [dict(row) for _, row in rows_of(text, Place(file.name))]
            return [next(iter(row.values())) for row in rows] if rows and len(rows[0]) == 1 else rows
        return text

    def _resolved(self, value: Any, place: Place, key: str = "") -> Any:
        """Reads the files that are named anywhere in a value, but for variables and code."""
        self._count += 1
        if self._count > MOST_VALUES:
            raise place.error("files name each other without end", "write the values themselves")
        if isinstance(value, list):
            return [self._resolved(each, place, key) for each in value]
        if isinstance(value, dict):
            return {
                name: each if name == "vars" else self._resolved(each, place, name)
                for name, each in value.items()
            }
        if isinstance(value, str) and value.startswith(FILE) and not _is_code(value):
            return self._loaded(value, place)
        return value

    # Providers

    def _providers(self, written: Any, place: Place) -> Iterator[Provider]:
        """Who is asked."""
        for at, each in enumerate(written if isinstance(written, list) else [written]):
            here = place.at(at) if isinstance(written, list) else place
            if isinstance(each, str) and each.startswith(FILE) and not _is_code(each):
                loaded = self._loaded(each, here)
                for one in loaded if isinstance(loaded, list) else [loaded]:
                    yield from self._provider(one, here)
            else:
                yield from self._provider(each, here)

    def _provider(self, written: Any, place: Place) -> Iterator[Provider]:
        """One provider."""
        if isinstance(written, str):
            yield Provider(place, written)
            return
        if not isinstance(written, dict) or not written:
            self.leave(place, f"provider {json.dumps(written)[:40]}", "it is neither a name nor a mapping")
            return
        name = written.get("id")
        if name is None:
            name, written = next(iter(written.items()))
            written = {**_mapping(written), "id": _mapping(written).get("id", name)}
        config = self._resolved(_mapping(written.get("config")), place)
        prompts = written.get("prompts")
        for key in written.keys() - {"id", "label", "config", "prompts", "delay", "transform", "env"}:
            self.leave(place.at(key), f"provider key {key}", "models have no such key")
        yield Provider(
            place,
            str(written["id"]),
            written.get("label"),
            config,
            [str(each) for each in prompts] if isinstance(prompts, list) else None,
            _number(written.get("delay")) or 0,
            written.get("transform"),
        )

    # Prompts

    def _prompts(self, written: Any, place: Place) -> Iterator[PromptTemplate]:
        """What is sent."""
        if written is None:
            yield PromptTemplate(place, "{{prompt}}")
        elif isinstance(written, dict) and "raw" not in written and "id" not in written:
            for path, label in written.items():
                yield from self._prompt(path, place.at(path), label=str(label))
        else:
            for at, each in enumerate(written if isinstance(written, list) else [written]):
                yield from self._prompt(each, place.at(at) if isinstance(written, list) else place)

    def _prompt(self, written: Any, place: Place, label: str | None = None) -> Iterator[PromptTemplate]:
        """One prompt, or those of a file."""
        config: Mapping[str, Any] = {}
        if isinstance(written, dict):
            label = written.get("label") or (written.get("id") if "raw" in written else None)
            config = _mapping(written.get("config"))
            written = written.get("raw") or written.get("id")
        if not isinstance(written, str):
            self.leave(place, f"prompt {json.dumps(written)[:40]}", "it is neither a text nor a file")
            return
        if written.startswith("exec:"):
            yield PromptTemplate(place, written, label, config, is_code=True)
        elif _is_prompt_file(written):
            yield from self._prompt_files(PromptTemplate(place, written, label, config))
        else:
            yield PromptTemplate(place, written, label, config)

    def _prompt_files(self, prompt: PromptTemplate) -> Iterator[PromptTemplate]:
        """The prompts of a file, or of several."""
        path, _, function = prompt.raw.removeprefix(FILE).partition(":")
        if PurePath(path).suffix.lower() in EXECUTED and "*" not in path:
            yield replace(prompt, raw=prompt.raw.removeprefix(FILE), is_code=True)
            return
        for file in self._files(path, prompt.place):
            suffix = PurePath(file.name).suffix.lower()
            if suffix in EXECUTED:
                written = file.written + (f":{function}" if function else "")
                yield replace(prompt, raw=written, is_code=True)
                continue
            for raw, label in self._raw_prompts(file, suffix, prompt.place):
                yield replace(prompt, raw=raw, label=label or prompt.label)

    def _raw_prompts(self, file: DataFile, suffix: str, place: Place) -> list[tuple[str, str | None]]:
        """The templates of a file by its suffix, with their labels."""
        text = file.text(FILE_BYTES)
        match suffix:
            case ".txt":
                lines = text.replace("\r\n", "\n").split("\n")
                parts = "\n".join("\0" if line.strip() == "---" else line for line in lines).split("\0")
                return [(part.strip(), None) for part in parts if part.strip()]
            case ".jsonl":
                return [(line, None) for line in text.splitlines() if line]
            case ".csv":
                return _csv_prompts(text, Place(file.name))
            case ".yaml" | ".yml" | ".json":
                try:
                    return [(_json(self._resolved(parse_yaml(text), place)), None)]
                except WrongInput:
                    return [(text, None)]  # it is JSON or YAML only once it is rendered
            case _:
                return [(text, None)]

    # Tests

    def _default(self, written: Any, place: Place) -> Test:
        """What all tests have."""
        if isinstance(written, str):
            written = self._loaded(written, place)
        return self._test(_mapping(written), place)

    def _tests(self, written: Any, place: Place) -> Iterator[Test]:
        """The tests of a list or of files."""
        for at, each in enumerate(written if isinstance(written, list) else [written] if written else []):
            here = place.at(at) if isinstance(written, list) else place
            path = each.get("path") if isinstance(each, dict) else each
            if isinstance(path, str) and (isinstance(each, str) or "vars" not in each):
                yield from self._tests_of(path, here)
            elif isinstance(each, dict):
                yield self._test(each, here)
            else:
                raise here.error(f"a test is a mapping or a file, found {shown(each)}", "write - vars: {…}")

    def _tests_of(self, written: str, place: Place) -> Iterator[Test]:
        """The tests of a file, or of several."""
        if re.match(r"https?://|huggingface://|az://", written):
            self.leave(place, f"tests {written}", "data of the network: save it as a file, and name that")
        elif _is_code(written):
            yield Test(place, options={GENERATOR: written.removeprefix(FILE)})
        else:
            for file in self._files(written.partition("#")[0], place):
                yield from self._tests_in(file, place)

    def _tests_in(self, file: DataFile, place: Place) -> Iterator[Test]:
        """The tests of one file."""
        suffix = PurePath(file.name).suffix.lower()
        if suffix in CODE:
            yield Test(place, options={GENERATOR: file.written})
        elif suffix == ".csv":
            for row_place, row in rows_of(file.text(FILE_BYTES), Place(file.name)):
                yield self._test(self._from_row(row, row_place), row_place)
        elif suffix == ".jsonl":
            for number, line in enumerate(file.lines(), 1):
                if line.strip():
                    here = Place(file.name, line=number)
                    yield self._test(self._resolved(_parsed_line(line, here), place), here)
        elif suffix in {".yaml", ".yml", ".json"}:
            loaded = self._parsed(file, place)
            whole = Place(file.name, file.text(FILE_BYTES))
            for at, each in enumerate(loaded if isinstance(loaded, list) else [loaded]):
                yield self._test(_mapping(each), whole.at(at) if isinstance(loaded, list) else whole)
        else:
            self.leave(place, f"tests {file.name}", f"files of the kind {suffix or 'unknown'} are not read")

    def _from_row(self, row: Mapping[str, str], place: Place) -> dict[str, Any]:
        """A test as a row of a table writes it."""
        try:
            return test_of_row(row)
        except WrongInput as error:
            raise place.error(error.what, error.hint) from None

    def _test(self, written: Mapping[str, Any], place: Place) -> Test:
        """One test."""
        self._count += 1
        if self._count > MOST_VALUES:
            raise place.error(f"more than {MOST_CASES:,} tests", "split them into several files")
        for key in sorted(written.keys() - _TEST_KEYS):
            self.leave(place.at(key), f"test key {key}", "cases have no such key")
        if written.get("assertScoringFunction"):
            what = "code that scores a whole test"
            self.leave(place.at("assertScoringFunction"), what, "scores are weighted means: use weights")
        own = written.get("providers", written.get("provider"))
        names = [own] if isinstance(own, str | dict) else own
        prompts = written.get("prompts")
        return Test(
            place,
            str(written["description"]) if written.get("description") is not None else None,
            self._vars(written.get("vars"), place.at("vars")),
            tuple(self._assertions(written.get("assert"), place.at("assert"))),
            _number(written.get("threshold")),
            _mapping(written.get("options")),
            _mapping(written.get("metadata")),
            [str(_mapping(each).get("id", each)) if isinstance(each, dict) else str(each) for each in names]
            if isinstance(names, list)
            else None,
            [str(each) for each in prompts] if isinstance(prompts, list) else None,
            written.get("providerOutput"),
        )

    def _vars(self, written: Any, place: Place) -> dict[str, Any]:
        """The variables of a test; those that are files are read."""
        if isinstance(written, str) or (
            isinstance(written, list) and all(isinstance(each, str) for each in written)
        ):
            merged = dict[str, Any]()
            for each in [written] if isinstance(written, str) else written:
                loaded = self._loaded(each, place)
                for one in loaded if isinstance(loaded, list) else [loaded]:
                    merged |= _mapping(one)
            written = merged
        return {name: self._var(value, place.at(name)) for name, value in _mapping(written).items()}

    def _var(self, value: Any, place: Place) -> Any:
        """The value of a variable; one that names files is their content."""
        if isinstance(value, list) and value and isinstance(value[0], str):
            return [self._var(each, place.at(at)) for at, each in enumerate(value)]
        if not isinstance(value, str) or not value.startswith(FILE):
            return _as_javascript(value)
        found = (
            [self._var_file(each, place) for each in self._files(value, place)]
            if not _is_code(value)
            else [value]
        )
        return found if re.search(r"[*?\[]", value) and len(found) > 1 else found[0]

    def _var_file(self, file: DataFile, place: Place) -> str:
        """The content of a file as a variable has it."""
        suffix = PurePath(file.name).suffix.lower()
        if suffix in {".yaml", ".yml"}:
            return _json(self._parsed(file, place))
        if suffix in _IMAGES:
            return f"{FILE}{file.written}"
        if suffix in _MEDIA:
            self.leave(place, f"variable {file.written}", "sounds, films and PDF files are not sent")
            return ""
        return file.text(FILE_BYTES).strip()

    def _scenarios(self, written: Any, place: Place) -> Iterator[Test]:
        """The tests of scenarios: each of their configurations with each of their tests."""
        if isinstance(written, str):
            written = self._loaded(written, place)
        for at, scenario in enumerate(_flat(written)):
            here = place.at(at)
            if isinstance(scenario, str):
                scenario = self._loaded(scenario, here)  # noqa: PLW2901 - the same scenario, read
            for one in scenario if isinstance(scenario, list) else [scenario]:
                settings = one.get("config")
                if isinstance(settings, str):
                    settings = self._loaded(settings, here)
                tests = list(self._tests(one.get("tests"), here.at("tests"))) or [Test(here)]
                for number, each in enumerate(settings or [{}]):
                    data = self._test(_mapping(each), here.at("config", number))
                    yield from (_merged(data, test) for test in tests)

    # Assertions

    def _assertions(self, written: Any, place: Place) -> Iterator[Assertion]:
        """What answers have to be."""
        if isinstance(written, str) and written.startswith(FILE):
            written = self._loaded(written, place)
        for at, each in enumerate(written if isinstance(written, list) else [written] if written else []):
            yield self._assertion(each, place.at(at))

    def _assertion(self, written: Any, place: Place) -> Assertion:
        """One assertion."""
        if not isinstance(written, dict) or not isinstance(written.get("type"), str):
            raise place.error(f"an assertion has a type, found {shown(written)}", "write - type: contains")
        value = written.get("value")
        if isinstance(value, str) and value.startswith(FILE) and not _is_code(value):
            value = self._loaded(value, place.at("value"))
            value = value.strip() if isinstance(value, str) else value
        elif isinstance(value, list):
            value = [self._loaded(each, place) if _is_file(each) else each for each in value]
        rubric = written.get("rubricPrompt")
        return Assertion(
            place,
            written["type"],
            _as_javascript(value),
            _number(written.get("threshold")),
            _number(written.get("weight")),
            written.get("metric"),
            written.get("provider"),
            self._loaded(str(rubric), place) if _is_file(rubric) else rubric,
            written.get("transform"),
            _mapping(written.get("config")),
            tuple(self._assertions(written.get("assert"), place.at("assert"))),
        )


_NOTHING: Final = object()
_IMAGES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_MEDIA: Final = frozenset(
    {".mp3", ".wav", ".mp4", ".webm", ".mov", ".pdf", ".ogg", ".m4a", ".flac", ".avi", ".mkv"}
)


def _merged(data: Test, test: Test) -> Test:
    """A test of a scenario with the values of a configuration."""
    return replace(
        test,
        vars={**data.vars, **test.vars},
        assertions=(*data.assertions, *test.assertions),
        options={**data.options, **test.options},
        metadata={**data.metadata, **test.metadata},
        threshold=data.threshold if test.threshold is None else test.threshold,
        description=test.description or data.description,
    )


def _flat(value: Any) -> list[Any]:
    """The members of a list, those of lists in it among them."""
    if not isinstance(value, list):
        return [] if value is None else [value]
    return [inner for each in value for inner in (each if isinstance(each, list) else [each])]


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    """A number, also one that is written as a text."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _as_javascript(value: Any) -> Any:
    """A value as JavaScript has it: there, 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_as_javascript(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_javascript(each) for key, each in value.items()}
    return value


def _json(value: Any) -> str:
    """A value as JavaScript writes it as JSON."""
    return json.dumps(_as_javascript(value), ensure_ascii=False, separators=(",", ":"))


def _parsed_line(line: str, place: Place) -> Any:
    """A line of JSON."""
    try:
        return parse_yaml(line)
    except WrongInput as error:
        raise place.error(error.what, error.hint) from None


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(FILE) and not _is_code(value)


def _is_code(written: str) -> bool:
    """Whether a path is that of a program, with or without the name of a function."""
    path = written.removeprefix(FILE)
    head, _, name = path.rpartition(":")
    return PurePath(path).suffix.lower() in CODE or (bool(name) and PurePath(head).suffix.lower() in CODE)


def _is_prompt_file(written: str) -> bool:
    """Whether a prompt is the path of a file."""
    if written.startswith(FILE):
        return True
    if "\n" in written or "{{" in written or "://" in written or len(written) > 1_000:  # noqa: PLR2004 - no path is longer
        return False
    path = written.partition(":")[0] if PurePath(written.partition(":")[0]).suffix in CODE else written
    is_path = PurePath(path).suffix.lower() in _PROMPT_FILES
    return is_path and (" " not in path or "/" in path)


def _csv_prompts(text: str, place: Place) -> list[tuple[str, str | None]]:
    """The prompts of a table."""
    if "," not in text:
        lines = [line for line in text.splitlines() if line.strip()]
        return [(line, None) for line in lines[lines[:1] == ["prompt"] :]]
    rows = [{key.strip(): value.strip() for key, value in row.items()} for _, row in rows_of(text, place)]
    return [(row["prompt"], row.get("label")) for row in rows if row.get("prompt")]
