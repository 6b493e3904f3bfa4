"""Says in one sentence what holds a run's calls back; pure: `upstreams` reads."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from shared.upstream.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shared.runs.upstreams import Gauge, Standing

LONG_MS: Final = 500
"""A shorter time to the next call is pace, and no waiting."""
_MINUTE_MS: Final = 60_000
_NOTES: Final["Mapping[str, str]"] = {
    "rate": "a limit of calls a minute",
    "full": "a limit of calls at a time",
    "paused": "the upstream asked us to wait",
    "breaker": "the circuit breaker is open",
    "cache": "the same is being asked by another call, whose answer will be taken",
    "budget": "calls under way have reserved what is left of its max cost",
    "upstream_rate_limited": "the upstream refused calls: too many",
    "upstream_timeout": "the upstream did not answer in time",
    "upstream_connection": "no connection to the upstream",
    "upstream_server_error": "the upstream failed",
}
"""What the words mean that workers note for parked items."""


def held_by(standing: "Standing | None", *, has_breaker: bool = True) -> str:
    """Says what holds calls back now; empty when nothing does, or some of the run's calls are under way."""
    if standing is None:
        return ""
    if standing.cost.is_over and standing.cap_usd is not None:
        return f"max cost ${standing.cap_usd:.6g} reached"
    for gauge in standing.gauges:
        if gauge.is_own and (told := _stopped(gauge, has_breaker=has_breaker)):
            return told
    in_flight = standing.run_in_flight
    if in_flight is None:
        in_flight = sum(gauge.state.in_flight for gauge in standing.gauges if gauge.is_own)
    if in_flight:
        return ""
    return next((told for gauge in standing.gauges if (told := _limited(gauge))), "")


def noted(notes: "Sequence[str]") -> str:
    """Says what most of the parked items wait for; empty when that is not known.

    >>> noted(["upstream_timeout 1 350 cache", "cache", " 0 0 rate"])
    'the same is being asked by another call, whose answer will be taken'
    >>> noted(["upstream_timeout 1 350 upstream_timeout"]), noted(["anything"])
    ('the upstream did not answer in time', '')
    """
    words = Counter(note.rpartition(" ")[2] for note in notes)
    return next((_NOTES[word] for word, _ in words.most_common() if word in _NOTES), "")


def limit_words(limits: Limits) -> str:
    """Writes limits as people say them.

    >>> limit_words(Limits(rpm=500, concurrency=8))
    '500 req/min, 8 at a time'
    """
    said = [
        None if limits.rpm is None else f"{limits.rpm:,.10g} req/min",
        None if limits.tpm is None else f"{limits.tpm:,.10g} tokens/min",
        None if limits.concurrency is None else f"{limits.concurrency} at a time",
        None if limits.pace_s is None else f"one in {limits.pace_s:g} s",
    ]
    return ", ".join(word for word in said if word)


def time_words(wait_ms: int) -> str:
    """Writes how long to wait, in whole seconds, never none.

    >>> time_words(300), time_words(12_400), time_words(75_000)
    ('1 s', '13 s', '1:15 min')
    """
    seconds = max(1, -(-wait_ms // 1000))
    return f"{seconds} s" if wait_ms < _MINUTE_MS else f"{seconds // 60}:{seconds % 60:02d} min"


def _stopped(gauge: "Gauge", *, has_breaker: bool) -> str:
    """Says that nothing is sent to an upstream, and until when."""
    state = gauge.state
    if has_breaker and state.open_ms and state.open_ms >= state.paused_ms:
        return f"calls to {state.label} failed: its circuit breaker is open for {time_words(state.open_ms)}"
    if state.paused_ms:
        return f"{state.label} asked for a pause: all workers send nothing for {time_words(state.paused_ms)}"
    return ""


def _limited(gauge: "Gauge") -> str:
    """Says that a limit lets nothing through now."""
    state, most = gauge.state, gauge.most
    if state.next_ms >= LONG_MS:
        said = limit_words(gauge.limits) or "a minute"
        return f"limit of {state.label} ({said}): the next call may go in {time_words(state.next_ms)}"
    if most is not None and state.in_flight >= most:
        return f"limit of {state.label}: all {most} calls at a time are under way for other runs"
    return ""
