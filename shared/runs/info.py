"""State and settings of runs, and the store that reads runs and results."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import redis

from shared import keys
from shared.clock import now_ms
from shared.codecs.item_rows import ItemReader, ItemRow, outcome_of
from shared.codecs.packing import DICTIONARY, Packing
from shared.errors import UnknownRunError
from shared.kinds import TURNS, Kind, kind_named
from shared.ledger.bounds import FIRST_LAYOUT
from shared.ledger.types import Try
from shared.ledger.wire import try_from
from shared.names import FINAL_STATES, Outcome, RunState
from shared.plugins import having
from shared.runs import upstreams, waiting
from shared.runs.pages import ChunkFields, Fetch, Page, PageReader, TurnRow, chunk_fields
from shared.runs.patience import patiently
from shared.runs.served import ServedStream, StreamState, Window, window_named
from shared.upstream.costs import NANOS

PATIENCE_S: Final = 60.0
"""How long reads are retried while Redis is unavailable."""
PATH_KEY: Final = "path"
"""Key in a snapshot of the path of the input, as it was submitted; absent for a stream."""
FORGOTTEN: Final = "forgot"
"""Field of a run: when its texts were forgotten, epoch milliseconds; absent of a run that has them."""
TALLY_PREFIX: Final = "n:"
"""Prefix of a run's progress counters."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A snapshot of a run."""

    run: str
    """Its id."""
    kind: Kind
    """Its kind."""
    state: RunState
    """Its state."""
    namespace: str
    """The namespace of its threads: the run itself, or a name that runs share."""
    created_ms: int
    """Time when its loading began, epoch milliseconds."""
    sealed_ms: int | None
    """Time when it was completely loaded and work could begin."""
    finished_ms: int | None
    """Time when its state became final."""
    total: int
    """Its items; 0 while it loads."""
    done: int
    """Items with a result; those that are retried count as open."""
    tally: dict[str, int]
    """Progress counters by word, for display: totals are computed from rows."""
    threads: int
    """Distinct threads (turns)."""
    generation: int
    """0, and one more for each retry."""
    snapshot: dict[str, Any]
    """The settings it was submitted with."""
    idle_ms: int = 0
    """Time that it was final before it was retried or resumed."""
    spent_usd: float | None = None
    """Cost of its calls by its budget; None without a cost cap."""
    layout: int = FIRST_LAYOUT
    """Workers that do not know this layout leave it alone."""
    forgotten_ms: int | None = None
    """Time when its texts were forgotten; None of a run that has them."""
    verdicts: Mapping[str, int] | None = None
    """How its cases ended, where their answers count together and somebody has read them; see `counted`."""

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many of what its verdict counts ended how: items, or cases whose answers count together."""
        return self.tally if self.verdicts is None else self.verdicts

    @property
    def is_final(self) -> bool:
        """Whether it does not change any more, unless it is retried."""
        return self.state in FINAL_STATES

    @property
    def source(self) -> str:
        """The name of its input."""
        return str(self.snapshot.get("source", ""))

    @property
    def name(self) -> str:
        """The name that it was given at submit (`--name`); empty without one."""
        return str(self.snapshot.get("name") or "")

    @property
    def description(self) -> str:
        """What its file says that it is for; empty where it says nothing."""
        return str(self.snapshot.get("description") or "")

    @property
    def title(self) -> str:
        """What people call it: its name, or that of its bench, or its input."""
        return self.name or self.bench or self.source

    @property
    def bench(self) -> str:
        """What its configuration is called; empty without one, or without a name."""
        return str(self._own.get("name") or "")

    @property
    def models(self) -> Sequence[str]:
        """The models of its bench; empty of other kinds."""
        return list(self._own.get("models") or ())

    @property
    def prompts(self) -> Sequence[str]:
        """Ids of the prompts of its bench; empty of other kinds."""
        return list(self._own.get("prompts") or ())

    @property
    def _own(self) -> Mapping[str, Any]:
        """The settings of its kind; empty if a newer version wrote them in another form."""
        found = self.snapshot.get(self.kind.name)
        return found if isinstance(found, dict) else {}

    @property
    def needs(self) -> Sequence[str]:
        """What workers need to have for it, as `shared.plugins` names it."""
        return self._own.get("plugins") or ()

    @property
    def paid_usd(self) -> float | None:
        """Cost of its calls, whatever became of the items; None without calls of known price.

        The budget counts what may have been billed as well; where workers have just committed, it is behind.
        """
        micros = self.tally.get("cost_micro_usd")
        counted = micros / 1e6 if micros else None
        return max((usd for usd in (self.spent_usd, counted) if usd), default=None)

    @property
    def duration_ms(self) -> int | None:
        """Time from the seal to the end, without the time between an end and a retry; None before the end."""
        return None if self.finished_ms is None else self.elapsed_ms(self.finished_ms)

    @property
    def duration_s(self) -> float | None:
        """The same in seconds."""
        return None if self.duration_ms is None else round(self.duration_ms / 1000, 3)

    @property
    def per_s(self) -> float | None:
        """Items a second; None before the end."""
        return round(1000 * self.total / self.duration_ms, 1) if self.duration_ms else None

    def elapsed_ms(self, now_ms: int) -> int:
        """Returns the time from the seal, or from the beginning of the load, without that before retries."""
        begun_ms = self.created_ms if self.sealed_ms is None else self.sealed_ms
        return max(0, now_ms - begun_ms - self.idle_ms)


class RunStore:
    """Reads runs; safe to share between threads.

    Args:
        client: connected to the ledger's server, answering bytes.
        patience_s: how long a read is retried while Redis is unavailable.

    All methods raise `RedisUnreachableError` if it stays away.
    """

    def __init__(self, client: redis.Redis, *, patience_s: float = PATIENCE_S) -> None:
        self._client: Any = client  # redis-py's own annotations mix sync and async answers
        self._patience_s = patience_s
        self._part: RunInfo | None = None
        """The part of a stream that was read last."""

    def info(self, run: str) -> RunInfo:
        """Reads one run, or the part of a stream that a `Window` names.

        Raises:
            UnknownRunError: there is no such run.
        """
        if window := window_named(run):
            return self._window(window)
        [found] = self._infos([run])
        if found is None:
            raise UnknownRunError(f"no run is called {run!r}", hint="`proctor runs` lists them", run=run)
        return found

    def list(self, *, limit: int = 20, kind: Kind | None = None, state: str | None = None) -> list[RunInfo]:
        """Reads the newest runs first.

        Args:
            limit: most runs to return.
            kind: only runs of this kind.
            state: only runs in this state.
        """
        found, at = list[RunInfo](), 0
        while len(found) < limit:
            names = self._names(at, at + limit - 1)
            if not names:
                break
            for info in self._infos(names):
                if info and kind in (None, info.kind) and state in (None, info.state):
                    found.append(info)
            at += limit
        return found[:limit]

    def namespaces_served(self) -> Sequence[str]:
        """Names the namespaces with a stream of served turns, the last used first."""
        found = self._read(lambda: self._client.zrevrange(keys.SERVED_KEY, 0, -1))
        return [name.decode() for name in found]

    def streams(self) -> Sequence[StreamState]:
        """Reads the streams of all namespaces, the last used first."""
        return [self.stream(name).state(now_ms()) for name in self.namespaces_served()]

    def stream(self, namespace: str) -> ServedStream:
        """Returns what reads the stream of a namespace."""
        return ServedStream(self._client, namespace, self._patience_s)

    def ids(self) -> Sequence[str]:
        """Reads the ids of all runs, newest first."""
        return self._names(0, -1)

    def pages(self, run: str, *, with_payload: bool = False) -> Iterator[Page]:
        """Yields the rows of a turns run in input order, some hundreds at a time, with their input if asked.

        While a run goes on, turns without a result are left out; in a final run their rows have no code.

        Raises:
            UnknownRunError: there is no such run.
        """
        if window := window_named(run):
            for rows in self.stream(window.namespace).rows(window, with_payload=with_payload):
                yield [each.row for each in rows]
            return
        reader = self.reader(run, with_open=self.info(run).is_final, with_payload=with_payload)
        yield from reader.pages(self.chunks(run))

    def rows(self, run: str) -> Iterator[TurnRow]:
        """Yields the rows of a turns run one by one, as `pages` does."""
        for page in self.pages(run):
            yield from page

    def item_pages(
        self, run: str, *, first: int = 0, with_payload: bool = False
    ) -> Iterator[Sequence[ItemRow]]:
        """Yields the rows of a cases or queries run in input order, some hundreds at a time.

        While a run goes on, items without a result are left out; in a final run their rows have no code.

        Args:
            run: its id.
            first: the position to begin with.
            with_payload: whether rows come with what was loaded for the item.

        Raises:
            UnknownRunError: there is no such run.
        """
        info = self.info(run)
        reader = self.item_reader(run, with_open=info.is_final, with_payload=with_payload)
        yield from reader.pages(info.total, first=first)

    def item_reader(self, run: str, *, with_open: bool, with_payload: bool = False) -> ItemReader:
        """Makes a reader of the results of a cases or queries run."""
        return ItemReader(
            *self._fetchers(run),
            with_open=with_open,
            with_payload=with_payload,
            packing=self.packing(run),
        )

    def outcomes(self, run: str, indexes: Sequence[int]) -> dict[int, Outcome]:
        """Reads how some cases or queries ended, but for those whose result a retry is about to replace."""
        if not indexes:
            return {}
        # In this order: what is put back to work after the first call had its result before the second.
        retried = self._read(lambda: self._client.hmget(keys.redo_key(run), indexes))
        values = self._fetchers(run)[0]([str(index) for index in indexes])
        found = zip(indexes, retried, values, strict=True)
        return {
            index: outcome_of(value) for index, again, value in found if value is not None and again is None
        }

    def packing(self, run: str) -> Packing:
        """Reads how the texts of a cases or queries run are stored."""
        return Packing(self.file(run, DICTIONARY) or b"")

    def tries(self, run: str) -> dict[int, Try]:
        """Reads which items of a cases or queries run are to be tried again, and when."""
        return self._read(lambda: _read_tries(self._client, run))

    def reader(self, run: str, *, with_open: bool, with_payload: bool = False) -> PageReader:
        """Makes a reader of the results of a turns run by chunk."""
        return PageReader(*self._fetchers(run), with_open=with_open, with_payload=with_payload)

    def chunks(self, run: str) -> Sequence[ChunkFields]:
        """Reads which fields hold the results of a turns run, by generation and in order."""
        counts = self._read(lambda: self._client.hgetall(keys.batches_key(run)))
        return sorted(chunk_fields(chunk.decode(), int(count)) for chunk, count in counts.items())

    def is_open(self, run: str, chunk: ChunkFields) -> bool:
        """Whether there is something left to do of a chunk of a turns run."""
        name = chunk.batches[0].rpartition(".")[0]
        return bool(self._read(lambda: self._client.hexists(keys.plan_key(run), name)))

    def inputs(self, run: str, batches: Sequence[str]) -> Sequence[bytes | None]:
        """Reads inputs of a run: the batches of turns, or cases or queries by their positions."""
        packing = self.packing(run)
        return [value and packing.unpack(value) for value in self._fetchers(run)[1](batches)]

    def file(self, run: str, name: str) -> bytes | None:
        """Reads a file that the items of a run share; None when there is none of this name."""
        found: bytes | None = self._read(lambda: self._client.hget(keys.batches_key(run), name))
        return found

    def labels(self, run: str) -> Sequence[bytes]:
        """Reads what people say of the answers of a run, as `producer.review.label_store` writes it."""
        found: Sequence[bytes] = self._read(lambda: self._client.hvals(keys.labels_key(run)))
        return found

    def wait_reason(self, run: str) -> str:
        """Returns one sentence on why a run makes no progress; empty if it does.

        Raises:
            UnknownRunError: there is no such run.
        """
        info = self.info(run)
        return self.wait_reason_of(info, self.upstream_status(info))

    def wait_reason_of(self, info: RunInfo, upstream_status: upstreams.UpstreamStatus | None) -> str:
        """Returns the same for a run and the status of its upstreams, which were read before."""
        context = self._read(
            lambda: waiting.read_wait_context(self._client, info.run, info.kind.name, info.state)
        )
        context = context._replace(lacked=self._lacked(info, context.workers))
        if upstream_status is None:
            return waiting.wait_reason(info.run, context)
        if info.is_final:  # only the budget can have ended it, not a limit
            upstream_status = upstream_status._replace(scopes=())
        blocked_calls = waiting.describe_blocked_calls(upstream_status)
        parked = waiting.describe_parked(upstream_status.parked)
        return waiting.wait_reason(info.run, context, blocked_calls=blocked_calls, parked=parked)

    def upstream_status(self, info: RunInfo) -> upstreams.UpstreamStatus | None:
        """Reads what may block a run's calls; None if it makes no calls, or has ended by itself."""
        if info.is_final and info.state != RunState.INCOMPLETE:
            return None
        called = upstreams.upstreams_of(info.kind, info.snapshot)
        if called is None:
            return None
        return self._read(lambda: upstreams.read_upstream_status(self._client, info.run, called))

    def workers(self, kind: Kind) -> Sequence[waiting.Worker]:
        """Reads the live workers of a kind."""
        return self._read(lambda: waiting.read_workers(self._client, kind.name))

    def plugins(self, kind: Kind) -> Mapping[str, frozenset[str]]:
        """Reads which plug-ins the live workers of a kind have, by worker; of new ones not known yet."""
        names = [worker.name for worker in self.workers(kind)]

        def read() -> Sequence[bytes | None]:
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.get(keys.plugins_key(name))
            found: Sequence[bytes | None] = pipeline.execute()
            return found

        said = zip(names, self._read(read), strict=True)
        return {name: frozenset(text.decode().split()) for name, text in said if text is not None}

    def _lacked(self, info: RunInfo, workers: int) -> str:
        """Says what none of a number of live workers has; empty if one has all, or some are not known yet."""
        if not info.needs or info.is_final:
            return ""
        lacked = [frozenset(info.needs) - has for has in self.plugins(info.kind).values()]
        return having(min(lacked, key=len)) if len(lacked) == workers and all(lacked) else ""

    def _window(self, window: Window) -> RunInfo:
        """Describes a part of a stream; it is read whole for that, and several times in a row only once."""
        part = self._part
        if part is None or part.run != window.name:
            part = self._part = window_info(window, *self.stream(window.namespace).extent(window))
        return part

    def _names(self, first: int, last: int) -> Sequence[str]:
        """Reads the ids of some runs, newest first."""
        found = self._read(lambda: self._client.zrevrange(keys.RUNS_KEY, first, last))
        return [name.decode() for name in found]

    def _infos(self, runs: Sequence[str]) -> Sequence[RunInfo | None]:
        """Reads several runs in one round trip."""

        def read() -> Any:
            pipeline = self._client.pipeline(transaction=False)
            for run in runs:
                pipeline.hgetall(keys.run_key(run))
                pipeline.scard(keys.threads_key(run))
                pipeline.hget(keys.cost_key(run), "spent")
            return pipeline.execute()

        answers = iter(self._read(read))
        return [
            _info(run, *each)
            for run, each in zip(runs, zip(answers, answers, answers, strict=True), strict=True)
        ]

    def _fetchers(self, run: str) -> tuple[Fetch, Fetch]:
        """Makes functions that read results and input of a run by their fields."""
        return partial(self._fetch, keys.results_key(run)), partial(self._fetch, keys.items_key(run))

    def _fetch(self, key: str, fields: Sequence[str]) -> Sequence[bytes | None]:
        found: Sequence[bytes | None] = self._read(lambda: self._client.hmget(key, fields))
        return found

    def _read(self, read: Callable[[], T]) -> T:
        return patiently(read, self._patience_s, client=self._client)


def window_info(window: Window, total: int = 0, threads: int = 0) -> RunInfo:
    """Describes a part of a stream as a run that has ended."""
    return RunInfo(
        run=window.name,
        kind=TURNS,
        state=RunState.FINISHED,
        namespace=window.namespace,
        created_ms=window.since_ms,
        sealed_ms=window.since_ms,
        finished_ms=window.until_ms,
        total=total,
        done=total,
        tally={},
        threads=threads,
        generation=0,
        snapshot={"source": "proctor serve"},
    )


def _info(run: str, fields: Mapping[bytes, bytes], threads: int, spent: bytes | None) -> RunInfo | None:
    """Reads a run from the fields of its hash; None if there is none."""
    if b"state" not in fields:
        return None
    words = {name.decode(): value for name, value in fields.items()}
    number = {name: int(words.get(name) or 0) for name in ("total", "done", "goal", "gen", "created", "idle")}
    total = number["total"]
    return RunInfo(
        run=run,
        kind=kind_named(words["kind"].decode()),
        state=RunState(words["state"].decode()),
        namespace=words["ns"].decode(),
        created_ms=number["created"],
        sealed_ms=int(words["sealed"]) if "sealed" in words else None,
        finished_ms=int(words["finished"]) if "finished" in words else None,
        total=total,
        done=max(0, total - (number["goal"] - number["done"])) if number["goal"] else 0,
        tally={
            name.removeprefix(TALLY_PREFIX): int(value)
            for name, value in words.items()
            if name.startswith(TALLY_PREFIX)
        },
        threads=int(threads),
        generation=number["gen"],
        snapshot=_snapshot(words.get("snap", b"")),
        idle_ms=number["idle"],
        spent_usd=None if spent is None else int(spent) / NANOS,
        layout=int(words.get("v") or FIRST_LAYOUT),
        forgotten_ms=int(words[FORGOTTEN]) if FORGOTTEN in words else None,
    )


def _snapshot(text: bytes) -> dict[str, Any]:
    """Reads the settings of a run; empty if a newer version wrote them in another form."""
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _read_tries(client: Any, run: str) -> dict[int, Try]:
    """Reads which items of a run are to be tried again, and when, by the time of day."""
    pipeline = client.pipeline(transaction=False)
    pipeline.hgetall(keys.tries_key(run))
    pipeline.hget(keys.CLOCK_KEY, "back")
    found, back_ms = pipeline.execute()
    noted = [try_from(index.decode(), value.decode()) for index, value in found.items()]
    # Due times are on a clock that is never set back, see `steady` in `shared/ledger/lua/lib/server.lua`.
    return {int(n.index): n._replace(not_before_ms=n.not_before_ms - int(back_ms or 0)) for n in noted}
