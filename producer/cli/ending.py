"""Prints the result of a run: report files, the summary or the JSON document, and the exit code."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from producer import kinds
from producer.aggregate.gates import Gate
from producer.atomic_file import atomic_file
from producer.cli.aborted import explain_abort, unreached
from producer.cli.live.events import write_finished
from producer.cli.output import Output, printable
from producer.cli.report_files import ReportFile, reports_of
from producer.cli.session import Session
from producer.document import EXIT_DONE, EXIT_INCOMPLETE, EXIT_NOT_GOOD, run_document, screen_of, verdict_of
from producer.documents import AnyRun, WrittenFile, as_json
from producer.notify import Webhook, notify
from producer.report.formats import format_of
from producer.report.interfaces import Details, Report
from producer.report.run_verdict import INTERRUPTED, next_command
from shared.names import RunState
from shared.runs import RunInfo
from shared.runs.upstreams import upstreams_of
from shared.upstream.costs import CostBook, over_text


def print_ending(
    session: Session,
    info: RunInfo,
    files: Sequence[ReportFile],
    *,
    document: AnyRun | None = None,
    gates: Sequence[Gate] = (),
    with_text: bool = True,
    webhook: Webhook | None = None,
    is_kept: bool = True,
    show_instead: Callable[[AnyRun], None] | None = None,
) -> int:
    """Writes the reports and the summary of a run that has ended, and returns its exit code.

    Args:
        session: access to Redis.
        info: the run.
        files: the reports.
        document: of the run, if the reports are written already.
        gates: conditions that fail the run.
        with_text: whether reports contain the texts of turns.
        webhook: where the summary is posted.
        is_kept: whether the run is still there for a next command.
        show_instead: prints for people what is shown in place of summary and verdict, given the document.

    Raises:
        InfrastructureError: a disk is full; the hint is how to write the reports later.
        RedisUnreachableError: Redis stays away.
    """
    details = _details(session, info) if document is None else None
    more = [details] if details else []
    document = document or write_reports(session, info, files, more, gates=gates, with_text=with_text)
    output, options = session.output, session.options
    if options.json and not options.jsonl:
        output.data(as_json(document))
    # Events are all of stdout; a person reads the same as without them, on stderr.
    show = output.note if options.jsonl else output.data
    is_shown = options.jsonl or not (options.json or options.quiet)
    if show_instead is not None and is_shown and not options.jsonl:
        show_instead(document)
        is_shown = False
    if is_shown:
        show(figures(output, document, details))
    _print_dead_hint(session, info, document)
    print_gates(output, document)
    is_aborted = info.state == RunState.ABORTED
    has_hint = is_aborted or (info.state == RunState.INCOMPLETE and _print_cost_cap_hint(session, info))
    if is_shown:
        show(closing(session, document, has_next=is_kept and not has_hint))
    if is_aborted and not options.json and not options.jsonl:
        abort = explain_abort(session.store, info, document)
        again = f"`{session.command(*next_command(document))}`"
        does = "asks again" if document.counts.error else "continues it"
        output.error(
            f"{info.run} was aborted{abort.why and ': '}{abort.why}",
            hint="; ".join([*abort.hints, f"{again} {does}"]),
        )
    elif options.quiet and not options.json and document.exit and not document.missed_gates:
        output.message(str(verdict_of(document)))
    if options.jsonl:
        write_finished(output, document)
    if webhook is not None:
        _notify(session, webhook, document)
    return document.exit


def _notify(session: Session, webhook: Webhook, document: AnyRun) -> None:
    """Posts the summary of a run; a failure is a warning, and Ctrl-C ends the attempt."""
    try:
        why = notify(webhook, document, session.settings)
    except KeyboardInterrupt:
        why = "interrupted"
    if why:
        session.output.warn(f"the notification to {webhook.place} failed: {printable(why)}")
    else:
        session.output.detail(f"notified {webhook.place}")


def _print_dead_hint(session: Session, info: RunInfo, document: AnyRun) -> None:
    """Prints which models were not reached, and where to find errors of items that were not printed."""
    options = session.options
    if document.counts.error and not (info.state == RunState.ABORTED or options.json or options.jsonl):
        for why in unreached(info, document):
            session.output.warn(why)
    is_shown = kinds.of(info.kind).screen().details is not None or session.options.json
    if document.counts.error and not is_shown:
        session.output.note(f"`proctor dead list {info.run}` shows why items ended in error")


def _print_cost_cap_hint(session: Session, info: RunInfo) -> bool:
    """Prints how to continue a run that ended because of its cost cap; returns whether it did."""
    cost, upstreams = CostBook(session.ledger.caller).read(info.run), upstreams_of(info.kind, info.snapshot)
    cap_usd = cost.cap_usd if cost.cap_usd is not None else upstreams and upstreams.max_cost
    if cost.over_usd is None or cap_usd is None:
        return False
    session.output.note(
        f"{over_text(cost.over_usd, cost.spent_usd, cap_usd)};"
        f" `proctor resume {info.run} --max-cost USD` goes on with a higher cap"
    )
    return True


def print_gates(output: Output, document: AnyRun) -> None:
    """Prints which gates passed and which failed; the latter also with `--quiet`."""
    for gate in document.gates or ():
        if gate.met:
            output.note(gate.text)
        elif not output.options.json:
            output.message(output.paint(gate.text, "red", error=True))


def print_run(session: Session, info: RunInfo) -> None:
    """Prints the state of a run, whether it has ended or not."""
    document = run_document(session.store, info.run)
    if session.options.json:
        session.output.data(as_json(document))
    else:
        is_left = info.state == RunState.RUNNING and info.done and not session.count_workers(info.kind)
        document = replace(document, state=INTERRUPTED) if is_left else document
        session.output.data(figures(session.output, document))
        if why := session.store.wait_reason(info.run):
            session.output.note(f"{'ended' if info.is_final else 'waiting'}: {why}")
        session.output.data(closing(session, document))


def print_so_far(session: Session, info: RunInfo, files: Sequence[ReportFile], *, with_text: bool) -> None:
    """Writes the reports and the summary of a run that was interrupted, from the results that it has.

    Raises:
        ProctorError: see `write_reports`.
    """
    details = _details(session, info)
    document = write_reports(session, info, files, [details] if details else [], with_text=with_text)
    if session.options.json or session.options.jsonl or session.options.quiet:
        return
    shown = document if info.is_final else replace(document, state=INTERRUPTED, exit=EXIT_INCOMPLETE)
    session.output.data(figures(session.output, shown, details))
    session.output.data(closing(session, shown, has_next=False))  # the error that follows has the command


def exit_of_gates(document: AnyRun) -> int:
    """Returns the exit code of a command that only reads a run, which depends on its gates alone."""
    return EXIT_NOT_GOOD if document.missed_gates else EXIT_DONE


def _details(session: Session, info: RunInfo) -> Details | None:
    """Opens the list of single items for the terminal; None where it is not shown."""
    make = kinds.of(info.kind).screen().details
    if make is None or session.options.json or session.options.jsonl or session.options.quiet:
        return None
    return make(info, session.options.verbose > 0)


def write_reports(
    session: Session,
    info: RunInfo,
    files: Sequence[ReportFile],
    more: Sequence[Report] = (),
    *,
    gates: Sequence[Gate] = (),
    with_text: bool = True,
) -> AnyRun:
    """Writes reports in one pass over the results and returns the run's document.

    A report appears under its name when it is complete; until then an existing file is kept.

    Args:
        session: access to Redis.
        info: the run.
        files: the reports.
        more: further reports that read the results.
        gates: conditions that fail the run.
        with_text: whether they contain the texts of turns.

    Raises:
        InfrastructureError: a disk is full; the hint is how to write them later.
        UsageError: a report cannot be written for another reason.
        RedisUnreachableError: Redis stays away.
    """
    with reports_of(info.run, files, is_final=info.is_final), ExitStack() as stack:
        reports = open_reports(stack, info, files)
        named = [WrittenFile(file.format, str(file.path)) for file in files]
        return run_document(
            session.store,
            info.run,
            reports=[*reports, *more],
            files=named,
            gates=gates,
            with_text=with_text,
        )


def open_reports(stack: ExitStack, info: RunInfo, files: Sequence[ReportFile]) -> list[Report]:
    """Opens reports; the files appear under their names when the stack is closed without an error.

    Raises:
        UsageError: runs of this kind are not written so.
        OSError: a report cannot be written.
    """
    writers = [format_of(info.kind, file.format) for file in files]
    return [
        write(stack.enter_context(atomic_file(file.path)), info)
        for write, file in zip(writers, files, strict=True)
    ]


def figures(output: Output, document: AnyRun, details: Details | None = None) -> str:
    """Writes the figures of a run and its single items; with `-v` all figures, else how to see them."""
    screen = screen_of(document)
    text = screen.summary(document, output.painted)
    if more := screen.more(document, output.painted) if screen.more else "":
        command = f"`proctor runs show {document.run_id} -v`"
        text += f"\n\n{more}" if output.options.verbose else f"\nmore figures: {command}"
    items = details.text(output.painted) if details else ""
    return f"{text}\n\n{items}" if items else text


def closing(session: Session, document: AnyRun, *, has_next: bool = True) -> str:
    """Writes what stands last: how far the run came, the verdict on it, and the next command."""
    output, verdict = session.output, verdict_of(document)
    headline = screen_of(document).headline(document)
    sentence = f"{verdict.mark} {output.folded(verdict.sentence, indent=2)}"
    lines = ["", output.painted(headline, "dim"), output.painted(sentence, "bold", verdict.style)]
    words = next_command(document) if has_next else ()
    if words:
        lines.append(f"{output.painted('next:', 'cyan')} {session.command(*words)}")
    return "\n".join(lines)
