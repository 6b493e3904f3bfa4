"""Shows the items of a retry as they were before and as they are now, in place of the run's summary."""

from collections.abc import Callable, Sequence

from producer.cli.item_view import print_change, read_items
from producer.cli.session import Session
from producer.document import verdict_of
from producer.documents import AnyRun
from shared.runs import RunInfo


def changes(session: Session, info: RunInfo, positions: Sequence[int]) -> Callable[[AnyRun], None]:
    """Reads items now, and returns what prints them once they have been asked again.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    before = read_items(session, info, positions)

    def show(document: AnyRun) -> None:
        output = session.output
        for was, is_now in zip(before, read_items(session, info, positions), strict=True):
            print_change(output, was, is_now)
        verdict = verdict_of(document)
        output.data("")
        output.data(f"{output.painted(verdict.mark, verdict.style)} {info.run}: {verdict.sentence}")

    return show
