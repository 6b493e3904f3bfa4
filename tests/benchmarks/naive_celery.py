"""The Celery application that one writes first, one task per turn, to compare Proctor with.

Each task decodes its turn, calls the same engine and writes the result; nothing keeps the order of a thread,
no memento is carried from turn to turn, a redelivered message counts twice. It does less than Proctor does.
"""

import json
import os
import sys
from collections.abc import Iterable
from typing import Any, Final

import redis
from celery import Celery

from tests.benchmarks.bare_loops import decided

SOCKET: Final = os.environ.get("NAIVE_SOCKET", "")
"""The Redis server's unix socket, set by the benchmark that starts the workers."""
RESULTS: Final = "naive:results"

app = Celery("naive", broker=f"redis+socket://{SOCKET}")
app.conf.update(task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True)
results = redis.Redis(unix_socket_path=SOCKET)


@app.task(name="naive.decide")
def decide(index: int, turn: dict[str, Any]) -> None:
    """Decides one turn and writes the result under its position in the input."""
    results.hset(RESULTS, str(index), json.dumps(decided(turn)))


def submit(lines: Iterable[bytes]) -> None:
    """Sends one task per line."""
    for index, line in enumerate(lines):
        decide.delay(index, json.loads(line))


if __name__ == "__main__":
    submit(sys.stdin.buffer)
