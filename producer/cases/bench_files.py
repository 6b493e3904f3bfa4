"""Opens the files that a configuration names, in its own folder, links followed, never more than a bound.

Among them are files of test cases, CSV with a header or JSON Lines: each row may have every key of a case. In
CSV an empty cell is no value, and `expected` holds JSON; nothing else is interpreted, formulas included.
"""

import csv
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from hashlib import sha256
from io import StringIO
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple

import msgspec

from producer.image_types import media_type_of
from producer.load.contracts import checked
from producer.load.problems import MOST_CASES, InputRow, Place, Problems, nearest
from producer.load.source import Source
from producer.load.strict_json import parse_json, why_broken
from producer.text import shown
from shared.contracts.case_config import CaseEntry
from shared.contracts.case_run import Image
from shared.contracts.cases import CRITERIA, WRITTEN_AS_JSON
from shared.errors import InputError

CONFIG_BYTES: Final = 10 << 20
"""The largest configuration."""
DATA_BYTES: Final = 100 << 20
"""The largest file of cases or recorded outputs."""
SCHEMA_BYTES: Final = 10 << 20
"""The largest schema."""
VALIDATORS_BYTES: Final = 1 << 18
"""The largest validators file."""

_KEPT_IN: Final = "files that a configuration names stay in its folder, or below; copy it there"


class TextFile(NamedTuple):
    """A file that was read."""

    name: str
    """As errors name it."""
    text: str
    """Its content, without a byte order mark."""


def read_source(source: Source, most: int) -> TextFile:
    """Reads a bounded input as UTF-8 text.

    Raises:
        InputError: it cannot be read, is too large, or is no UTF-8.
    """
    parts, size = list[bytes](), 0
    for block in source.blocks():
        size += len(block)
        if size > most:
            raise _too_large(source.name, most)
        parts.append(block)
    return TextFile(source.name, decoded(source.name, b"".join(parts)))


def read_beside(config: Path | None, place: Place, written: str, most: int) -> TextFile:
    """Reads a file that a configuration names.

    Args:
        config: the configuration's file; None: it came over stdin, and the current folder counts as its own.
        place: where the path is written.
        written: the path, as it is written.
        most: bytes that it may have.

    Raises:
        InputError: it leads out of the configuration's folder, is no file, or cannot be read.
    """
    content = read_bytes_beside(config, place, written, most)
    name = _short(inside(config, place, written))
    return TextFile(name, decoded(name, content, place))


def read_bytes_beside(config: Path | None, place: Place, written: str, most: int) -> bytes:
    """Reads the bytes of a file that a configuration names, as `read_beside` does.

    Raises:
        InputError: it leads out of the configuration's folder, is no file, or cannot be read.
    """
    path = inside(config, place, written)
    try:  # without waiting, should it be a pipe
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise place.error(f"{shown(written)} is no regular file", "name a file")
            content = stream.read(most + 1)
    except OSError as error:
        what = f"{shown(written)} cannot be read: {error.strerror}"
        raise place.error(what, "check its rights") from None
    if len(content) > most:
        raise _too_large(f"{place}: {path}", most)
    return content


def inside(config: Path | None, place: Place, written: str) -> Path:
    """Finds a file inside the configuration's folder; symbolic links are followed first.

    Raises:
        InputError: it is elsewhere, missing, or a folder.
    """
    folder = config.parent if config is not None else Path()
    try:
        root, path = folder.resolve(), (folder / written).resolve()
        is_inside, is_there, is_folder = path.is_relative_to(root), path.exists(), path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name, a ring of links
        raise place.error(f"{shown(written)} is no usable path: {error}", _KEPT_IN) from None
    if not is_inside:
        raise place.error(f"{shown(written)} leads out of the folder of the configuration", _KEPT_IN)
    if not is_there:
        near = _nearest(path)
        hint = f"did you mean {near!r}?" if near else f"paths count from {root}"
        raise place.error(f"no such file: {shown(written)}", hint)
    if is_folder:
        raise place.error(f"{shown(written)} is a directory", "name the file inside it")
    return path


def decoded(name: str, content: bytes, named_at: Place | None = None) -> str:
    """Reads UTF-8, with or without a byte order mark.

    Args:
        name: of the file.
        content: of it.
        named_at: where another file names it, if one does.

    Raises:
        InputError: it is another encoding.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        hint = "save the file as UTF-8: iconv -f FROM -t UTF-8 FILE"
        where = f"{named_at}: {name}" if named_at else name
        raise Place(where, line=line).error(f"not UTF-8 text (byte {error.start + 1})", hint) from None


def _too_large(name: str, most: int) -> InputError:
    """The error for a file beyond its bound."""
    size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
    return InputError(f"{name}: is larger than {size}", hint="split it, or take out what is not needed")


def _short(path: Path) -> str:
    """A path as people type it, where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def _nearest(path: Path) -> str | None:
    """A file of nearly this name in the same folder."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return None
    return next(iter(get_close_matches(path.name, names, n=1)), None)


COLUMNS: Final = ("input", "id", *CRITERIA)
"""What a CSV file may hold of a case."""
_JSON_HINT: Final = 'each line is one JSON object, such as {"input": "…"}'
_VARIABLES_HINT: Final = "variables of prompts are the vars of cases in JSON Lines, .jsonl"
_CSV_HINT: Final = "quote cells that hold commas, quotes or line ends; a quote inside them is written twice"


def read_case_data(file: TextFile, problems: Problems) -> list[tuple[Place, CaseEntry]]:
    """Reads the cases of a file, with the place of each.

    Args:
        file: its content.
        problems: what is wrong with single cases is added here.

    Raises:
        InputError: it is no file of cases.
    """
    suffix, before = PurePath(file.name).suffix.lower(), len(problems.found)
    if suffix == ".csv":
        rows = csv_rows(file, problems)
    elif suffix in (".jsonl", ".ndjson"):
        rows = json_rows(file, problems)
    else:
        raise InputError(
            f"test_cases_file: {file.name} is neither .csv nor .jsonl", hint="save it as one of them"
        )
    cases = list[tuple[Place, CaseEntry]]()
    for row in rows:
        if len(cases) == MOST_CASES:
            raise row.place.error(f"more than {MOST_CASES:,} cases", "split them into several runs")
        case = problems.attempt(partial(_case, row))
        if case is not None:
            cases.append((row.place, case))
    if not cases and len(problems.found) == before:
        raise InputError(f"{file.name}: no cases in it", hint="leave test_cases_file out")
    return cases


def _case(row: InputRow) -> CaseEntry:
    """Checks a row against the contract."""
    return checked(CaseEntry, row.value, row.place)


def json_rows(file: TextFile, problems: Problems) -> Iterator[InputRow]:
    """Yields the objects of JSON Lines; blank lines are skipped, and lines that hold none are problems."""
    for number, line in enumerate(file.text.split("\n"), 1):
        if not line.strip():
            continue
        place = Place(file.name, line=number)
        try:
            value = parse_json(line)
        except (ValueError, RecursionError) as error:
            problems.add(place.error(why_broken(error), _JSON_HINT))
            continue
        if isinstance(value, dict):
            yield InputRow(place, value)
        else:
            problems.add(place.error(f"not an object ({shown(value)})", _JSON_HINT))


def csv_rows(file: TextFile, problems: Problems) -> Iterator[InputRow]:
    """Yields the rows of a CSV file as cases; broken rows are problems.

    Raises:
        InputError: the header breaks the contract, or the file is no CSV.
    """
    csv.field_size_limit(DATA_BYTES)  # of the whole process, where nothing else reads CSV
    lines = csv.reader(StringIO(file.text, newline=""), strict=True)
    header: list[str] | None = None
    while True:
        place = Place(file.name, line=lines.line_num + 1)
        try:
            cells = next(lines, None)
        except csv.Error as error:  # what follows cannot be split into rows
            problems.add(place.error(f"not valid CSV: {error}", _CSV_HINT))
            return
        if cells is None:
            break
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = _header(place, cells)
        elif len(cells) != len(header):
            what = f"{len(cells)} cells, and the header has {len(header)}"
            problems.add(place.error(what, _CSV_HINT))
        elif (case := problems.attempt(partial(_case_of, place, header, cells))) is not None:
            yield InputRow(place, case)
    if header is None:
        raise InputError(f"{file.name}: is empty", hint="its first line names the columns: input,expected")


def _header(place: Place, cells: Sequence[str]) -> list[str]:
    """Checks the names of the columns."""
    names = [cell.strip() for cell in cells]
    for name in names:
        if name not in COLUMNS:
            raise place.error(f"unknown column {shown(name)}", _column_hint(name))
        if names.count(name) > 1:
            raise place.error(f"the column {name} stands twice", "keep one of them")
    if "input" not in names:
        raise place.error("there is no column input", "the first line names the columns")
    return names


def _column_hint(name: str) -> str:
    """How to mend the name of a column."""
    if name in CaseEntry.model_fields:
        return "CSV cannot hold it: write the cases as JSON Lines (.jsonl)"
    if ";" in name or "\t" in name:
        return "columns are separated by commas"
    return f"{nearest(name, list(COLUMNS))} ({_VARIABLES_HINT})"


def _case_of(place: Place, header: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    """Makes a case of a row."""
    case: dict[str, Any] = {
        name: cell for name, cell in zip(header, cells, strict=True) if cell.strip() or name == "input"
    }
    for name in WRITTEN_AS_JSON & case.keys():
        try:
            case[name] = parse_json(case[name])
        except (ValueError, RecursionError) as error:
            hint = 'write it as JSON, quotes doubled: "{""city"": ""Paris""}"'
            raise place.at(name).error(why_broken(error), hint) from None
    return case


IMAGE_BYTES: Final = 5 << 20
"""The largest image."""
IMAGES_BYTES: Final = 256 << 20
"""All images of a run together: they lie in Redis' memory."""

ReadBytes = Callable[[Place, str, int], bytes]
"""Reads a file that the bench names at a place, of so many bytes at most."""


@dataclass(slots=True)
class Images:
    """The images of a run.

    Args:
        read: reads a file beside the bench.
    """

    read: ReadBytes
    files: dict[str, bytes] = field(default_factory=dict)
    """By hash, as workers read them."""
    _hashes: dict[str, str] = field(default_factory=dict)
    _size: int = 0

    def add(self, written: Sequence[str], place: Place) -> tuple[str, ...]:
        """Reads the images of a case and returns their hashes.

        Args:
            written: their paths.
            place: where they stand.

        Raises:
            InputError: one is no image, is too large, or lies elsewhere.
        """
        return tuple(self._add(path, place.at(at)) for at, path in enumerate(written))

    def _add(self, path: str, place: Place) -> str:
        """Reads one image, the first time it is named."""
        if path not in self._hashes:
            data = self.read(place, path, IMAGE_BYTES)
            media_type = media_type_of(data)
            if media_type is None:
                raise place.error(f"{shown(path)} is no image", "PNG, JPEG, GIF and WebP are sent")
            name = sha256(data).hexdigest()
            if name not in self.files:
                self._size += len(data)
                self.files[name] = msgspec.msgpack.encode(Image(media_type, data, PurePath(path).name))
            if self._size > IMAGES_BYTES:
                what = f"the images of the run have more than {IMAGES_BYTES >> 20} MiB together"
                raise place.error(what, "split the cases into several runs, or make images smaller")
            self._hashes[path] = name
        return self._hashes[path]
