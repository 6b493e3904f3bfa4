"""Finds runs by their names, and changes their state."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from producer.cli.session import Session
from producer.load.source import FILE_KEY
from producer.run_ids import ID_PREFIX
from producer.service_documents import ListedRun, RunsDocument, RunsRemoved, StateDocument
from producer.text import count, plural
from shared.clock import iso_utc
from shared.errors import AmbiguousRunError, RunStateError, UnknownRunError, UsageError
from shared.names import FINAL_STATES, RunState
from shared.runs import RunInfo, RunStore

LOOKED_AT: Final = 200
"""Runs that are searched for a mistyped id."""
SEARCHED: Final = 2_000
"""Runs in which the one before another is looked for."""
SHOWN: Final = 3
_LAST: Final = re.compile(r"last(?:~(\d{1,6}))?", re.ASCII)
"""Names of runs by age: `last` is the newest, `last~1` the one before it."""
_REACHED: dict[str, frozenset[str]] = {
    "pause": frozenset({RunState.PAUSED}),
    "resume": frozenset({RunState.RUNNING}),
    "cancelled": frozenset({RunState.CANCELLING, RunState.CANCELLED}),
}


def find_run(session: Session, run: str) -> RunInfo:
    """Returns the run of this name; its `run` is the id, whatever it was named by.

    Args:
        session: access to Redis.
        run: an id, a unique beginning of one (also without `run-`), `last` for the newest run of any kind, or
            `last~N` for the Nth before it. A run that is called exactly so always wins.

    Raises:
        UnknownRunError: there is none; the hint names those that are near, else the last ones.
        AmbiguousRunError: several ids begin with this.
    """
    try:
        info = session.access.store.info(run)
    except UnknownRunError as error:
        named = run_of_alias(session.access.store, run)
        if named is None:
            raise UnknownRunError(error.message, hint=_suggest(session, run), run=run) from None
        info = session.access.store.info(named)
    session.seen.add(info.run)
    return info


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


def _suggest(session: Session, run: str) -> str:
    """Suggests runs with similar ids."""
    known = [info.run for info in session.access.store.list(limit=LOOKED_AT)]
    if not known:
        return f"there are no runs yet in {session.access.connection.target.display}"
    near = get_close_matches(run, known, n=SHOWN)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"the last runs are {', '.join(known[:SHOWN])}; `proctor runs` lists them"


def run_before(session: Session, info: RunInfo) -> RunInfo:
    """Returns the newest earlier run of the same file that has results.

    Args:
        session: access to Redis.
        info: the run.

    Raises:
        UsageError: there is none.
    """
    for earlier in session.access.store.list(limit=SEARCHED, kind=info.kind):
        is_older = earlier.created_ms < info.created_ms and earlier.run != info.run
        if is_older and earlier.done and _same_input(earlier, info):
            session.seen.add(earlier.run)
            return earlier
    raise UsageError(
        f"there is no run of {info.source} before {info.run}",
        hint="name the run to compare with: proctor compare A B",
    )


def _same_input(one: RunInfo, other: RunInfo) -> bool:
    """Whether two runs are of the same file; of streams, of the same name."""
    keys = [info.snapshot.get(FILE_KEY) for info in (one, other)]
    return keys[0] == keys[1] if all(keys) else one.source == other.source


def wait_reasons(store: RunStore, runs: Iterable[RunInfo]) -> dict[str, str]:
    """Reads why runs make no progress, by run; only open and incomplete runs have a reason."""
    waiting = [info for info in runs if not info.is_final or info.state == RunState.INCOMPLETE]
    return {info.run: store.wait_reason_of(info, store.upstream_status(info)) for info in waiting}


def local_time(epoch_ms: int) -> str:
    """Formats a time in the local zone, with the year only if it is not the current one."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC).astimezone()
    is_this_year = moment.year == datetime.now(UTC).year
    return moment.strftime("%b %d %H:%M" if is_this_year else "%Y-%m-%d %H:%M")


def runs_document(runs: Iterable[RunInfo], why: Mapping[str, str]) -> RunsDocument:
    """Returns a list of runs as programs get it, with the reasons of those that wait."""
    return RunsDocument(runs=tuple(listed(info, why.get(info.run, "")) for info in runs))


def remove_runs(session: Session, names: Sequence[str]) -> RunsRemoved:
    """Removes runs and their results, after a question."""
    found = tuple(dict.fromkeys(find_run(session, name).run for name in names))
    session.confirm(f"remove {', '.join(found)} with all results?")
    for run in found:
        session.access.ledger.remove(run)
    return RunsRemoved(removed=found)


def listed(info: RunInfo, why: str = "") -> ListedRun:
    """Returns a run as lists have it; totals by outcome are in its own document."""
    return ListedRun(
        run_id=info.run,
        name=info.name,
        description=info.description,
        kind=info.kind.name,
        state=info.state,
        namespace=info.namespace,
        total=info.total,
        done=info.done,
        threads=info.threads,
        created_at=iso_utc(info.created_ms),
        finished_at=None if info.finished_ms is None else iso_utc(info.finished_ms),
        source=info.source,
        why=why,
    )


def change_state(session: Session, run: str, *, action: str) -> str:
    """Changes a run's state, publishes the wake-ups that follow from it, and returns the state after it.

    Args:
        session: access to Redis.
        run: the run's id.
        action: what to do with it.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: the run is in a state that does not allow it.
    """
    state, wakes = session.access.ledger.control(run, action)
    if wakes:
        session.access.publisher.publish(wakes)
    if state in _REACHED[action]:
        return state
    if state in FINAL_STATES:
        raise RunStateError(f"run {run} is {state} already", hint=f"`proctor retry {run}` works on it again")
    raise RunStateError(f"run {run} is {state}", hint=f"`proctor watch {run}` shows it")


def print_state_change(session: Session, run: str, *, action: str) -> None:
    """Finds a run by its name, changes its state and prints the new one."""
    run = find_run(session, run).run
    state = change_state(session, run, action=action)
    if session.options.json:
        session.output.document(StateDocument(run_id=run, state=state))
    else:
        session.output.data(f"{run} {state}")
