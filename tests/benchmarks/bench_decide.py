"""Measures what deciding a turn costs without queue and Redis: `python -m tests.benchmarks.bench_decide`.

Takes a turns file as its argument, or makes turns. Each figure is the best of several rounds, in microseconds
of wall time a turn, on one core; `decide_thread` is all in: decode, decide, memento, encode, state of the
thread.
"""

import argparse
import gc
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

from shared.codecs.turn_batches import pack_batch
from shared.contracts.turns import Turn
from tests.benchmarks.make_turns import made_turns, repeated
from worker.breakpoint.engine import decide_breakpoint_action, extract_breakpoint_signal_kinds
from worker.breakpoint.thread_decider import Batch, RunPolicy, decide_thread, request_ids
from worker.breakpoint.turn_wire import decode_turns

ROUNDS: Final = 15
MADE_TURNS: Final = 4_000
POLICY: Final = RunPolicy("bench", 1_767_225_600_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints one line a measurement."""
    options = argparse.ArgumentParser(prog="bench_decide", description="Measure what deciding a turn costs.")
    options.add_argument("file", type=Path, nargs="?", help="turns, as JSON Lines; default: made ones")
    options.add_argument("--rounds", type=int, default=ROUNDS, help="the best of so many is printed")
    given = options.parse_args(arguments)
    made = repeated(made_turns(seed=1), MADE_TURNS)
    lines = (given.file.read_bytes() if given.file else b"".join(made)).splitlines()
    todo = measurements(lines)
    gc.freeze()  # what is made up to here is not what is measured
    for name, work in todo.items():
        print(f"{name:28}{best_us(work, len(lines), given.rounds):8.2f} µs a turn")
    return 0


def measurements(lines: list[bytes]) -> dict[str, Callable[[], object]]:
    """Names what is measured, in the order of a turn's life."""
    threads = by_thread(lines)
    payloads = [batch.payload for batch in threads.values()]
    bodies = [payload.partition(b"\n")[2] for payload in payloads]
    packets = [json.loads(line) for line in lines]
    validate = Turn.__pydantic_validator__.validate_json
    return {
        "check at the door": lambda: exhaust(map(validate, lines)),
        "look for request ids": lambda: request_ids(payloads),
        "decode": lambda: exhaust(map(decode_turns, bodies)),
        "rules alone": lambda: exhaust(
            decide_breakpoint_action(
                message=packet["message"], signal_kinds=extract_breakpoint_signal_kinds(packet)
            )
            for packet in packets
        ),
        "decide_thread, all in": lambda: exhaust(
            decide_thread(thread=thread, state=b"", batches=[batch], known={})
            for thread, batch in threads.items()
        ),
    }


def exhaust(work: Iterable[object]) -> None:
    """Does what is to be done and keeps nothing of it."""
    deque(work, maxlen=0)


def by_thread(lines: list[bytes]) -> dict[str, Batch]:
    """Puts each thread's turns into one batch, as a chunk does."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        places.setdefault(json.loads(line)["threadId"], []).append(index)
    return {
        thread: Batch(POLICY, 0, pack_batch(indexes, [lines[index] for index in indexes]))
        for thread, indexes in places.items()
    }


def best_us(work: Callable[[], object], turns: int, rounds: int) -> float:
    """Runs a piece of work some times and takes the best, in microseconds a turn."""
    best_s = float("inf")
    for _ in range(rounds):
        start = perf_counter()
        work()
        best_s = min(best_s, perf_counter() - start)
    return best_s / turns * 1e6


if __name__ == "__main__":
    sys.exit(main())
