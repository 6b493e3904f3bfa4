"""`proctor run FILE`: submits a file, works on it, shows it and reports: everything with one command."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from producer.cli.context import Session, pass_session
from producer.cli.options.case_options import case_options
from producer.cli.options.global_options import command as declare
from producer.cli.options.global_options import jsonl_option
from producer.cli.options.model_options import model_options
from producer.cli.options.query_options import query_options
from producer.cli.options.shared_options import (
    chosen,
    config_option,
    gate_options,
    one_file,
    refuse_no_text,
    submit_options,
    text_option,
    worker_options,
)
from producer.cli.report_files import FORMATS, check_formats, plan_files
from shared.errors import UsageError
from shared.kinds import QUERIES


@declare()
@click.argument("file", required=False)
@config_option
@submit_options
@partial(worker_options, in_flight="Items of the run in flight, across all workers.")
@model_options
@case_options
@query_options
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="Seconds after which the run ends as incomplete.",
)  # fmt: skip - one option, one paragraph
@click.option(
    "-o",
    "--output",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report to write; the suffix (.md .json .jsonl .csv .html .xml) tells the format; may be repeated.",
)  # fmt: skip - one option, one paragraph
@click.option(
    "-e", "--export", type=click.Choice(FORMATS), help="Format of the report; without -o: report.FORMAT."
)
@text_option
@gate_options
@click.option("--detach", is_flag=True, help="Leave it to workers in the background and print the run's id.")
@click.option("--resume", "resumed", metavar="RUN", help="Continue this run instead of submitting a file.")
@click.option("--dry-run", is_flag=True, help="Check the file and count; send nothing.")
@jsonl_option
@pass_session
def command(
    session: Session,
    /,
    *,
    file: str | None,
    config: str | None,
    kind: str | None,
    namespace: str,
    summary_policy: str,
    idempotency_key: str,
    processes: int | None,
    in_flight: int | None,
    timeout_s: float | None,
    paths: tuple[Path, ...],
    export: str | None,
    no_text: bool,
    gates: tuple[str, ...],
    detach: bool,
    resumed: str | None,
    dry_run: bool,
    **words: Any,
) -> int:
    """Decide FILE (`-`: stdin): submit it, work on it, watch it and report.

    Without a URL it uses the embedded Redis of the data folder. Workers are started here only when none is
    alive for this kind of file, and stopped at the end. Ctrl-C stops them within some seconds, writes the
    reports of what is done, and keeps the run.
    """
    from producer.aggregate.gates import check_gates, parse_gate  # noqa: PLC0415 - start-up: only gates need it
    from producer.cli import checking, work  # noqa: PLC0415 - start-up: `--help` must not load redis and pydantic
    from producer.cli.submission import Submission  # noqa: PLC0415 - same

    file = one_file(file, config)
    if (file is None) == (resumed is None):
        raise UsageError("name a FILE, or a run with --resume", hint="see `proctor run --help`")
    if session.options.jsonl and (detach or dry_run):
        raise UsageError(
            "--jsonl tells of a run that is followed", hint="`proctor watch RUN --jsonl`, or --json"
        )
    if detach:
        _refuse_waiting(gates, paths, export)
    files, wanted = plan_files(paths, export), [parse_gate(text) for text in gates]
    options = work.WorkOptions(processes, in_flight, timeout_s, files, wanted, with_text=not no_text)
    if file is None:
        return work.resume(session, str(resumed), options)
    choice = chosen(kind, namespace, summary_policy, idempotency_key, words=words, in_flight=in_flight)
    submission = Submission(session, file, choice)
    check_formats(files, submission.kind())
    refuse_no_text(submission.kind(), no_text=no_text)
    if dry_run:
        return checking.tell_counts(session, submission)
    asked = submission.options()  # a wrong option is told before anything is started
    check_gates(wanted, submission.kind())
    if processes is None and submission.kind() == QUERIES:
        # More processes than queries under way would only be started and stopped.
        processes = min(session.settings.processes, asked.queries.concurrency)
        options = replace(options, processes=processes)
    if detach:
        return work.detach(session, submission, options)
    return work.work(
        session, submission.kind(), options, lambda view: submission.send(view, is_attended=True).run
    )


def _refuse_waiting(gates: tuple[str, ...], paths: tuple[Path, ...], export: str | None) -> None:
    """Refuses what needs the end of a run that nobody waits for."""
    if gates:
        raise UsageError("--fail-on judges a run that has ended", hint="`proctor watch RUN --fail-on …`")
    if paths or export:
        raise UsageError("a report is written when the run has ended", hint="`proctor report RUN -o FILE`")
