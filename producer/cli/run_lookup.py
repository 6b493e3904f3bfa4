"""Finds runs by their names, and changes their state."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from msgspec import UNSET

from producer import api
from producer.cli.session import Session
from producer.run_standing import counted
from producer.service_documents import (
    ListedRun,
    ListedStream,
    RunsDocument,
    RunsRemoved,
    StateDocument,
    TextsForgotten,
)
from producer.stored_runs import run_of_alias
from producer.streams import is_stream, window_of
from producer.turns.code_counts import decisions_of, errors_of, latency_of
from shared.clock import iso_utc, now_ms
from shared.errors import UnknownRunError, UsageError
from shared.names import RunState
from shared.runs import RunInfo, RunStore
from shared.runs.forgetting import compact, forget_texts
from shared.runs.served import StreamState

LOOKED_AT: Final = 200
"""Runs that are searched for a mistyped id."""
SHOWN: Final = 3


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
        if named is None and is_stream(run):
            hint = "show, results, report, open and compare take it; it ends with `proctor serve`"
            raise UnknownRunError(f"{run} is a stream of turns, not a run", hint=hint, run=run) from None
        if named is None:
            raise UnknownRunError(error.message, hint=_suggest(session, run), run=run) from None
        info = session.access.store.info(named)
    session.seen.add(info.run)
    return info


def find_results(session: Session, run: str, since: str = "", until: str = "") -> RunInfo:
    """Returns a run, or a part of a stream as if it was one.

    Args:
        session: access to Redis.
        run: see `find_run` and `producer.streams.window_of`.
        since: see there.
        until: see there.

    Raises:
        UsageError: there are times, and it is a run; and what both functions raise.
    """
    if not is_stream(run):
        if since or until:
            hint = "name a stream, such as served; `proctor runs` lists them"
            raise UsageError(f"--since and --until are for streams, and {run} is a run", hint=hint)
        return find_run(session, run)
    store = session.access.store
    window = window_of(store, run, since, until)
    state = store.stream(window.namespace).state(now_ms())
    if state.first_ms is None or window.until_ms <= state.first_ms:
        session.output.warn(
            "no turn of this time is kept in full; `proctor view` has the totals of its hours"
        )
    elif window.since_ms < state.first_ms and state.kept <= state.last:
        session.output.warn(f"turns are kept since {iso_utc(state.first_ms)}: earlier ones are not in it")
    return store.info(window.name)


def _suggest(session: Session, run: str) -> str:
    """Suggests runs with similar ids."""
    known = [info.run for info in session.access.store.list(limit=LOOKED_AT)]
    if not known:
        return f"there are no runs yet in {session.access.connection.target.display}"
    near = get_close_matches(run, known, n=SHOWN)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"the last runs are {', '.join(known[:SHOWN])}; `proctor runs` lists them"


def wait_reasons(store: RunStore, runs: Iterable[RunInfo]) -> dict[str, str]:
    """Reads why runs make no progress, by run; only open and incomplete runs have a reason."""
    waiting = [info for info in runs if not info.is_final or info.state == RunState.INCOMPLETE]
    return {info.run: store.wait_reason_of(info, store.upstream_status(info)) for info in waiting}


def counted_runs(store: RunStore, runs: Iterable[RunInfo]) -> list[RunInfo]:
    """Returns runs with the verdicts on their cases, as lists show them."""
    return [counted(store, info) for info in runs]


def local_time(epoch_ms: int) -> str:
    """Formats a time in the local zone, with the year only if it is not the current one."""
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC).astimezone()
    is_this_year = moment.year == datetime.now(UTC).year
    return moment.strftime("%b %d %H:%M" if is_this_year else "%Y-%m-%d %H:%M")


def runs_document(
    runs: Iterable[RunInfo], why: Mapping[str, str], streams: Iterable[StreamState]
) -> RunsDocument:
    """Returns a list of runs as programs get it, with the reasons of those that wait, and the streams."""
    return RunsDocument(
        runs=tuple(listed(info, why.get(info.run, "")) for info in runs),
        streams=tuple(map(listed_stream, streams)) or UNSET,
    )


def listed_stream(state: StreamState) -> ListedStream:
    """Returns a stream as lists have it."""
    today = state.today
    return ListedStream(
        name=state.name,
        namespace=state.namespace,
        turns_today=today.total,
        decisions_today=decisions_of(today.turns),
        errors_today=errors_of(today.turns),
        latency_ms=latency_of(today) or UNSET,
        turns_per_s=state.per_s,
        kept=state.kept,
        kept_since=None if state.first_ms is None else iso_utc(state.first_ms),
    )


def remove_runs(session: Session, names: Sequence[str]) -> RunsRemoved:
    """Removes runs and their results, after a question."""
    found = tuple(dict.fromkeys(find_run(session, name).run for name in names))
    session.confirm(f"remove {', '.join(found)} with all results?")
    for run in found:
        session.access.ledger.remove(run)
    return RunsRemoved(removed=found)


def forget_runs(session: Session, names: Sequence[str]) -> TextsForgotten:
    """Deletes the texts of runs and keeps their figures, after a question."""
    found = list({info.run: info for info in (find_run(session, name) for name in names)}.values())
    session.confirm(f"forget all texts of {', '.join(info.run for info in found)}?")
    client = session.access.ledger.caller.client
    for info in found:
        forget_texts(client, info, now_ms())
    if session.settings.redis_url is None:
        compact(client)
    return TextsForgotten(forgotten=tuple(info.run for info in found))


def listed(info: RunInfo, why: str = "") -> ListedRun:
    """Returns a run as lists have it; totals by outcome are in its own document."""
    return ListedRun(
        run_id=info.run,
        name=info.name,
        title=info.title,
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


def print_state_change(session: Session, run: str, *, action: str) -> None:
    """Finds a run by its name, changes its state and prints the new one."""
    run = find_run(session, run).run
    state = api.control(session.access, run, action)
    if session.options.json:
        session.output.document(StateDocument(run_id=run, state=state))
    else:
        session.output.data(f"{run} {state}")
