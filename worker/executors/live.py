"""Work on threads that a model answers: turn by turn, each committed before the next one is asked.

    the chunk's thread                               the loop
    decide as far as the next question, commit  ──►  ask: cache, budget, limits, call, retry
    decide with the answer, commit              ◄──  answers that came within a few milliseconds

Threads wait for nobody but their own question. A thread stays locked from one of its turns to the next; what
ends it early (a stop, a wait too long to be waited here, a refused commit) leaves the rest to the next claim.
A wait is written down with its attempts, so that no crash forgets them, and resumed here if the chunk still
has other work when it is over. After some seconds a chunk begins no further questions and goes back, so that
other runs have their turn.
"""

import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final

from shared.clock import now_ms
from shared.contracts.live_turns import LiveRun
from shared.errors import RedisUnreachableError
from shared.ledger import Try
from shared.names import RunState
from worker.breakpoint.codec import Refusal
from worker.breakpoint.live import INTERNAL, Heard, LiveOutcome, decide_live
from worker.executors.chunk import Summary
from worker.executors.commit_batch import Group, commit
from worker.executors.items import GRACEFUL_STATES, POLL_S, EngineFailure, Finished, ItemPool, log_end
from worker.executors.live_thread import Talk, call_of, request_of, scope_of
from worker.lease_table import LOST, Lease
from worker.process import WorkerProcess
from worker.structured import structlog
from worker.upstream.budget import OverBudget
from worker.upstream.outcomes import Answered, Gone, Parked
from worker.upstream.retry import History

VISIT_S: Final = 20.0
"""How long a chunk goes on to ask, in seconds; a few answers' worth of its end is the price of being fair."""

logger = logging.getLogger(__name__)


class LiveVisit:
    """The live threads of one claim, in the chunk's thread.

    Args:
        process: whose ledger, loop, in-flight limit and upstreams are used.
        told_of: finds what a run with a model was told.
        lease: of the chunk.
        summary: is added to.
    """

    def __init__(
        self,
        process: WorkerProcess,
        told_of: Callable[[str], LiveRun | None],
        lease: Lease,
        summary: Summary,
    ) -> None:
        self._process, self._told_of = process, told_of
        self._lease, self._summary = lease, summary
        own = told_of(lease.run)
        self._most = min(process.in_flight.size, (own.concurrency if own else None) or process.in_flight.size)
        self._pool = ItemPool[Talk](process.loop, process.in_flight, [], self._ask, max_in_flight=self._most)
        self._asked = 0
        self._until_s = monotonic() + VISIT_S
        self._is_left = False
        self._steps = list[tuple[Talk, LiveOutcome]]()
        self._ready = list[Talk]()
        self._parked = list[Talk]()
        self._tries = list[Try]()
        self._ends = dict[str, str]()
        self._stopped: bool | None = None
        self.has_decided = False
        """Whether any turn was committed."""

    def work(self, talks: Sequence[Talk]) -> int:
        """Work on threads until each is done, waits for long, or is to be left.

        Returns:
            When the first wait is over, epoch milliseconds; 0 when nobody waits.
        """
        for talk in talks:
            self._advance(talk, None)
        self._commit()
        self._recall()
        try:
            self._begin()
            while self._asked and not self._lease.is_lost:
                ended = self._pool.collect(POLL_S)
                for worked in ended.items if ended else ():
                    self._take(worked)
                self._commit()
                self._stop_if_asked()
                self._begin()
        finally:
            if self._asked:
                self._pool.stop(is_forced=True)
        is_cut = self._is_left or self._stopped is not None
        return 0 if is_cut else min((talk.due_ms for talk in self._parked), default=0)

    async def _ask(self, talk: Talk) -> Any:
        """Has the model asked; on the loop."""
        assert talk.question is not None  # noqa: S101 - a talk is begun with a question only
        run = talk.of.run
        structlog.contextvars.bind_contextvars(run=run, thread_id=talk.thread)
        told = self._told_of(run)
        if told is None:
            raise LookupError(f"run {run} has no model")
        return await self._process.upstream.models.ask(
            request_of(told, talk.question.prompt),
            scope_of(told, run, self._lease.token),
            talk.history,
            on_send=talk.calling,
        )

    def _advance(self, talk: Talk, answer: Heard | Refusal | None) -> None:
        """Decides a thread as far as its next question."""
        step = decide_live(
            thread=talk.thread, state=talk.state, batches=talk.batches, known=talk.known, answer=answer
        )
        for failure in step.failures:
            logger.error("engine failed", extra={"thread_id": talk.thread}, exc_info=failure)
        if step.outcome.blocks:
            self._steps.append((talk, step))
        elif step.question is not None:
            talk.expect(step.question)
            self._ready.append(talk)

    def _take(self, worked: Finished[Talk]) -> None:
        """Does what follows from the end of a question."""
        talk, end = worked
        self._asked -= 1
        match end:
            case Answered(reply, history):
                self._advance(talk, Heard(reply.text, call_of(self._told_of(talk.of.run), reply, history)))
            case Gone(error, _):
                if error.ends_run:
                    self._ends[talk.of.run] = RunState.ABORTED
                self._advance(talk, Refusal(error.code, error.message))
            case OverBudget():
                self._ends[talk.of.run] = RunState.INCOMPLETE
            case Parked(due_ms, reason, history):
                talk.due_ms, talk.history = due_ms, history
                self._parked.append(talk)
                self._tries.append(Try(talk.try_name, history.attempts, due_ms, history.parked(reason)))
            case EngineFailure(RedisUnreachableError() as error):
                raise error
            case EngineFailure(error):
                logger.error("engine failed", extra={"thread_id": talk.thread}, exc_info=error)
                self._advance(talk, Refusal(INTERNAL, f"asking failed: {type(error).__name__}"))
            case _:
                pass  # left as it was

    def _commit(self) -> None:
        """Writes what is decided and what is to wait; threads with a question are ready for it after that."""
        steps, self._steps = self._steps, []
        going = [(talk, step) for talk, step in steps if step.question is not None]
        ended = [(talk, step) for talk, step in steps if step.question is None]
        for some, hold in ((going, True), (ended, False)):
            group, members = Group(), list[tuple[Talk, LiveOutcome]]()
            for talk, step in some:
                group.add(talk.thread, talk.pos, talk.refs, step.outcome, talk.started_ms or now_ms())
                members.append((talk, step))
                if group.is_full:
                    self._write(group, members, hold=hold)
                    group, members = Group(), []
            self._write(group, members, hold=hold)
        self._note()
        for run, end in self._ends.items():
            state, wakes = self._process.ledger.control(run, end)
            log_end(run, end)
            self._process.publish(wakes)
            if run == self._lease.run and not self._lease.is_lost:
                self._lease.state = state
        self._ends.clear()

    def _write(self, group: Group, members: Sequence[tuple[Talk, LiveOutcome]], *, hold: bool) -> None:
        """Commits some threads; one that is refused has moved, and is left to the next claim."""
        if not members:
            return
        accepted = commit(self._process, self._lease, group, self._summary, hold=hold)
        for (talk, step), is_written in zip(members, accepted, strict=False):
            if is_written:
                self.has_decided = True
                talk.move(step)
                if talk.question is not None:
                    self._ready.append(talk)

    def _note(self) -> None:
        """Writes down who waits, how long, and what they have been through."""
        tries, self._tries = self._tries, []
        if tries and not self._lease.is_lost:
            lease = self._lease
            noted = self._process.ledger.commit(
                lease.run, lease.chunk, lease.token, [], back=False, tries=tries
            )
            self._process.publish(noted.wakes)
            lease.state = noted.state if noted.status == "ok" else LOST

    def _recall(self) -> None:
        """Reads what earlier claims have noted of the questions at hand."""
        talks = {talk.try_name: talk for talk in self._ready}
        for name, noted in self._process.ledger.tries(self._lease.run, list(talks)).items():
            talks[name].history = History.unpack(noted.attempts, noted.error)
            talks[name].due_ms = noted.not_before_ms

    def _begin(self) -> None:
        """Asks what is ready, and what has waited long enough while there was other work."""
        now = now_ms()
        waiting = [*self._parked, *self._ready]
        due = [talk for talk in waiting if talk.due_ms <= now]
        self._parked = [talk for talk in waiting if talk.due_ms > now]
        if self._stopped is not None or self._lease.is_lost or monotonic() > self._until_s:
            self._is_left = self._is_left or bool(due)
            self._ready = []
            return
        free = self._most - self._asked
        self._ready = due[free:]
        for talk in due[:free]:
            self._asked += 1
            self._pool.add(talk)

    def _stop_if_asked(self) -> None:
        """Stops the questions when the run or the process is to stop, once gently and once hard at most."""
        if not self._process.leases.should_stop(self._lease):
            return
        is_forced = self._lease.state not in GRACEFUL_STATES
        if self._stopped is None or is_forced > self._stopped:
            self._stopped = is_forced
            self._pool.stop(is_forced=is_forced)
