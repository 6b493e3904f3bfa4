"""Finds the results that an interrupted evaluation left behind, so that resuming it shows all queries.

`--start-from Q-15` continues the newest run that put the same baselines to the same API and did not finish;
that one may itself continue another. Without such a run only the queries from Q-15 on are in the files.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.load.baselines import encode_baseline
from producer.report.query_rows import opened
from shared.errors import UnknownRunError
from shared.names import FINAL_STATES, Kind, RunState
from shared.query_run import QueryRun
from shared.runs import RunInfo, RunStore

LOOKED_AT: Final = 20
"""Newest runs of queries among which the interrupted one is searched."""


class Earlier(NamedTuple):
    """What is there already."""

    run: str
    """The run that is continued; empty when there is none."""
    results: list[dict[str, Any]]
    """Results of the queries before the first one to be sent, in order."""


def earlier_results(
    store: RunStore, baselines: Sequence[Mapping[str, Any]], start_from: str, api_url: str
) -> Earlier:
    """Collects the results of the queries before `start_from`.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    ids = [query["id"] for query in baselines]
    wanted = ids[: ids.index(start_from)]
    if not wanted:
        return Earlier("", [])
    payloads = {query["id"]: encode_baseline(dict(query)) for query in baselines}
    for info in store.list(limit=LOOKED_AT, kind=Kind.QUERIES):
        run = QueryRun.from_snapshot(info.snapshot)
        if run.api_url != api_url or run.repeat != 1 or info.state == RunState.LOADING:
            continue
        if info.state == RunState.FINISHED or info.state not in FINAL_STATES:
            break
        found = _chain(store, info, payloads)
        return Earlier(info.run, [found[name] for name in wanted if name in found])
    return Earlier("", [])


def _chain(store: RunStore, info: RunInfo | None, payloads: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Collects results of a run and of those that it continues, as far as they are of the same baselines."""
    found = dict[str, dict[str, Any]]()
    while info is not None:
        rows = [row for page in store.item_pages(info.run) for row in page if row.code]
        inputs = store.inputs(info.run, [str(row.index) for row in rows]) if rows else []
        for (_, result, _), payload in zip(opened(rows), inputs, strict=True):
            if result is not None and payloads.get(result["id"]) == payload:
                found.setdefault(result["id"], result)
        info = _continued(store, info)
    return found


def _continued(store: RunStore, info: RunInfo) -> RunInfo | None:
    """Reads the run that a run continues; it may be gone."""
    name = QueryRun.from_snapshot(info.snapshot).continues
    try:
        return store.info(name) if name else None
    except UnknownRunError:
        return None
