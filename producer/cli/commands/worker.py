"""`proctor worker`: becomes the supervisor of worker processes, on the Redis that the options name."""

import os

import click

from producer.cli.local.child_processes import become, child_environment, worker_command
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from shared.kinds import Kind, all_kinds, kind_named


def parse_kinds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> tuple[Kind, ...]:
    """Reads `turns,cases` as kinds; None means all of them."""
    if text is None:
        return all_kinds()
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = [kind.name for kind in all_kinds()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise click.BadParameter(f"{', '.join(unknown) or text!r}: kinds are {', '.join(known)}")
    return tuple(kind_named(name) for name in dict.fromkeys(names))


@declare()
@click.option(
    "-Q",
    "--queues",
    "kinds",
    callback=parse_kinds,
    metavar="KINDS",
    help="Kinds to work on, separated by commas: turns, cases, queries [default: all].",
)  # fmt: skip - one option, one paragraph
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Worker processes [default: cores, at most 4].",
)
@click.option(
    "-j",
    "--in-flight",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Items in flight per process [default: 100].",
)
@click.option("--burst", is_flag=True, help="Exit when every run has ended.")
@click.option(
    "--allow-unsandboxed-validators",
    is_flag=True,
    help="Run validators without a sandbox where none is available. Only for trusted files.",
)
@pass_session
def command(
    session: Session,
    *,
    kinds: tuple[Kind, ...],
    processes: int | None,
    in_flight: int | None,
    burst: bool,
    allow_unsandboxed_validators: bool,
) -> None:
    """Start workers and keep them running.

    A process that dies is started again. SIGTERM or Ctrl-C lets running work finish within its grace period,
    gives the rest back and ends.
    """
    session.access.client.ping()  # reports a wrong URL in one line, instead of once per process
    program = worker_command(
        session.settings,
        kinds=kinds,
        processes=processes,
        in_flight=in_flight,
        burst=burst,
        unsandboxed_validators=allow_unsandboxed_validators,
    )
    environment = child_environment(session.settings)
    session.output.detail(f"starting {' '.join(program)} in {os.getcwd()}")  # noqa: PTH109 - shown, not used
    become(program, environment)
