"""Measures what running validators and patterns in locked processes costs.

Run as `python -m tests.benchmarks.bench_sandbox`. Each row is the best and the middle of several rounds, in
wall time of the asking thread, beside its goal.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from statistics import median
from time import perf_counter
from typing import Final, NamedTuple

from worker.sandbox import Sandboxes

ROUNDS: Final = 15
CALLS: Final = 100
SOURCE: Final = """
import re

WORDS = re.compile(r"[a-z]+")

def is_short(output):
    return len(output) < 10, f"Length: {len(output)} chars"

def has_words(output):
    return bool(WORDS.search(output))
"""


class Row(NamedTuple):
    """One measurement."""

    name: str
    unit: str
    best: float
    middle: float
    goal: str

    def line(self) -> str:
        """The row as text."""
        return f"{self.name:44}{self.best:9.2f}{self.middle:9.2f} {self.unit:4}{self.goal:>10}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints one line a measurement."""
    options = argparse.ArgumentParser(prog="bench_sandbox", description="Measure what the sandbox costs.")
    options.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is measured")
    given = options.parse_args(arguments)
    print(f"{'':44}{'best':>9}{'middle':>9}     {'goal':>10}")
    for row in measured(given.rounds):
        print(row.line())
    return 0


def measured(rounds: int) -> Iterator[Row]:
    """Measures everything."""
    boxes, numbers = Sandboxes(), count()
    try:
        if boxes.why_unlocked:
            print(f"validators cannot be run here: {boxes.why_unlocked}")
            return
        with boxes.batch(SOURCE) as box:
            for name, text in (("100 characters", "a" * 100), ("10 kB", "a" * 10_000)):
                call = _calls(lambda text=text: box.call("is_short", text))  # type: ignore[misc] # the default binds this round's text
                yield _row(f"call in its own process, {name}", "µs", call, rounds, CALLS, "1000")
            yield _row(
                "search, 100 characters",
                "µs",
                _calls(lambda: box.search("b|a$", "a" * 100)),
                rounds,
                CALLS,
                "25",
            )

        def batch(source: str, calls: int) -> None:
            with boxes.batch(source) as box:
                for _ in range(calls):
                    box.call("is_short", "text")

        yield _row("batch of 100, file at hand", "ms", lambda: batch(SOURCE, CALLS), rounds, 1, "100")
        new = _row(
            "batch of 100, new file: check, fork, lock, load",
            "ms",
            lambda: batch(f"{SOURCE}# {next(numbers)}", CALLS),
            rounds,
            1,
            "-",
        )
        yield new
        yield _row("batch of 1, file at hand", "ms", lambda: batch(SOURCE, 1), rounds, 1, "-")
    finally:
        boxes.close()


def _calls(call: Callable[[], object]) -> Callable[[], None]:
    """Makes a hundred calls of one."""

    def run() -> None:
        for _ in range(CALLS):
            call()

    return run


def _row(  # noqa: PLR0917 - a table of rows reads best without words
    name: str, unit: str, work: Callable[[], object], rounds: int, parts: int, goal: str
) -> Row:
    """Measures one thing some times; the first time, which starts things, does not count."""
    work()
    seconds = []
    for _ in range(rounds):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    scale = {"µs": 1e6, "ms": 1e3}[unit] / parts
    return Row(name, unit, min(seconds) * scale, median(seconds) * scale, goal)


if __name__ == "__main__":
    sys.exit(main())
