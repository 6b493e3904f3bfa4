"""Reads files of cases row by row: CSV, TSV, JSON Lines and Parquet as streams, JSON and YAML as a whole.

A column, or a key of an object, with a documented name is that field of a case; any other is a variable.
Cells of tables are texts: an empty one is no value, lists are separated by `;`, and fields that are no text
hold JSON. Nothing else is interpreted, formulas included.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import Any, Final

from producer.cases.bench_files import ROW_BYTES, DataFile
from producer.load.contracts import checked
from producer.load.problems import InputRow, Place, PlacedError, Problems, json_lines, nearest
from producer.load.strict_json import parse_json, why_broken
from producer.load.yaml_text import lines_below, parse_yaml
from producer.text import shown
from shared.contracts.case_config import COLUMN_FIELDS, CaseEntry, ColumnTarget
from shared.contracts.cases import CRITERIA, WRITTEN_AS_JSON
from shared.errors import InputError, WrongInput

LISTS: Final = frozenset({"tags", "images"})
"""Fields whose cells are texts separated by `;`."""
WORDS: Final = frozenset({"paid_checks"})
"""Fields whose cells are one of a few words."""
TEXTS: Final = frozenset({"input", "id", "system_prompt", *CRITERIA}) - WRITTEN_AS_JSON - WORDS
"""Fields whose cells are texts; those of all others hold JSON."""
MOST_VARIABLES: Final = 1_000
"""Columns that are variables, of all files."""
WHOLE_BYTES: Final = {".json": 100 << 20, ".yaml": 10 << 20, ".yml": 10 << 20}
"""The largest files that are read as a whole."""
LINED_BYTES: Final = 10 << 20
"""JSON up to this size is read a second time for the lines of its cases."""
PARQUET_ROWS: Final = 1_000
"""Rows of a Parquet file that are in memory at a time."""
INSTALL_PARQUET: Final = "pip install 'proctor[parquet]', or save it as .csv or .jsonl"
_NEAR: Final = 0.8
"""How similar the name of a column is to a documented one that is probably meant."""
_SHORT_CHARS: Final = 4
_NEAR_SHORT: Final = 0.85
"""The same of short names, which are similar to `id` by chance."""
_JSON_HINT: Final = 'each line is one JSON object, such as {"input": "…"}'
_TABLE_HINT: Final = "quote cells that hold {}, quotes or line ends; a quote inside them is written twice"
_LONE_RETURN: Final = re.compile(r"(?<=\r)(?!\n)")
_FORMS: Final = ".csv, .tsv, .jsonl, .json, .yaml or .parquet"


ReadValue = Callable[[Place, ColumnTarget, Any], Any]
"""Reads the value of a column, at a place."""


@dataclass(slots=True)
class Columns:
    """What the columns of all data files of a bench are.

    Args:
        renamed: `columns` of the bench.
    """

    renamed: Mapping[str, ColumnTarget]
    needs_input: bool = False
    """Whether tables have to have a column `input`, or `messages`, because there are no prompts."""
    variables: dict[str, None] = field(default_factory=dict)
    """Columns that are variables because they are nothing else, in the order in which they were met."""
    _targets: dict[str, ColumnTarget] = field(default_factory=dict)

    def target(self, name: str, place: Place) -> ColumnTarget:
        """Returns what a column is.

        Raises:
            InputError: its name is almost a documented one, or there are too many variables.
        """
        if name not in self._targets:
            self._targets[name] = self.renamed.get(name) or self._by_name(name, place)
        return self._targets[name]

    def _by_name(self, name: str, place: Place) -> ColumnTarget:
        """Returns what the name of a column says."""
        if (target := ColumnTarget.named(name)) is not None:
            return target
        near = _NEAR if len(name) > _SHORT_CHARS else _NEAR_SHORT
        close = get_close_matches(name.lower(), COLUMN_FIELDS, n=1, cutoff=near)
        if close and not name.startswith(f"{close[0]}_"):
            hint = f"did you mean {close[0]!r}? For a variable, write columns: {{{name}: vars.{name}}}"
            raise place.error(f"unknown column {shown(name)}", hint)
        self.variables[name] = None
        if len(self.variables) > MOST_VARIABLES:
            what = f"more than {MOST_VARIABLES:,} names of columns are variables"
            raise place.error(what, "keep what belongs together in one object: vars or metadata")
        return ColumnTarget("vars", name)

    def refuse_unused(self, place: Place) -> None:
        """Refuses names in `columns` that no file has.

        Raises:
            InputError: there is one.
        """
        if not self._targets:
            return  # no file could be read
        for name in self.renamed.keys() - self._targets.keys():
            raise place.at(name).error(f"no data file has a column {shown(name)}", self._hint(name))

    def _hint(self, name: str) -> str:
        return nearest(name, list(self._targets))

    def case(self, row: InputRow, read: ReadValue) -> dict[str, Any]:
        """Makes a case of a row.

        Args:
            row: values by column.
            read: reads a value; `_NOTHING` is none.

        Raises:
            InputError: two columns are the same field, or a cell cannot be read.
        """
        case, members = dict[str, Any](), dict[str, dict[str, Any]]()
        for name, written in row.value.items():
            target = self.target(name, row.place.at(name))
            value = read(row.place.at(name), target, written)
            if value is _NOTHING:
                continue
            inside = members.setdefault(target.field, {}) if target.member else case
            if (key := target.member or target.field) in inside:
                raise row.place.at(name).error(f"another column is {target} too", "keep one of them")
            inside[key] = value
        for key, values in members.items():
            whole = case.get(key)
            if whole is not None and not isinstance(whole, dict):
                continue  # refused by the contract
            if twice := (whole or {}).keys() & values.keys():
                what = f"{min(twice)} stands in {key} and in a column of its own"
                raise row.place.at(key).error(what, "keep one of them")
            case[key] = {**(whole or {}), **values}
        return case


_NOTHING: Final = object()
"""A cell without a value."""


def read_rows(file: DataFile, columns: Columns, problems: Problems) -> Iterator[tuple[Place, CaseEntry]]:
    """Yields the cases of a file, with the place of each.

    Args:
        file: where it is.
        columns: what its columns are.
        problems: what is wrong with single cases is added here.

    Raises:
        InputError: it is no file of cases.
    """
    return cases_of_rows(file.name, *_opened(file, columns, problems), columns, problems)


def cases_of_rows(
    name: str, rows: Iterable[InputRow], read: ReadValue, columns: Columns, problems: Problems
) -> Iterator[tuple[Place, CaseEntry]]:
    """Yields the cases that rows are, with the place of each.

    Args:
        name: of what has the rows.
        rows: values by column.
        read: reads a value.
        columns: what the columns are.
        problems: what is wrong with single cases is added here.

    Raises:
        InputError: there are none.
    """
    has_rows, before = False, len(problems.found)
    for row in rows:
        has_rows = True
        case = problems.attempt(partial(case_of, row, columns, read))
        if case is not None:
            yield row.place, case
    if not has_rows and len(problems.found) == before:
        raise InputError(f"{name}: no cases in it", hint="leave test_cases_file out")


def _opened(file: DataFile, columns: Columns, problems: Problems) -> tuple[Iterator[InputRow], ReadValue]:
    """Chooses how a file is read, by its suffix."""
    match suffix := PurePath(file.name).suffix.lower():
        case ".csv" | ".tsv" | ".tab":
            separator = "," if suffix == ".csv" else "\t"
            return table_rows(file.name, file.lines(), columns, problems, separator), cell
        case ".jsonl" | ".ndjson":
            return json_rows(file.name, file.lines(), problems), as_written
        case ".json" | ".yaml" | ".yml":
            return _whole(file, suffix, problems), as_written
        case ".parquet":
            return _parquet_rows(file), _parquet_cell
        case _:
            what = f"{shown(file.written)} has no suffix of a file of cases"
            raise file.place.error(what, f"save it as {_FORMS}")


def case_of(row: InputRow, columns: Columns, read: ReadValue) -> CaseEntry:
    """Checks a row against the contract; errors name the column as it is written."""
    case = columns.case(row, read)
    try:
        return checked(CaseEntry, case, row.place)
    except InputError as error:
        raise _by_column(error, row.value, columns) from None


def _by_column(error: InputError, written: Iterable[str], columns: Columns) -> InputError:
    """Returns an error with the names of columns instead of those of fields."""
    names = {columns.target(name, Place("")): name for name in written}

    def named(each: Any) -> Any:
        if not isinstance(each, PlacedError) or not each.problem.place.path:
            return each
        place, what, hint = each.problem
        first, *inner = place.path
        member = str(inner[0]) if inner else ""
        if name := names.get(ColumnTarget(str(first), member)):
            inner = inner[1:]
        elif not (name := names.get(ColumnTarget(str(first)))):
            return each
        return Place(place.file, place.text, (name, *inner), place.case, place.line).error(what, hint)

    if not error.problems:
        found: InputError = named(error)
        return found
    error.problems = tuple(map(named, error.problems))
    return error


def as_written(_place: Place, _target: ColumnTarget, value: Any) -> Any:
    """Takes a value of JSON or YAML."""
    return value


def cell(place: Place, target: ColumnTarget, text: str) -> Any:
    """Reads a cell of a table."""
    name = target.field
    if not text.strip() and name not in {"vars", "input"}:
        return _NOTHING
    if target.member or name in TEXTS:
        return text
    if name in LISTS:
        return [part for each in text.split(";") if (part := each.strip())]
    if name in WORDS:
        return text.strip()
    if not text.strip():
        return _NOTHING
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise place.error(why_broken(error), _json_hint(name)) from None


def _json_hint(name: str) -> str:
    """How to write the cell of a field that is no text."""
    examples = {"weight": "2", "at_least": "0.8", "expand": "true", "default_checks": "false"}
    if name in examples:
        return f"write it as JSON: {examples[name]}"
    return 'write it as JSON, quotes doubled: "{""city"": ""Paris""}"'


def json_rows(name: str, lines: Iterable[str], problems: Problems) -> Iterator[InputRow]:
    """Yields the objects of JSON Lines; lines that hold none are problems."""
    for row in json_lines(name, lines, problems, _JSON_HINT):
        if isinstance(row.value, dict):
            yield row
        else:
            problems.add(row.place.error(f"not an object ({shown(row.value)})", _JSON_HINT))


def table_rows(
    name: str, lines: Iterable[str], columns: Columns, problems: Problems, separator: str = ","
) -> Iterator[InputRow]:
    """Yields the rows of CSV or TSV by column; broken rows are problems.

    Raises:
        InputError: the header breaks the contract, or the file is no table.
    """
    csv.field_size_limit(ROW_BYTES)  # of the whole process, where nothing else reads CSV
    mend = _TABLE_HINT.format("commas" if separator == "," else "tabs")
    rows = csv.reader(chain.from_iterable(map(_split, lines)), strict=True, delimiter=separator)
    header: Sequence[str] | None = None
    while True:
        place = Place(name, line=rows.line_num + 1)
        try:
            cells = next(rows, None)
        except csv.Error as error:  # what follows cannot be split into rows
            problems.add(place.error(f"not valid {'CSV' if separator == ',' else 'TSV'}: {error}", mend))
            return
        if cells is None:
            break
        if not any(each.strip() for each in cells):
            continue
        if header is None:
            header = _header(place, cells, columns, separator)
        elif len(cells) != len(header):
            what = f"{len(cells)} cells, and the header has {len(header)}"
            problems.add(place.error(what, mend))
        else:
            yield InputRow(place, dict(zip(header, cells, strict=True)))
    if header is None:
        raise InputError(f"{name}: is empty", hint="its first line names the columns: input,expected")


def _split(line: str) -> Sequence[str]:
    """Splits a line at carriage returns that stand alone, as some spreadsheets end lines."""
    return _LONE_RETURN.split(line) if "\r" in line[:-2] else (line,)


def _header(place: Place, cells: Sequence[str], columns: Columns, separator: str) -> list[str]:
    """Checks the names of the columns."""
    names = [each.strip() for each in cells]
    for other in ";\t,":
        if len(names) == 1 and other in names[0] and other != separator:
            what = f"one column, {shown(names[0])}"
            raise place.error(what, f"columns are separated by {'commas' if separator == ',' else 'tabs'}")
    targets = dict[ColumnTarget, str]()
    for at, name in enumerate(names, 1):
        if not name:
            raise place.error(f"the column {at} has no name", "name it, or remove it")
        target = columns.target(name, place)
        if target in targets:
            stands = "stands twice" if targets[target] == name else f"and {targets[target]} are both {target}"
            raise place.error(f"the column {name} {stands}", "keep one of them")
        targets[target] = name
    if columns.needs_input and targets.keys().isdisjoint({ColumnTarget("input"), ColumnTarget("messages")}):
        example = next(iter(columns.variables), "question")
        hint = f"name it in the first line; columns: {{{example}: input}} renames another one"
        raise place.error("there is no column input", hint)
    return names


def _whole(file: DataFile, suffix: str, problems: Problems) -> Iterator[InputRow]:
    """Yields the cases of a JSON or YAML list, which is read as a whole."""
    text = file.text(WHOLE_BYTES[suffix])
    try:
        found = parse_json(text) if suffix == ".json" else parse_yaml(text)
    except WrongInput as error:
        raise Place(file.name, line=error.line).error(error.what, error.hint) from None
    except (ValueError, RecursionError) as error:
        place = Place(file.name, line=getattr(error, "lineno", 1))
        hint = "a .json file is one list of objects; one object on each line is .jsonl"
        raise place.error(why_broken(error), hint) from None
    if not isinstance(found, list):
        raise InputError(f"{file.name}: not a list of cases ({shown(found)})", hint='write [{"input": "…"}]')
    lines = lines_below(text, ()) if len(text) <= LINED_BYTES else {}
    for at, value in enumerate(found):
        place = Place(file.name, line=lines[at]) if at in lines else Place(f"{file.name}[{at}]")
        if isinstance(value, dict):
            yield InputRow(place, value)
        else:
            problems.add(place.error(f"not an object ({shown(value)})", "a case is an object: input: …"))


def _parquet_rows(file: DataFile) -> Iterator[InputRow]:
    """Yields the rows of a Parquet file; their line is their number."""
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - an extra, and 100 ms
    except ImportError:
        raise file.place.error(f"{file.name} cannot be read without pyarrow", INSTALL_PARQUET) from None
    try:
        with parquet.ParquetFile(file.path, pre_buffer=False) as table:
            number = 0
            for batch in table.iter_batches(PARQUET_ROWS, use_threads=False):
                for value in batch.to_pylist():
                    number += 1
                    yield InputRow(Place(file.name, line=number), value)
    except (ArrowException, OSError) as error:
        what = f"{file.name}: not a Parquet file: {str(error).splitlines()[0]}"
        raise InputError(what, hint="write it again, or save it as .csv or .jsonl") from None


def _parquet_cell(place: Place, target: ColumnTarget, value: Any) -> Any:
    """Reads a value of a Parquet file: texts as in CSV, dates and decimals as texts."""
    match value:
        case None:
            return _NOTHING
        case str():
            return cell(place, target, value)
        case bytes():
            raise place.error("holds bytes", "store it as text")
        case _:
            return _plain(value)


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _:
            return str(value)
