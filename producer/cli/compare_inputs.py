"""Finds what `compare` compares: a run by its id, or the results of one in a report file."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from producer import kinds
from producer.aggregate.compared_items import Items, items_of, lines_of_results, split_by
from producer.cli.run_lookup import find_run
from producer.cli.session import Session
from producer.document import pages_of
from producer.report.formats import format_of
from producer.text import plural
from shared.errors import InputError, UnknownRunError, UsageError
from shared.kinds import QUERIES, Kind, all_kinds, kind_named

Line = Mapping[str, Any]
_HINT: Final = "write it with `proctor report RUN -o FILE.jsonl`"


class Side(NamedTuple):
    """One side of a comparison."""

    name: str
    """The run's id, or the file."""
    source: str
    """Its input; empty if a report file does not name it."""
    kind: Kind
    items: Items
    is_final: bool
    """Whether it is complete."""

    def as_document(self) -> dict[str, str]:
        """Returns it for `--json`."""
        return {"name": self.name, "source": self.source}


def read_side(session: Callable[[], Session], named: str, *, tag: str | None = None) -> Side:
    """Reads a run or a report.

    Args:
        session: connects to Redis; not called for a file.
        named: a file, or a run's id.
        tag: only cases with this tag.

    Raises:
        InputError: the file holds no results.
        UnknownRunError: there is no such file and no such run.
    """
    path = Path(named)
    if path.is_file():
        return _of_file(path, tag)
    if path.suffix in {".json", ".jsonl"} or len(path.parts) > 1:
        raise InputError(f"{named}: there is no such file", hint="name a run, or a report of one")
    return _of_run(session(), named, tag)


def sides_within(side: Side, by: str, pair: tuple[str, str] | None) -> tuple[Side, Side]:
    """Takes the two sides of a comparison out of one run.

    Args:
        side: the run.
        by: `prompt` or `model`.
        pair: the two names; None where the run has only two.

    Raises:
        UsageError: the run has not these two.
    """
    if not kinds.of(side.kind).comparing.load().names_model:
        raise UsageError(f"{side.name} has {side.kind}, which have no {by}s", hint="compare two runs")
    parts = split_by(side.items, by)
    names = pair or tuple(parts)
    if missing := [name for name in names if name not in parts]:
        raise UsageError(
            f"{side.name} has no {by} {missing[0]!r}", hint=f"it has {', '.join(map(repr, parts))}"
        )
    if len(names) != 2:  # noqa: PLR2004 - a comparison has two sides
        hint = f"name two with `--pair A B`: {', '.join(parts)}" if len(parts) > 1 else "compare two runs"
        raise UsageError(f"{side.name} has {plural(len(parts), by)}", hint=hint)
    one, other = (side._replace(name=f"{side.name} {by} {name}", items=parts[name]) for name in names)
    return one, other


def _of_run(session: Session, named: str, tag: str | None) -> Side:
    """Reads the results of a run, page by page."""
    try:
        info = find_run(session, named)
    except UnknownRunError as error:
        raise UnknownRunError(f"{error.message}, and no file", hint=error.hint, run=error.run) from None
    write = format_of(info.kind, "jsonl")

    def lines() -> Iterator[Line]:
        for rows in pages_of(session.store, info):
            out = BytesIO()
            write(out, info).page(rows)
            yield from map(msgspec.json.decode, out.getvalue().split(b"\n")[:-1])

    return Side(info.run, info.source, info.kind, items_of(info.kind, lines(), tag=tag), info.is_final)


def _of_file(path: Path, tag: str | None) -> Side:
    """Reads a report in JSON or JSON Lines."""
    with path.open("rb") as file:
        first = file.readline()
        file.seek(0)
        try:
            head = json.loads(first)
        except ValueError:
            head = None
        if isinstance(head, dict) and {"kind", "outcome", "result"} <= head.keys():
            return _side(path, head["kind"], _json_lines(path, file), tag)
        try:
            document = json.load(file)
        except ValueError as error:
            raise InputError(f"{path}: neither JSON nor JSON Lines: {error}", hint=_HINT) from None
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise InputError(f"{path}: no `results` in it", hint=_HINT)
    if "kind" in document:
        return _side(path, document["kind"], results, tag)
    return _side(path, QUERIES.name, lines_of_results(results), tag)


def _json_lines(path: Path, file: Iterable[bytes]) -> Iterator[Line]:
    """Reads lines."""
    for number, line in enumerate(file, 1):
        try:
            found = msgspec.json.decode(line)
        except ValueError as error:
            raise InputError(f"{path} line {number}: no JSON: {error}", hint=_HINT) from None
        yield found


def _side(path: Path, kind: Any, lines: Iterable[Line], tag: str | None) -> Side:
    """Reads the results of a file."""
    if kind not in {known.name for known in all_kinds()}:
        raise InputError(f"{path}: results of an unknown kind, {kind!r}", hint=_HINT)
    try:
        items = items_of(kind_named(kind), lines, tag=tag)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: a result is not as Proctor writes it ({what})", hint=_HINT) from None
    return Side(str(path), "", kind_named(kind), items, is_final=True)
