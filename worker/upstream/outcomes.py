"""What is said when a model is asked: on whose behalf, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shared.codecs.parked_items import History, WaitReason
from worker.upstream.budget import OverBudget
from worker.upstream.failures import UpstreamError
from worker.upstream.model import ModelReply
from worker.upstream.retry import ModelRetryPolicy


@dataclass(frozen=True, slots=True)
class AskScope:
    """On whose behalf a model is asked, and what holds for it."""

    run: str
    """Whose limits and budget."""
    owner: str
    """The chunk's claim token, for people who look into Redis."""
    use_cache: bool = True
    """Whether answers may come from the cache, and go into it."""
    max_cost: float | None = None
    """What the run may cost, in dollars; None: anything."""
    prices: Mapping[str, Any] = field(default_factory=dict)
    """Prices that the run's settings give, by model; they go before known ones."""
    rules: ModelRetryPolicy = field(default_factory=ModelRetryPolicy)
    """How often and how long."""
    concurrency: int | None = None
    """Calls of the run under way at a time, over the whole fleet; None: any number."""


class Answered(NamedTuple):
    """There is an answer."""

    reply: ModelReply
    """The answer, with its cost as far as known."""
    history: History
    """With this attempt; without one where the cache had it."""


class Parked(NamedTuple):
    """The item is to be asked for again later."""

    due_ms: int
    """When, in epoch milliseconds of our clock."""
    reason: WaitReason
    """What it waits for."""
    history: History
    """To be kept until then."""


class Gone(NamedTuple):
    """There is no answer, and there will be none."""

    error: UpstreamError
    """Why."""
    history: History
    """What the item has been through."""


Asked = Answered | Parked | Gone | OverBudget
