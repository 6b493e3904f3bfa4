"""How the sample API misbehaves, written as `NAME` or `NAME:key=value,key=value`.

    normal                    answers
    429, 503, any status      refuses; retry_after=2 sends that header, retry_date=2 as an HTTP date
    slow:seconds=2            answers after a while
    wrong                     answers something else, with full confidence
    html, null, empty, list   status 200 with a body that is no answer
    nulls, odd                an answer whose fields are null, or of other types than they should be
    huge:mib=50               an answer that does not end for a long time
    half                      the connection closes in the middle of the body
    reset                     the connection is reset before any answer
    silent                    never answers

`times=N` limits it to the first N requests of each query, `every=N` to each N-th request; the others
are answered.

>>> parse_behaviour("429:retry_after=2,times=1")
Behaviour(name='429', times=1, every=1, seconds=1.0, mib=50, retry_after=2, retry_date=None)
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Final

from shared.errors import ConfigError

BEHAVIOUR_VARIABLE: Final = "PROCTOR_SAMPLE_API_BEHAVIOUR"
NORMAL: Final = "normal"
NAMES: Final = (
    NORMAL,
    "slow",
    "wrong",
    "html",
    "null",
    "empty",
    "list",
    "nulls",
    "odd",
    "huge",
    "half",
    "reset",
    "silent",
)
_LIMITS: Final = {
    "times": 1e9,
    "every": 1e9,
    "seconds": 3600,
    "mib": 1024,
    "retry_after": 1e9,
    "retry_date": 1e9,
}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a request meets."""

    name: str = NORMAL
    """One of `NAMES`, or a status from 400 to 599."""
    times: int | None = None
    """Only the first requests of each query; None for all of them."""
    every: int = 1
    """Only each n-th request."""
    seconds: float = 1.0
    """How long `slow` takes."""
    mib: int = 50
    """How much `huge` sends."""
    retry_after: int | None = None
    """Seconds for the header of a refusal; None sends none."""
    retry_date: int | None = None
    """The same as a date, this many seconds from now."""

    @property
    def status(self) -> int | None:
        """The status of a refusal; None for everything else."""
        return int(self.name) if self.name.isdigit() else None

    def meets(self, *, nth: int, nth_of_query: int) -> bool:
        """Returns whether a request meets it, counted from 1 over all requests and over those of its query.

        >>> [Behaviour("429", times=1).meets(nth=9, nth_of_query=n) for n in (1, 2)]
        [True, False]
        """
        return nth % self.every == 0 and (self.times is None or nth_of_query <= self.times)


class RequestLog:
    """Counts requests, so that behaviours can depend on them and tests can ask."""

    def __init__(self) -> None:
        self.total = 0
        """Requests with a readable query."""
        self.by_query = Counter[str]()
        """The same by query."""

    def add(self, query: str) -> tuple[int, int]:
        """Counts a request; returns its number over all and over those of its query."""
        self.total += 1
        self.by_query[query] += 1
        return self.total, self.by_query[query]


def chosen_behaviour(flag: str | None, environment: Mapping[str, str]) -> Behaviour:
    """Decides the server's behaviour: the flag, else the environment, else it answers.

    Raises:
        ConfigError: see `parse_behaviour`.

    >>> chosen_behaviour(None, {"PROCTOR_SAMPLE_API_BEHAVIOUR": "wrong"}).name
    'wrong'
    """
    return parse_behaviour(flag or environment.get(BEHAVIOUR_VARIABLE, "") or NORMAL)


def parse_behaviour(text: str) -> Behaviour:
    """Reads a behaviour.

    Raises:
        ConfigError: the name or a key is not known, or a value is no number in range.

    >>> parse_behaviour("slow:seconds=0.2").seconds
    0.2
    """
    name, _, rest = text.strip().partition(":")
    is_status = re.fullmatch("[45][0-9][0-9]", name) is not None
    if name not in NAMES and not is_status:
        close = get_close_matches(name, NAMES, n=1)
        hint = (
            f"did you mean {close[0]!r}?" if close else f"one of {', '.join(NAMES)}, or a status such as 429"
        )
        raise ConfigError(f"behaviour: unknown name {name[:40]!r}", hint=hint)
    options = dict(_option(part) for part in rest.split(",") if part.strip())
    return Behaviour(name, **options)


def _option(part: str) -> tuple[str, Any]:
    """Reads one `key=value`."""
    key, _, value = (piece.strip() for piece in part.partition("="))
    known = [field.name for field in fields(Behaviour) if field.name != "name"]
    if key not in known:
        raise ConfigError(f"behaviour: unknown key {key[:40]!r}", hint=f"one of {', '.join(known)}")
    try:
        number = float(value) if key == "seconds" else int(value)
    except ValueError:
        number = -1
    smallest = 1 if key in {"every", "mib"} else 0
    if not smallest <= number <= _LIMITS[key]:
        raise ConfigError(
            f"behaviour: {key}={value[:40]!r} is no number from {smallest} to {_LIMITS[key]:g}",
            hint=f"write {key}=2",
        )
    return key, number
