"""Writes labels as files, and reads them from files: JSON Lines, or CSV with the same columns."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import astuple, replace

from producer.item_ids import item_id
from producer.item_names import ItemName, names_of, resolve
from producer.load.problems import InputRow, Place, Problems, json_lines, nearest
from producer.load.source import Source
from producer.review.answer_labels import AnswerLabel, Judgement, checked, digest_of
from producer.row_reader import RowReader
from producer.service_documents import LabelRow
from shared.clock import iso_utc, now_ms, parse_iso_ms
from shared.errors import UsageError
from shared.runs import RunInfo, RunStore

COLUMNS: Final = tuple(field.name for field in msgspec.structs.fields(LabelRow))

TAGS: Final = "tags"
"""The column with several values."""


class Imported(NamedTuple):
    """What a file of labels holds for a run."""

    labels: Sequence[AnswerLabel]
    of_other_answers: int
    """Labels of answers that the run does not have."""


def rows_of(store: RunStore, info: RunInfo, labels: Iterable[AnswerLabel]) -> list[LabelRow]:
    """Returns labels as files have them, with the names of their items."""
    labels = list(labels)
    wanted = {label.position for label in labels}
    names = {name.position: name.label for name in names_of(store, info) if name.position in wanted}
    return [
        LabelRow(
            run_id=info.run,
            item_id=item_id(info.kind, label.position),
            name=names.get(label.position, ""),
            verdict=label.verdict.value,
            reviewer=label.reviewer,
            note=label.note,
            tags=label.tags,
            answer=label.answer,
            at=iso_utc(label.at_ms),
        )
        for label in labels
    ]


def written(rows: Sequence[LabelRow], name: str) -> bytes:
    r"""Writes rows in the form that the suffix of a file's name asks for.

    >>> written([LabelRow(name="fr", verdict="pass", tags=["a", "b"])], "x.csv").splitlines()[1]
    b',,fr,pass,,,a;b,,'
    """
    if PurePath(name).suffix.lower() != ".csv":
        return msgspec.json.Encoder().encode_lines(rows)
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(COLUMNS)
    for row in rows:
        table.writerow(";".join(cell) if isinstance(cell, list) else cell for cell in astuple(row))
    return text.getvalue().encode()


def read_rows(source: Source) -> list[tuple[Place, LabelRow]]:
    """Reads a file of labels.

    Raises:
        InputError: a line breaks the contract; the error has all problems.
    """
    problems, rows = Problems(), list[tuple[Place, LabelRow]]()
    for place, fields in _fields(source, problems):
        row = problems.attempt(lambda place=place, fields=fields: _row(place, fields))  # type: ignore[misc] # called at once
        if row is not None:
            rows.append((place, row))
    problems.raise_found()
    return rows


def imported(
    store: RunStore, info: RunInfo, rows: Sequence[tuple[Place, LabelRow]], *, reviewer: str
) -> Imported:
    """Finds the items of labels in a run.

    A label of an item whose answer is another than the one that was seen is left out.

    Args:
        store: reads the run.
        info: the run.
        rows: what a file holds.
        reviewer: whose the labels without a reviewer are.

    Raises:
        InputError: an item is unknown, or a label breaks a bound; the error has all problems.
    """
    problems, names = Problems(), list(names_of(store, info))
    found = [
        (row, label)
        for place, row in rows
        if (label := problems.attempt(lambda place=place, row=row: _label(place, row, names, info, reviewer)))  # type: ignore[misc] # called at once
    ]
    problems.raise_found()
    seen = answers_of(store, info, {label.position for row, label in found})
    kept = [
        replace(label, answer=seen.get(label.position, ""))
        for row, label in found
        if not row.answer or row.answer == seen.get(label.position)
    ]
    return Imported(kept, len(found) - len(kept))


def answers_of(store: RunStore, info: RunInfo, positions: set[int]) -> Mapping[int, str]:
    """Returns the digests of the answers of items."""
    reader = RowReader(store, info)
    return {row.index: digest_of(reader.shown(row).answer) for row in reader.at(sorted(positions))}


def _label(
    place: Place, row: LabelRow, names: Sequence[ItemName], info: RunInfo, reviewer: str
) -> AnswerLabel:
    """Makes a label of a row."""
    text = row.item_id if row.item_id and row.run_id in {"", info.run} else row.name or row.item_id
    try:
        [position] = resolve([text], names, kind=info.kind, where=info.run)
        at_ms = parse_iso_ms(row.at) if row.at else now_ms()
        return checked(
            AnswerLabel(
                position=position,
                reviewer=row.reviewer or reviewer,
                verdict=Judgement(row.verdict),
                note=row.note,
                tags=row.tags,
                at_ms=at_ms,
            )
        )
    except UsageError as error:
        raise place.error(error.message, error.hint or "") from None
    except ValueError:
        raise place.error(
            f"at: {row.at!r} is not a time", "write it as 2026-01-31T12:00:00Z, or leave it out"
        ) from None


def _row(place: Place, fields: Any) -> LabelRow:
    """Checks one row."""
    if not isinstance(fields, dict):
        raise place.error("a label is an object", 'such as {"name": "fr", "verdict": "pass"}')
    for key in fields:
        if key not in COLUMNS:
            raise place.error(f"unknown key {key!r}", nearest(str(key), list(COLUMNS)))
    try:
        row = msgspec.convert(fields, LabelRow)
    except msgspec.ValidationError as error:
        raise place.error(str(error), f"a verdict is one of {', '.join(Judgement)}") from None
    if not (row.item_id or row.name):
        raise place.error("no item is named", "add its name, or its item_id such as case-3")
    return row


def _text(source: Source) -> str:
    """Reads all of a file of labels, which people have written."""
    raw = b"".join(source.blocks())
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Place(source.name, line=line).error("is not UTF-8 text", "save the file as UTF-8") from None


def _fields(source: Source, problems: Problems) -> Iterator[InputRow]:
    """Yields the rows of a file as they are written."""
    text = _text(source)
    if PurePath(source.name).suffix.lower() != ".csv":
        yield from json_lines(source.name, text.split("\n"), problems, "labels are JSON Lines, or CSV")
        return
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    for cells in reader:
        place = Place(source.name, line=reader.line_num)
        if None in cells:
            raise place.error("more cells than columns", "quote cells with commas")
        given = {key: cell.split(";") if key == TAGS else cell for key, cell in cells.items() if cell}
        yield InputRow(place, given)
