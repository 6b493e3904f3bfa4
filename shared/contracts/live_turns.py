"""The settings of a turns run with a model, stored in its snapshot: the model, when and how it is called.

The producer writes it at submit and workers read it, independently of their environment. It contains no key,
only the name of the worker's variable for it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from shared.contracts.turn_vocabulary import Live

SNAPSHOT_KEY: Final = "asking"
"""Its key in a run's snapshot, beside `model` and `live`."""


@dataclass(frozen=True, slots=True)
class LiveRun:
    """The settings of a turns run that a model answers."""

    model: str
    """As litellm names it, such as `openai/gpt-4o`, or any name with an `api_base`."""
    live: Live = Live.SHOULD
    """For which decisions the model is called."""
    api_base: str = ""
    """URL of an OpenAI-compatible endpoint; empty: the provider's own."""
    api_key_env: str = ""
    """The variable of the worker's environment that holds the key; empty: the provider's usual one."""
    temperature: float | None = None
    """None leaves it to the provider."""
    max_cost: float | None = None
    """US dollars that the run may cost; None for no limit."""
    use_cache: bool = True
    """Whether identical requests share an answer."""
    concurrency: int | None = None
    """Maximum concurrent calls, across all workers; None for no limit."""
    timeout_s: float = 120.0
    """Hard limit of one call."""
    prices: Mapping[str, Any] = field(default_factory=dict)
    """Prices by model, where the usual ones are not known."""

    def as_snapshot(self) -> dict[str, Any]:
        """Returns what a snapshot keeps."""
        return asdict(self)

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> "LiveRun | None":
        """Reads it back; None for a run without a model; keys of a later version are ignored.

        >>> LiveRun.from_snapshot({"asking": {"model": "m", "live": "must", "from_the_future": 1}}).live
        <Live.MUST: 'must'>
        >>> LiveRun.from_snapshot({"live": None}) is None
        True
        """
        found = snapshot.get(SNAPSHOT_KEY)
        if not found:
            return None
        known = {each.name for each in fields(cls)}
        kept = {name: value for name, value in found.items() if name in known}
        return cls(**{**kept, "live": Live(kept.get("live", Live.SHOULD))})
