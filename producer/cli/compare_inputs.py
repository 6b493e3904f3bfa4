"""Finds what `compare` compares: a run by its id, or the results of one in a report file."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import msgspec

from producer import kinds
from producer.aggregate.compared_items import items_of, lines_of_results, split_by
from producer.cli.run_lookup import find_run
from producer.cli.session import Session
from producer.document import pages_of
from producer.report.comparison.configurations import configuration_within
from producer.report.comparison.contents import Side
from producer.report.comparison.item_texts import TextStore
from producer.report.formats import format_of
from producer.report.interfaces import TurnText
from producer.text import plural
from shared.clock import iso_utc
from shared.errors import InputError, UnknownRunError, UsageError
from shared.kinds import QUERIES, Kind, all_kinds, kind_named

Line = Mapping[str, Any]
SUMMARY_SETTINGS: Final = {
    "models_asked": "models",
    "prompts_asked": "prompts",
    "judge_models": "judges",
    "repeat": "repeats",
    "api_url": "API",
    "model": "model",
    "live": "live",
    "summary_policy": "summary policy",
    "signals_once": "signals",
    "fold_apostrophes": "apostrophes",
}
"""Settings that the summary of a report contains."""
_HINT: Final = "write it with `proctor report RUN -o FILE.jsonl`"


def read_side(
    session: Callable[[], Session], named: str, resources: ExitStack, *, tag: str | None = None
) -> Side:
    """Reads a run or a report.

    Args:
        session: connects to Redis; not called for a file.
        named: a file, or a run's id.
        resources: closes the texts of its items.
        tag: only cases with this tag.

    Raises:
        InputError: the file holds no results.
        UnknownRunError: there is no such file and no such run.
    """
    path = Path(named)
    if path.is_file():
        return _of_file(path, resources, tag)
    if path.suffix in {".json", ".jsonl"} or len(path.parts) > 1:
        raise InputError(f"{named}: there is no such file", hint="name a run, or a report of one")
    return _of_run(session(), named, resources, tag)


def sides_within(side: Side, by: str, pair: tuple[str, str] | None) -> tuple[Side, Side]:
    """Takes the two sides of a comparison out of one run.

    Args:
        side: the run.
        by: `prompt` or `model`.
        pair: the two names; None where the run has only two.

    Raises:
        UsageError: the run has not these two.
    """
    if not kinds.of(side.kind).compared().comparing.names_model:
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
    one, other = (
        side._replace(
            name=f"{side.name} {by} {name}",
            items=parts[name],
            configuration=configuration_within(side.configuration or {}, by, name),
            is_whole=side.configuration is not None,
            by=by,
            part=name,
        )
        for name in names
    )
    return one, other


def _of_run(session: Session, named: str, resources: ExitStack, tag: str | None) -> Side:
    """Reads the results of a run, page by page."""
    try:
        info = find_run(session, named)
    except UnknownRunError as error:
        raise UnknownRunError(f"{error.message}, and no file", hint=error.hint, run=error.run) from None
    write, compared = format_of(info.kind, "jsonl"), kinds.of(info.kind).compared()
    read = compared.inputs(info) if compared.inputs else None

    def lines() -> Iterator[Line]:
        for rows in pages_of(session.store, info, TurnText.SHOWN):
            out = BytesIO()
            write(out, info).page(rows)
            for row, line in zip(rows, out.getvalue().split(b"\n")[:-1], strict=True):
                found = msgspec.json.decode(line)
                yield found if read is None else found | read(row)

    texts = _texts(info.kind, resources)
    items = items_of(compared.comparing, lines(), tag=tag, keep=texts.add)
    configuration = compared.configuration(info)
    return Side(
        name=info.run,
        source=info.source,
        kind=info.kind,
        items=items,
        is_final=info.is_final,
        texts=texts,
        began=iso_utc(info.created_ms),
        configuration=configuration,
        is_whole=True,
        is_stored=True,
        label=info.name,
        bench=info.bench,
    )


def _texts(kind: Kind, resources: ExitStack) -> TextStore:
    """Makes a store for texts of items."""
    return resources.enter_context(closing(TextStore(kinds.of(kind).compared().texts)))


def _of_file(path: Path, resources: ExitStack, tag: str | None) -> Side:
    """Reads a report in JSON or JSON Lines."""
    with path.open("rb") as file:
        first = file.readline()
        file.seek(0)
        try:
            head = json.loads(first)
        except ValueError:
            head = None
        if isinstance(head, dict) and {"kind", "outcome", "result"} <= head.keys():
            return _side(path, resources, head["kind"], _json_lines(path, file), tag)
        try:
            document = json.load(file)
        except ValueError as error:
            raise InputError(f"{path}: neither JSON nor JSON Lines: {error}", hint=_HINT) from None
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise InputError(f"{path}: no `results` in it", hint=_HINT)
    if "kind" in document:
        return _side(path, resources, document["kind"], results, tag, document=document)
    return _side(path, resources, QUERIES.name, lines_of_results(results), tag)


def _json_lines(path: Path, file: Iterable[bytes]) -> Iterator[Line]:
    """Reads lines."""
    for number, line in enumerate(file, 1):
        try:
            found = msgspec.json.decode(line)
        except ValueError as error:
            raise InputError(f"{path} line {number}: no JSON: {error}", hint=_HINT) from None
        yield found


def _side(
    path: Path,
    resources: ExitStack,
    kind: Any,
    lines: Iterable[Line],
    tag: str | None,
    *,
    document: Mapping[str, Any] | None = None,
) -> Side:
    """Reads the results of a file."""
    if kind not in {known.name for known in all_kinds()}:
        raise InputError(f"{path}: results of an unknown kind, {kind!r}", hint=_HINT)
    texts, dates = _texts(kind_named(kind), resources), list[str]()
    comparing = kinds.of(kind_named(kind)).compared().comparing
    try:
        items = items_of(comparing, _dated(lines, dates), tag=tag, keep=texts.add)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: a result is not as Proctor writes it ({what})", hint=_HINT) from None
    began = min(dates, default="")
    summary = (document or {}).get("summary")
    about = summary if isinstance(summary, dict) else {}
    page = path.with_suffix(".html")
    return Side(
        str(path),
        str(about.get("source", "")),
        kind_named(kind),
        items,
        is_final=True,
        texts=texts,
        began=began,
        configuration=_settings(summary),
        bench=str(about.get("name", "")),
        label=str((document or {}).get("name", "")),
        page=str(page.resolve()) if page.is_file() else "",
    )


def _dated(lines: Iterable[Line], dates: list[str]) -> Iterator[Line]:
    """Keeps the earliest time at which an item began."""
    for line in lines:
        began = line.get("started_at")
        if isinstance(began, str) and (not dates or began < dates[0]):
            dates[:] = [began]
        yield line


def _settings(summary: Any) -> Mapping[str, Any] | None:
    """Returns the settings in the summary of a report, by the names that a run's own have."""
    if not isinstance(summary, dict):
        return None
    found = {name: summary[key] for key, name in SUMMARY_SETTINGS.items() if key in summary}
    git = summary.get("git")
    if isinstance(git, dict) and isinstance(git.get("commit_hash"), str):
        found["commit"] = git["commit_hash"][:12]
    return found
