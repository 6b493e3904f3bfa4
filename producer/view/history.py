"""The runs of one name over time: pass rates with interval bands, and where settings changed; pure."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from producer.report.comparison.setting_differences import Settings, differing
from producer.text import percent
from producer.view.run_lines import change_of, rate_of
from shared.clock import iso_utc
from shared.runs import RunInfo

SettingsOf = Callable[[RunInfo], Settings]
"""Returns what of a run makes its results differ."""
MOST: Final = 60
"""Runs that are drawn; the newest ones."""
WIDTH: Final = 1_000
HEIGHT: Final = 150
SIDE: Final = 12
"""Units left free beside the first and the last point."""
MOST_TOGETHER: Final = 8
"""Runs whose cases are shown together."""
MOST_CHANGES: Final = 6
"""Settings that are named at one point."""


class RunPoint(NamedTuple):
    """One run in the drawing."""

    run: str
    x: float
    y: float
    about: str
    """What the pointer shows: when, rate, interval."""
    changed: str
    """Which settings differ from those of the run before; empty where none does."""


class RunHistory(NamedTuple):
    """What the figure shows."""

    name: str
    points: Sequence[RunPoint]
    band: str
    """The corners of the band, as SVG has them."""
    line: str
    grid: Sequence[tuple[float, str]]
    """Heights and labels."""
    sentence: str
    """From the best run to the last one."""

    @property
    def newest(self) -> Sequence[str]:
        """The runs whose cases can be shown together."""
        return [point.run for point in self.points[-MOST_TOGETHER:]]


def history_of(name: str, runs: Sequence[RunInfo], settings: SettingsOf) -> RunHistory | None:
    """Makes the figure; None where fewer than two runs have a rate.

    Args:
        name: of the runs.
        runs: the newest first.
        settings: of a run, what makes its results differ.
    """
    rated = [(info, rate) for info in reversed(runs) if (rate := rate_of(info)) is not None][-MOST:]
    if len(rated) < 2:  # noqa: PLR2004 - a course has two points
        return None
    least = min(rate.low for _, rate in rated)
    floor = max(0.0, int(least * 10) / 10)  # of the axis: the tenth below the lowest interval
    step = (WIDTH - 2 * SIDE) / (len(rated) - 1)

    def height(share: float) -> float:
        return round(HEIGHT * (1 - (share - floor) / (1 - floor or 1)), 1)

    places = [round(SIDE + at * step, 1) for at in range(len(rated))]
    changes = ["", *(changed_settings(settings, a, b) for (a, _), (b, _) in pairwise(rated))]
    points = [
        RunPoint(
            info.run,
            x,
            height(rate.value),
            f"{iso_utc(info.created_ms)[:16]}: {percent(rate.value)}, "
            f"95%: {100 * rate.low:.0f} to {100 * rate.high:.0f}",
            changed,
        )
        for (info, rate), x, changed in zip(rated, places, changes, strict=True)
    ]
    upper = [f"{x},{height(rate.high)}" for (_, rate), x in zip(rated, places, strict=True)]
    lower = [f"{x},{height(rate.low)}" for (_, rate), x in zip(rated, places, strict=True)]
    best = max((rate for _, rate in rated), key=lambda rate: rate.value)
    last = rated[-1][1]
    beside = f"the best one {percent(best.value)} ({change_of(best, last).about})"
    if last.value == best.value:
        beside = "as much as any before"
    return RunHistory(
        name,
        points,
        " ".join([*upper, *reversed(lower)]),
        " ".join(f"{point.x},{point.y}" for point in points),
        [(height(share), percent(share, 0)) for share in (floor, (1 + floor) / 2, 1.0)],
        f"The last run has {percent(last.value)}, {beside}.",
    )


def changed_settings(settings: SettingsOf, before: RunInfo, after: RunInfo) -> str:
    """Writes which settings differ."""
    found = differing(settings(before), settings(after))
    more = f", and {len(found) - MOST_CHANGES} more" if len(found) > MOST_CHANGES else ""
    return ", ".join(map(str, found[:MOST_CHANGES])) + more
