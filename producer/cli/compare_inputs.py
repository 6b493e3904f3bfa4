"""Finds what `compare` compares: a run by its id, or the results of one in a report file."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from producer import kinds
from producer.aggregate.compared_items import Line, items_of, lines_of_results
from producer.aggregate.comparison import LEVEL
from producer.cli.run_lookup import find_results, find_run
from producer.cli.session import Session
from producer.compared_runs import side_of_run, texts_of
from producer.report.comparison.configurations import configuration_within
from producer.report.comparison.contents import Side
from producer.stored_runs import run_before
from producer.streams import AT, is_stream
from producer.text import plural
from shared.errors import InputError, UnknownRunError, UsageError
from shared.kinds import QUERIES, all_kinds, kind_named
from shared.runs import RunInfo
from shared.runs.served import window_named

SUMMARY_SETTINGS: Final = {
    "models_asked": "models",
    "prompts_asked": "prompts",
    "judge_models": "judges",
    "repeat": "repeats",
    "api_url": "API",
    "model": "model",
    "summary_policy": "summary policy",
}
"""Settings that the summary of a report contains, by the names of a run's own."""


class _Report(Struct):
    """A report as JSON, or a document of the evaluation harness, which has no kind."""

    results: list[dict[str, Any]]
    kind: str | None = None
    name: str = ""
    summary: dict[str, Any] | None = None


_HINT: Final = "write it with `proctor report RUN -o FILE.jsonl`"


@dataclass(frozen=True, slots=True)
class CompareChoice:
    """What is compared, and how."""

    a: str
    b: str | None
    by: str | None
    pair: tuple[str, str] | None
    tag: str | None
    level: float
    judged: tuple[str, ...]
    since: str = ""
    until: str = ""

    @property
    def command(self) -> str:
        """The command that makes the same comparison."""
        words = ["proctor", "compare", self.a, *([self.b] if self.b else [])]
        words += ["--by", self.by] if self.by else []
        words += ["--pair", *self.pair] if self.pair else []
        words += ["--tag", self.tag] if self.tag else []
        words += ["--level", f"{self.level:g}"] if self.level != LEVEL else []
        return shlex.join([*words, *(word for name in self.judged for word in ("--metric", name))])


def streams_of(session: Session, choice: CompareChoice) -> tuple[RunInfo, RunInfo] | None:
    """Finds both sides where one is a stream, or a part of one: alone it is compared with the time before.

    Raises:
        UsageError: options do not fit it, or there are times and no stream.
    """
    names = [name for name in (choice.a, choice.b) if name is not None]
    if not any(is_stream(name) for name in names):
        if choice.since or choice.until:
            raise UsageError("--since and --until are for streams", hint="proctor compare served --since 1h")
        return None
    if choice.by or choice.pair or choice.tag or choice.judged:
        raise UsageError("--by, --pair, --tag and --metric are for runs", hint="leave them out for a stream")
    if len(names) > 1:
        one, other = (_of_times(session, name, choice) for name in names)
    else:
        other = find_results(session, choice.a, choice.since, choice.until)
        window = window_named(other.run)
        one = session.access.store.info(window.before.name) if window else other
    if one.kind is not other.kind:
        raise UsageError(f"{one.run} has {one.kind} and {other.run} has {other.kind}", hint="compare turns")
    return one, other


def _of_times(session: Session, name: str, choice: CompareChoice) -> RunInfo:
    """Finds one of two sides: `--since` and `--until` are for streams that name no time of their own."""
    if is_stream(name) and AT not in name:
        return find_results(session, name, choice.since, choice.until)
    return find_results(session, name)


def sides_of(
    session: Session, choice: CompareChoice, resources: ExitStack
) -> tuple[CompareChoice, Side, Side]:
    """Reads both sides, two runs or two parts of one; runs are named by their ids from then on."""
    a, b, by = choice.a, choice.b, choice.by
    if by is None and choice.pair:
        raise UsageError(
            "--pair names two prompts or models: it needs --by", hint=f"proctor compare {a} --by prompt"
        )
    if by is not None and b is not None:
        raise UsageError("--by compares within one run", hint=f"proctor compare {a} --by {by}")
    if by is None and b is None:
        a, b = _with_the_run_before(session, a)
    one = read_side(lambda: session, a, resources, tag=choice.tag)
    choice = replace(choice, a=one.name)
    if by is not None:
        one, other = sides_within(one, by, choice.pair)
        choice = replace(choice, pair=(one.part, other.part))
    else:
        other = read_side(lambda: session, str(b), resources, tag=choice.tag)
        choice = replace(choice, b=other.name)
    _check(session, one, other)
    return choice, one, other


def _with_the_run_before(session: Session, named: str) -> tuple[str, str]:
    """Names the run before a run of the same file, and the run."""
    if Path(named).is_file():
        raise UsageError("compare needs two reports, or a run", hint=f"proctor compare BEFORE {named}")
    info = find_run(session, named)
    earlier = run_before(session.access.store, info).run
    session.seen.add(earlier)
    return earlier, info.run


def _check(session: Session, one: Side, other: Side) -> None:
    """Refuses runs of two kinds, and warns of a run that goes on."""
    if one.kind is not other.kind:
        raise UsageError(
            f"{one.name} has {one.kind} and {other.name} has {other.kind}", hint="compare runs of one kind"
        )
    for side in (one, other):
        if not side.is_final:
            session.output.warn(f"{side.name} has not ended: only what is there is compared")


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
    if not kinds.of(side.kind).compared().comparing.are_cases:
        raise UsageError(f"{side.name} has {side.kind}, which have no {by}s", hint="compare two runs")
    parts = side.items.parts(by)
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
            configuration=side.configuration and configuration_within(side.configuration, by, name),
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
    if info.forgotten_ms is not None:
        session.output.warn(f"the texts of {info.run} were forgotten: its figures and verdicts are compared")
    return side_of_run(session.access.store, info, resources, tag=tag)


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
    try:
        report = msgspec.convert(document, _Report)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: no `results` in it as Proctor writes them: {error}", hint=_HINT) from None
    if report.kind is None:
        return _side(path, resources, QUERIES.name, lines_of_results(report.results), tag)
    about = report.summary or {}
    return _side(path, resources, report.kind, report.results, tag)._replace(
        source=str(about.get("source", "")),
        bench=str(about.get("name", "")),
        label=report.name,
        configuration={name: about[key] for key, name in SUMMARY_SETTINGS.items() if key in about} or None,
        is_stored=False,
    )


def _json_lines(path: Path, file: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
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
    lines: Iterable[Mapping[str, Any]],
    tag: str | None,
) -> Side:
    """Reads the results of a file."""
    if kind not in {known.name for known in all_kinds()}:
        raise InputError(f"{path}: results of an unknown kind, {kind!r}", hint=_HINT)
    texts, dates = texts_of(kind_named(kind), resources), list[str]()
    comparing = kinds.of(kind_named(kind)).compared().comparing
    try:
        typed = (msgspec.convert(line, comparing.line) for line in lines)
        items = items_of(comparing, _dated(typed, dates), tag=tag, keep=texts.add)
    except (KeyError, TypeError, AttributeError, ZeroDivisionError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{path}: a result is not as Proctor writes it ({what})", hint=_HINT) from None
    began = min(dates, default="")
    return Side(str(path), "", kind_named(kind), items, is_final=True, texts=texts, began=began)


def _dated(lines: Iterable[Line], dates: list[str]) -> Iterator[tuple[Line, None]]:
    """Keeps the earliest time at which an item began."""
    for line in lines:
        if line.started_at is not None and (not dates or line.started_at < dates[0]):
            dates[:] = [line.started_at]
        yield line, None
