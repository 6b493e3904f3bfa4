"""How long the sample API takes to answer: about what was asked for, and the same for equal questions."""

from typing import Final, NamedTuple
from zlib import crc32

from producer.sample_api.bench_answers import is_hasty

HASTY_SHARE: Final = 1 / 3
"""Of the time that other models take."""
LEAST, MOST = 0.7, 1.5
"""Shares of the usual time that the fastest and the slowest answers take."""


class Pace(NamedTuple):
    """How long answers take, in seconds; the default suits tests."""

    query_s: float = 0.0
    """Of the API for queries."""
    model_s: float = 0.12
    """Of models; hasty ones take a third of it."""

    @classmethod
    def of(cls, latency_ms: float) -> "Pace":
        """Returns a pace with one latency for everything."""
        return cls(latency_ms / 1000, latency_ms / 1000)

    def of_query(self, query: str) -> float:
        """Returns how long the answer to a query takes, in seconds."""
        return self.query_s * _share(query)

    def of_model(self, model: str, prompt: str) -> float:
        """Returns how long a model takes, in seconds.

        >>> pace = Pace()
        >>> round(pace.of_model("large", "Hi") / pace.of_model("large-mini", "Hi"))
        3
        """
        return self.model_s * (HASTY_SHARE if is_hasty(model) else 1.0) * _share(prompt)


def _share(text: str) -> float:
    """Returns a share of the usual time, from `LEAST` to `MOST`, which depends on the text alone."""
    return LEAST + (MOST - LEAST) * (crc32(text.encode(errors="surrogatepass")) % 1000) / 1000
