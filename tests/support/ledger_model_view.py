"""Shows the ledger's model as the keys and values that Redis has to hold, and reads what it does hold."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from shared import keys
from shared.ledger import DeadItem
from shared.ledger.bounds import LAYOUT
from shared.ledger.times import TIMES
from shared.names import FINAL_STATES
from tests.support.ledger_model_dispatch import Dispatch
from tests.support.ledger_model_state import KindState, Namespace, Record, Run, Served, order

if TYPE_CHECKING:
    import redis

View = dict[str, Any]
"""Key to value; `KEY expires` to the time at which the key goes, if it does."""


def read_redis(client: "redis.Redis") -> View:
    """Reads every key of ours."""
    view: View = {}
    store: Any = client  # redis-py's own annotations mix sync and async answers
    for raw in store.keys(f"{keys.PREFIX}*"):
        key = raw.decode()
        view[key] = _read_key(store, key)
        if (at := store.pexpiretime(key)) >= 0:
            view[f"{key} expires"] = at
    return view


def _read_key(store: Any, key: str) -> Any:  # noqa: PLR0911 - one per type
    match store.type(key):
        case b"hash":
            fields = {name.decode(): value for name, value in store.hgetall(key).items()}
            if key.endswith(":plan"):
                return {name: _plan(value) for name, value in fields.items()}
            return fields
        case b"zset":
            return {
                member.decode(): int(score) for member, score in store.zrange(key, 0, -1, withscores=True)
            }
        case b"set":
            return {member.decode() for member in store.smembers(key)}
        case b"stream":
            return [
                (at.decode(), {name.decode(): value for name, value in fields.items()})
                for at, fields in store.xrange(key)
            ]
        case b"list":
            return [value.decode() for value in store.lrange(key, 0, -1)]
        case _:
            return store.get(key)


def _plan(entry: bytes) -> list[Any]:
    generation, first, size, parts = msgspec.msgpack.decode(b"\x94" + entry)
    return [int(generation), first, size, parts]


def as_redis(model: Dispatch) -> View:
    """Renders the model; keys that would be empty are left out, as Redis leaves them out."""
    state, view = model.state, View()
    view[keys.CLOCK_KEY] = _texts(
        at=state.tick_ms or None,
        **{f"at{LAYOUT}": state.tick_ms or None},
        lc=state.ledger_ms if state.tick_ms else None,
        lease=TIMES.lease_ms if state.tick_ms else None,
        back=state.back_ms or None,
        seq=state.serial or None,
    )
    view[keys.COUNTERS_KEY] = _texts(**state.counters)
    runs = state.runs.values()
    view[keys.BUSY_KEY] = {run.run for run in runs if run.state in {"loading", "cancelling"}}
    view[keys.OPEN_KEY] = {run.run for run in runs if run.state not in FINAL_STATES | {"loading"}}
    view[keys.RUNS_KEY] = {run.run: run.created_ms for run in runs if not run.tells}
    view[keys.SERVED_KEY] = {name: it.last_ms for name, it in state.served.items() if it.last_ms is not None}
    for run in (run for run in runs if run.tells):
        view.setdefault(keys.served_open_key(run.namespace), {})[run.run] = run.created_ms
    view[keys.EXPIRING_KEY] = {run.run: run.expires_ms for run in runs if run.expires_ms is not None}
    view[keys.SUSPECTS_KEY] = {worker: " ".join(lease).encode() for worker, lease in state.suspects.items()}
    view[keys.DEAD_KEY] = {f"{run} {index}": item.at_ms for (run, index), item in state.dead.items()}
    view[keys.DEAD_ITEMS_KEY] = {f"{run} {index}": _dead(item) for (run, index), item in state.dead.items()}
    for key, of in state.idem.items():
        view[keys.idem_key(key)] = of.encode()
        view[f"{keys.idem_key(key)} expires"] = state.runs[of].expires_ms
    for run in runs:
        dead = {index for of, index in state.dead if of == run.run}
        for key, value in _run_keys(run, dead):
            view[key] = value
            view[f"{key} expires"] = run.expires_ms if value else None
    for name, kind in state.kinds.items():
        view.update(_kind_keys(name, kind))
    for listener, told in state.told.items():
        view[keys.ended_key(listener)] = told.runs
        view[f"{keys.ended_key(listener)} expires"] = told.expires_ms
    for name, served in state.served.items():
        view.update(_served_keys(name, served))
    for name, namespace in state.namespaces.items():
        view.update(_namespace_keys(name, namespace))
    return {key: value for key, value in view.items() if value not in ({}, set(), [], None)}


def _texts(**fields: Any) -> dict[str, bytes]:
    return {name: _text(value) for name, value in fields.items() if value is not None}


def _text(value: bytes | str | int) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _dead(item: DeadItem) -> bytes:
    head = (item.kind, item.generation, item.at_ms, item.attempts, item.code, len(item.payload))
    return "|".join(map(str, head)).encode() + b"\n" + item.payload + item.result


def _run_keys(run: Run, dead: set[str]) -> Iterator[tuple[str, Any]]:
    yield keys.run_key(run.run), {
        **_texts(
            v=run.layout, state=run.state, kind=run.kind, ns=run.namespace,
            storage="mailboxes" if run.kind == "turns" else "list", key=run.key, tok=run.token,
            until=run.until_ms, gen=run.generation, done=run.done, goal=run.goal, total=run.total,
            created=run.created_ms, snap=run.snapshot, ttl=run.ttl_s, ns_ttl=run.namespace_ttl_s,
            to=run.to, digest=run.digest, sealed=run.sealed_ms, finished=run.finished_ms, op=run.operation,
            tried=1 if run.tried else None, wide=run.wide or None, again=run.again_ms,
            tells=run.tells or None,
            idle=run.idle_ms, anew=f" {' '.join(map(str, run.anew))} " if run.anew else None,
        ),
        **{f"n:{word}": _text(amount) for word, amount in run.tally.items()},
    }  # fmt: skip
    yield keys.items_key(run.run), run.items
    yield (
        keys.plan_key(run.run),
        {
            chunk: [plan.generation, plan.first, plan.size, [_part(part) for part in plan.parts]]
            for chunk, plan in run.plan.items()
        },
    )
    yield keys.wait_key(run.run), {chunk: order(chunk) for chunk in run.waiting}
    yield keys.admitted_key(run.run), set(run.chunks)
    yield (
        keys.results_key(run.run),
        {name: f"{generation}|".encode() + value for name, (generation, value) in run.results.items()},
    )
    yield keys.redo_key(run.run), _texts(**run.redo)
    yield keys.tries_key(run.run), {index: "|".join(map(str, at)).encode() for index, at in run.tries.items()}
    yield keys.batches_key(run.run), _texts(**run.batches)
    yield keys.threads_key(run.run), run.threads
    yield keys.run_dead_key(run.run), dead
    for chunk, record in run.chunks.items():
        yield keys.chunk_key(run.run, chunk), _record(record)


def _part(part: Any) -> Any:
    return part if isinstance(part, str) else list(part)


def _record(record: Record) -> dict[str, bytes]:
    return _texts(
        st=record.state, own=record.token, w=record.worker, at=record.claimed_ms, k=record.strikes,
        rest=record.rest, awaits=1 if record.awaits else None, pub=record.repeated, since=record.since_ms,
    )  # fmt: skip


def _kind_keys(name: str, kind: KindState) -> Mapping[str, Any]:
    return {
        keys.live_key(name): {" ".join(key): at for key, at in kind.live.items()},
        keys.parked_key(name): {" ".join(key): at for key, at in kind.parked.items()},
        keys.ring_key(name): kind.ring,
        keys.pace_key(name): _texts(window=kind.window, usual=kind.usual_ms),
        keys.workers_key(name): {worker: until for worker, (_, until) in kind.workers.items()},
        keys.capacity_key(name): {worker: _text(capacity) for worker, (capacity, _) in kind.workers.items()},
        keys.layouts_key(name): {worker: _text(LAYOUT) for worker in kind.workers},
    }


def _served_keys(name: str, served: Served) -> View:
    hours = {keys.served_key(name, str(hour)): _texts(**words) for hour, words in served.hours.items()}
    ends = {f"{keys.served_key(name, str(hour))} expires": at for hour, at in served.hours_expire_ms.items()}
    turns, seen = keys.served_turns_key(name), keys.served_threads_key(name)
    return {
        **hours,
        **ends,
        turns: [(f"{entry.at_ms}-{entry.number}", entry.fields) for entry in served.entries],
        f"{turns} expires": served.entries_expire_ms if served.entries else None,
        seen: served.seen,
        f"{seen} expires": served.seen_expire_ms if served.seen else None,
    }


def _namespace_keys(name: str, namespace: Namespace) -> View:
    threads = namespace.threads.items()
    kept = {
        keys.positions_key(name): {at: f"{it.pos} {it.offset}".encode() for at, it in threads if it.moved},
        keys.mementos_key(name): {at: it.memento for at, it in threads if it.memento is not None},
        keys.requests_key(name): namespace.requests,
    }
    view: View = {
        **kept,
        **{f"{key} expires": namespace.expires_ms for key, value in kept.items() if value},
        f"{keys.requests_key(name)} expires": namespace.requests_expire_ms if namespace.requests else None,
        keys.owners_key(name): {at: " ".join(it.owner).encode() for at, it in threads if it.owner},
        keys.users_key(name): namespace.users,
    }
    for at, thread in threads:
        view[keys.inbox_key(name, at)] = [f"{ref.run} {ref.batch} {ref.turns}" for ref in thread.inbox]
    return view
