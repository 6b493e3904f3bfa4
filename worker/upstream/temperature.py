"""Which models take a sampling temperature: by a table, and by what a refusal says."""

import re
from typing import Final

from shared.upstream.failure_reasons import FailureReason
from worker.upstream.failures import UpstreamError

_WITHOUT: Final = re.compile(r"(o1|o3|o4|gpt-5)(?!\d)(?!-chat)", re.ASCII)
"""Beginnings of the names of models that reason and take none (OpenAI's)."""
_REFUSED: Final = re.compile(
    r"unsupported|not support|doesn.t support|only the default|deprecated|not permitted|unrecognized",
    re.IGNORECASE | re.ASCII,
)


def takes_temperature(model: str) -> bool:
    """Tells whether a model may be sent a temperature, as far as its name says.

    >>> [takes_temperature(model) for model in ("openai/o3-mini", "gpt-5", "gpt-5-chat-latest", "gpt-4o")]
    [False, False, True, True]
    """
    return _WITHOUT.match(model.rpartition("/")[2]) is None


def refuses_temperature(error: UpstreamError) -> bool:
    """Tells whether a request was refused because it had a temperature at all.

    >>> refuses_temperature(UpstreamError(FailureReason.REFUSED, "Unsupported parameter: 'temperature'"))
    True
    >>> refuses_temperature(UpstreamError(FailureReason.REFUSED, "temperature has to be 2 at most"))
    False
    """
    return (
        error.reason is FailureReason.REFUSED
        and "temperature" in error.message.lower()
        and _REFUSED.search(error.message) is not None
    )
