"""`proctor watch RUN`: follows a run to its end, with its exit code; Ctrl-C only stops the watching."""

import click

from producer.cli.context import Session, pass_session
from producer.cli.errors import InterruptedByUserError
from producer.cli.options import command as declare


@declare()
@click.argument("run")
@pass_session
def command(session: Session, *, run: str) -> int:
    """Follow RUN until it ends, and exit as it did.

    Shows rate, done of total, decisions, retries, queue, workers, time left, and why a run waits. Ctrl-C
    ends the watching, not the run.
    """
    from producer.cli.ending import tell_ending  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.find import find_run  # noqa: PLC0415 - same
    from producer.cli.follow import Follower  # noqa: PLC0415 - same
    from producer.cli.live import open_view  # noqa: PLC0415 - same

    find_run(session, run)
    view = open_view(session.output)
    try:
        info = Follower(session, run, view).follow()
    except KeyboardInterrupt:
        view.close()
        raise InterruptedByUserError(
            f"not watching any more; {run} goes on", hint=f"`proctor watch {run}` comes back to it"
        ) from None
    finally:
        view.close()
    return tell_ending(session, info, [])
