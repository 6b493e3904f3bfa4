"""ModelCaller that answer as a test tells them, asked through one process's whole discipline.

    python -m tests.support.asking URL '{"questions": 40, "max_cost": 0.5, "hold_s": 0.05, "tokens": 100}'

asks that many questions at once; prints `calling` when the first call is under way and, as one JSON line, how
often each thing came of it.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shared.clock import now_ms
from shared.codecs.parked_items import History
from shared.contracts.live_turns import LiveRun
from shared.server.client import RedisTarget
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import GivenPrice
from shared.upstream.usage import Usage
from tests.support.upstream import discipline
from worker.outcomes import Deferred, EndRun
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest, pack
from worker.upstream.failures import UpstreamError
from worker.upstream.model_caller import CallContext, ModelCaller
from worker.upstream.stack import UpstreamStack

MODEL = "acme/small"
TARGET = ModelTarget(MODEL)
NO_CALLS = History()
PRICES: Mapping[str, GivenPrice] = {MODEL: GivenPrice(1.0, 10.0)}


@dataclass
class ScriptedModel:
    """A model client; remembers what it was asked."""

    script: Callable[[ModelRequest, int], "ModelReply | UpstreamError"]
    """Says how the n-th question, counted from 1, is met."""
    hold_s: float = 0.0
    asked: list[ModelRequest] = field(default_factory=list)
    embedded: list[EmbeddingRequest] = field(default_factory=list)
    on_first: Callable[[], object] = bool
    """Called when the first question is under way."""
    prepare_s: float = 0.0
    """How long it takes until it is ready for a question."""
    on_prepare: Callable[[], object] = bool
    """Called when it is asked to be ready."""
    under_way: int = 0
    most: int = 0

    async def prepare(self, target: ModelTarget) -> None:  # noqa: ARG002 - as the protocol has it
        """Makes itself ready."""
        self.on_prepare()
        await asyncio.sleep(self.prepare_s)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Embeds texts by their lengths, as slowly as it answers."""
        self.embedded.append(request)
        await asyncio.sleep(self.hold_s)
        vectors = [pack([len(text), 1.0]) for text in request.texts]
        return EmbeddingReply(vectors, 7, Usage(10, 0))

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answers, or fails."""
        self.asked.append(request)
        nth = len(self.asked)
        if nth == 1:
            self.on_first()
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(self.hold_s)
        finally:
            self.under_way -= 1
        outcome = self.script(request, nth)
        if isinstance(outcome, UpstreamError):
            raise outcome
        return outcome


def answering(*, tokens: int = 100, usd: float | None = None) -> Callable[[ModelRequest, int], ModelReply]:
    """A script that answers everything, with figures."""

    def script(request: ModelRequest, nth: int) -> ModelReply:
        return ModelReply(f"{request.user} {nth}", 7, usage=Usage(10, tokens), cost_usd=usd)

    return script


def models_of(upstream: UpstreamStack, client: ScriptedModel) -> ModelCaller:
    """The process's models, with a client of the test's."""
    return ModelCaller(
        upstream.gate,
        client,
        upstream.cache,
        upstream.budget,
        upstream.contacts,
        key_of=lambda _request: "key",
    )


def question(text: str = "Hello", *, target: ModelTarget = TARGET, **more: Any) -> ModelRequest:
    """One request."""
    return ModelRequest(target, "", text, **more)


def scope(run: str = "r1", **more: Any) -> CallContext:
    """On behalf of one run."""
    bounds = {name: more.pop(name) for name in ("max_cost", "prices", "concurrency") if name in more}
    return CallContext(run, "token", LiveRun(TARGET, **{"prices": PRICES, **bounds}), **more)


class Asked(NamedTuple):
    """How asking ended, with what the calls went through."""

    end: Any
    """The reply, or what was raised: `UpstreamError`, `Deferred`, `EndRun`."""
    history: History

    @property
    def kind(self) -> str:
        """Names what came of it."""
        is_cached = isinstance(self.end, ModelReply | EmbeddingReply) and self.end.is_cached
        return "cached" if is_cached else type(self.end).__name__


async def ended(asking: Awaitable[Any], calls: CallsMade) -> Asked:
    """Waits for an answer, or for what is raised in its place."""
    try:
        return Asked(await asking, calls.history)
    except (UpstreamError, Deferred, EndRun) as end:
        return Asked(end, calls.history)


async def ask(
    models: ModelCaller, request: ModelRequest, on_behalf: CallContext, history: History = NO_CALLS
) -> Asked:
    """Asks once."""
    calls = CallsMade(history)
    return await ended(models.call(request, on_behalf, calls, on_send=nullcontext), calls)


async def ask_at_last(models: ModelCaller, request: ModelRequest, on_behalf: CallContext) -> Asked:
    """Asks, and comes back when it is due, as parked items do."""
    history = History()
    while True:
        asked = await ask(models, request, on_behalf, history=history)
        if not isinstance(asked.end, Deferred):
            return asked
        history = asked.history
        await asyncio.sleep(max(0, asked.end.due_ms - now_ms()) / 1000)


async def _work(url: str, options: dict[str, Any]) -> None:
    script = answering(tokens=options["tokens"])
    client = ScriptedModel(script, hold_s=options["hold_s"], on_first=lambda: print("calling", flush=True))  # noqa: T201 - whoever started us waits for it
    on_behalf = scope(max_cost=options.get("max_cost"))
    async with discipline(RedisTarget.parse(url).client()) as upstream:
        models = models_of(upstream, client)
        ends = await asyncio.gather(
            *(
                ask_at_last(models, question(f"{options.get('tag', '')}{number}"), on_behalf)
                for number in range(options["questions"])
            )
        )
    kinds = Counter(asked.kind for asked in ends)
    print(json.dumps({**kinds, "calls": len(client.asked)}), flush=True)  # noqa: T201 - what the test reads


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], json.loads(sys.argv[2])))
