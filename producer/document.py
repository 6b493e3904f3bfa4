"""The document of a run with its exit code, as printed by `--json`."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from producer import kinds
from producer.aggregate.gates import Gate, judge_gates
from producer.documents import SCHEMA_VERSION, AnyRun, Counts, RunDocument, WrittenFile, counted
from producer.report.interfaces import ReadsFiles, Report, Totals, TurnText
from producer.report.run_report import RunReport
from producer.review.answer_labels import NO_REVIEW, Review
from producer.review.label_store import review_of
from shared.clock import iso_utc
from shared.kinds import Kind, kind_named
from shared.names import RunState
from shared.runs import RunInfo, RunStore

EXIT_DONE: Final = 0
EXIT_NOT_GOOD: Final = 1
EXIT_INFRASTRUCTURE: Final = 3
EXIT_INCOMPLETE: Final = 4


def run_document(
    store: RunStore,
    run: str,
    *,
    reports: Sequence[Report] = (),
    files: Sequence[WrittenFile] = (),
    gates: Sequence[Gate] = (),
    with_text: bool = False,
    text: TurnText | None = None,
) -> AnyRun:
    """Reads all rows of a run once, writes reports, and returns its document.

    Args:
        store: reads the run.
        run: its id.
        reports: are written in the same pass.
        files: what is being written.
        gates: conditions that fail the run.
        with_text: whether reports contain the texts of turns.
        text: what rows of turns contain of their input; None: what `files` need.

    Raises:
        UnknownRunError: there is no such run.
        RedisUnreachableError: Redis stays away.
    """
    info = store.info(run)
    totals = totals_of(info.kind, review_of(store, run))
    if text is None:
        text = TurnText.of_reports(with_text=with_text) if files else TurnText.NOT_READ
    lend_files(reports, store, run)
    for rows in pages_of(store, info, text):
        totals.add(rows)
        for report in reports:
            report.page(rows)
    document = document_of(info, totals, files=files, gates=gates)
    for report in reports:
        report.end(document)
    return document


def lend_files(reports: Iterable[Report], store: RunStore, run: str) -> None:
    """Lets reports that show files of a run read them."""
    for report in reports:
        if isinstance(report, ReadsFiles):
            report.read_files(partial(store.file, run))


def totals_of(kind: Kind, review: Review = NO_REVIEW) -> Totals:
    """Begins to count the rows of a run.

    Args:
        kind: of the run.
        review: what people say of its answers.

    Raises:
        UsageError: this version does not support the kind.
    """
    return kinds.of(kind).totals(review)


def pages_of(store: RunStore, info: RunInfo, text: TurnText = TurnText.NOT_READ) -> Iterator[Sequence[Any]]:
    """Reads the rows of a run in input order, page by page.

    Args:
        store: reads the run.
        info: the run.
        text: what rows of turns contain of their input.

    Raises:
        UsageError: this version does not support the kind.
        RedisUnreachableError: Redis stays away.
    """
    return kinds.of(info.kind).pages(store, info.run, text)


def report_of(document: AnyRun) -> RunReport:
    """Returns what is said of a run in every format.

    Args:
        document: of the run; its state may also be `interrupted`.
    """
    return kinds.of(kind_named(document.kind)).run_report(document)


def document_of(
    info: RunInfo, totals: Totals, *, files: Sequence[WrittenFile] = (), gates: Sequence[Gate] = ()
) -> AnyRun:
    """Builds the document of a run; it contains `gates` only if there are any."""
    counts, summary = totals.counts(info.total), totals.summary(info)
    judged = counted(summary, counts)
    document: AnyRun = RunDocument(
        schema_version=SCHEMA_VERSION,
        run_id=info.run,
        name=info.name or UNSET,
        description=info.description or UNSET,
        kind=info.kind.name,
        state=info.state.value,
        counts=counts,
        summary=summary,
        files=tuple(files),
        texts_forgotten_at=UNSET if info.forgotten_ms is None else iso_utc(info.forgotten_ms),
        exit=exit_code(info.state, judged, misses=totals.misses(), is_cut=is_cut_by_failure(info, counts)),
    )
    if not gates:
        return document
    document = replace(document, gates=tuple(judge_gates(gates, document)))
    is_good = not document.missed_gates
    if info.state == RunState.FINISHED:  # gates alone decide; without answers they decide about nothing
        return replace(document, exit=EXIT_DONE if is_good and _has_answers(counts) else EXIT_NOT_GOOD)
    return document if is_good or document.exit != EXIT_DONE else replace(document, exit=EXIT_NOT_GOOD)


def _has_answers(counts: Counts) -> bool:
    """Whether any item of a finished run has an answer; a run without items lacks none."""
    return counts.total == counts.skipped or bool(counts.answered or counts.decided)


def is_cut_by_failure(info: RunInfo, counts: Counts) -> bool:
    """Returns whether the run was ended by its first failure, as requested."""
    has_failed = info.state == RunState.INCOMPLETE and bool(counts.failed or counts.error)
    return has_failed and kinds.of(info.kind).fails_fast(info)


def exit_code(state: RunState, counts: Counts, *, misses: bool = False, is_cut: bool = False) -> int:
    """Returns the exit code of a command that waited for the run; 0 while it is in progress.

    >>> good, bad = Counts(total=2, passed=2), Counts(total=2, error=2)
    >>> [exit_code(RunState.FINISHED, counts) for counts in (good, bad)]
    [0, 1]
    >>> exit_code(RunState.CANCELLED, bad), exit_code(RunState.ABORTED, bad)
    (4, 3)
    """
    if is_cut:
        return EXIT_NOT_GOOD
    match state:
        case RunState.FINISHED:
            return EXIT_NOT_GOOD if counts.error or misses else EXIT_DONE
        case RunState.ABORTED:
            return EXIT_INFRASTRUCTURE
        case RunState.CANCELLED | RunState.INCOMPLETE:
            return EXIT_INCOMPLETE
        case RunState.LOADING | RunState.RUNNING | RunState.PAUSED | RunState.CANCELLING:
            return EXIT_DONE
