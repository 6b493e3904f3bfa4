"""What live threads are made of: a thread in hand, and how its run asks."""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace

from shared.contracts.live_turns import LiveRun
from shared.ledger import ClaimedBatch, ClaimedThread
from worker.breakpoint.codec import Batch
from worker.breakpoint.live import LiveOutcome, Question
from worker.breakpoint.prompt import Prompt
from worker.breakpoint.trace import Call
from worker.executors.items import PoolItem
from worker.lease_table import Lease
from worker.upstream.model import ModelReply, ModelRequest
from worker.upstream.outcomes import AskScope
from worker.upstream.retry import History, ModelRetryPolicy


def request_of(told: LiveRun, prompt: Prompt) -> ModelRequest:
    """Makes the request of a question."""
    return ModelRequest(
        told.model,
        prompt.system,
        prompt.user,
        temperature=told.temperature,
        api_base=told.api_base,
        api_key_env=told.api_key_env,
        timeout_s=told.timeout_s,
    )


def scope_of(told: LiveRun, run: str, owner: str) -> AskScope:
    """Says on whose behalf it is asked.

    Args:
        told: what the run was told.
        run: its id.
        owner: the chunk's claim token.
    """
    return AskScope(
        run=run,
        owner=owner,
        use_cache=told.use_cache,
        max_cost=told.max_cost,
        prices=told.prices,
        rules=ModelRetryPolicy(),
        concurrency=told.concurrency,
    )


class Talk(PoolItem):
    """One thread in hand.

    Args:
        claimed: as the ledger handed it out.
        refs: the batches to work on, of those that were claimed.
        batches: the same, for the engine.
        known: requests that were answered before; its own, since other threads are not committed with it.
    """

    __slots__ = ("batches", "due_ms", "history", "known", "pos", "question", "refs", "state", "thread")

    def __init__(
        self,
        claimed: ClaimedThread,
        refs: Sequence[ClaimedBatch],
        batches: Sequence[Batch],
        known: MutableMapping[str, bytes],
    ) -> None:
        super().__init__()
        self.thread, self.pos, self.state = claimed.thread, claimed.pos, claimed.memento
        self.refs, self.batches, self.known = refs, batches, known
        self.question: Question | None = None
        self.history = History()
        self.due_ms = 0

    @property
    def of(self) -> ClaimedBatch:
        """The batch that the question is about."""
        assert self.question is not None  # noqa: S101 - asked of talks with a question only
        return self.refs[self.question.batch]

    @property
    def try_name(self) -> str:
        """Names the turn that is asked; a retried one has another batch, and so begins anew."""
        assert self.question is not None  # noqa: S101 - as above
        return f"{self.of.run} {self.of.batch} {self.question.offset}"

    def move(self, step: LiveOutcome) -> None:
        """Takes over what was committed."""
        self.state = step.outcome.state
        batches, moved = list(self.batches), 0
        for at, block in enumerate(step.outcome.blocks):
            done = len(block.lines)
            self.pos += done
            batches[at] = replace(batches[at], offset=block.offset + done)
            moved += batches[at].offset == self.refs[at].count
        self.batches, self.refs = batches[moved:], self.refs[moved:]
        self.expect(step.question, moved)

    def expect(self, question: Question | None, moved: int = 0) -> None:
        """Takes the next question, whose batch is now so many places further in front."""
        self.question = None if question is None else question._replace(batch=question.batch - moved)
        self.history, self.due_ms = History(), 0


def talk_of(
    lease: Lease,
    claimed: ClaimedThread,
    batches: Sequence[Batch],
    known: Mapping[str, bytes],
    *,
    is_suspect: bool,
) -> Talk:
    """Takes a thread in hand: of its inbox as much as stands before the end of the chunk's own turns.

    Only there may the thread stay locked between turns; what comes behind is left to its own chunk.
    """
    own = [at for at, ref in enumerate(claimed.batches, 1) if _is_of(lease, ref)]
    end = own[-1] if own and not is_suspect else len(claimed.batches)
    return Talk(claimed, claimed.batches[:end], batches[:end], dict(known))


def _is_of(lease: Lease, ref: ClaimedBatch) -> bool:
    """Tells whether a batch belongs to the chunk: it is named after it."""
    return ref.run == lease.run and ref.batch.rpartition(".")[0] == lease.chunk


def call_of(told: LiveRun | None, reply: ModelReply, history: History) -> Call:
    """Keeps what an answer cost."""
    return Call(
        told.model if told else "",
        max(1, history.attempts),
        reply.is_cached,
        reply.latency_ms,
        reply.cost_usd,
        reply.prompt_tokens,
        reply.completion_tokens,
    )
