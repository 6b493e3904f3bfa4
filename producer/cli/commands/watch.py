"""`proctor watch RUN`: follows a run to its end, with its exit code; Ctrl-C only stops following."""

import os

import click

from producer.cli.completions import complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.options.global_options import jsonl_option
from producer.cli.options.shared_options import gate_options, notify_option
from producer.cli.session import Session, pass_session


@declare()
@click.argument("run", shell_complete=complete_runs)
@gate_options
@notify_option
@jsonl_option
@pass_session
def command(session: Session, *, run: str, gates: tuple[str, ...], notify: str | None) -> int:
    """Follow RUN until it ends, and exit with its code.

    Shows rate, done of total, results, retries, queue, workers, time left, cost, usage of limits, the last
    failures, and why a run waits. Ctrl-C stops following, not the run.
    """
    from producer.aggregate.gates import check_gates, parse_gate  # noqa: PLC0415 - start-up: only gates need it
    from producer.cli import presenters, run_lookup, work  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.notify import read_webhook  # noqa: PLC0415 - same

    webhook = read_webhook(notify, session.settings, os.environ) if notify is not None else None
    parsed_gates = [parse_gate(text) for text in gates]
    found = run_lookup.find_run(session, run)
    check_gates(parsed_gates, found.kind)
    presenter = presenters.presenter_of(session)
    return work.watch(session, found.run, work.WorkOptions(presenter, gates=parsed_gates, webhook=webhook))
