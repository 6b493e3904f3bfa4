"""Reads a file of test cases: CSV with a header, or JSON Lines; every key of a case may be in either.

In CSV an empty cell is no value, and `expected` holds JSON; nothing else is interpreted, formulas included.
"""

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from io import StringIO
from pathlib import PurePath
from typing import Any, Final

from producer.load.case_contract import MOST_CASES, Row, checked, nearest
from producer.load.case_files import DATA_BYTES, TextFile
from producer.load.problems import Problems, shown
from producer.load.strict_json import parse_json, why_broken
from shared.contracts.case_config import CaseEntry
from shared.contracts.cases import CRITERIA, WRITTEN_AS_JSON
from shared.errors import InputError

COLUMNS: Final = ("input", "id", *CRITERIA)
"""What a CSV file may hold of a case."""
_JSON_HINT: Final = 'each line is one JSON object, such as {"input": "…"}'
_VARIABLES_HINT: Final = "variables of prompts are the vars of cases in JSON Lines, .jsonl"
_CSV_HINT: Final = "quote cells that hold commas, quotes or line ends; a quote inside them is written twice"


def read_case_data(file: TextFile, problems: Problems) -> list[tuple[str, CaseEntry]]:
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
    cases = list[tuple[str, CaseEntry]]()
    for row in rows:
        if len(cases) == MOST_CASES:
            raise InputError(
                f"{row.where}: more than {MOST_CASES:,} cases", hint="split them into several runs"
            )
        case = problems.attempt(partial(_case, row))
        if case is not None:
            cases.append((row.where, case))
    if not cases and len(problems.found) == before:
        raise InputError(f"{file.name}: no cases in it", hint="leave test_cases_file out")
    return cases


def _case(row: Row) -> CaseEntry:
    """Checks a row against the contract."""
    return checked(CaseEntry, row.value, lambda _: row.where)


def json_rows(file: TextFile, problems: Problems) -> Iterator[Row]:
    """Yields the objects of JSON Lines; blank lines are skipped, and lines that hold none are problems."""
    for number, line in enumerate(file.text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file.name}:{number}"
        try:
            value = parse_json(line)
        except (ValueError, RecursionError) as error:
            problems.add(InputError(f"{where}: {why_broken(error)}", hint=_JSON_HINT))
            continue
        if isinstance(value, dict):
            yield Row(where, value)
        else:
            problems.add(InputError(f"{where}: not an object ({shown(value)})", hint=_JSON_HINT))


def csv_rows(file: TextFile, problems: Problems) -> Iterator[Row]:
    """Yields the rows of a CSV file as cases; broken rows are problems.

    Raises:
        InputError: the header breaks the contract, or the file is no CSV.
    """
    csv.field_size_limit(DATA_BYTES)  # of the whole process, where nothing else reads CSV
    lines = csv.reader(StringIO(file.text, newline=""), strict=True)
    header: list[str] | None = None
    while True:
        where = f"{file.name}:{lines.line_num + 1}"
        try:
            cells = next(lines, None)
        except csv.Error as error:  # what follows cannot be split into rows
            problems.add(InputError(f"{where}: not valid CSV: {error}", hint=_CSV_HINT))
            return
        if cells is None:
            break
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = _header(where, cells)
        elif len(cells) != len(header):
            what = f"{len(cells)} cells, and the header has {len(header)}"
            problems.add(InputError(f"{where}: {what}", hint=_CSV_HINT))
        elif (case := problems.attempt(partial(_case_of, where, header, cells))) is not None:
            yield Row(where, case)
    if header is None:
        raise InputError(f"{file.name}: is empty", hint="its first line names the columns: input,expected")


def _header(where: str, cells: Sequence[str]) -> list[str]:
    """Checks the names of the columns."""
    names = [cell.strip() for cell in cells]
    for name in names:
        if name not in COLUMNS:
            raise InputError(f"{where}: unknown column {shown(name)}", hint=_column_hint(name))
        if names.count(name) > 1:
            raise InputError(f"{where}: the column {name} stands twice", hint="keep one of them")
    if "input" not in names:
        raise InputError(f"{where}: there is no column input", hint="the first line names the columns")
    return names


def _column_hint(name: str) -> str:
    """How to mend the name of a column."""
    if name in CaseEntry.model_fields:
        return "CSV cannot hold it: write the cases as JSON Lines (.jsonl)"
    if ";" in name or "\t" in name:
        return "columns are separated by commas"
    return f"{nearest(name, list(COLUMNS))} ({_VARIABLES_HINT})"


def _case_of(where: str, header: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    """Makes a case of a row."""
    case: dict[str, Any] = {
        name: cell for name, cell in zip(header, cells, strict=True) if cell.strip() or name == "input"
    }
    for name in WRITTEN_AS_JSON & case.keys():
        try:
            case[name] = parse_json(case[name])
        except (ValueError, RecursionError) as error:
            hint = 'write it as JSON, quotes doubled: "{""city"": ""Paris""}"'
            raise InputError(f"{where}: {name}: {why_broken(error)}", hint=hint) from None
    return case
