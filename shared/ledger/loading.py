"""The ledger's calls for producers: open, load, seal, discard."""

from collections.abc import Mapping
from time import monotonic
from typing import Final

from redis import exceptions

from shared import keys
from shared.errors import LoadLostError, RedisDeniedError, RedisRefusingError, UsageError
from shared.kinds import kind_named
from shared.ledger import wire
from shared.ledger.base import LedgerCalls, checked_name
from shared.ledger.types import ChunkPlan, Opened, Wake

FSYNC_SLICE_MS: Final = 500
"""How long one WAITAOF blocks its connection; shorter than every socket timeout."""


class LoadingCalls(LedgerCalls):
    """Brings a run into the ledger: nothing of it is published before the seal."""

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
    ) -> Opened:
        """Begins a run, or finds the one that stands for the same idempotency key.

        Args:
            run: id for a new run.
            kind: name of its kind, which also says how its items lie in the ledger.
            namespace: where the threads' state lives; empty for the run's own.
            key: idempotency key; empty for none.
            token: names this loader; another one takes over only when this one has been silent for 15 s.
            snapshot: the run's settings, as the worker needs them.
            ttl_s: how long to keep the run once it is final; 0 for ever.
            wide: most chunks of the run that may be under way at a time in the whole fleet; 0 for no limit.
                With 1 they are worked on one after the other, in order.

        Raises:
            UsageError: a name cannot be used, or the namespace is the id of a run.
            ValueError: no kind has this name.
        """
        checked_name("run id", run)
        if namespace:
            checked_name("namespace", namespace)
        settings = (token, snapshot, ttl_s, self.namespace_ttl_s, wide, kind_named(kind).storage)
        answer = self.caller.run("open", run, kind, namespace, key, *settings)
        status, found = answer[0].decode(), answer[1].decode()
        if status == "namespace":
            raise UsageError(
                f"namespace {namespace!r} is the id of a run, whose threads go with it",
                hint="choose another name",
            )
        return Opened(status, found, answer[2].decode() if len(answer) > 2 else "")  # noqa: PLR2004 - digest

    def load(self, run: str, token: str, items: Mapping[str, bytes], plan: Mapping[str, ChunkPlan]) -> int:
        """Writes a part of a loading run; writing it again changes nothing.

        Args:
            run: id of the run.
            token: as given to `open`.
            items: payload by index; turns: batch by `chunk.number`.
            plan: chunks by id (`0`, `1`, …); a chunk's items are loaded with it or before it.

        Returns:
            How many items (batches) the run has now.

        Raises:
            LoadLostError: the run is not this loader's any more.
        """
        count = 0
        for some, entries in wire.split_load(items, plan):
            answer = self.caller.run("load", run, token, *wire.load_arguments(some, entries))
            if answer[0] != b"ok":
                raise lost(run)
            count = answer[1]
        return count

    def seal(self, run: str, token: str, total: int, digest: str) -> list[Wake]:
        """Ends the loading and publishes the first chunks.

        Raises:
            LoadLostError: the run is not this loader's any more, or Redis lost a part of what it confirmed.
        """
        answer = self.caller.run("seal", run, token, total, digest)
        if answer[0] == b"short":
            raise LoadLostError(
                f"run {run}: {total} items were read, Redis has {answer[1]}",
                hint="Redis lost a part of the load when it was restarted: submit the file again",
            )
        if answer[0] != b"ok":
            raise lost(run)
        return wire.wakes_from(answer[1])

    def unclaimed(self, run: str, kind: str) -> list[Wake]:
        """Reads the wake-ups of chunks that are published and that no worker has taken.

        A producer that died between `seal` and its publishing has sent none of them; the steward sends them
        again only when they are overdue. A wake-up that comes twice does no harm.

        Args:
            run: id of a sealed run.
            kind: what its items are.
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
            False where the server cannot tell (before Redis 7.2, no append-only file) or did not in time.
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
        """Removes the run that this loader was loading; does nothing when it is not its any more."""
        self.caller.run("discard", run, token)


def lost(run: str) -> LoadLostError:
    """Says that another loader has the run, or that nobody has.

    >>> lost("r1").code
    'load_lost'
    """
    return LoadLostError(
        f"run {run} is not ours any more: its loader was silent for too long, or it was removed",
        hint="submit the file again",
    )
