"""Makes run ids: sortable by time, short enough to read out, without letters that look alike."""

from secrets import randbits
from typing import Final

ID_PREFIX: Final = "run-"
"""What every id begins with."""
ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32."""
TIME_CHARS: Final = 9
"""Milliseconds until the year 3084."""
CHANCE_CHARS: Final = 6
"""A thousand million values for runs of the same millisecond."""


def new_run_id(now_ms: int, chance: int | None = None) -> str:
    """Makes the id of a run.

    Args:
        now_ms: the time, epoch milliseconds.
        chance: random number; by default a fresh one.

    >>> new_run_id(1_760_000_000_000, 7)
    'run-1k742sg00000007'
    """
    drawn = randbits(5 * CHANCE_CHARS) if chance is None else chance
    return f"{ID_PREFIX}{_base32(now_ms, TIME_CHARS)}{_base32(drawn, CHANCE_CHARS)}"


def _base32(number: int, chars: int) -> str:
    """Writes the lowest digits of a number."""
    return "".join(ALPHABET[number >> 5 * place & 31] for place in reversed(range(chars)))
