"""Defines every Redis key once, for Python and (rendered by `lua_source`) for the ledger's Lua scripts.

A run's keys end with the run, a namespace's with the last run that uses it, chunk records with their chunk.

    clock busy open runs runs:expiring suspects dead dead:items                  one each
    idem:{key}                                                                   an idempotency key
    run:{run}:run|items|plan|wait|admitted|res|redo|try|batches|threads|dead     a run
    run:{run}:c:{chunk}                                                          a chunk that was handed out
    kind:{kind}:live|parked|ring|pace|workers|cap|layouts                        a kind
    run:{run}:cost|holds                                                         a run with a cost cap
    run:{run}:labels                                                             a run that people review
    ended:{listener}                                                             a process that waits for runs
    served ns:{namespace}:served:{hour}|turns|threads|open|result:{turn}         turns of `proctor serve`
    ns:{namespace}:own|at|mem|req|runs, ns:{namespace}:in:{thread}               a namespace
    texts:forgetting                                                             the retention of texts
    limits limits:used limit:{scope} permits:{scope}                             bounds of calls to upstreams
    cache:hits cache:a:{digest} cache:f:{digest}                                 answers of models
    counters counters:calls counters:upstreams counters:batch:{process}          counters of the fleet

Names of runs, namespaces and chunks hold neither colons nor spaces (`shared.ledger` refuses others);
names of threads and scopes are free text, which is why they stand last.
"""

import sys
from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Final

PREFIX: Final = "proctor:"

CLOCK_KEY: Final = PREFIX + "clock"
"""Hash: `at` Redis time of the last tick, `lc` ledger clock then, `lease` how long a lease of that worker
lasts, `at2` Redis time of the last tick of a worker with layout 2, `seq` the serial number last given
out, `back` all that Redis' time was ever set back."""
BUSY_KEY: Final = PREFIX + "busy"
"""Set: runs that are loading or cancelling, which a tick handles."""
OPEN_KEY: Final = PREFIX + "open"
"""Set: runs that are sealed and not final; the backlog is their sum."""
RUNS_KEY: Final = PREFIX + "runs"
"""Sorted set: all runs by the time they were created, epoch milliseconds."""
EXPIRING_KEY: Final = PREFIX + "runs:expiring"
"""Sorted set: final runs by the time their keys expire, epoch milliseconds."""
SUSPECTS_KEY: Final = PREFIX + "suspects"
"""Hash: worker to the lease of the one suspect chunk it holds."""
DEAD_KEY: Final = PREFIX + "dead"
"""Sorted set: `run index` of items that ended in error, by epoch milliseconds."""
DEAD_ITEMS_KEY: Final = PREFIX + "dead:items"
"""Hash: `run index` to the details of an item that ended in error."""


def idem_key(key: str) -> str:
    """String: the run of an idempotency key."""
    return f"{PREFIX}idem:{key}"


def run_key(run: str) -> str:
    """Hash: state and settings of a run, times, progress, tallies (`n:<word>`) and its snapshot.

    >>> run_key("r1")
    'proctor:run:r1:run'
    """
    return f"{PREFIX}run:{run}:run"


def items_key(run: str) -> str:
    """Hash: index (turns: batch) to payload."""
    return f"{PREFIX}run:{run}:items"


def plan_key(run: str) -> str:
    """Hash: open chunk to four MessagePack values: generation, first, number of items, parts."""
    return f"{PREFIX}run:{run}:plan"


def wait_key(run: str) -> str:
    """Sorted set: chunks that wait to be published, in the order of the run."""
    return f"{PREFIX}run:{run}:wait"


def admitted_key(run: str) -> str:
    """Set: open chunks that were published at least once and so have a record."""
    return f"{PREFIX}run:{run}:admitted"


def results_key(run: str) -> str:
    """Hash: index to `generation|value`; turns: batch, and `batch:offset` for earlier parts of a batch."""
    return f"{PREFIX}run:{run}:res"


def redo_key(run: str) -> str:
    """Hash: index to the generation that `retry` requested, until that result is committed."""
    return f"{PREFIX}run:{run}:redo"


def tries_key(run: str) -> str:
    """Hash: index to `attempts|not before|parked state` of an item that will be tried again."""
    return f"{PREFIX}run:{run}:try"


def batches_key(run: str) -> str:
    """Hash: chunk to its number of batches (turns), in order; name of a file to its content (others)."""
    return f"{PREFIX}run:{run}:batches"


def threads_key(run: str) -> str:
    """Set: names of the threads of a run (turns only)."""
    return f"{PREFIX}run:{run}:threads"


def run_dead_key(run: str) -> str:
    """Set: indexes of a run's items that are in the dead set."""
    return f"{PREFIX}run:{run}:dead"


def chunk_key(run: str, chunk: str) -> str:
    """Hash, the record of an admitted chunk.

    Its fields: `st` (P published, L leased, W waiting, D delayed), `own` claim token, `w` worker, `at` when
    claimed, `k` leases that ran out, `pub` repeated wake-ups, `since` when the last wake-up was sent.
    """
    return f"{PREFIX}run:{run}:c:{chunk}"


def live_key(kind: str) -> str:
    """Sorted set: `run chunk`, published or leased, by the ledger time at which the steward checks it."""
    return f"{PREFIX}kind:{kind}:live"


def parked_key(kind: str) -> str:
    """Sorted set: delayed `run chunk` by the Redis time at which it is due."""
    return f"{PREFIX}kind:{kind}:parked"


def ring_key(kind: str) -> str:
    """Sorted set: runs with waiting chunks; the one with the lowest serial number is served next."""
    return f"{PREFIX}kind:{kind}:ring"


def pace_key(kind: str) -> str:
    """Hash: `window` chunks that may be published or leased at a time, `usual` ms a chunk is worked on."""
    return f"{PREFIX}kind:{kind}:pace"


def workers_key(kind: str) -> str:
    """Sorted set: registered workers by the ledger time at which they count as gone."""
    return f"{PREFIX}kind:{kind}:workers"


def capacity_key(kind: str) -> str:
    """Hash: worker to the number of chunks it works on at a time."""
    return f"{PREFIX}kind:{kind}:cap"


def plugins_key(worker: str) -> str:
    """Text: the plug-ins of a worker, which expires with it; of a new one there is nothing yet."""
    return f"{PREFIX}worker:{worker}:plugins"


def layouts_key(kind: str) -> str:
    """Hash: worker to the newest layout of runs that it supports; nothing of workers of the first version."""
    return f"{PREFIX}kind:{kind}:layouts"


def owners_key(namespace: str) -> str:
    """Hash: thread to the lease (`run chunk token`) that holds it."""
    return f"{PREFIX}ns:{namespace}:own"


def positions_key(namespace: str) -> str:
    """Hash: thread to `position offset`: the version to commit with, and turns done of the front batch."""
    return f"{PREFIX}ns:{namespace}:at"


def mementos_key(namespace: str) -> str:
    """Hash: thread to its state."""
    return f"{PREFIX}ns:{namespace}:mem"


def requests_key(namespace: str) -> str:
    """Hash: `clientRequestId` to what was answered."""
    return f"{PREFIX}ns:{namespace}:req"


def users_key(namespace: str) -> str:
    """Set: open runs of a namespace; its time to live counts while this is empty."""
    return f"{PREFIX}ns:{namespace}:runs"


SERVED_KEY: Final = PREFIX + "served"
"""Sorted set: namespaces with a stream of `proctor serve`, by the time of their last turn."""


def served_key(namespace: str, hour: str) -> str:
    """Hash: turns that ended in an hour (hours since the epoch): `turns CODE` and `latency BUCKET`.

    CODE is decision and rule, as in `shared.codecs.turn_batches`; for BUCKET see `LATENCY_GROWTH`.
    """
    return f"{PREFIX}ns:{namespace}:served:{hour}"


def served_turns_key(namespace: str) -> str:
    """Stream: the latest turns that ended, a batch in each entry; see `lua/lib/served.lua`."""
    return f"{PREFIX}ns:{namespace}:served:turns"


def served_threads_key(namespace: str) -> str:
    """Sorted set: threads of the stream by the time of their last turn."""
    return f"{PREFIX}ns:{namespace}:served:threads"


def served_open_key(namespace: str) -> str:
    """Sorted set: micro-runs that were not folded yet, by the time they were created."""
    return f"{PREFIX}ns:{namespace}:served:open"


def served_result_key(namespace: str, turn: str) -> str:
    """String: the result of a turn for which nobody waited."""
    return f"{PREFIX}ns:{namespace}:served:result:{turn}"


def inbox_key(namespace: str, thread: str) -> str:
    """List: `run batch count` of the batches a thread still has to decide, oldest first."""
    return f"{PREFIX}ns:{namespace}:in:{thread}"


LIMITS_KEY: Final = PREFIX + "limits"
"""Hash: model, provider or API URL to the limits that a person has set, as JSON."""
SCOPES_KEY: Final = PREFIX + "limits:used"
"""Sorted set: scopes that were called through lately, by the time of the first call, epoch milliseconds."""
FORGETTING_KEY: Final = PREFIX + "texts:forgetting"
"""String: while it is there, a worker looks for runs whose texts are no longer kept."""
CACHE_HITS_KEY: Final = PREFIX + "cache:hits"
"""Hash: `hits`, `misses` and `stored` answers of models, for display."""


COUNTERS_KEY: Final = PREFIX + "counters"
"""Hash: counters of the ledger, by the names of `shared.observability.counters`; only grows."""
CALL_COUNTERS_KEY: Final = PREFIX + "counters:calls"
"""Hash: the same for calls to upstreams, `upstream counter [label]`; only grows."""
COUNTED_KEY: Final = PREFIX + "counters:upstreams"
"""Set: upstreams that are counted under their own name, `MOST_UPSTREAMS` at most."""


def counted_batch_key(process: str) -> str:
    """String: the number of the last batch of counts that a process has sent."""
    return f"{PREFIX}counters:batch:{process}"


def scope_key(scope: str) -> str:
    """Hash: current state of a scope's limits; its fields are in `worker/upstream/lua/lib/scope.lua`."""
    return f"{PREFIX}limit:{scope}"


def permits_key(scope: str) -> str:
    """Sorted set: calls in flight by the ledger time at which they count as gone, unless they are renewed."""
    return f"{PREFIX}permits:{scope}"


def cost_key(run: str) -> str:
    """Hash: cap, cost and reservations of a run; see `worker/upstream/lua/lib/reservations.lua`."""
    return f"{PREFIX}run:{run}:cost"


def holds_key(run: str) -> str:
    """Sorted set: calls that hold a reservation, by the ledger time at which they count as gone."""
    return f"{PREFIX}run:{run}:holds"


def labels_key(run: str) -> str:
    """Hash: `position reviewer` to what a person says of the answer; see `producer/review/label_store.py`."""
    return f"{PREFIX}run:{run}:labels"


def ended_key(listener: str) -> str:
    """List: runs that have ended, for the process that submitted them and waits (`tells` in `run_key`).

    Pieces of answers that are being written stand in it too (`shared.codecs.live_pieces`).
    """
    return f"{PREFIX}ended:{listener}"


def contacts_key(run: str) -> str:
    """Hash: which endpoints have answered a run; see `worker/upstream/lua/unreached.lua`."""
    return f"{PREFIX}run:{run}:contacts"


def answer_key(digest: str) -> str:
    """String: a model's answer to the request with this digest."""
    return f"{PREFIX}cache:a:{digest}"


def flight_key(digest: str) -> str:
    """String: `token until`: the call in flight for this answer, and the end of its lease (ledger time)."""
    return f"{PREFIX}cache:f:{digest}"


@cache
def lua_source(name: str) -> str | None:
    r"""Renders one key of this module as a Lua local of the same name; None when there is no such key.

    >>> lua_source("chunk_key")
    "local function chunk_key(run, chunk) return 'proctor:run:' .. run .. ':c:' .. chunk end\n"
    >>> lua_source("BUSY_KEY")
    "local BUSY_KEY = 'proctor:busy'\n"
    """
    if not name.lower().endswith("_key"):
        return None
    found: str | Callable[..., str] | None = getattr(sys.modules[__name__], name, None)
    if found is None or isinstance(found, str):
        return f"local {name} = '{found}'\n" if found else None
    parameters = list(signature(found).parameters)
    text = "'" + found(*(f"' .. {parameter} .. '" for parameter in parameters)) + "'"
    text = text.removesuffix(" .. ''")
    return f"local function {name}({', '.join(parameters)}) return {text} end\n"
