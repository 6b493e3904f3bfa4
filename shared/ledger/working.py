"""The ledger's calls for workers: claim, renew, commit, tick."""

from collections.abc import Collection, Mapping, Sequence

from shared import keys
from shared.ledger import wire
from shared.ledger.base import LedgerCalls
from shared.ledger.types import Claim, Committed, Held, Row, ThreadCommit, Try, Wake

KEEP_OR_BACK = ("keep", "back")


class WorkingCalls(LedgerCalls):
    """Takes chunks, and writes what became of their items, each once."""

    def claim(self, run: str, chunk: str, token: str, worker: str) -> Claim:
        """Takes a published chunk. The same token again gets what is left of a chunk that it holds.

        Args:
            run: id of the run.
            chunk: id of the chunk.
            token: new for each delivery of a wake-up; the lease and all locks carry it.
            worker: name of the process; it holds at most one suspect chunk at a time.
        """
        answer = self.caller.run("claim", run, chunk, token, worker)
        status, wakes = answer[0].decode(), wire.wakes_from(answer[1])
        if status != "ok":
            return Claim(status, wakes)
        namespace, suspect, busy, rows = answer[2].decode(), bool(answer[3]), answer[4], answer[5]
        if rows and isinstance(rows[0], bytes):
            return Claim(status, wakes, wire.items_from(rows), [], suspect, busy, namespace)
        return Claim(status, wakes, [], wire.threads_from(rows), suspect, busy, namespace)

    def renew(self, held: Sequence[Held]) -> list[str]:
        """Renews leases for 15 s of the ledger clock; says each run's state, or `lost`.

        Raises:
            RedisRefusingError: Redis takes no writes now; the ledger clock stands still too.
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
            rows: results; one that has a result of its generation already is left alone.
            back: give the chunk back: it is closed when nothing is left, else it waits to be published again.
            due_ms: with `back`, not before this time of the caller's clock; 0 at once.
            tries: items of the chunk that are to be tried again, and when.
            tally: amounts to add to the run's counters, which are for display only.
        """
        flat: list[wire.Argument] = []
        for row in rows:
            flat += (row.index, row.generation, row.value, row.attempts if row.dead else 0)
        for attempt in tries:
            flat += (attempt.index, attempt.attempts, self.delay_ms(attempt.not_before_ms), attempt.error)
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
        due_ms: int = 0,
        tally: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Committed:
        """Writes decided turns, each thread as a whole or not at all, and unlocks what was written.

        Args:
            run: id of the run.
            chunk: id of the chunk.
            token: as claimed.
            threads: what was decided; turns of other runs included, their results go to their runs.
            back: give the chunk back: it is closed when nothing is left, else it waits to be published again.
            hold: leave the threads locked for more of their turns; only while the chunk has some there:
                a lock ends with the lease for those threads alone.
            due_ms: with `back`, not before this time of the caller's clock; 0 at once.
            tally: per run, amounts to add to its counters, which are for display only.
        """
        flat: list[wire.Argument] = []
        for of, words in (tally or {}).items():
            for word, amount in words.items():
                flat += (of, word, amount)
        counts = (len(flat) // 3, len(threads))
        answer = self.caller.run(
            "commit_threads", run, chunk, token, "hold" if hold else KEEP_OR_BACK[back],
            self.delay_ms(due_ms), *counts,
            *flat, *wire.thread_arguments(threads),
        )  # fmt: skip
        return committed(answer)

    def requests(self, namespace: str, ids: Sequence[str]) -> dict[str, bytes]:
        """Returns those `clientRequestId`s that the namespace knows, with what they were answered."""
        if not ids:
            return {}
        wanted = list(ids)
        values = self.caller.patiently(lambda: self.caller.client.hmget(keys.requests_key(namespace), wanted))
        return {name: value for name, value in zip(wanted, values, strict=True) if value is not None}

    def tries(self, run: str, names: Sequence[str]) -> dict[str, Try]:
        """Returns what is noted of those items of a run that are to be tried again.

        Args:
            run: id of the run.
            names: as `commit` was given them.
        """
        if not names:
            return {}
        values = self.caller.run("tries", run, *names)
        noted = [
            wire.try_from(name, value.decode()) for name, value in zip(names, values, strict=True) if value
        ]
        now_ms = self.clock()
        return {each.index: each._replace(not_before_ms=now_ms + each.not_before_ms) for each in noted}

    def tick(
        self,
        worker: str,
        kinds: Sequence[str],
        capacity: int,
        *,
        idle: Collection[str] = (),
        is_patient: bool = True,
    ) -> list[Wake]:
        """Registers a worker for 15 s, and does the steward's work when nobody did in the last second.

        Args:
            worker: name of the process.
            kinds: the queues it listens to.
            capacity: how many chunks it works on at a time; 0 for a worker that drains, which takes none.
            idle: those of the kinds for which it has had a free slot and no message for a while: wake-ups
                that nobody has claimed for as long are published again.
            is_patient: whether to wait for a Redis that takes no writes.

        Raises:
            RedisRefusingError: Redis takes no writes, not even those that a full one takes.
        """
        looking = " ".join(idle)
        answer = self.caller.run("tick", worker, capacity, looking, *kinds, is_patient=is_patient)
        return wire.wakes_from(answer)

    def leave(self, worker: str, *, abrupt: bool = False) -> None:
        """Takes a worker that shuts down, or that is known to be dead, off the lists.

        Args:
            worker: name of the process; nothing happens when it is not registered.
            abrupt: it ends without giving back what it has: the next tick ends its leases, and sends all
                wake-ups again that nobody has claimed.

        Raises:
            RedisRefusingError: Redis takes no writes now; a registration ends by itself.
        """
        self.caller.run("leave", worker, int(abrupt), is_patient=False)


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
