"""Compares the shares of decisions, rules and errors of turns without partners, as of two hours of a stream.

Turns of one thread are related, so that a share is as uncertain as that of fewer independent turns.
"""

from collections import Counter
from statistics import NormalDist
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from producer.aggregate.queries import percentiles
from producer.aggregate.related import ByCase
from producer.aggregate.statistics import independent_difference, wilson
from producer.documents import SCHEMA_VERSION, Count, Exit, Part, Percentiles, Rate, Version, WrittenFile
from producer.turns.documents import DECISIONS, RULES
from shared.codecs.turn_batches import DECISION_OF_CODE

ERROR: Final = "error"
SHARES: Final = (*DECISIONS, ERROR, *(f"rule {rule}" for rule in RULES))
"""What is compared; each turn has one of the first four, and a decided one has a rule."""
_ALL: Final = range(len(DECISIONS) + 1)
_PLACES: Final = {share: at for at, share in enumerate(SHARES)}


class SharesSide(Part, frozen=True):
    """One of two sets of turns."""

    name: str
    turns: Count
    threads: Count
    latency_ms: Annotated[
        Percentiles | UnsetType, Meta(description="From acceptance to decision; only of streams.")
    ] = UNSET


class ShareChange(Part, frozen=True):
    """A share in both, and the interval of the difference; at the level of the comparison over all shares."""

    a: Rate
    b: Rate
    difference: float
    low: float
    high: float
    significant: bool


class SharesDocument(Part, kw_only=True, frozen=True):
    """What compare prints with --json, and writes as .json, where turns of a stream have no partners."""

    schema_version: Version = SCHEMA_VERSION
    a: SharesSide
    b: SharesSide
    kind: str = "turns"
    verdict: str
    regressions: tuple[str, ...]
    shares: dict[str, ShareChange]
    level: float
    files: tuple[WrittenFile, ...] = ()
    exit: Exit = 0


class TurnShares:
    """Counts the turns of one side.

    Args:
        name: of the run or stream.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts, self._latencies = Counter[str](), Counter[int]()
        self.by_thread, self._threads = ByCase(), set[str]()

    def add(self, code: str, thread: str, latency_ms: int | None) -> None:
        """Counts a turn that has ended.

        Args:
            code: how it ended, see `shared.codecs.turn_batches`.
            thread: its thread.
            latency_ms: from acceptance to decision; None where that is not known.
        """
        words = {DECISION_OF_CODE.get(code[:1]) or ERROR, f"rule {code[1:2]}"} & _PLACES.keys()
        self.counts.update(words)
        self.by_thread.add(thread, tuple(int(share in words) for share in SHARES))
        self._threads.add(thread)
        if latency_ms is not None:
            self._latencies[latency_ms] += 1

    @property
    def total(self) -> int:
        """All turns."""
        return sum(self.counts[SHARES[at]] for at in _ALL)

    def rate(self, share: str, z: float) -> Rate:
        """Returns a share with its interval."""
        return wilson(
            self.counts[share], self.total, effect=self.by_thread.effect([_PLACES[share]], _ALL), z=z
        )

    def side(self) -> SharesSide:
        """Returns what reports say of it."""
        times = percentiles(self._latencies) or UNSET
        return SharesSide(self.name, self.total, len(self._threads), times)


def compare_shares(
    a: TurnShares, b: TurnShares, level: float, files: tuple[WrittenFile, ...] = (), *, has_gate: bool = False
) -> SharesDocument:
    """Compares two sets of turns; each has at least one.

    Args:
        a: the turns before.
        b: the turns after.
        level: share of unchanged ones that may be called different; each share is judged at its part of it
            (Bonferroni), so that together they keep the level.
        files: what is written.
        has_gate: whether more errors make the exit code 1.
    """
    seen = [share for share in SHARES if a.counts[share] or b.counts[share]]
    z = NormalDist().inv_cdf(1 - level / (2 * len(seen)))
    shares = dict[str, ShareChange]()
    for share in seen:
        before, after = a.rate(share, z), b.rate(share, z)
        low, high = independent_difference(before, after)
        shares[share] = ShareChange(before, after, after.value - before.value, low, high, low > 0 or high < 0)
    regressions = tuple(share for share in shares if share == ERROR and shares[share].low > 0)
    differs = any(change.significant for change in shares.values())
    return SharesDocument(
        a=a.side(),
        b=b.side(),
        verdict="worse" if regressions else "different" if differs else "no significant difference",
        regressions=regressions,
        shares=shares,
        level=level,
        files=files,
        exit=int(has_gate and bool(regressions)),
    )
