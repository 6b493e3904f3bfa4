"""Executes threads that a model answers: turn by turn, each committed before the next model call.

    the chunk's thread                               the loop
    decide up to the next question, commit      ──►  call: cache, budget, limits, retry
    decide with the answer, commit              ◄──  answers that came within a few milliseconds

Threads wait only for their own question. A thread stays locked from one of its turns to the next; if it ends
early (a stop, a wait too long for the chunk, a refused commit), the next claim continues with the rest. A
wait is stored with its attempts, so that they survive a crash, and resumed here if the chunk still has other
work when the wait is over. After some seconds a chunk makes no further calls and is returned, so that other
runs have their turn.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Final, NamedTuple, Protocol

from shared.clock import now_ms
from shared.codecs.live_pieces import LivePiece, encode_piece
from shared.codecs.parked_items import decode_parked
from shared.contracts.live_turns import LiveRun
from shared.ledger import ClaimedBatch, ClaimedThread, Try
from shared.names import RunState
from shared.upstream.failure_reasons import FailureReason
from worker.breakpoint.live_decisions import INTERNAL, LiveOutcome, ModelAnswer, OpenTurn, decide_live
from worker.breakpoint.prompt import TurnPrompt
from worker.breakpoint.thread_decider import Batch, Refusal, ThreadOutcome
from worker.breakpoint.trace import TracedCall
from worker.executors.claim_loop import ClaimLoop, Finished, PoolItem
from worker.executors.piece_sender import PieceSender
from worker.in_flight_limit import AnswerSlots
from worker.lease_table import LOST, Lease
from worker.logs import structlog
from worker.outcomes import Broken, Deferred, Done, EndRun, Released
from worker.process import WorkerProcess
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_caller import CallContext

MAX_CLAIM_S: Final = 20.0
"""After so long a chunk makes no further calls, so that other runs have their turn."""
PUT_ASIDE_MS: Final = 2_000
"""How long a chunk is postponed whose questions find the line full."""

logger = logging.getLogger(__name__)


class LiveThread(PoolItem):
    """One claimed thread, with the question that a model is to answer next.

    Args:
        claimed: as the ledger handed it out.
        refs: which of the claimed batches to work on.
        batches: the same, for the engine.
        known: requests that were answered before; a copy, since other threads are not committed with it.
    """

    __slots__ = ("batches", "due_ms", "known", "name", "pos", "question", "refs", "state")

    def __init__(
        self,
        claimed: ClaimedThread,
        refs: Sequence[ClaimedBatch],
        batches: Sequence[Batch],
        known: MutableMapping[str, bytes],
    ) -> None:
        super().__init__(CallsMade())
        self.name, self.pos, self.state = claimed.thread, claimed.pos, claimed.memento
        self.refs, self.batches, self.known = refs, batches, known
        self.question: OpenTurn | None = None
        self.due_ms = 0

    @property
    def batch(self) -> ClaimedBatch:
        """The batch of the turn that the question is about."""
        assert self.question is not None  # noqa: S101 - only used while there is a question
        return self.refs[self.question.batch]

    @property
    def try_key(self) -> str:
        """The key of the turn's attempts in the ledger; a retried turn has another batch, and none."""
        assert self.question is not None  # noqa: S101 - as above
        return f"{self.batch.run} {self.batch.batch} {self.question.offset}"

    def advance(self, step: LiveOutcome) -> None:
        """Moves the thread behind the turns that were committed."""
        self.state = step.outcome.state
        batches, moved = list(self.batches), 0
        for at, block in enumerate(step.outcome.blocks):
            done = len(block.lines)
            self.pos += done
            batches[at] = replace(batches[at], offset=block.offset + done)
            moved += batches[at].offset == self.refs[at].count
        self.batches, self.refs = batches[moved:], self.refs[moved:]
        self.set_question(step.question, moved)

    def set_question(self, question: OpenTurn | None, moved: int = 0) -> None:
        """Sets the next question; its batch has moved so many places to the front."""
        self.question = None if question is None else question._replace(batch=question.batch - moved)
        self.calls, self.due_ms = CallsMade(), 0


def open_live_thread(
    lease: Lease,
    claimed: ClaimedThread,
    batches: Sequence[Batch],
    known: Mapping[str, bytes],
    *,
    is_suspect: bool,
) -> LiveThread:
    """Opens a thread with its inbox up to the end of the chunk's own turns.

    Only so far may the thread stay locked between turns; the rest belongs to another chunk.
    """
    own = [at for at, ref in enumerate(claimed.batches, 1) if _is_own(lease, ref)]
    end = own[-1] if own and not is_suspect else len(claimed.batches)
    return LiveThread(claimed, claimed.batches[:end], batches[:end], dict(known))


def _is_own(lease: Lease, ref: ClaimedBatch) -> bool:
    """Whether a batch belongs to the chunk, after which it is named."""
    return ref.run == lease.run and ref.batch.rpartition(".")[0] == lease.chunk


class DecidedThread(NamedTuple):
    """A thread that is decided as far as it goes, to be committed."""

    thread: str
    pos: int
    """The position that it was decided at."""
    batches: Sequence[ClaimedBatch]
    """Its inbox, as it was decided."""
    outcome: ThreadOutcome
    """Its blocks are those of the first batches."""
    started_ms: int
    """Time when the work on it began, epoch milliseconds."""


class CommitInBatches(Protocol):
    """Commits decided threads."""

    def __call__(self, decided: Sequence[DecidedThread], *, hold: bool) -> Sequence[bool]:
        """Returns for each thread whether it was written, up to where the lease was lost.

        Args:
            decided: the threads.
            hold: whether to keep them locked.
        """


class LiveClaim:
    """The live threads of one claim, executed in the chunk's thread.

    Args:
        process: whose ledger, loop, in-flight limit and upstreams are used.
        slots: for chunks with answers under way.
        settings_of: finds the settings of a run with a model.
        lease: of the chunk.
        commit_in_batches: writes what is decided.
    """

    def __init__(
        self,
        process: WorkerProcess,
        slots: AnswerSlots,
        settings_of: Callable[[str], LiveRun | None],
        lease: Lease,
        commit_in_batches: CommitInBatches,
    ) -> None:
        self._process, self._slots, self._settings_of = process, slots, settings_of
        self._lease, self._commit_in_batches = lease, commit_in_batches
        self._loop = ClaimLoop(process, lease)
        own = settings_of(lease.run)
        self._free = min(process.in_flight.size, (own.concurrency if own else None) or process.in_flight.size)
        """How many more questions may be asked at a time."""
        self._calls_until_s = inf
        self._is_cut_short = False
        self._decided = list[tuple[LiveThread, LiveOutcome]]()
        self._ready = list[LiveThread]()
        self._parked = list[LiveThread]()
        self._tries = list[Try]()
        self._run_ends = dict[str, RunState]()
        self.has_committed = False
        """Whether any turn was committed."""

    def execute(self, threads: Sequence[LiveThread]) -> int:
        """Executes threads until each is done, parked, or to be returned.

        Returns:
            When the first thread that waits is due, epoch milliseconds; 0 when none does.
        """
        for thread in threads:
            self._decide(thread, None)
        self._commit()
        if not self._ready:
            return 0
        self._restore_tries()
        should_stop = self._process.leases.should_stop
        with self._slots.taken(self._lease, should_stop) as is_taken:
            if not is_taken:
                return 0 if should_stop(self._lease) else now_ms() + PUT_ASIDE_MS
            self._calls_until_s = monotonic() + MAX_CLAIM_S
            self._loop.run(self, asyncio.Semaphore(self._free))
        is_cut = self._is_cut_short or self._loop.is_stopped
        return 0 if is_cut else min((thread.due_ms for thread in self._parked), default=0)

    def due(self) -> Sequence[LiveThread]:
        """Returns the threads to ask for now: those that are ready or no longer parked, up to the limit."""
        now = now_ms()
        waiting = [*self._parked, *self._ready]
        due = [thread for thread in waiting if thread.due_ms <= now]
        self._parked = [thread for thread in waiting if thread.due_ms > now]
        if self._loop.is_stopped or self._lease.is_lost or monotonic() > self._calls_until_s:
            self._is_cut_short = self._is_cut_short or bool(due)
            self._ready = []
            return ()
        due, self._ready = due[: self._free], due[self._free :]
        self._free -= len(due)
        return due

    async def work(self, thread: LiveThread) -> ModelReply | UpstreamError:
        """Asks the model a thread's question."""
        assert thread.question is not None  # noqa: S101 - only threads with a question are due
        run = thread.batch.run
        structlog.contextvars.bind_contextvars(run=run, thread_id=thread.name)
        settings = self._settings_of(run)
        if settings is None:
            raise LookupError(f"run {run} has no model")
        listener = self._listener(settings, run, thread.question)
        try:
            return await self._process.upstream.models.call(
                replace(request_of(settings, thread.question.prompt), listener=listener),
                context_of(settings, run, self._lease.token, is_anew=thread.batch.is_anew),
                thread.calls,
                on_send=thread.working,
            )
        except UpstreamError as error:
            return error

    def _listener(self, settings: LiveRun, run: str, question: OpenTurn) -> PieceSender | None:
        """Returns what hears an answer that somebody waits to see while it is written."""
        if not settings.listener:
            return None

        def send(piece: LivePiece) -> None:
            self._process.upstream.tell(settings.listener, encode_piece(piece))

        return PieceSender(run, question.item, question.decision, send)

    def take(self, ended: Sequence[Finished[LiveThread, ModelReply | UpstreamError]]) -> None:
        """Decides threads with their answers, or parks them, and commits that."""
        self._free += len(ended)
        for finished in ended:
            self._handle(finished)
        self._commit()

    def _decide(self, thread: LiveThread, answer: ModelAnswer | Refusal | None) -> None:
        """Decides a thread up to its next question."""
        step = decide_live(
            thread=thread.name, state=thread.state, batches=thread.batches, known=thread.known, answer=answer
        )
        for failure in step.failures:
            logger.error("engine failed", extra={"thread_id": thread.name}, exc_info=failure)
        if step.outcome.blocks:
            self._decided.append((thread, step))
        elif step.question is not None:
            thread.set_question(step.question)
            self._ready.append(thread)

    def _handle(self, finished: Finished[LiveThread, ModelReply | UpstreamError]) -> None:
        """Decides a thread with its answer, or parks it."""
        thread, outcome = finished
        run = thread.batch.run
        match outcome:
            case Done(UpstreamError() as error):
                if error.ends_run or error.reason is FailureReason.ABSENT:
                    self._run_ends[run] = RunState.ABORTED
                self._decide(thread, Refusal(error.code, error.message))
            case Done(reply):
                call = call_of(self._settings_of(run), reply, thread.calls)
                self._decide(thread, ModelAnswer(reply.words, call))
            case Broken(error):
                logger.error("engine failed", extra={"thread_id": thread.name}, exc_info=error)
                self._decide(thread, Refusal(INTERNAL, f"asking failed: {type(error).__name__}"))
            case Deferred():
                thread.due_ms = outcome.due_ms
                self._parked.append(thread)
                self._tries.append(thread.parked_as(thread.try_key, outcome))
            case EndRun():
                self._run_ends[run] = outcome.state
            case Released():
                pass

    def _commit(self) -> None:
        """Commits what is decided and what is parked; threads with another question are ready after that."""
        decided, self._decided = self._decided, []
        for is_going_on in (True, False):
            some = [each for each in decided if (each[1].question is not None) is is_going_on]
            # Refused threads have moved, and are left to the next claim.
            for (thread, step), is_written in zip(some, self._write(some, hold=is_going_on), strict=False):
                if is_written:
                    self.has_committed = True
                    thread.advance(step)
                    if thread.question is not None:
                        self._ready.append(thread)
        self._commit_tries()
        for run, end in self._run_ends.items():
            self._loop.end_run(run, end)
        self._run_ends.clear()

    def _write(self, some: Sequence[tuple[LiveThread, LiveOutcome]], *, hold: bool) -> Sequence[bool]:
        return self._commit_in_batches(
            [
                DecidedThread(
                    thread.name, thread.pos, thread.refs, step.outcome, thread.started_ms or now_ms()
                )
                for thread, step in some
            ],
            hold=hold,
        )

    def _commit_tries(self) -> None:
        """Stores the attempts of parked threads and when they are due."""
        tries, self._tries = self._tries, []
        if tries and not self._lease.is_lost:
            lease = self._lease
            committed = self._process.ledger.commit(
                lease.run, lease.chunk, lease.token, [], back=False, tries=tries
            )
            self._process.publish(committed.wakes)
            lease.state = committed.state if committed.status == "ok" else LOST

    def _restore_tries(self) -> None:
        """Reads the attempts that earlier claims stored for these questions."""
        by_key = {thread.try_key: thread for thread in self._ready}
        for key, stored in self._process.ledger.tries(self._lease.run, list(by_key)).items():
            history = decode_parked(stored.parked_state).history
            by_key[key].calls = CallsMade(history._replace(attempts=stored.attempts))
            by_key[key].due_ms = stored.not_before_ms


def request_of(settings: LiveRun, prompt: TurnPrompt) -> ModelRequest:
    """Builds the model request of a question."""
    return ModelRequest(
        settings.target,
        prompt.system,
        prompt.user,
        temperature=settings.temperature,
        is_streamed=bool(settings.listener),
    )


def context_of(settings: LiveRun, run: str, owner: str, *, is_anew: bool) -> CallContext:
    """Names the run and the lease on whose account the model is called.

    Args:
        settings: of the run.
        run: its id.
        owner: the chunk's claim token.
        is_anew: whether the model is asked again, whatever answers are stored.
    """
    return CallContext(run, owner, settings, use_cache=settings.use_cache and not is_anew)


def call_of(settings: LiveRun | None, reply: ModelReply, calls: CallsMade) -> TracedCall:
    """Builds the trace entry of an answer: what it took and what it cost."""
    return TracedCall(
        settings.target.model if settings else "",
        max(1, calls.history.attempts),
        reply.is_cached,
        reply.latency_ms,
        reply.cost_usd,
        reply.usage.input_tokens,
        reply.usage.output_tokens,
    )
