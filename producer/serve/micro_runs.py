"""Micro-runs: turns of one namespace, submitted as a run, read when it has ended, and folded into the stream.

Every call here waits for Redis, and is made from a thread.
"""

from collections.abc import Collection, Iterable, Sequence
from secrets import token_hex
from typing import Any, Final, NamedTuple

from msgspec import Raw, Struct, to_builtins
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from producer.access import Access
from producer.serve.turn_bodies import AcceptedTurn
from producer.turns.load import TurnColumns, asked, one_chunk
from producer.turns.report.opened_rows import RefusedLine, TurnError, outcome, result_line
from shared import keys
from shared.clock import now_ms
from shared.codecs.live_pieces import PIECE_START, LivePiece, decode_piece
from shared.contracts.live_turns import LiveRun
from shared.errors import ProctorError, UnknownRunError
from shared.kinds import TURNS
from shared.ledger import Keep
from shared.ledger.bounds import FIRST_LAYOUT, TARGETS_LAYOUT
from shared.names import FINAL_STATES, SERVED_PREFIX, Outcome
from shared.redaction import ID_DIGITS, Redactor, redactor_of
from shared.runs.pages import ChunkFields, PageReader, TurnRow
from shared.runs.patience import patiently

ADOPTED_MS: Final = 60_000
"""How long ago a run must have ended that another server may have forgotten."""
CHUNK: Final = "0"
"""The one chunk of a micro-run: its turns are published together, before those of the next."""
SOURCE: Final = "proctor serve"
RESULTS_TTL_S: Final = 3_600
"""How long a micro-run waits to be folded, if all servers of its namespace are gone."""
WAIT_S: Final = 1
"""How long one wait for ended runs takes, in whole seconds."""
MOST_HEARD: Final = 200
"""Messages that one wait returns."""


class LostTurnsError(ProctorError):
    """Redis no longer has turns that it had confirmed: its data, or its master, was replaced."""

    code = "turns_lost"


class ServedTurn(NamedTuple):
    """How a turn ended."""

    code: str
    """See `shared.codecs.turn_batches`."""
    result: Raw
    """As in the row of a run."""
    problem: TurnError | None
    """None where it was decided."""


class _Snapshot(Struct, kw_only=True):
    """The settings of a micro-run."""

    v: int = 1
    submitted_ms: int
    waited_ms: list[int]
    """How long before that each turn was accepted."""
    source: str = SOURCE
    summary_policy: str


class Heard(NamedTuple):
    """What workers have told a server."""

    ended: Sequence[str]
    """Runs that have ended."""
    pieces: Sequence[LivePiece]
    """Pieces of answers that are being written."""


class MicroRuns:
    """Submits, reads and folds the micro-runs of one server.

    Args:
        access: access to Redis, connected.
        namespace: namespace of the threads.
        summary_policy: as for a run of turns.
        keep: how much of the turns is kept.
        live: the model that answers; None: turns are decided only.
    """

    def __init__(
        self, access: Access, namespace: str, summary_policy: str, keep: Keep, live: LiveRun | None = None
    ) -> None:
        self._access, self.namespace, self._policy, self._keep = access, namespace, summary_policy, keep
        self._live = live
        self._redactor = redactor_of(access.settings)
        self.listener = token_hex(8)
        """Name under which the ledger reports the runs that have ended."""
        self._made = 0

    def next_run(self) -> str:
        """Returns the id of a new run."""
        self._made += 1
        return f"{SERVED_PREFIX}{self.listener}-{self._made}"

    def submit(
        self,
        run: str,
        turns: Sequence[AcceptedTurn],
        accepted_ms: Sequence[int] = (),
        *,
        is_heard: bool = False,
    ) -> None:
        """Submits turns as a run; their order in a thread is the order in which runs are submitted.

        Args:
            run: as of `next_run`.
            turns: of one or several callers.
            accepted_ms: when each was accepted, epoch milliseconds; by default now.
            is_heard: whether somebody waits to see answers while they are written.

        Raises:
            ProctorError: Redis does not accept it; whether workers decide the turns is then unknown.
        """
        if self._redactor is not None:
            turns = [_redacted(turn, self._redactor) for turn in turns]
        submitted_ms, ledger = now_ms(), self._access.ledger
        columns = TurnColumns(
            list(range(len(turns))), [turn.thread for turn in turns], [turn.line for turn in turns]
        )
        chunk = one_chunk(columns)
        live = replace(self._live, listener=self.listener) if self._live and is_heard else self._live
        snapshot = _Snapshot(
            submitted_ms=submitted_ms,
            waited_ms=[submitted_ms - each for each in accepted_ms],
            summary_policy=self._policy,
        )
        wakes = ledger.submit_part(
            run,
            kind=TURNS.name,
            namespace=self.namespace,
            tells=self.listener,
            snapshot=_encode(to_builtins(snapshot) | asked(live)),
            ttl_s=RESULTS_TTL_S,
            layout=TARGETS_LAYOUT if live else FIRST_LAYOUT,
            items=chunk.payloads,
            plan={CHUNK: chunk.plan},
            total=len(turns),
        )
        self._access.publisher.publish(wakes)

    def heard(self) -> Heard:
        """Waits for what workers tell, at most `WAIT_S`."""
        client, key = self._access.client, keys.ended_key(self.listener)
        with client.pipeline(
            transaction=False
        ) as pipeline:  # one round trip: the second waits with the first
            pipeline.blpop([key], timeout=WAIT_S)
            pipeline.lpop(key, MOST_HEARD)
            first, more = pipeline.execute()
        messages: list[bytes] = [*(first or ())[1:], *(more or ())]
        return Heard(
            [each.decode() for each in messages if not each.startswith(PIECE_START)],
            [decode_piece(each) for each in messages if each.startswith(PIECE_START)],
        )

    def ended_among(self, runs: Sequence[str]) -> list[str]:
        """Returns those of the runs that have ended or are gone, in case their message was lost."""
        with self._access.client.pipeline(transaction=False) as pipeline:
            for run in runs:
                pipeline.hget(keys.run_key(run), "state")
            states = pipeline.execute()
        return [
            run
            for run, state in zip(runs, states, strict=True)
            if not state or state.decode() in FINAL_STATES
        ]

    def read(self, run: str, total: int) -> list[ServedTurn]:
        """Reads the results of a run of so many turns that has ended, in their order.

        Raises:
            LostTurnsError: it is gone, or was ended without all results.
        """
        rows = self._rows(run)
        if len(rows) < total:
            raise LostTurnsError(
                "the turns were lost with the Redis that had them, or their run was ended",
                hint="send them again, with the same clientRequestId",
            )
        return [served(row) for row in rows]

    def fold(self, runs: Sequence[str]) -> None:
        """Adds the turns of runs that have ended to the stream of the namespace, and removes the runs."""
        self._access.ledger.fold(runs, self._keep)

    def keep_results(self, run: str, found: Iterable[tuple[int, ServedTurn]]) -> None:
        """Keeps results for callers that do not wait, under `run.index`.

        Args:
            run: their run.
            found: results, each with the place of its turn in the run.
        """
        with self._access.client.pipeline(transaction=False) as pipeline:
            for index, turn in found:
                key = keys.served_result_key(self.namespace, f"{run}.{index}")
                pipeline.set(key, _encode(turn), ex=RESULTS_TTL_S)
            pipeline.execute()

    def kept_result(self, turn_id: str) -> ServedTurn | None:
        """Reads the result of a turn whose decision nobody waits for; None until its run has ended.

        Raises:
            UnknownRunError: there is no such turn, or its result has expired.
            RedisUnreachableError: Redis is away.
        """
        client = self._access.client
        return patiently(lambda: self._kept_result(turn_id), 0.0, client=client)

    def _kept_result(self, turn_id: str) -> ServedTurn | None:
        run, _, index = turn_id.rpartition(".")
        client: Any = self._access.client
        found = (
            client.hmget(keys.run_key(run), "ns", "state") if run.startswith(SERVED_PREFIX) else [None] * 2
        )
        namespace, state = (each and each.decode() for each in found)
        is_own = namespace == self.namespace
        if is_own and state in FINAL_STATES:  # and not folded yet
            for row in self._rows(run):
                if str(row.index) == index:
                    return served(row)
        kept = client.get(keys.served_result_key(self.namespace, turn_id))
        if kept is not None:
            return _kept(kept)
        if is_own and state not in FINAL_STATES:
            return None
        raise UnknownRunError(f"there is no turn {turn_id}, or its result has expired", run=run)

    def adopt(self, under_way: Collection[str] = ()) -> None:
        """Folds micro-runs that ended a while ago and that their server did not fold: it has gone, or failed.

        Args:
            under_way: runs that this server is about to fold.
        """
        before_ms, client = now_ms() - ADOPTED_MS, self._access.client
        waiting = keys.served_open_key(self.namespace)
        runs: Any = client.zrangebyscore(waiting, "-inf", before_ms)
        for run in map(bytes.decode, runs):
            if run in under_way:
                continue
            try:
                info = self._access.impatient_store.info(run)
            except UnknownRunError:  # it has expired
                client.zrem(waiting, run)
                continue
            if info.is_final and (info.finished_ms or 0) < before_ms:
                self.keep_results(run, [(row.index, served(row)) for row in self._rows(run)])
                self.fold([run])

    def _rows(self, run: str) -> list[TurnRow]:
        """Reads the rows that a run has, in their order."""
        client = self._access.client
        found: dict[Any, Any] = client.hgetall(keys.results_key(run))
        items: dict[Any, Any] = {}
        if any(b":" in name or b"x0p" in value[:200] for name, value in found.items()):  # parts, or poison
            items = client.hgetall(keys.items_key(run))
        reader = PageReader(
            lambda fields: [found.get(name.encode()) for name in fields],
            lambda fields: [items.get(name.encode()) for name in fields],
            with_open=False,
        )
        batches = {name.partition(b":")[0].decode() for name in found}
        chunk = ChunkFields(0, 0, sorted(batches, key=_place))
        return [row for page in reader.pages([chunk]) for row in page]


_encode: Final = Encoder().encode
_error: Final = Decoder(RefusedLine[Raw]).decode
_kept: Final = Decoder(ServedTurn).decode


def _place(batch: str) -> int:
    """Returns the place of a batch in its chunk."""
    return int(batch.rpartition(".")[2])


def _redacted(turn: AcceptedTurn, redactor: Redactor) -> AcceptedTurn:
    """Takes personal data out of a turn before it is stored."""
    return AcceptedTurn(redactor.text(turn.thread, ID_DIGITS), redactor.json(turn.line))


def served(row: TurnRow) -> ServedTurn:
    """Returns how a turn ended, of its row."""
    line = result_line(row)
    if outcome(row.code) is Outcome.DECIDED:
        return ServedTurn(row.code, Raw(line), None)
    found = _error(line)
    return ServedTurn(row.code, found.result, found.error)
