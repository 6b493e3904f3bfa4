"""The emotional arc of a thread: points on user messages, and the rollup derived from them.

Times are arguments and never read from a clock: a replay of the same turns gives the same phases.

    points           phase
    none             settled
    one              peak from 0.7, else settled
    two or more      delta = last - previous, rounded to 9 decimals so that every machine agrees:
                     peak from 0.8 while |delta| <= 0.05, rising from +0.1, downshift from -0.1, else settled
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Final, NamedTuple

from shared.clock import parse_iso_ms
from shared.contracts.turn_vocabulary import AffectPhase, Confidence, IntensityBucket, PointSource
from worker.breakpoint.turn_wire import WireAffect, WireAffectSignal, WirePoint, WireRollup

WINDOW_MS: Final = 30 * 60 * 1000
MAX_POINTS: Final = 5
HIGH_FROM: Final = 0.7
MED_FROM: Final = 0.34
PEAK_FROM: Final = 0.8
PEAK_DRIFT_E9: Final = 50_000_000
"""Largest step that keeps a peak, 0.05, in billionths."""
SLOPE_E9: Final = 100_000_000
"""Smallest step that is a slope, 0.1, in billionths."""
NEUTRAL: Final = "neutral"
LABELS: Final = frozenset({"overwhelm", "insight", "gratitude", "resolve", "curiosity", NEUTRAL})

# Accessing an Enum member costs a lookup; these are read for every affect signal.
_PEAK, _RISING = AffectPhase.PEAK, AffectPhase.RISING
_DOWNSHIFT, _SETTLED = AffectPhase.DOWNSHIFT, AffectPhase.SETTLED
_LOW, _MED, _HIGH = IntensityBucket.LOW, IntensityBucket.MED, IntensityBucket.HIGH
_MODEL: Final = PointSource.MODEL.value
_CONFIDENCE_WORDS: Final = frozenset(word.value for word in Confidence)
_epoch_ms: Final = lru_cache(maxsize=64)(parse_iso_ms)
"""Turns without `ts` all have the time of their run's submit."""


class Rolled(NamedTuple):
    """The rollup of a series of intensities."""

    phase: AffectPhase
    """Direction in which the emotion is heading."""
    intensity_bucket: IntensityBucket
    """How strong the latest one is."""


def rollup(intensities: Sequence[float]) -> Rolled:
    """Computes phase and bucket of a series of intensities.

    Args:
        intensities: 0 to 1, oldest first.

    >>> [str(word) for word in rollup([0.8, 0.9])]
    ['rising', 'high']
    """
    if not intensities:
        return Rolled(_SETTLED, _LOW)
    last = intensities[-1]
    return Rolled(_phase(last, intensities[-2] if len(intensities) > 1 else None), _bucket(last))


def point_of(signal: WireAffectSignal, message_id: str) -> WirePoint:
    """Anchors an affect signal to the message it was measured on.

    >>> point = point_of(WireAffectSignal("bliss", 0.5, 0.9), "m1")
    >>> point.end_message_id, point.label, str(point.confidence)
    ('m1', 'neutral', 'high')
    """
    label = signal.label if signal.label in LABELS else NEUTRAL
    confidence = signal.confidence
    if isinstance(confidence, float):
        confidence = Confidence(_bucket(confidence))
    return WirePoint(message_id, label, signal.intensity, confidence, _MODEL)


def with_point(
    affect: WireAffect, times_ms: Sequence[int], point: WirePoint, now_iso: str
) -> tuple[WireAffect, tuple[int, ...]]:
    """Adds a point and computes the rollup of the points in the window.

    Args:
        affect: the state so far.
        times_ms: when each of its points was measured.
        point: the new point.
        now_iso: the turn's time; points more than 30 minutes older leave the window.

    Returns:
        The new state, and when each of its points was measured.
    """
    now_ms = _epoch_ms(now_iso)
    points, oldest_ms = affect.points, now_ms - WINDOW_MS
    if times_ms and min(times_ms) < oldest_ms:
        fresh = [at for at, time_ms in enumerate(times_ms) if time_ms >= oldest_ms]
        points, times_ms = tuple(points[at] for at in fresh), tuple(times_ms[at] for at in fresh)
    phase = _phase(point.intensity, points[-1].intensity if points else None)
    rolled = WireRollup(phase, _bucket(point.intensity), now_iso)
    return WireAffect((*points, point)[-MAX_POINTS:], rolled), (*times_ms, now_ms)[-MAX_POINTS:]


def signal_of_reply(value: object) -> WireAffectSignal | None:
    """Reads the affect signal of a model's reply, which may hold anything.

    >>> signal_of_reply({"label": "resolve", "intensity": "1.7", "confidence": 0.5})
    WireAffectSignal(label='resolve', intensity=1.0, confidence=<Confidence.MED: 'med'>)
    >>> signal_of_reply("calm") is None
    True
    """
    if not isinstance(value, Mapping) or not value:
        return None
    label = value.get("label")
    known = label if isinstance(label, str) and label in LABELS else NEUTRAL
    return WireAffectSignal(
        known, _clamped(value.get("intensity")), _confidence_of_reply(value.get("confidence"))
    )


def _confidence_of_reply(value: object) -> Confidence:
    """Reads a word or a number; anything else is `low`."""
    if isinstance(value, str) and value in _CONFIDENCE_WORDS:
        return Confidence(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Confidence(_bucket(value))
    return Confidence.LOW


def _clamped(value: object) -> float:
    """Coerces to a number from 0 to 1; what is no finite number is 0."""
    try:
        number = float(value) if isinstance(value, str | int | float) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return min(max(number, 0.0), 1.0) if isfinite(number) else 0.0


def _phase(last: float, previous: float | None) -> AffectPhase:
    """Returns the phase, from the last two intensities."""
    if previous is None:
        return _PEAK if last >= HIGH_FROM else _SETTLED
    delta_e9 = round((last - previous) * 1e9)
    if last >= PEAK_FROM and abs(delta_e9) <= PEAK_DRIFT_E9:
        return _PEAK
    if delta_e9 >= SLOPE_E9:
        return _RISING
    return _DOWNSHIFT if delta_e9 <= -SLOPE_E9 else _SETTLED


def _bucket(intensity: float) -> IntensityBucket:
    """Returns the bucket of an intensity."""
    if intensity >= HIGH_FROM:
        return _HIGH
    return _MED if intensity >= MED_FROM else _LOW
