"""Puts items of a run back to work for `retry` and `dead retry`, and follows them."""

from collections.abc import Sequence

from producer import kinds
from producer.cli.run_lookup import find_run
from producer.cli.service_documents import RetryDocument
from producer.cli.session import Session
from producer.cli.work import WorkOptions, work
from producer.retry_turns import Retried
from producer.text import plural
from shared.errors import UsageError


def retry_and_follow(
    session: Session,
    run: str,
    options: WorkOptions,
    *,
    positions: Sequence[int] | None,
    detach: bool,
    is_anew: bool = False,
) -> int:
    """Puts items back to work and, unless detached, works them to their end.

    Args:
        session: names the Redis.
        run: the run's id.
        options: how to work.
        positions: of these items; None: all that ended in error or got no result.
        detach: only put them back.
        is_anew: whether models are asked again, whatever answers are stored.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: the run is still at work.
        UsageError: there is nothing to put back.
    """
    info = find_run(session, run)
    if positions is not None and not positions:
        hint = f"`proctor results {run} --errors` lists what ended in error"
        raise UsageError(f"nothing of {run} is dead", hint=hint)
    retry = kinds.of(info.kind).retry()
    session.require_broker()
    retried = retry(session.ledger, session.publisher, session.store, run, indexes=positions, is_anew=is_anew)
    if detach and session.options.json:
        session.output.document(RetryDocument(run_id=run, retried=retried.items, left=retried.left))
        return 0
    _print_retried(session, run, retried)
    if detach:
        session.output.data(run)
        return 0
    return work(session, info.kind, options, lambda _view: run)


def _print_retried(session: Session, run: str, retried: Retried) -> None:
    """Prints what was put back, and what was not."""
    session.output.note(f"retrying {plural(retried.items, 'item')} of {run}")
    if retried.left:
        session.output.warn(f"{plural(retried.left, 'item')} more wait for another `proctor retry {run}`")
