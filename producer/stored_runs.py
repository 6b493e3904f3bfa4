"""Finds stored runs: by an id, the beginning of one or `last`, and the runs that came before one."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from producer.load.source import FILE_KEY
from producer.run_ids import ID_PREFIX
from producer.text import count, plural
from shared.errors import AmbiguousRunError, UnknownRunError, UsageError
from shared.runs import RunInfo, RunStore

SEARCHED: Final = 2_000
"""Runs in which the one before another is looked for."""
SHOWN: Final = 3
_LAST: Final = re.compile(r"last(?:~(\d{1,6}))?", re.ASCII)
"""Names of runs by age: `last` is the newest, `last~1` the one before it."""


def run_of_alias(store: RunStore, text: str) -> str | None:
    """Returns the id that `last`, `last~N` or the beginning of an id stands for; None if nothing does."""
    if last := _LAST.fullmatch(text):
        back = int(last[1] or 0)
        newest = store.list(limit=back + 1)
        if len(newest) > back:
            return newest[back].run
        in_all = f"{plural(len(newest), 'run')} in all"
        raise UnknownRunError(f"there is no {text}: {in_all}", hint="`proctor runs` lists them", run=text)
    starts = (text, f"{ID_PREFIX}{text}")
    named = [run for run in store.ids() if text and run.startswith(starts)]
    if len(named) > 1:
        more = f" and {count(len(named) - SHOWN)} more" if len(named) > SHOWN else ""
        raise AmbiguousRunError(
            f"{text!r} begins the ids of {plural(len(named), 'run')}: {', '.join(named[:SHOWN])}{more}",
            hint="write more of the id, or `last` for the newest run",
        )
    return named[0] if named else None


def run_before(store: RunStore, info: RunInfo) -> RunInfo:
    """Returns the newest earlier run of the same file that has results.

    Raises:
        UsageError: there is none.
    """
    earlier = next(runs_before(store.list(limit=SEARCHED, kind=info.kind), info), None)
    if earlier is None:
        raise UsageError(
            f"there is no run of {info.source} before {info.run}",
            hint="name the run to compare with: proctor compare A B",
        )
    return earlier


def runs_before(runs: Iterable[RunInfo], info: RunInfo) -> Iterator[RunInfo]:
    """Yields the earlier runs of the same file that have results, among some that are sorted by age."""
    for earlier in runs:
        is_older = earlier.created_ms < info.created_ms and earlier.run != info.run
        if is_older and earlier.done and _same_input(earlier, info):
            yield earlier


def _same_input(one: RunInfo, other: RunInfo) -> bool:
    """Whether two runs are of the same file; of streams, of the same name."""
    keys = [info.snapshot.get(FILE_KEY) for info in (one, other)]
    return keys[0] == keys[1] if all(keys) else one.source == other.source
