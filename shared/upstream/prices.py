"""What calls of models cost: by the prices that a run gives, else by the table that comes with litellm.

The table is read from its file, without importing litellm: 50 ms instead of seconds. A price that is not
known is None, never 0.
"""

import importlib.util
import logging
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

TABLE: Final = "model_prices_and_context_window_backup.json"
MILLION: Final = 1_000_000
ANSWER_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Parameters of requests that bound an answer."""
logger = logging.getLogger(__name__)


class Listed(msgspec.Struct, frozen=True, gc=False):
    """A model in the table: dollars for one token."""

    litellm_provider: Any = None
    input_cost_per_token: Any = None
    output_cost_per_token: Any = None
    mode: Any = None


def cost_of(
    model: str,
    prompt_tokens: int | None,
    completion_tokens: int | None,
    prices: Mapping[str, Any],
) -> float | None:
    """Returns what a call costs in dollars; None when a price or a number of tokens is not known.

    Args:
        model: as the configuration names it.
        prompt_tokens: of the question.
        completion_tokens: of the answer.
        prices: given by the run, by model: `prompt_per_million` and `completion_per_million`.

    >>> cost_of("m", 1000, 500, {"m": {"prompt_per_million": 2.0, "completion_per_million": 4.0}})
    0.004
    >>> cost_of("no/such", 1, 1, {}) is None
    True
    """
    if prompt_tokens is None or completion_tokens is None:
        return None
    given = prices.get(model)
    pair = _listed_price(model) if given is None else _given_price(given)
    return None if pair is None else (prompt_tokens * pair[0] + completion_tokens * pair[1]) / MILLION


def _given_price(given: Mapping[str, Any]) -> tuple[float, float] | None:
    """Dollars for a million tokens in and out."""
    prompt, answer = given.get("prompt_per_million"), given.get("completion_per_million")
    return None if prompt is None or answer is None else (float(prompt), float(answer))


def listed_models() -> list[str]:
    """Names the models in the table that answer in words or embed them, in its order.

    >>> "gpt-4o" in listed_models()
    True
    """
    return [name for name, listed in _table().items() if listed.mode in ("chat", "completion", "embedding")]


def listed_provider(model: str) -> str | None:
    """Returns the provider of a model as the table has it; None where it is not listed.

    >>> listed_provider("gpt-4o"), listed_provider("no/such")
    ('openai', None)
    """
    listed = _table().get(model)
    return None if listed is None or listed.litellm_provider is None else str(listed.litellm_provider)


@lru_cache(1)
def listed_providers() -> frozenset[str]:
    """Names the providers in the table; none where there is no table."""
    return frozenset(str(listed.litellm_provider) for listed in _table().values() if listed.litellm_provider)


@lru_cache(256)
def _listed_price(model: str) -> tuple[float, float] | None:
    """The same, from the table: under the whole name, or under the name within its provider."""
    listed = _table().get(model)
    provider, slash, name = model.partition("/")
    if listed is None and slash:
        found = _table().get(name)
        if found is not None and found.litellm_provider == provider:
            listed = found
    if listed is None or listed.input_cost_per_token is None:
        return None
    answer = 0.0 if listed.mode == "embedding" else listed.output_cost_per_token
    return None if answer is None else (listed.input_cost_per_token * MILLION, answer * MILLION)


@lru_cache(1)
def _table() -> dict[str, Listed]:
    """Reads the table; without one, all prices are unknown."""
    try:
        spec = importlib.util.find_spec("litellm")
        if spec is None or spec.origin is None:
            return {}
        return msgspec.json.decode(Path(spec.origin).with_name(TABLE).read_bytes(), type=dict[str, Listed])
    except (OSError, ValueError) as error:
        logger.warning("prices unreadable", extra={"reason": str(error)})
        return {}
