"""The Celery application that one writes first, one task per turn, to compare Proctor with.

Each task decodes its turn, calls the same engine and writes the result; nothing keeps the order of a thread,
no memento is carried from turn to turn, a redelivered message counts twice. It does less than Proctor does.
"""

import json
import os
import sys
from collections import deque
from collections.abc import Iterable
from time import perf_counter
from typing import Any, Final

import redis
from celery import Celery

from tests.benchmarks.bare_loops import decided

SOCKET: Final = os.environ.get("NAIVE_SOCKET", "")
"""The Redis server's unix socket, set by the benchmark that starts the workers."""
RESULTS: Final = "naive:results"

app = Celery("naive", broker=f"redis+socket://{SOCKET}", backend=f"redis+socket://{SOCKET}")
app.conf.update(task_acks_late=True, task_ignore_result=True, broker_connection_retry_on_startup=True)
results = redis.Redis(unix_socket_path=SOCKET)


@app.task(name="naive.decide")
def decide(index: int, turn: dict[str, Any]) -> None:
    """Decides one turn and writes the result under its position in the input."""
    results.hset(RESULTS, str(index), json.dumps(decided(turn)))


@app.task(name="naive.answer", ignore_result=False)
def answer(turn: dict[str, Any]) -> dict[str, Any]:
    """Decides one turn for a caller who waits for the result backend."""
    return decided(turn)


def ask(lines: Iterable[bytes], together: int) -> None:
    """Asks for decisions, some at a time, and prints the rate and the times in milliseconds as JSON."""
    turns, took, began_s = deque(map(json.loads, lines)), list[float](), perf_counter()
    waiting = deque[tuple[float, Any]]()
    while turns or waiting:
        while turns and len(waiting) < together:
            waiting.append((perf_counter(), answer.delay(turns.popleft())))
        sent_s, result = waiting.popleft()
        result.get(timeout=60)
        took.append(1000 * (perf_counter() - sent_s))
    rate = len(took) / (perf_counter() - began_s)
    took.sort()
    print(json.dumps({"rate": rate, "p50_ms": took[len(took) // 2], "p99_ms": took[len(took) * 99 // 100]}))


def submit(lines: Iterable[bytes]) -> None:
    """Sends one task per line."""
    for index, line in enumerate(lines):
        decide.delay(index, json.loads(line))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ask(sys.stdin.buffer, int(sys.argv[1]))
    else:
        submit(sys.stdin.buffer)
