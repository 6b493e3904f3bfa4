"""The Python interface of the ledger: one method per script, values in and values out.

The guarantees of each script are documented at the head of its file in `lua/`. Methods that return wakes
leave publishing to the caller; if the caller dies before that, the steward publishes the wake-ups again.

Longer than 500 lines, because it is one interface, and most lines are its documentation.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from re import compile as compile_pattern
from time import monotonic
from typing import Any, Final

import redis
from redis import exceptions

from shared import keys
from shared.clock import now_ms
from shared.errors import (
    LoadLostError,
    RedisDeniedError,
    RedisRefusingError,
    RunStateError,
    UnknownRunError,
    UsageError,
)
from shared.kinds import kind_named
from shared.ledger import wire
from shared.ledger.bounds import FIRST_LAYOUT
from shared.ledger.calls import ScriptCaller
from shared.ledger.scripts import Script, ledger_scripts
from shared.ledger.times import TIMES, Times
from shared.ledger.types import (
    ChunkPlan,
    Claim,
    Committed,
    HeldLease,
    Keep,
    Opened,
    Row,
    ThreadCommit,
    Try,
    Wake,
)
from shared.names import RunState

NAME: Final = compile_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""Allowed names of runs and namespaces, which are parts of keys and of space-separated references."""
PATIENCE_S: Final = 60.0
"""How long a call waits for an unavailable Redis."""
NAMESPACE_TTL_S: Final = 30 * 24 * 3600
"""How long a shared namespace is kept once no open run uses it."""
FSYNC_SLICE_MS: Final = 500
"""How long one WAITAOF blocks its connection; shorter than every socket timeout."""
KEEP_OR_BACK: Final = ("keep", "back")
SECONDS_A_DAY: Final = 24 * 3600
AT_WORK: Final = frozenset({RunState.LOADING, RunState.RUNNING, RunState.CANCELLING})
"""States of a run that workers may wait for."""


class Ledger:
    """All state of runs, chunks and items; safe to share between threads.

    Every call waits for an unavailable Redis, up to `patience_s`, and then raises `RedisUnreachableError`.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        patience_s: float = PATIENCE_S,
        namespace_ttl_s: int = NAMESPACE_TTL_S,
        clock: Callable[[], int] = now_ms,
        times: Times = TIMES,
        scripts: Mapping[str, Script] | None = None,
        refused_s: float | None = None,
        full_s: float | None = None,
        on_refusal: Callable[[str], object] = str,
    ) -> None:
        """Does not connect yet.

        Args:
            client: a redis-py client that answers in bytes and does not retry by itself.
            patience_s: how long a call waits for an unavailable Redis.
            namespace_ttl_s: how long a shared namespace is kept once no open run uses it; 0 for ever.
            clock: the caller's clock in epoch milliseconds, on which times passed to `commit` are based.
            times: durations of leases and the like; by default those of `LEASE_S` (`shared/settings.py`).
            scripts: used instead of those in `lua/`; tests give them their own clock.
            refused_s: how long a call waits for a Redis that refuses writes; None: as for an unavailable one.
            full_s: the same if memory is the reason; None: as `refused_s`.
            on_refusal: called with the reason when a call begins to wait because of it.
        """
        self.times = times
        self.caller = ScriptCaller(
            client,
            patience_s=patience_s,
            scripts=scripts or ledger_scripts(self.times),
            refused_s=refused_s,
            full_s=full_s,
            on_refusal=on_refusal,
        )
        self.namespace_ttl_s = namespace_ttl_s
        self.clock = clock

    def delay_ms(self, due_ms: int) -> int:
        """Milliseconds until a time of the caller's clock, so that a wrong clock has no effect in Redis."""
        return max(0, due_ms - self.clock()) if due_ms else 0

    # ---- producers: a loading run, of which nothing is published before the seal

    def open(
        self,
        run: str,
        *,
        kind: str,
        namespace: str,
        key: str,
        token: str,
        snapshot: bytes,
        ttl_s: int,
        wide: int = 0,
        layout: int = FIRST_LAYOUT,
        tells: str = "",
    ) -> Opened:
        """Begins a run, or finds the one with the same idempotency key.

        Args:
            run: id for a new run.
            kind: name of its kind, which determines how its items are stored.
            namespace: namespace of the threads' state; empty for the run's own.
            key: idempotency key; empty for none.
            token: identifies this loader; another one takes over only when this one's lease has expired.
            snapshot: the run's settings, as the worker needs them.
            ttl_s: how long to keep the run once it is final; 0 for ever.
            wide: most chunks of the run that may be in progress at a time in the whole fleet; 0 for no limit.
                With 1 they are processed one after the other, in order.
            layout: layout of the run; workers that do not know it leave the run alone.
            tells: name of a listener that gets the id of the run when it ends (`shared.keys.ended_key`).
                The run is a part of the stream of its namespace: `fold` takes it, and lists of runs lack it.

        Raises:
            UsageError: a name cannot be used, or the namespace is the id of a run.
            ValueError: no kind has this name.
        """
        checked_name("run id", run)
        if namespace:
            checked_name("namespace", namespace)
        storage = kind_named(kind).storage
        settings = (token, snapshot, ttl_s, self.namespace_ttl_s, wide, storage, layout, tells)
        return opened(namespace, self.caller.run("open", run, kind, namespace, key, *settings))

    def load(self, run: str, token: str, items: Mapping[str, bytes], plan: Mapping[str, ChunkPlan]) -> int:
        """Writes some items and chunks of a loading run; idempotent.

        Args:
            run: id of the run.
            token: as given to `open`.
            items: payload by index; turns: batch by `chunk.number`.
            plan: chunks by id (`0`, `1`, …); a chunk's items are loaded with it or before it.

        Returns:
            How many items (batches) the run has now.

        Raises:
            LoadLostError: this loader no longer owns the run.
        """
        count = 0
        for some, entries in wire.split_load(items, plan):
            answer = self.caller.run("load", run, token, *wire.load_arguments(some, entries))
            if answer[0] != b"ok":
                raise lost(run)
            count = answer[1]
        return count

    def load_file(self, run: str, token: str, name: str, content: bytes) -> None:
        """Writes what the items of a loading run share, such as an image; independent items only.

        It is stored in the hash that has the counts of batches in other runs, and is removed with the run.

        Raises:
            LoadLostError: this loader no longer owns the run.
        """
        if self.caller.run("load", run, token, *wire.file_arguments(name, content))[0] != b"ok":
            raise lost(run)

    def seal(self, run: str, token: str, total: int, digest: str) -> list[Wake]:
        """Ends the loading and publishes the first chunks.

        Raises:
            LoadLostError: this loader no longer owns the run, or Redis lost writes that it had confirmed.
        """
        return sealed(run, total, self.caller.run("seal", run, token, total, digest))

    def submit_part(
        self,
        run: str,
        *,
        kind: str,
        namespace: str,
        tells: str,
        snapshot: bytes,
        ttl_s: int,
        layout: int,
        items: Mapping[str, bytes],
        plan: Mapping[str, ChunkPlan],
        total: int,
    ) -> list[Wake]:
        """Opens, loads and seals a part of the stream of a namespace, in one round trip.

        Args:
            run: id for the part.
            kind: as for `open`.
            namespace: the same.
            tells: the same; it is the loader's token too.
            snapshot: as for `open`.
            ttl_s: the same.
            layout: the same.
            items: as for `load`.
            plan: the same.
            total: as for `seal`.

        Raises:
            UsageError: the namespace is the id of a run.
            LoadLostError: the id is taken, or Redis lost writes that it had confirmed.
        """
        storage = kind_named(kind).storage
        settings = (tells, snapshot, ttl_s, self.namespace_ttl_s, 0, storage, layout, tells)
        answers = self.caller.run_many(
            [
                ("open", (run, kind, namespace, "", *settings)),
                *(
                    ("load", (run, tells, *wire.load_arguments(some, entries)))
                    for some, entries in wire.split_load(items, plan)
                ),
                ("seal", (run, tells, total, "")),
            ]
        )
        opened(namespace, answered(answers)[0])
        return sealed(run, total, answers[-1])

    def unclaimed(self, run: str, kind: str) -> list[Wake]:
        """Reads the wake-ups of chunks that are published and that no worker has taken.

        A producer that died between `seal` and publishing has sent none of them, and the steward publishes
        them only when they are overdue. Duplicate wake-ups have no effect.

        Args:
            run: id of a sealed run.
            kind: name of its kind.
        """
        client = self.caller.client
        chunks = sorted(
            chunk.decode() for chunk in self.caller.patiently(lambda: client.smembers(keys.admitted_key(run)))
        )

        def read() -> list[bytes | None]:
            pipeline = client.pipeline(transaction=False)
            for chunk in chunks:
                pipeline.hget(keys.chunk_key(run, chunk), "st")
                pipeline.hget(keys.plan_key(run), chunk)
            found: list[bytes | None] = pipeline.execute()
            return found

        fields = self.caller.patiently(read) if chunks else []
        published = zip(chunks, fields[::2], fields[1::2], strict=True)
        return [
            wire.wake_of(kind, run, chunk, entry)
            for chunk, state, entry in published
            if state == b"P" and entry is not None
        ]

    def wait_durable(self, timeout_s: float) -> bool:
        """Waits until everything written so far is on the server's disk.

        Returns:
            False if the server does not support it (before Redis 7.2, no append-only file) or did not answer
            in time.
        """
        deadline = monotonic() + timeout_s
        while True:
            left_ms = int(max(1.0, min(float(FSYNC_SLICE_MS), (deadline - monotonic()) * 1000)))
            try:
                # WAITAOF waits for writes of its own connection; this one comes after all of ours.
                with self.caller.client.pipeline(transaction=False) as pipeline:
                    pipeline.hincrby(keys.CLOCK_KEY, "seq", 1)
                    pipeline.execute_command("WAITAOF", 1, 0, left_ms)
                    answers = self.caller.patiently(pipeline.execute)
            except (exceptions.ResponseError, RedisDeniedError, RedisRefusingError):
                return False
            if answers[1][0] >= 1:
                return True
            if monotonic() >= deadline:
                return False

    def discard(self, run: str, token: str) -> None:
        """Removes the run that this loader was loading; does nothing if it no longer owns the run."""
        self.caller.run("discard", run, token)

    # ---- workers and their steward

    def claim(self, run: str, chunk: str, token: str, worker: str) -> Claim:
        """Claims a published chunk. The same token again returns the rest of a chunk that it holds.

        Args:
            run: id of the run.
            chunk: id of the chunk.
            token: new for each delivery of a wake-up; the lease and all locks carry it.
            worker: name of the process, which may hold at most one suspect chunk at a time.
        """
        answer = self.caller.run("claim", run, chunk, token, worker)
        status, wakes = answer[0].decode(), wire.wakes_from(answer[1])
        if status != "ok":
            return Claim(status, wakes)
        namespace, suspect, busy, rows = answer[2].decode(), bool(answer[3]), answer[4], answer[5]
        if rows and isinstance(rows[0], bytes):
            items = wire.items_from(rows)
            return Claim(status, wakes, items, [], suspect, busy, namespace, is_anew=bool(answer[6]))
        threads = wire.threads_from(rows)
        return Claim(status, wakes, [], threads, suspect, busy, namespace, snapshot=answer[6])

    def renew(self, held: Sequence[HeldLease]) -> list[str]:
        """Renews leases on the ledger clock; returns for each the state of its run, or `lost`.

        Raises:
            RedisRefusingError: Redis refuses writes; the ledger clock stands still as well.
        """
        if not held:
            return []
        flat = [value for lease in held for value in lease]
        return [answer.decode() for answer in self.caller.run("renew", *flat, is_patient=False)]

    def commit(
        self,
        run: str,
        chunk: str,
        token: str,
        rows: Sequence[Row],
        *,
        back: bool,
        due_ms: int = 0,
        tries: Sequence[Try] = (),
        tally: Mapping[str, int] | None = None,
    ) -> Committed:
        """Writes results of cases or queries.

        Args:
            run: id of the run.
            chunk: id of the chunk.
            token: as claimed.
            rows: results; an item that already has a result of its generation keeps it.
            back: give the chunk back: it is closed if nothing is left, else it waits to be published again.
            due_ms: with `back`, not before this time of the caller's clock; 0 at once.
            tries: parked items of the chunk, with their attempts and due times.
            tally: amounts to add to the run's counters, which are for display only.
        """
        flat: list[wire.Argument] = []
        for row in rows:
            flat += (row.index, row.generation, row.value, row.attempts if row.dead else 0)
        for attempt in tries:
            flat += (
                attempt.index,
                attempt.attempts,
                self.delay_ms(attempt.not_before_ms),
                attempt.parked_state,
            )
        for entry in (tally or {}).items():
            flat += entry
        counts = (len(rows), len(tries), len(tally or {}))
        answer = self.caller.run(
            "commit", run, chunk, token, KEEP_OR_BACK[back], self.delay_ms(due_ms), *counts, *flat
        )
        return committed(answer)

    def commit_threads(
        self,
        run: str,
        chunk: str,
        token: str,
        threads: Sequence[ThreadCommit],
        *,
        back: bool,
        hold: bool = False,
        awaits: bool = False,
        due_ms: int = 0,
        tally: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Committed:
        """Writes decided turns, each thread as a whole or not at all, and unlocks the written threads.

        Args:
            run: id of the run.
            chunk: id of the chunk.
            token: as claimed.
            threads: the decided threads; results of turns of other runs are written to those runs.
            back: give the chunk back: it is closed if nothing is left, else it waits to be published again.
            hold: leave the threads locked for more of their turns; only while the chunk has some there:
                a lock ends with the lease for those threads alone.
            awaits: with `back` and `due_ms`, earlier if a thread of the chunk is released by others.
            due_ms: with `back`, not before this time of the caller's clock; 0 at once.
            tally: per run, amounts to add to its counters, which are for display only.
        """
        flat: list[wire.Argument] = []
        for of, words in (tally or {}).items():
            for word, amount in words.items():
                flat += (of, word, amount)
        counts = (len(flat) // 3, len(threads))
        then = "hold" if hold else "await" if awaits else KEEP_OR_BACK[back]
        answer = self.caller.run(
            "commit_threads", run, chunk, token, then,
            self.delay_ms(due_ms), *counts,
            *flat, *wire.thread_arguments(threads),
        )  # fmt: skip
        return committed(answer)

    def requests(self, namespace: str, ids: Sequence[str]) -> dict[str, bytes]:
        """Returns the stored answers of those `clientRequestId`s that the namespace contains."""
        if not ids:
            return {}
        wanted = list(ids)
        values = self.caller.patiently(lambda: self.caller.client.hmget(keys.requests_key(namespace), wanted))
        return {name: value for name, value in zip(wanted, values, strict=True) if value is not None}

    def tries(self, run: str, names: Sequence[str]) -> dict[str, Try]:
        """Returns the stored attempts and due times of parked items of a run.

        Args:
            run: id of the run.
            names: as passed to `commit`.
        """
        if not names:
            return {}
        values = self.caller.run("tries", run, *names)
        noted = [
            wire.try_from(name, value.decode()) for name, value in zip(names, values, strict=True) if value
        ]
        read_ms = self.clock()
        return {each.index: each._replace(not_before_ms=read_ms + each.not_before_ms) for each in noted}

    def tick(
        self,
        worker: str,
        kinds: Sequence[str],
        capacity: int,
        *,
        idle: Collection[str] = (),
        is_patient: bool = True,
    ) -> list[Wake]:
        """Registers a worker for the time of a lease, and repairs the ledger, once a second in all.

        Args:
            worker: name of the process.
            kinds: the queues that it consumes.
            capacity: how many chunks it works on at a time; 0 for a draining worker, which claims none.
            idle: the kinds for which it has had a free slot and no message for a while; wake-ups that have
                been unclaimed for as long are published again.
            is_patient: whether to wait for a Redis that refuses writes.

        Raises:
            RedisRefusingError: Redis refuses writes, even those that a full server accepts.
        """
        looking = " ".join(idle)
        answer = self.caller.run("tick", worker, capacity, looking, *kinds, is_patient=is_patient)
        return wire.wakes_from(answer)

    def leave(self, worker: str, *, abrupt: bool = False) -> None:
        """Removes the registration of a worker that shuts down or is known to be dead.

        Args:
            worker: name of the process; nothing happens when it is not registered.
            abrupt: it ends without giving back its chunks: the next tick ends its leases, and publishes all
                unclaimed wake-ups again.

        Raises:
            RedisRefusingError: Redis refuses writes; a registration expires by itself.
        """
        self.caller.run("leave", worker, int(abrupt), is_patient=False)

    def has_work(self, kinds: Collection[str]) -> bool:
        """Returns whether a run of these kinds is loading, running or being cancelled; not a paused one.

        Raises:
            RedisUnreachableError: no answer within the ledger's patience.
        """
        client = self.caller.client

        def look() -> bool:
            runs = [run.decode() for run in client.sunion(keys.OPEN_KEY, keys.BUSY_KEY)]
            with client.pipeline(transaction=False) as pipeline:
                for run in runs:
                    pipeline.hmget(keys.run_key(run), "kind", "state")
                return any(
                    (kind or b"").decode() in kinds and (state or b"").decode() in AT_WORK
                    for kind, state in pipeline.execute()
                )

        return self.caller.patiently(look)

    # ---- commands: sealed runs

    def control(self, run: str, action: str) -> tuple[str, list[Wake]]:
        """Changes a run's state.

        Args:
            run: id of the run.
            action: `pause`, `resume`, or how the run is to end: `cancelled`, `aborted`, `incomplete`.

        Returns:
            The run's new state, and wakes. A loading or final run is not changed.

        Raises:
            UnknownRunError: no run has this id.
            RunStateError: a part of a stream is to be paused.
        """
        state, wakes = self.caller.run("control", run, action)
        if not state:
            raise unknown(run)
        if state == b"part":
            raise part_of_stream(run)
        return state.decode(), wire.wakes_from(wakes)

    def retry(
        self,
        run: str,
        operation: str,
        *,
        chunks: Sequence[ChunkPlan],
        items: Mapping[str, bytes] | None = None,
        extra: int = 0,
        generation: int | None = None,
        is_anew: bool = False,
    ) -> list[Wake]:
        """Queues items again; old results are kept until the new ones are committed.

        Args:
            run: id of the run; turns need a final one.
            operation: id of this retry; a repetition with the same id has no effect.
            chunks: what to retry. Turns are given as (label, thread, turns[, marks]) and get batch
                ids of the new generation, in order.
            items: turns only: batch by label.
            extra: turns only: how many of them already have a result, for parts without marks.
            generation: the run's generation when the results were read; if another retry has happened since,
                this one is refused. None: no check.
            is_anew: whether models are asked again, whatever answers are stored.

        Raises:
            UnknownRunError: no run has this id.
            RunStateError: the run is loading or being cancelled, turns are retried while it runs, or
                another retry has happened since; or it is a part of a stream.
            UsageError: none of the items can be retried.
        """
        flat: list[wire.Argument] = []
        for chunk in chunks:
            flat += (chunk.first, len(chunk.parts))
            if items:
                marks = wire.again_marks(chunk.parts, extra)
                extra = max(0, extra - wire.count_marks("".join(marks)))
                for part, mark in zip(chunk.parts, marks, strict=True):
                    flat += (part[1], part[2], mark if wire.count_marks(mark) else "", items[part[0]])
            else:
                flat += chunk.parts
        seen = "" if generation is None else generation
        answer = self.caller.run("retry", run, operation, seen, len(chunks), "anew" if is_anew else "", *flat)
        match answer:
            case [b"ok", list(wakes)]:
                return wire.wakes_from(wakes)
            case [b"none"]:
                raise UsageError(f"run {run} has nothing to retry")
            case [b"no", b"forgotten"]:
                raise texts_forgotten(run)
            case [b"no", b"part"]:
                raise part_of_stream(run)
            case [b"no", bytes(state)]:
                raise RunStateError(
                    f"run {run} is {state.decode()} and cannot be retried now",
                    hint="wait for its end, or cancel it",
                )
            case [b"changed"]:
                raise RunStateError(
                    f"run {run} was retried by somebody else just now", hint="look at its results again"
                )
            case _:
                raise unknown(run)

    def remove(self, run: str) -> bool:
        """Removes a run that is final, paused or being cancelled, or whose loader is gone.

        Returns:
            False when no run has this id.

        Raises:
            RunStateError: the run is in progress.
        """
        answer = self.caller.run("remove", run)
        if answer[0] == b"no":
            state = answer[1].decode()
            raise RunStateError(
                f"run {run} is {state}",
                hint="wait until its loader has been silent for a while"
                if state == "loading"
                else f"cancel it first: proctor cancel {run}",
            )
        return bool(answer[0] == b"ok")

    def forget(
        self, namespace: str, threads: Mapping[str, bytes] | None = None, requests: Sequence[str] = ()
    ) -> int:
        """Removes threads of a namespace that no open run uses; their next turns begin anew.

        Args:
            namespace: its name, or a run's id.
            threads: the threads to remove, each with its state as it was read; by default all, with every
                answered request.
            requests: `clientRequestId`s that these threads have answered; read after the states.

        Returns:
            How many threads there were.

        Raises:
            RunStateError: a run uses the namespace, or a thread has another state than the one that was read.
        """
        threads = threads or {}
        read = [part for thread in threads.items() for part in thread]
        answer = self.caller.run("forget", namespace, len(threads), *read, *(requests if threads else ()))
        if answer[0] == b"changed":
            raise RunStateError(
                f"a turn of thread {answer[1].decode()} has just been decided", hint="remove it once more"
            )
        if answer[0] == b"no":
            run = answer[1].decode()
            raise RunStateError(
                f"the threads of {namespace} are in use by run {run}",
                hint=f"wait for its end, or cancel it: proctor cancel {run}",
            )
        return int(answer[1])

    def fold(self, runs: Sequence[str], keep: Keep) -> list[bool]:
        """Removes runs that have ended from the ledger and adds their turns to the stream of their namespace.

        Args:
            runs: ids of runs that were opened with `tells`; their snapshots have `submitted_ms`, and in
                `waited_ms` how long before that each turn was accepted.
            keep: how long and how many turns are kept.

        Returns:
            Whether each is gone: False while it has not ended.
        """
        settings = (keep.days * SECONDS_A_DAY, keep.turns, keep.turns_ms)
        answers = self.caller.run_many([("fold", (run, *settings)) for run in runs])
        return [answer[0] != b"no" for answer in answered(answers)]

    def backlog(self) -> int:
        """Returns how many items sealed, unfinished runs still have to decide."""
        client = self.caller.client

        def fields() -> list[tuple[bytes | None, bytes | None]]:
            runs = [run.decode() for run in client.smembers(keys.OPEN_KEY)]
            with client.pipeline(transaction=False) as pipeline:
                for run in runs:
                    pipeline.hmget(keys.run_key(run), "goal", "done")
                return list(pipeline.execute())

        return sum(max(0, int(goal or 0) - int(done or 0)) for goal, done in self.caller.patiently(fields))


def checked_name(what: str, name: str) -> str:
    """Returns the name of a run or a namespace.

    Raises:
        UsageError: it contains a character that is not allowed in a key.

    >>> checked_name("namespace", "support-2024")
    'support-2024'
    """
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{what} {name!r} cannot be used",
            hint="take letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 128",
        )
    return name


def answered(answers: Sequence[Any]) -> Sequence[Any]:
    """Returns the answers of several scripts.

    Raises:
        Exception: one failed; the first of these.
    """
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers


def lost(run: str) -> LoadLostError:
    """Builds the error for a run that this loader no longer owns.

    >>> lost("r1").code
    'load_lost'
    """
    return LoadLostError(
        f"run {run} is not ours any more: its loader was silent for too long, or it was removed",
        hint="submit the file again",
    )


def opened(namespace: str, answer: Sequence[Any]) -> Opened:
    """Reads the answer of an open.

    Raises:
        UsageError: the namespace is the id of a run.
    """
    status, found = answer[0].decode(), answer[1].decode()
    if status == "namespace":
        raise UsageError(
            f"namespace {namespace!r} is the id of a run, whose threads go with it",
            hint="choose another name",
        )
    return Opened(status, found, answer[2].decode() if len(answer) > 2 else "")  # noqa: PLR2004 - digest


def sealed(run: str, total: int, answer: Sequence[Any]) -> list[Wake]:
    """Reads the answer of a seal.

    Raises:
        LoadLostError: the run is another loader's, or is not there as a whole.
    """
    if answer[0] == b"short":
        raise LoadLostError(
            f"run {run}: {total} items were read, Redis has {answer[1]}",
            hint="Redis lost a part of the load when it was restarted: submit the file again",
        )
    if answer[0] != b"ok":
        raise lost(run)
    return wire.wakes_from(answer[1])


def committed(answer: Sequence[object]) -> Committed:
    """Reads the answer of a commit.

    >>> committed([b"lost", []])
    Committed(status='lost', accepted=[], state='', wakes=[])
    """
    match answer:
        case [b"ok", list(wakes), bytes(state), list(accepted)]:
            return Committed("ok", list(map(bool, accepted)), state.decode(), wire.wakes_from(wakes))
        case _:
            return Committed("lost", [], "", [])


def texts_forgotten(run: str) -> RunStateError:
    """Builds the error for a run whose texts are needed and were deleted.

    >>> texts_forgotten("r1").message
    'the texts of run r1 were forgotten'
    """
    return RunStateError(f"the texts of run {run} were forgotten", hint="run its file again")


def part_of_stream(run: str) -> RunStateError:
    """Builds the error for what cannot be done with the turns that `proctor serve` is deciding."""
    return RunStateError(
        f"{run} is a part of a stream, which can only be cancelled", hint="send its turns again"
    )


def unknown(run: str) -> UnknownRunError:
    """Builds the error for a run that does not exist.

    >>> unknown("r1").message
    'no run is called r1'
    """
    return UnknownRunError(
        f"no run is called {run}", hint="see `proctor runs`; results expire after a while", run=run
    )
