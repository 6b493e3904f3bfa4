"""The settings of a turns run with a model, stored in its snapshot: the model, when and how it is called.

The producer writes it at submit and workers read it, independently of their environment. It contains no key,
only the name of the worker's variable for it.
"""

from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

from shared.contracts.turn_vocabulary import Live
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import GivenPrice

SNAPSHOT_KEY: Final = "asking"
"""Its key in a run's snapshot, beside `model` and `live`."""


class LiveRun(msgspec.Struct, frozen=True, gc=False):
    """The settings of a turns run that a model answers."""

    target: ModelTarget
    """The model."""
    live: Live = Live.SHOULD
    """For which decisions the model is called."""
    temperature: float | None = None
    """Sampling temperature; None leaves it to the provider."""
    max_cost: float | None = None
    """US dollars that the run may cost; None for no limit."""
    use_cache: bool = True
    """Whether identical requests share an answer."""
    concurrency: int | None = None
    """Maximum concurrent calls, across all workers; None for no limit."""
    prices: Mapping[str, GivenPrice] = {}
    """Prices by model, where the usual ones are not known."""
    listener: str = ""
    """Name of a process that is sent the answers while they are written; see `shared.codecs.live_pieces`."""

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> Self | None:
        """Reads it back; None for a run without a model; keys of a later version are ignored.

        >>> LiveRun.from_snapshot({"asking": {"model": "m", "live": "must", "from_the_future": 1}}).live
        <Live.MUST: 'must'>
        >>> LiveRun.from_snapshot({"live": None}) is None
        True
        """
        found = snapshot.get(SNAPSHOT_KEY)
        if not found:
            return None
        # Below `TARGETS_LAYOUT` the keys of the target were among those of the run.
        return msgspec.convert(found if "target" in found else {**found, "target": found}, cls)
