"""Measures what running validators and patterns in locked processes costs.

Each figure is the middle one of several rounds, in wall time of the asking thread. It is compared with the
simplest way to run a validator apart, a new Python process for each call, which is not locked at all.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from statistics import median
from time import perf_counter
from typing import Final

from shared.contracts.checks import Snippet
from tests.benchmarks.results import Figure, NotHereError, sized
from worker.sandbox import Sandboxes

ROUNDS: Final = 15
CALLS: Final = 100
FORK: Final = "CPU: fork, lock and end of a process"
PIPE: Final = "one message to a process and back"
QUICKJS: Final = "CPU: a new interpreter of JavaScript"
INTERPRETER: Final = "start of a Python process"
SOURCE: Final = """
import re

WORDS = re.compile(r"[a-z]+")

def is_short(output):
    return len(output) < 10, f"Length: {len(output)} chars"

def has_words(output):
    return bool(WORDS.search(output))
"""
MODULE: Final = """
const words = text => text.split(" ").length;
module.exports = (output, context) => ({pass: words(output) < 9, score: 1, reason: context.vars.country});
"""


def measured(scale: float) -> Iterator[Figure]:
    """Measures the reference, then everything."""
    rounds, boxes, numbers = sized(ROUNDS, scale, least=1), Sandboxes(), count()
    if boxes.why_unlocked:
        boxes.close()
        raise NotHereError(f"validators cannot be run here: {boxes.why_unlocked}")
    started = timed_ms(lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True), rounds)

    def figure(parameter: str, work: Callable[[], object], bound: str, *, calls: int = 1) -> Figure:
        value = timed_ms(work, rounds) / calls
        row = Figure(
            workload="sandbox", parameter=parameter, measure="time", value=value, unit="ms", bound=bound
        )
        return row.beside(INTERPRETER, started)

    def batch(source: str, calls: int) -> None:
        with boxes.batch(source) as box:
            for _ in range(calls):
                box.call("is_short", "text")

    try:
        with boxes.batch(SOURCE) as box:
            for name, text in (("100 characters", "a" * 100), ("10 kB", "a" * 10_000)):
                call = repeated(lambda text=text: box.call("is_short", text))  # type: ignore[misc] # the default binds this round's text
                yield figure(f"call in its own process, {name}", call, FORK, calls=CALLS)
            search = repeated(lambda: box.search("b|a$", "a" * 100))
            yield figure("search, 100 characters", search, PIPE, calls=CALLS)
            request = json.dumps({"output": "a" * 100, "context": {"vars": {"country": "France"}}})
            for name, code in (("expression", "output.length < 200"), ("file", MODULE)):
                script = Snippet(code, is_module=code is MODULE)
                run = repeated(lambda script=script: box.script(script, request))  # type: ignore[misc] # as above
                yield figure(f"JavaScript, {name}", run, QUICKJS, calls=CALLS)
        yield figure("batch of 100, file at hand", lambda: batch(SOURCE, CALLS), FORK)
        new = "batch of 100, new file: check, fork, lock, load"
        yield figure(new, lambda: batch(f"{SOURCE}# {next(numbers)}", CALLS), FORK)
        yield figure("batch of 1, file at hand", lambda: batch(SOURCE, 1), FORK)
    finally:
        boxes.close()


def repeated(call: Callable[[], object]) -> Callable[[], None]:
    """Makes a hundred calls of one."""

    def run() -> None:
        for _ in range(CALLS):
            call()

    return run


def timed_ms(work: Callable[[], object], rounds: int) -> float:
    """Does something so often; the middle time. The first time, which starts things, does not count."""
    work()
    seconds = []
    for _ in range(rounds):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return 1000 * median(seconds)
