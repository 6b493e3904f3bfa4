"""The usage of a call in one form for all protocols: tokens by price class, and the tier that answered."""

import json
from typing import Any, Final

import msgspec

MOST_TOKENS: Final = 1_000_000_000
"""A larger count for one call is an error of the provider and is treated as unknown."""

BYTES_A_TOKEN: Final = 3
"""Bytes of UTF-8 per token: English has four and more, code and other languages about three."""


def estimate_text_tokens(content: Any) -> int:
    """Estimates the tokens of a text, or of a value as JSON: for caps, and for the highest cost of a run.

    >>> estimate_text_tokens("Hello you")
    3
    """
    text = content if isinstance(content, str) else json.dumps(content, default=str)
    return -(-len(text.encode(errors="surrogatepass")) // BYTES_A_TOKEN)


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The tokens of a call, as the provider counts them; None is unknown, never zero.

    Stored results use OpenAI's names for the first two.
    """

    input_tokens: int | None = msgspec.field(default=None, name="prompt_tokens")
    """All tokens of the prompt, including those read from or written to the provider's cache."""
    output_tokens: int | None = msgspec.field(default=None, name="completion_tokens")
    """All tokens of the answer, including reasoning."""
    cached_input_tokens: int | None = None
    """Tokens of the prompt read from the provider's cache."""
    cache_write_tokens: int | None = None
    """Tokens of the prompt written to the provider's cache."""
    reasoning_tokens: int | None = None
    """Tokens of the answer that were reasoning."""
    service_tier: str = ""
    """The tier that answered, as the provider names it; empty if it does not."""

    def over(self, other: "Usage") -> "Usage":
        """Returns these figures, with those of `other` where one is unknown.

        >>> Usage(output_tokens=2).over(Usage(3, 1)).total_tokens
        5
        """
        return other if self is NO_USAGE else self if other is NO_USAGE else _over(self, other)

    def believed(self) -> "Usage":
        """Returns the usage, or `NO_USAGE` if no tokens were counted.

        >>> Usage(0, 0).believed() == Usage(), Usage(3, 0).believed().output_tokens
        (True, 0)
        """
        return self if self.input_tokens or self.output_tokens else NO_USAGE

    @property
    def total_tokens(self) -> int | None:
        """Tokens of prompt and answer; None if one of them is unknown.

        >>> Usage(3, 1).total_tokens, Usage(3).total_tokens
        (4, None)
        """
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


_UNKNOWN: Final = (None, "")
NO_USAGE: Final = Usage()
"""Nothing is known."""


def _over(usage: Usage, other: Usage) -> Usage:
    """Merges the known fields of two usages; the first one has precedence."""
    known = {
        name: value for name in Usage.__struct_fields__ if (value := getattr(usage, name)) not in _UNKNOWN
    }
    return msgspec.structs.replace(other, **known)


def count(value: Any) -> int | None:
    """Reads a number of tokens from a reply; None for any other value.

    >>> count(3), count(True), count(-1), count("3"), count(10**12)
    (3, None, None, None, None)
    """
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else None
