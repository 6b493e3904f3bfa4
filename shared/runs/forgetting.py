"""Deletes the texts of a run that has ended, and keeps its figures.

Everything is written anew beside what is there, and takes its place in one transaction, which fails if the
run was retried or removed meanwhile: a run has all of its texts or none. Cached answers of models belong to
no run, and threads of a named namespace not to one alone; both have commands of their own.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from redis.exceptions import ResponseError

from shared import keys
from shared.codecs.packing import DICTIONARY, DICTIONARY_BYTES, PLAIN, Packing
from shared.codecs.without_texts import (
    batch_figures,
    block_figures,
    figures_of,
    item_figures,
    row_figures,
    turn_figures,
)
from shared.contracts.case_run import PLACES_FILE, SNAPSHOT_KEY
from shared.errors import RunStateError, UnknownRunError
from shared.kinds import Storage
from shared.ledger.wire import unpack_dead
from shared.runs.info import FORGOTTEN, RunInfo, RunStore

SCANNED: Final = 500
"""Values that are read in one round trip, about."""
SAMPLES: Final = 2
"""Items and results that make the new dictionary of a packed run."""
LOOKED_S: Final = 50
"""For so long no other worker looks for runs whose texts are due."""
UNFINISHED_S: Final = 3_600
"""How long a copy is kept that was not finished."""
_EMPTIED: Final[Mapping[str, Any]] = {
    "system_prompt": "",
    "schema": None,
    "validators": None,
    "pairwise": {},
    "shared_vars": "",
}
"""Settings of cases that are texts."""


def forget_texts(client: Any, info: RunInfo, now_ms: int) -> None:
    """Deletes the texts of a run.

    Args:
        client: connected to the ledger's server, answering bytes.
        info: the run as it was read before.
        now_ms: the time, which the run keeps.

    Raises:
        RunStateError: the run goes on, or was retried or removed meanwhile.
    """
    if not info.is_final:
        raise RunStateError(
            f"run {info.run} is {info.state}: its texts are still needed",
            hint=f"wait for its end, or cancel it: proctor cancel {info.run}",
        )
    _replace(client, info, _write_copies(client, info), now_ms)


def forget_old_texts(client: Any, store: RunStore, *, kept_s: int, now_ms: int) -> int:
    """Deletes the texts of runs that ended some time ago; returns of how many. One caller at a time does it.

    Args:
        client: connected to the ledger's server, answering bytes.
        store: reads the runs.
        kept_s: how long texts are kept.
        now_ms: the time.
    """
    if not client.set(keys.FORGETTING_KEY, "1", nx=True, ex=LOOKED_S):
        return 0
    due = _due(client, store.ids(), now_ms - 1000 * kept_s)
    for run in due:
        with suppress(UnknownRunError, RunStateError):  # removed or retried meanwhile
            forget_texts(client, store.info(run), now_ms)
    return len(due)


def _due(client: Any, runs: Sequence[str], ended_ms: int) -> list[str]:
    """Returns the runs that ended before a time and have their texts."""
    found = list[str]()
    for at in range(0, len(runs), SCANNED):
        some = runs[at : at + SCANNED]
        with client.pipeline(transaction=False) as pipeline:
            for run in some:
                pipeline.hmget(keys.run_key(run), "finished", FORGOTTEN)
            times = pipeline.execute()
        found += [
            run
            for run, (finished, forgotten) in zip(some, times, strict=True)
            if finished and not forgotten and int(finished) <= ended_ms
        ]
    return found


def compact(client: Any) -> None:
    """Lets a server write its append-only file anew, which otherwise has all texts until it grows enough."""
    with suppress(ResponseError):  # it writes it now, or may not be told to
        client.bgrewriteaof()


class _Left(NamedTuple):
    """What is left of a run, written beside it."""

    copies: Mapping[str, str]
    """Key of the copy by the key that it takes the place of."""
    files: Mapping[str, bytes]
    """Files that the run has then."""
    before: Packing
    """How its texts are stored."""


def _write_copies(client: Any, info: RunInfo) -> _Left:
    """Writes items and results without texts."""
    items, results, files_key = (of(info.run) for of in (keys.items_key, keys.results_key, keys.batches_key))
    copies = {key: f"{key}:left" for key in (items, results)}
    client.unlink(*copies.values())
    if info.kind.storage is Storage.MAILBOXES:
        _copy(client, items, copies[items], batch_figures)
        _copy(client, results, copies[results], block_figures)
        return _Left(copies, {}, PLAIN)
    stored, places = client.hmget(files_key, DICTIONARY, PLACES_FILE)
    files = {} if places is None else {PLACES_FILE: places}
    before, after = Packing(stored or b""), PLAIN
    if stored:
        some = [item_figures(before.unpack(value)) for value in _first(client, items)]
        some += [row_figures(value, before, PLAIN).partition(b"\n")[2] for value in _first(client, results)]
        files[DICTIONARY] = b"".join(some)[:DICTIONARY_BYTES]
        after = Packing(files[DICTIONARY])
    _copy(client, items, copies[items], lambda value: after.pack(item_figures(before.unpack(value))))
    _copy(client, results, copies[results], lambda value: row_figures(value, before, after))
    return _Left(copies, files, before)


def _copy(client: Any, source: str, target: str, left: Callable[[bytes], bytes]) -> None:
    """Copies a hash without the texts of its values."""
    for values in _scanned(client, source):
        with client.pipeline(transaction=False) as pipeline:
            pipeline.hset(target, mapping={name: left(value) for name, value in values.items()})
            pipeline.expire(target, UNFINISHED_S)
            pipeline.execute()


def _scanned(client: Any, key: str) -> Iterator[dict[bytes, bytes]]:
    cursor = 0
    while True:
        cursor, values = client.hscan(key, cursor, count=SCANNED)
        if values:
            yield values
        if not cursor:
            return


def _first(client: Any, key: str) -> list[bytes]:
    """Reads the first values of a hash, whichever they are."""
    return list(next(_scanned(client, key), {}).values())[:SAMPLES]


def _replace(client: Any, info: RunInfo, left: _Left, now_ms: int) -> None:
    """Puts the copies in the place of the run's own, and deletes what has no figures."""
    run, of, files_key = info.run, keys.run_key(info.run), keys.batches_key(info.run)
    labels, dead = _labels(client, run), _dead(client, info, left.before)

    def write(pipeline: Any) -> None:
        state, generation = pipeline.hmget(of, "state", "gen")
        expires_in_ms = pipeline.pttl(of)
        made = [key for key, copy in left.copies.items() if pipeline.exists(copy)]
        if (state or b"").decode() != info.state or int(generation or 0) != info.generation:
            raise RunStateError(f"run {run} was retried or removed just now", hint="try again")
        pipeline.multi()
        for key in made:
            pipeline.rename(left.copies[key], key)
            pipeline.persist(key)
        if info.kind.storage is Storage.LIST:
            pipeline.unlink(files_key)
            if left.files:
                pipeline.hset(files_key, mapping=left.files)
        pipeline.unlink(keys.tries_key(run))
        if info.namespace == run:
            pipeline.unlink(keys.mementos_key(run), keys.requests_key(run))
        for key, values in ((keys.labels_key(run), labels), (keys.DEAD_ITEMS_KEY, dead)):
            if values:
                pipeline.hset(key, mapping=values)
        pipeline.hset(of, mapping={"snap": json.dumps(_settings(info)), FORGOTTEN: now_ms})
        for key in (*made, files_key) if expires_in_ms >= 0 else ():
            pipeline.pexpire(key, expires_in_ms)

    client.transaction(write, of)


def _labels(client: Any, run: str) -> dict[bytes, bytes]:
    """Returns what reviewers said of a run, without their notes."""
    found = client.hgetall(keys.labels_key(run)).items()
    return {name: json.dumps({**json.loads(label), "note": ""}).encode() for name, label in found}


def _dead(client: Any, info: RunInfo, packing: Packing) -> dict[bytes, bytes]:
    """Returns the items of a run in the dead set, without texts: head, input and result of each."""
    left = dict[bytes, bytes]()
    for index in client.smembers(keys.run_dead_key(info.run)):
        member = info.run.encode() + b" " + index
        stored = client.hget(keys.DEAD_ITEMS_KEY, member)
        if stored is None:
            continue
        item, is_turn = unpack_dead(stored), info.kind.storage is Storage.MAILBOXES
        payload = item_figures(packing.unpack(item.payload)) if item.payload else b""
        result = turn_figures(item.result) if is_turn else row_figures(item.result, packing, PLAIN)
        *head, _ = stored.partition(b"\n")[0].split(b"|")
        left[member] = b"|".join([*head, str(len(payload)).encode()]) + b"\n" + payload + result
    return left


def _settings(info: RunInfo) -> dict[str, Any]:
    """Returns the settings of a run without prompts, code and other texts."""
    settings = {name: each for name, each in info.snapshot.items() if name != "description"}
    cases = settings.get(SNAPSHOT_KEY)
    if isinstance(cases, dict):
        templates = {key: dict[str, str]() for key in cases.get("templates") or {}}
        options = {name: figures_of(cases.get(name) or {}) for name in ("calls", "judge_params")}
        settings[SNAPSHOT_KEY] = {**cases, **_EMPTIED, **options, "templates": templates}
    return settings
