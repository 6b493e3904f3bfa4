"""Writes the result of a run: one presenter for each output mode, text, quiet, JSON and events."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from producer import kinds
from producer.cases.documents import CasesSummary
from producer.cases.totals import NOT_REACHED as MODEL_NOT_REACHED
from producer.cli.item_view import print_change, read_items
from producer.cli.output import Output, printable
from producer.cli.session import Session
from producer.document import EXIT_DONE, EXIT_INCOMPLETE, EXIT_NOT_GOOD, report_of, run_document
from producer.documents import AnyRun, as_json
from producer.following.events import FinishedEvent, as_line
from producer.items.report.opened_rows import failure_of
from producer.report.interfaces import Details
from producer.report.run_verdict import INTERRUPTED, next_command
from producer.report.to_terminal import more_text, summary_text
from producer.sample_api import DEFAULT_PORT
from shared.contracts.case_run import SNAPSHOT_KEY, CaseRun
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import SNAPSHOT_KEY as QUERIES_KEY
from shared.contracts.query_run import QueryRun
from shared.kinds import Storage
from shared.names import Outcome, RunState
from shared.runs import RunInfo, RunStore
from shared.runs.upstreams import upstreams_of
from shared.upstream.addresses import shown_url, with_path
from shared.upstream.costs import CostBook, over_text
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from shared.upstream.protocol_names import OPENAI

CHAT_PATH: Final = "/chat/completions"
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
NOT_REACHED: Final = MODEL_NOT_REACHED | {FailureReason.UNREACHABLE.api_code}
"""Error codes that suggest a wrong address."""


class Ended(NamedTuple):
    """A run whose results were counted."""

    info: RunInfo
    document: AnyRun
    details: Details | None = None
    """What is shown of single items."""

    @property
    def errors(self) -> int:
        """Items that ended in error."""
        return self.document.counts.error

    @property
    def is_worse_than_its_gates(self) -> bool:
        """Whether the exit code signals a failure that no printed gate reports."""
        return bool(self.document.exit) and not self.document.missed_gates


class Presenter(Protocol):
    """Writes the result of a command in one output mode."""

    def details(self, info: RunInfo) -> Details | None:
        """Opens the list of single items; None if it is not shown."""

    def ended(self, run: Ended) -> None:
        """Writes the result of a run."""

    def interrupted(self, run: Ended) -> None:
        """Writes what a run has so far; the error that follows has the next command."""


class Result(Protocol):
    """What people are shown of a run that has ended."""

    def begin(self, run: Ended) -> None:
        """Writes the figures or items."""

    def end(self, run: Ended, *, has_hint: bool) -> None:
        """Writes the last lines; `has_hint`: a hint has already named the next command."""


class RunResult:
    """The figures of a run, then the verdict on it and the next command.

    Args:
        session: the output, and access to Redis.
        is_kept: whether the run remains for a next command.
    """

    def __init__(self, session: Session, *, is_kept: bool = True) -> None:
        self._session, self._is_kept = session, is_kept

    def begin(self, run: Ended) -> None:
        """Writes the figures."""
        self._session.output.data(figures(self._session.output, run.document, run.details))

    def end(self, run: Ended, *, has_hint: bool) -> None:
        """Writes the verdict."""
        has_next = self._is_kept and not has_hint
        self._session.output.data(closing(self._session, run.document, has_next=has_next))


class ItemChanges:
    """The items of a retry as they were before and as they are now.

    Args:
        session: the output, and access to Redis.
        info: the run, before the retry.
        positions: positions of the items.
    """

    def __init__(self, session: Session, info: RunInfo, positions: Sequence[int]) -> None:
        self._session, self._info, self._positions = session, info, positions
        self._before = read_items(session, info, positions)

    def begin(self, run: Ended) -> None:
        """Writes each item twice, and the verdict on the run."""
        output, now = self._session.output, read_items(self._session, self._info, self._positions)
        for was, is_now in zip(self._before, now, strict=True):
            print_change(output, was, is_now)
        verdict = report_of(run.document).verdict
        output.data("")
        output.data(f"{output.painted(verdict.mark, verdict.style)} {self._info.run}: {verdict.sentence}")

    def end(self, run: Ended, *, has_hint: bool) -> None:
        """Adds nothing."""


class TextPresenter:
    """Writes for people: the result to stdout, notes and warnings to stderr."""

    def __init__(self, session: Session, result: Result | None = None) -> None:
        self._session, self._result = session, result or RunResult(session)

    def details(self, info: RunInfo) -> Details | None:
        """Opens the list of items that a terminal shows of this kind."""
        make = kinds.of(info.kind).screen().details
        return make(info, self._session.options.verbose > 0) if make else None

    def ended(self, run: Ended) -> None:
        """Writes the result with all hints."""
        session, info, document = self._session, run.info, run.document
        self._result.begin(run)
        _warn_of_unreached(session, run)
        _note_dead(session, run)
        print_gates(session.output, document)
        is_aborted = info.state == RunState.ABORTED
        self._result.end(run, has_hint=is_aborted or _note_cost_cap(session, info))
        if is_aborted:
            _explain_abort(session, run)

    def interrupted(self, run: Ended) -> None:
        """Writes the figures so far."""
        info, document = run.info, run.document
        shown = document if info.is_final else replace(document, state=INTERRUPTED, exit=EXIT_INCOMPLETE)
        self._session.output.data(figures(self._session.output, shown, run.details))
        self._session.output.data(closing(self._session, shown, has_next=False))


class QuietPresenter:
    """Writes only errors and failed gates."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def details(self, info: RunInfo) -> None:
        """Shows no items."""

    def ended(self, run: Ended) -> None:
        """Writes the error of an aborted run, and the verdict if no gate reports it."""
        output, document = self._session.output, run.document
        _warn_of_unreached(self._session, run)
        print_gates(output, document)
        if run.info.state == RunState.ABORTED:
            _explain_abort(self._session, run)
        elif run.is_worse_than_its_gates:
            output.message(str(report_of(document).verdict))

    def interrupted(self, run: Ended) -> None:
        """Writes nothing."""


class JsonPresenter:
    """Writes one document to stdout."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def details(self, info: RunInfo) -> None:
        """Shows no items."""

    def ended(self, run: Ended) -> None:
        """Writes the document of the run."""
        output = self._session.output
        output.data(as_json(run.document))
        print_gates(output, run.document)
        _note_cost_cap(self._session, run.info)

    def interrupted(self, run: Ended) -> None:
        """Writes nothing: the error that follows is the one document."""


class EventPresenter:
    """Writes the last event to stdout; what people read goes to stderr."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def details(self, info: RunInfo) -> None:
        """Shows no items."""

    def ended(self, run: Ended) -> None:
        """Writes the result as notes, then the last event."""
        session, info, document = self._session, run.info, run.document
        output = session.output
        output.note(figures(output, document))
        _note_dead(session, run)
        print_gates(output, document)
        has_hint = info.state == RunState.ABORTED or _note_cost_cap(session, info)
        output.note(closing(session, document, has_next=not has_hint))
        if session.options.quiet and run.is_worse_than_its_gates:
            output.message(str(report_of(document).verdict))
        output.data(as_line(FinishedEvent(document=document)))

    def interrupted(self, run: Ended) -> None:
        """Writes nothing: the error that follows is the last event."""


class Unshown:
    """Writes no result, for commands that show the run in another form."""

    def __init__(self, beneath: Presenter) -> None:
        self._beneath = beneath

    def details(self, info: RunInfo) -> Details | None:
        """Opens what is shown after an interrupt."""
        return self._beneath.details(info)

    def ended(self, run: Ended) -> None:
        """Writes nothing."""

    def interrupted(self, run: Ended) -> None:
        """Writes what the run has so far."""
        self._beneath.interrupted(run)


def presenter_of(session: Session, result: Result | None = None) -> Presenter:
    """Returns the presenter of the output mode.

    Args:
        session: its options select the presenter.
        result: what people are shown; None: the figures of the run and the verdict.
    """
    options = session.options
    if options.jsonl:
        return EventPresenter(session)
    if options.json:
        return JsonPresenter(session)
    return QuietPresenter(session) if options.quiet else TextPresenter(session, result)


def _warn_of_unreached(session: Session, run: Ended) -> None:
    """Warns of models that were not reached; for an aborted run the error does this."""
    if run.errors and run.info.state != RunState.ABORTED:
        for why in _unreached(run.info, run.document):
            session.output.warn(why)


def _note_dead(session: Session, run: Ended) -> None:
    """Says where to find errors of items that were not shown."""
    if run.errors and kinds.of(run.info.kind).screen().details is None:
        session.output.note(f"`proctor dead list {run.info.run}` shows why items ended in error")


def _note_cost_cap(session: Session, info: RunInfo) -> bool:
    """Says how to continue a run that ended because of its cost cap; returns whether it did."""
    if info.state != RunState.INCOMPLETE:
        return False
    cost = CostBook(session.access.ledger.caller).read(info.run)
    upstreams = upstreams_of(info.kind, info.snapshot)
    cap_usd = cost.cap_usd if cost.cap_usd is not None else upstreams and upstreams.max_cost
    if cost.over_usd is None or cap_usd is None:
        return False
    session.output.note(
        f"{over_text(cost.over_usd, cost.spent_usd, cap_usd)};"
        f" `proctor resume {info.run} --max-cost USD` goes on with a higher cap"
    )
    return True


def _explain_abort(session: Session, run: Ended) -> None:
    """Writes why a run was aborted, and what can be done."""
    info, document = run.info, run.document
    abort = _why_aborted(session.access.store, info, document)
    again = f"`{session.command(*next_command(document))}`"
    does = "asks again" if run.errors else "continues it"
    session.output.error(
        f"{info.run} was aborted{abort.why and ': '}{abort.why}",
        hint="; ".join([*abort.hints, f"{again} {does}"]),
    )


def print_gates(output: Output, document: AnyRun) -> None:
    """Prints which gates passed and which failed; the latter also with `--quiet`."""
    for gate in document.gates or ():
        if gate.met:
            output.note(gate.text)
        elif not output.options.json:
            output.message(output.paint(gate.text, "red", error=True))


def exit_of_gates(document: AnyRun) -> int:
    """Returns the exit code of a command that only reads a run, which depends on its gates alone."""
    return EXIT_NOT_GOOD if document.missed_gates else EXIT_DONE


def print_run(session: Session, info: RunInfo) -> None:
    """Prints the state of a run, whether it has ended or not."""
    access = session.access
    document = run_document(access.store, info.run)
    if session.options.json:
        session.output.data(as_json(document))
    else:
        is_left = info.state == RunState.RUNNING and info.done and not access.count_workers(info.kind)
        document = replace(document, state=INTERRUPTED) if is_left else document
        session.output.data(figures(session.output, document))
        print_wait_reason(session, info)
        session.output.data(closing(session, document))


def print_wait_reason(session: Session, info: RunInfo) -> None:
    """Prints why a run makes no progress; nothing if it does."""
    if why := session.access.store.wait_reason(info.run):
        session.output.note(f"{'ended' if info.is_final else 'waiting'}: {why}")


def figures(output: Output, document: AnyRun, details: Details | None = None) -> str:
    """Writes the figures of a run and its single items; with `-v` all figures, else how to see them."""
    report = report_of(document)
    text = summary_text(report, output.painted)
    if more := more_text(report, output.painted):
        command = f"`proctor runs show {document.run_id} -v`"
        text += f"\n\n{more}" if output.options.verbose else f"\nmore figures: {command}"
    items = details.text(output.painted) if details else ""
    return f"{text}\n\n{items}" if items else text


def closing(session: Session, document: AnyRun, *, has_next: bool = True) -> str:
    """Returns the last lines: how far the run came, the verdict on it, and the next command."""
    output, report = session.output, report_of(document)
    verdict = report.verdict
    sentence = f"{verdict.mark} {output.folded(verdict.sentence, indent=2)}"
    lines = ["", output.painted(report.headline, "dim"), output.painted(sentence, "bold", verdict.style)]
    words = next_command(document) if has_next else ()
    if words:
        lines.append(f"{output.painted('next:', 'cyan')} {session.command(*words)}")
    return "\n".join(lines)


class _Called(NamedTuple):
    """An address that a run calls."""

    base: str
    """The configured address."""
    url: str = ""
    """The address that is called; empty if the error contains it."""
    written_at: str = ""
    """File and line, or the option."""


class _Abort(NamedTuple):
    """Why a run was aborted."""

    why: str
    """The error of the item that ended it."""
    hints: tuple[str, ...] = ()
    """What can be done besides continuing it."""


def _why_aborted(store: RunStore, info: RunInfo, document: AnyRun) -> _Abort:
    """Explains why a run was aborted.

    Args:
        store: reads the run.
        info: the run.
        document: document of the run.

    Raises:
        RedisUnreachableError: Redis is unavailable for too long.
    """
    if info.kind.storage is Storage.MAILBOXES:
        live, why = LiveRun.from_snapshot(info.snapshot), store.wait_reason(info.run)
        return _Abort(_explained(why, _called_at(live.target if live else None, "--api-base")))
    last = b""
    for page in store.item_pages(info.run):
        last = next((row.line for row in reversed(page) if row.outcome is Outcome.ERROR), last)
    code, why = "", ""
    if last:
        error = failure_of(last).error
        code, why = error.code, printable(error.message)
    if code not in NOT_REACHED:
        return _Abort(why)
    called = _called(info, document)
    hints = dict.fromkeys(hint for each in called for hint in _hints(each))
    return _Abort(_explained(why, called), tuple(hints))


def _unreached(info: RunInfo, document: AnyRun) -> list[str]:
    """Explains for each model and judge that was not reached what was called and where that is configured."""
    found = _not_reached(document)
    if not found:
        return []
    run = CaseRun.from_snapshot(info.snapshot)
    return [_explained(printable(why), _called_for(run, model)) for model, why in found.items()]


def _not_reached(document: AnyRun) -> Mapping[str, str]:
    """Returns what was not reached, with the first error of each; empty for runs without models."""
    return (document.summary.not_reached or {}) if isinstance(document.summary, CasesSummary) else {}


def _explained(why: str, called: Sequence[_Called]) -> str:
    """Returns an error with what was called and where that is configured."""
    places = "; ".join(place for each in called if (place := _place(each, why)))
    return why + (f" ({places})" if places else "")


def _called_for(run: CaseRun, model: str) -> list[_Called]:
    """Returns what is called for a model or judge; empty for one without an `api_base`."""
    target = {**run.check_models, **run.judges, **run.models}.get(model)
    return _called_at(target, run.written_at.get(model, ""))


def _called_at(target: ModelTarget | None, written_at: str) -> list[_Called]:
    """Returns what is called for a target; empty for one without an `api_base`."""
    if target is None or not target.api_base:
        return []
    base = target.api_base
    return [_Called(base, with_path(base, CHAT_PATH) if target.spoken == OPENAI else "", written_at)]


def _called(info: RunInfo, document: AnyRun) -> list[_Called]:
    """Returns what a run calls and did not reach, each address once."""
    if QUERIES_KEY in info.snapshot:
        return [_Called(QueryRun.from_snapshot(info.snapshot).api_url)]
    if SNAPSHOT_KEY not in info.snapshot:
        return []
    run = CaseRun.from_snapshot(info.snapshot)
    called = (each for model in _not_reached(document) for each in _called_for(run, model))
    return list({each.base: each for each in called}.values())


def _place(called: _Called, why: str) -> str:
    """Returns what was called, unless the error contains it, and where that is configured.

    >>> _place(_Called("http://h/v1?a=b", "http://h/v1/chat/completions?a=b", "bench.yaml:4"), "no")
    'http://h/v1/chat/completions, api_base at bench.yaml:4'
    """
    url, written = shown_url(called.url), called.written_at
    if written and not written.startswith("--"):
        written = f"api_base at {written}"
    return ", ".join(part for part in (url if url not in why else "", written) if part)


def _hints(called: _Called) -> list[str]:
    """Returns what may be wrong with an address.

    >>> _hints(_Called("http://localhost:3000", "http://localhost:3000/chat/completions"))[0]
    'most servers want /v1: http://localhost:3000/v1'
    >>> _hints(_Called("http://localhost:3000"))
    ['`proctor sample-api` serves samples there']
    """
    parts, hints = urlsplit(called.base), list[str]()
    if called.url and not parts.path.strip("/"):
        hints.append(f"most servers want /v1: {with_path(urlunsplit(parts._replace(query='')), '/v1')}")
    if parts.hostname in LOCAL and parts.port == DEFAULT_PORT:
        hints.append("`proctor sample-api` serves samples there")
    return hints
