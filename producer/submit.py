"""Submits a file as a run, completely or not at all; a repeated idempotency key returns the first run.

    read, check and load in one stream  →  seal  →  publish wake-ups  →  wait until it is on disk

No chunk of a loading run is published. Any error before the seal (an invalid line, no room, Ctrl-C) removes
what was loaded. Wake-ups are published before the wait for the disk, so that work begins at once; a run that
is lost in a crash meanwhile is loaded again, and its earlier wake-ups have no effect.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import chain
from pathlib import PurePath
from secrets import token_hex
from socket import gethostname
from threading import Event, Thread
from time import monotonic
from typing import Final, Protocol

from producer import kinds
from producer.load.chunks import Chunk, RunInput, grouped
from producer.load.detect import detect_kind
from producer.load.source import FILE_KEY, Source, file_key
from producer.options import Publishes, SubmitOptions, SubmittedRun
from shared.clock import now_ms
from shared.codecs.packing import DICTIONARY, Packing
from shared.errors import IdempotencyConflictError, LoadLostError, NoRoomError, ProctorError
from shared.kinds import Kind
from shared.ledger import Opened
from shared.ledger.ledger import Ledger
from shared.observability import tracing
from shared.observability.spans import SNAPSHOT_KEY
from shared.redaction import Redactor
from shared.runs import RunStore
from shared.runs.info import PATH_KEY

SNAPSHOT_VERSION: Final = 1
LOADS: Final = 3
"""How many times a file is loaded if Redis loses writes that it confirmed."""
BACKLOG_CHECK_ITEMS: Final = 50_000
"""The backlog is checked each time this many items have been loaded."""
RENEWALS: Final = 4
"""How many times a loader renews its lease before it would expire."""
POLL_S: Final = 0.25
"""Polling interval of waits."""
DURABLE_S: Final = 5.0
"""How long the server may take to write to its disk."""
LOST_WRITES_S: Final = 2.0
"""How far back a server without WAITAOF may lose writes in a crash; then the run is checked again."""
DISCARD_PATIENCE_S: Final = 2.0
"""How long the removal of a failed load is tried; else a steward removes it when the loader's lease ends."""


def submit(
    ledger: Ledger,
    publisher: Publishes,
    source: Source,
    *,
    kind: Kind | None = None,
    options: SubmitOptions | None = None,
) -> SubmittedRun:
    """Loads, seals and publishes a run.

    Args:
        ledger: stores the run.
        publisher: wakes workers.
        source: the input.
        kind: kind of the input; by default recognised from its content.
        options: options of the run; the defaults if None.

    Raises:
        InputError: the input breaks its contract; what was loaded of it is removed.
        UsageError: this version does not run this kind, or a name cannot be used.
        IdempotencyConflictError: the key was used for other content or other settings.
        NoRoomError: the ledger holds too much unfinished work; what was loaded is removed.
        LoadLostError: Redis lost the load, and the input cannot be read again.
        RedisUnreachableError: Redis was unavailable for too long.
    """
    kind = kind or detect_kind(source)
    return _Submit(ledger, publisher, source, kind, options or SubmitOptions()).run()


class _Submit:
    """The state of one submit."""

    def __init__(
        self, ledger: Ledger, publisher: Publishes, source: Source, kind: Kind, options: SubmitOptions
    ) -> None:
        self._ledger, self._publisher, self._source, self._kind = ledger, publisher, source, kind
        self._options = options
        self._read = kinds.of(kind).load
        self._token = f"load-{token_hex(8)}"
        self._run = ""
        self._total = 0
        self._checked_at = 0
        self._pause = Event()

    def run(self) -> SubmittedRun:
        """Loads the input, and records this as the first span of the run's trace."""
        tracing.start(instance=f"{self._token}@{gethostname()}", on_problem=self._options.on_warning)
        with tracing.span("submit", {"proctor.kind": self._kind.name}, kind="producer") as span:
            submitted = self._load_until_durable()
            span.set({"proctor.run": submitted.run, "proctor.items": submitted.total})
            return submitted

    def _load_until_durable(self) -> SubmittedRun:
        """Loads again if Redis lost confirmed writes; a stream can be loaded once."""
        for attempt in range(1, LOADS + 1):
            try:
                return self._load_once()
            except LoadLostError as error:
                if attempt == LOADS or not self._source.repeatable:
                    raise LoadLostError(error.message, hint="submit the input again") from error
                self._options.on_wait("Redis lost a part of the load; loading again")
        raise AssertionError("the last attempt returns or raises")

    def _load_once(self) -> SubmittedRun:
        """Loads the input once, from its beginning."""
        run_input = self._read(self._source, self._options)
        # The first chunk is read before Redis is used: most invalid files fail there.
        chunks = chain([next(run_input.chunks)], run_input.chunks)
        opened = self._open(run_input)
        if opened.status == "sealed":
            return self._duplicate(opened, chunks, self._new_digest(run_input))
        self._run, self._total, self._checked_at = opened.run, 0, -BACKLOG_CHECK_ITEMS
        try:
            with self._renewing_lease():
                for name, content in run_input.files.items():
                    self._ledger.load_file(self._run, self._token, name, content)
                packing = Packing(run_input.files.get(DICTIONARY, b""))
                digest = self._load_chunks(chunks, packing, self._new_digest(run_input))
            wakes = self._ledger.seal(self._run, self._token, self._total, digest)
        except BaseException:
            self._discard()
            raise
        self._publisher.publish(wakes)
        if self._options.await_disk:
            self._await_disk(digest)
        return self._submitted(self._run, duplicate=False)

    def _open(self, run_input: RunInput) -> Opened:
        """Opens the run; waits for another loader of the same key while its lease is valid."""
        options, has_reported, copy = self._options, False, 1
        snapshot = _snapshot(self._source, options, run_input)
        run = self._run or run_input.run_id(now_ms(), copy)
        while True:
            opened = self._ledger.open(
                run,
                kind=self._kind.name,
                namespace=options.namespace,
                key=options.idempotency_key,
                token=self._token,
                snapshot=snapshot,
                ttl_s=options.results_ttl_s,
                wide=run_input.max_open_chunks,
                layout=run_input.layout,
            )
            if opened.status in ("ok", "sealed"):
                return opened
            if opened.status == "exists":
                copy += 1
                run = run_input.run_id(now_ms(), copy)
                continue
            if not has_reported:
                options.on_wait(f"another submit with this key is loading {opened.run}")
                has_reported = True
            self._pause.wait(POLL_S)
            # Without a worker only this tick advances the ledger clock, so that a dead loader's lease
            # expires.
            self._publisher.publish(self._ledger.tick(self._token, [], 0))

    @contextmanager
    def _renewing_lease(self) -> Iterator[None]:
        """Renews the loader's lease while the input is read, which may come slowly from a pipe."""
        over, period_s = Event(), self._ledger.times.loader_ms / 1000 / RENEWALS

        def renew() -> None:
            while not over.wait(period_s):
                with suppress(ProctorError):  # the next batch raises the error
                    self._ledger.load(self._run, self._token, {}, {})

        thread = Thread(target=renew, name="loader", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()

    def _load_chunks(self, chunks: Iterator[Chunk], packing: Packing, digest: "Digest") -> str:
        """Loads all chunks and returns the digest of the input; reading and sending overlap."""
        with ThreadPoolExecutor(1, "load") as sender:
            sent: Future[int] | None = None
            for payloads, plan, items in grouped(chunks, digest.update):
                self._await_sent(sent)
                self._await_backlog()
                packed = {name: packing.pack(payload) for name, payload in payloads.items()}
                sent = sender.submit(self._ledger.load, self._run, self._token, packed, plan)
                self._total += items
            self._await_sent(sent)
        return digest.hexdigest()

    def _await_sent(self, sent: "Future[int] | None") -> None:
        """Waits for the previous batch: at most one is being sent."""
        if sent is not None:
            sent.result()
            self._options.on_progress(self._total)

    def _await_backlog(self) -> None:
        """Waits while the backlog of sealed runs is too large, and renews the loader's lease.

        Loading runs do not count: two of them would wait for each other for ever.
        """
        if self._total - self._checked_at < BACKLOG_CHECK_ITEMS:
            return
        self._checked_at = self._total
        options, deadline, has_reported = self._options, monotonic() + self._options.patience_s, False
        while (backlog := self._ledger.backlog()) >= options.max_backlog_items:
            why = f"{backlog:,} items wait for workers, and {options.max_backlog_items:,} is the limit"
            if monotonic() >= deadline:
                raise NoRoomError(why, hint="start more workers, or raise PROCTOR_MAX_BACKLOG_ITEMS")
            if not has_reported:
                options.on_wait(why)
                has_reported = True
            self._pause.wait(POLL_S)
            self._ledger.load(self._run, self._token, {}, {})  # renews the loader's lease

    def _await_disk(self, digest: str) -> None:
        """Waits until the run is on disk, and checks that it still exists."""
        if not self._ledger.wait_durable(DURABLE_S):
            self._pause.wait(LOST_WRITES_S)
        # Sealing again has no effect on an existing run, and fails for a lost one.
        self._publisher.publish(self._ledger.seal(self._run, self._token, self._total, digest))

    def _duplicate(self, opened: Opened, chunks: Iterator[Chunk], digest: "Digest") -> SubmittedRun:
        """Returns the first run for a repeated submit, if it has the same content."""
        for _ in grouped(chunks, digest.update):
            pass
        if digest.hexdigest() != opened.digest:
            raise IdempotencyConflictError(
                f"idempotency key {self._options.idempotency_key!r} belongs to {opened.run}, "
                "which has other content or other settings",
                hint="take another key, or submit the same file with the same options",
            )
        # The producer that sealed the run may have died before it published anything.
        self._publisher.publish(self._ledger.unclaimed(opened.run, self._kind.name))
        return self._submitted(opened.run, duplicate=True)

    def _submitted(self, run: str, *, duplicate: bool) -> SubmittedRun:
        """Returns the result of the submit."""
        info = RunStore(self._ledger.caller.client, patience_s=self._ledger.caller.patience_s).info(run)
        return SubmittedRun(run, self._kind, info.total, info.threads, duplicate, info.layout)

    def _discard(self) -> None:
        """Tries to remove what was loaded; otherwise a steward removes it when the loader's lease ends."""
        impatient = Ledger(self._ledger.caller.client, patience_s=DISCARD_PATIENCE_S)
        with suppress(ProctorError):
            impatient.discard(self._run, self._token)

    def _new_digest(self, run_input: RunInput) -> "Digest":
        """Begins the digest of the input and of settings that affect results."""
        settings = (self._kind.name, self._options.namespace, *run_input.settings)
        return sha256("\n".join([*settings, ""]).encode())


class Digest(Protocol):
    """A hash that is being computed."""

    def update(self, data: bytes, /) -> None:
        """Adds bytes to the hash."""

    def hexdigest(self) -> str:
        """Returns the digest as hexadecimal digits."""


def _redacted(text: str, redactor: Redactor | None) -> str:
    return text if redactor is None else redactor.text(text)


def _snapshot(source: Source, options: SubmitOptions, run_input: RunInput) -> bytes:
    """Encodes the settings that are stored with the run."""
    settings = {
        "v": SNAPSHOT_VERSION,
        "submitted_ms": now_ms(),
        "source": options.origin or PurePath(source.name).name,
        **({} if options.origin or source.path is None else {PATH_KEY: source.name}),
        **({"name": _redacted(options.name, options.redactor)} if options.name else {}),
        **({FILE_KEY: key} if (key := file_key(source)) else {}),
        **run_input.snapshot,
        **({SNAPSHOT_KEY: context} if (context := tracing.traceparent()) else {}),
        "options": {"idempotency_key": options.idempotency_key, "chunk_turns": options.chunk_turns},
    }
    return json.dumps(settings).encode()
