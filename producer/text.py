"""Writes numbers and notes for people: thousands, sizes, durations, rates, sentences."""

from collections.abc import Mapping
from typing import Final, Protocol

_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_DAY_S: Final = 86_400
_LEAST_USD: Final = 0.0001
_LEAST_EACH_USD: Final = 0.000001
_CENT_USD: Final = 0.01
_FEW: Final = 10
_THOUSAND: Final = 1000
_UNITS: Final = ("kB", "MB", "GB", "TB")
SHOWN_CHARS: Final = 60
"""Longest value quoted in an error; the rest is cut, since the message must stay one line."""


def count(number: int | None) -> str:
    """Writes a count with thousands apart; a question mark for one that could not be had.

    >>> count(1234567), count(None)
    ('1,234,567', '?')
    """
    return "?" if number is None else f"{number:,}"


def plural(number: int, noun: str) -> str:
    """Writes a count with its noun.

    >>> plural(1, "worker"), plural(0, "day"), plural(2, "query"), plural(2, "process")
    ('1 worker', '0 days', '2 queries', '2 processes')
    """
    return f"{count(number)} {noun if number == 1 else many(noun)}"


def many(noun: str) -> str:
    """Returns the plural of a noun.

    >>> many("worker"), many("query"), many("process")
    ('workers', 'queries', 'processes')
    """
    is_query = noun.endswith("y") and not noun.endswith("ay")
    return f"{noun[:-1]}ies" if is_query else f"{noun}{'es' if noun.endswith('s') else 's'}"


def duration(seconds: float) -> str:
    """Writes how long something took or will take.

    >>> duration(0.42), duration(8.26), duration(75), duration(3_725)
    ('0.4 s', '8.3 s', '1:15 min', '1:02 h')
    """
    if seconds < _MINUTE_S - 0.05:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S}:{whole % _MINUTE_S:02d} min"
    return f"{whole // _HOUR_S}:{whole % _HOUR_S // _MINUTE_S:02d} h"


def age(seconds: float) -> str:
    """Writes how long ago something was, in one unit.

    >>> age(-1), age(59), age(125), age(7_200), age(200_000)
    ('0 s', '59 s', '2 min', '2 h', '2 d')
    """
    whole = max(0, int(seconds))
    for unit_s, unit in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if whole >= unit_s:
            return f"{whole // unit_s} {unit}"
    return f"{whole} s"


def cost(usd: float) -> str:
    """Writes an amount of money: cents, four decimals below a cent, and no less than can be shown.

    >>> cost(1234.5), cost(0.0123), cost(0.0009), cost(0.00001), cost(0)
    ('$1,234.50', '$0.01', '$0.0009', '<$0.0001', '$0.00')
    """
    if 0 < usd < _LEAST_USD:
        return f"<${_LEAST_USD:.4f}"
    return f"${usd:.4f}" if 0 < usd < _CENT_USD else f"${usd:,.2f}"


def cost_each(usd: float) -> str:
    """Writes the price of one answer, which is a small part of a cent.

    >>> cost_each(0.00002), cost_each(1e-7), cost_each(0)
    ('$0.000020', '<$0.000001', '$0')
    """
    return "$0" if not usd else f"<${_LEAST_EACH_USD:.6f}" if usd < _LEAST_EACH_USD else f"${usd:.6f}"


def latency(ms: float) -> str:
    """Writes how long one answer took.

    >>> latency(450), latency(12_345.6)
    ('450 ms', '12,346 ms')
    """
    return f"{round(ms):,} ms"


def size(amount: int) -> str:
    """Writes a number of bytes.

    >>> size(17), size(2_345), size(8_000_000)
    ('17 B', '2.3 kB', '8.0 MB')
    """
    if amount < _THOUSAND:
        return f"{amount} B"
    power = min((len(str(amount)) - 1) // 3, len(_UNITS))
    return f"{amount / _THOUSAND**power:.1f} {_UNITS[power - 1]}"


def rate(per_second: float) -> str:
    """Writes a rate.

    >>> rate(0.25), rate(12_345.6)
    ('0.2/s', '12,346/s')
    """
    return f"{per_second:.1f}/s" if per_second < _FEW else f"{round(per_second):,}/s"


def percent(share: float, decimals: int = 1) -> str:
    """Writes a share of 0 to 1 in percent.

    >>> percent(0.8604), percent(1), percent(0.8604, 0)
    ('86.0%', '100.0%', '86%')
    """
    return f"{100 * share:.{decimals}f}%"


class _Interval(Protocol):
    """What has bounds, such as a rate."""

    @property
    def low(self) -> float:
        """Lower bound."""

    @property
    def high(self) -> float:
        """Upper bound."""


def bounds(rate: _Interval, decimals: int = 1) -> tuple[str, str]:
    """Writes the bounds of a rate in percent; one that would round to an end has one decimal more.

    >>> from producer.documents import Rate
    >>> bounds(Rate(0.7, 0.3006, 0.9544, 9)), bounds(Rate(1.0, 0.9981, 1.0, 9), 0)
    (('30.1', '95.4'), ('99.8', '100'))
    """
    return _bound(rate.low, decimals), _bound(rate.high, decimals)


def _bound(share: float, decimals: int) -> str:
    """Writes one bound."""
    text = f"{100 * share:.{decimals}f}"
    is_rounded = float(text) in {0, 100} and 0 < share < 1
    return f"{100 * share:.{decimals + 1}f}" if is_rounded else text


def share(part: int, whole: int) -> str:
    """Writes a part in whole percent, never 100% before it is whole.

    >>> share(999, 1000), share(1, 3), share(0, 0)
    ('99%', '33%', '0%')
    """
    return f"{100 * part // whole if whole else 0}%"


def ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sorts counts, largest first, equal ones by name.

    >>> ranked({"a": 1, "b": 2, "c": 1})
    [('b', 2), ('a', 1), ('c', 1)]
    """
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def sentence_of(text: str) -> str:
    """Makes a sentence of a note.

    >>> sentence_of("partial: from Q-07")
    'Partial: from Q-07.'
    """
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def shown(value: object) -> str:
    r"""Quotes a hostile value on one line: escaped, cut, and harmless to a terminal.

    >>> shown("a\x1b[31m")
    "'a\\x1b[31m'"
    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'"
    """
    if isinstance(value, str):
        return repr(value) if len(value) <= SHOWN_CHARS else repr(value[:SHOWN_CHARS] + "…")
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
