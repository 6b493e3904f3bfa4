"""Finds the results of an interrupted evaluation, so that resuming it reports all queries.

`--start-from Q-15` continues the newest run that sent the same baselines to the same API and did not finish;
that run may itself continue another. Without such a run only the queries from Q-15 on are in the files.

The run of a killed evaluation is found by its owner: host, process id and folder.
"""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from producer.load.baselines import encode_baseline
from producer.queries.report.opened_rows import opened
from shared.contracts.queries import Baseline
from shared.contracts.query_run import QueryRun
from shared.errors import UnknownRunError
from shared.kinds import QUERIES
from shared.names import FINAL_STATES, RunState
from shared.runs import RunInfo, RunStore

LOOKED_AT: Final = 20
"""Newest runs of queries that are searched for the interrupted one."""


class Earlier(NamedTuple):
    """Results of earlier runs."""

    run: str
    """The run that is continued; empty when there is none."""
    results: dict[str, dict[str, Any]]
    """Its results and those of the runs that it continues, by query."""


NOTHING: Final = Earlier("", {})


def earlier_results(store: RunStore, baselines: Sequence[Baseline], start_from: str, api_url: str) -> Earlier:
    """Collects the results of an interrupted run; empty if all queries are to be sent.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    if start_from == baselines[0].id:
        return NOTHING
    payloads = payloads_of(baselines)
    for info in store.list(limit=LOOKED_AT, kind=QUERIES):
        if info.state not in FINAL_STATES or not _has_same_queries(store, info, payloads, api_url):
            continue
        if info.state == RunState.FINISHED:
            break
        return Earlier(info.run, _chain(store, info, payloads))
    return NOTHING


def unfinished_runs(
    store: RunStore, baselines: Sequence[Baseline], owner: str, api_url: str
) -> Iterator[RunInfo]:
    """Finds runs of the same baselines by killed evaluations of this machine and folder.

    Args:
        store: reads runs.
        baselines: what is evaluated.
        owner: of this evaluation, see `owner_of`.
        api_url: base URL of the API.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    payloads = payloads_of(baselines)
    for state in (RunState.RUNNING, RunState.PAUSED):
        for info in store.list(limit=LOOKED_AT, kind=QUERIES, state=state):
            owner_of_run = QueryRun.from_snapshot(info.snapshot).owner
            if _is_orphan(owner_of_run, owner) and _has_same_queries(store, info, payloads, api_url):
                yield info


def owner_of(folder: Path) -> str:
    """Names this process as the owner of the runs that it submits for a folder."""
    return f"{socket.gethostname()} {os.getpid()} {folder.resolve()}"


def _is_orphan(owner: str, mine: str) -> bool:
    """Whether the owner of a run is an ended process of this host and folder.

    >>> _is_orphan("", "a 1 /x"), _is_orphan("b 1 /x", "a 1 /x"), _is_orphan("a 1 /y", "a 1 /x")
    (False, False, False)
    >>> _is_orphan(f"a {os.getpid()} /x", f"a {os.getpid()} /x"), _is_orphan("a 1 /x", "a 7 /x")
    (True, False)
    """
    host, _, rest = mine.partition(" ")
    pid, _, folder = rest.partition(" ")
    parts = owner.split(" ", maxsplit=2)
    if len(parts) != len(("host", "pid", "folder")) or (parts[0], parts[2]) != (host, folder):
        return False
    return parts[1] == pid or not _is_alive(int(parts[1]))


def _is_alive(pid: int) -> bool:
    """Whether a process of this host runs."""
    with suppress(PermissionError):  # it runs, for somebody else
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def payloads_of(baselines: Sequence[Baseline]) -> dict[str, bytes]:
    """Encodes queries as stored in a run."""
    return {query.id: encode_baseline(query) for query in baselines}


def _has_same_queries(store: RunStore, info: RunInfo, payloads: Mapping[str, bytes], api_url: str) -> bool:
    """Whether a run sends the same queries once to the same API, judged by its first query."""
    run = QueryRun.from_snapshot(info.snapshot)
    if run.api_url != api_url or run.repeat != 1 or run.chosen:
        return False
    [first] = store.inputs(info.run, ["0"])
    return first in payloads.values()


def _chain(store: RunStore, info: RunInfo | None, payloads: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Collects results of a run and of those that it continues, as far as they are of the same baselines."""
    found = dict[str, dict[str, Any]]()
    while info is not None:
        rows = [row for page in store.item_pages(info.run) for row in page if row.code]
        inputs = store.inputs(info.run, [str(row.index) for row in rows]) if rows else []
        for query, payload in zip(opened(rows), inputs, strict=True):
            result = query.result
            if result is not None and payloads.get(result.id) == payload:
                found.setdefault(result.id, dict(result.keys))
        info = _continued(store, info)
    return found


def _continued(store: RunStore, info: RunInfo) -> RunInfo | None:
    """Reads the run that a run continues; it may be gone."""
    name = QueryRun.from_snapshot(info.snapshot).continues
    try:
        return store.info(name) if name else None
    except UnknownRunError:
        return None
