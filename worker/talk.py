"""A worker that has decided served turns takes the next wake-up from its queue itself, while people talk.

    Celery's message ──► micro-run ──► next message ──► micro-run ──► … a silence: back to Celery

Celery's way of a message (delivery, events, acknowledgement) costs more than the micro-run. What is taken
here has no copy at the broker: if this process dies, the ledger publishes it again, as every wake-up that
nobody has claimed. Messages of other runs go back, for Celery to take and for Flower to show.
"""

from collections.abc import Callable, Iterator
from threading import Semaphore
from time import monotonic
from typing import Any, Final

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from shared.kinds import TURNS
from shared.ledger import Wake
from shared.ledger.calls import FORESEEN
from shared.names import SERVED_PREFIX
from shared.queues import WakeQueues

SILENCE_S: Final = 1.0
"""A talk is over when nothing came for so long."""
LONGEST_S: Final = 10.0
"""After so long Celery delivers again, whose message is acknowledged when its task ends."""
LOOK_S: Final = 0.2
"""How often a thread that waits checks whether the process drains."""


class _Arguments(Struct):
    run: str
    chunk: str
    items: int = 0
    first: str = ""


class _Message(Struct):
    body: bytes
    """Base64 of what a task is called with."""


class Talks:
    """Wake-ups of served turns, for the threads that have just had one.

    Args:
        queues: where they wait.
        most: threads that may wait here; others are Celery's.
        is_over: whether the process drains.
    """

    def __init__(self, queues: WakeQueues, most: int, is_over: Callable[[], bool]) -> None:
        self._queues, self._is_over = queues, is_over
        self._free = Semaphore(most)

    def following(self) -> Iterator[Wake]:
        """Yields wake-ups as they come, until nothing came for a while."""
        if not self._free.acquire(blocking=False):
            return
        try:
            began_s = heard_s = monotonic()
            while heard_s - began_s < LONGEST_S and monotonic() - heard_s < SILENCE_S and not self._is_over():
                message = self._queues.take(TURNS, LOOK_S)
                wake = message and served_wake(message)
                if wake:
                    yield wake
                    heard_s = monotonic()
                elif message:
                    self._queues.put_back(TURNS, message)
                    return
        except FORESEEN:  # Celery's consumer waits for the broker
            return
        finally:
            self._free.release()


_message: Final = Decoder(_Message).decode
_called: Final = Decoder(tuple[list[Any], _Arguments, dict[str, Any]]).decode


def served_wake(message: bytes) -> Wake | None:
    """Reads a message; None if it is no wake-up of served turns, which is left to Celery's consumer.

    >>> served_wake(b'{"body": "W1tdLHsicnVuIjoic2VydmVkLTEiLCJjaHVuayI6IjAifSx7fV0="}')
    Wake(kind='turns', run='served-1', chunk='0', items=0, first='')
    >>> served_wake(b"[]")
    """
    try:
        _, wanted, _ = _called(_message(message).body)
    except (DecodeError, ValueError):
        return None
    is_served = wanted.run.startswith(SERVED_PREFIX)
    return Wake(TURNS.name, wanted.run, wanted.chunk, wanted.items, wanted.first) if is_served else None
