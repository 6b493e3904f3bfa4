"""Adds up a turns run from the codes of its rows: no result is parsed but those that ended in error.

Totals come from rows, never from counters, so that they are right whatever was killed meanwhile.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import UNSET, Struct
from msgspec.json import Decoder

from producer.aggregate.call_totals import CallTotals
from producer.aggregate.related import outcome_rates
from producer.documents import Counts
from producer.turns.code_counts import decisions_of, rules_of
from producer.turns.documents import LiveCalls, TurnsSummary
from shared.codecs.turn_batches import ASKED, AVOIDED, CACHED
from shared.contracts.live_turns import LiveRun
from shared.contracts.turn_vocabulary import SIGNALS_ONCE
from shared.runs import RunInfo, TurnRow

LIVE: Final = frozenset(ASKED + CACHED + AVOIDED)
"""Flags of turns of runs with a model."""
POISON: Final = "poison"
"""Error code of a turn that no worker survived."""


class _Error(Struct):
    code: str


class _ErrorLine(Struct):
    error: _Error


_errors = Decoder(_ErrorLine)


class TurnTotals:
    """Counts rows; several pages or threads of results can be added one after another."""

    def __init__(self) -> None:
        self.codes = Counter[str]()
        """Rows by code (`shared.codecs.turn_batches`); the empty code is a turn without a result."""
        self.errors = Counter[str]()
        """Rows that ended in error, by error code."""
        self.retried = 0
        """Rows whose result is not the first one."""
        self.calls = CallTotals()
        """What their model calls came to."""

    def add(self, page: Sequence[TurnRow]) -> None:
        """Counts some rows."""
        codes = [row.code for row in page]
        self.codes.update(codes)
        found = set(codes)
        if any(LIVE.intersection(code) for code in found):
            self.calls.add(page)
        if any(code[:1] == "x" for code in found):
            self.errors.update([error_code(row) for row in page if row.code[:1] == "x"])
        self.retried += sum([row.attempts > 1 for row in page])

    def counts(self, total: int) -> Counts:
        """Returns rows by outcome, and the size of the run.

        >>> TurnTotals().counts(3).total
        3
        """
        error, skipped = self.errors.total(), self.codes[""]
        return Counts(total, error=error, skipped=skipped, decided=self.codes.total() - error - skipped)

    def misses(self) -> bool:
        """Turns have no gate."""
        return False

    def summary(self, info: RunInfo) -> TurnsSummary:
        """Returns decisions, rules, freezes, summaries, errors and model calls, with what was run."""
        flags = Counter[str]()
        for code, count in self.codes.items():
            if code[:1] != "x":
                flags.update(dict.fromkeys(code[2:], count))
        live = LiveRun.from_snapshot(info.snapshot)
        calls = self.calls.summary(self.errors) or (LiveCalls(unread=0, invalid_shapes=0) if live else UNSET)
        return TurnsSummary(
            calls=calls,
            decisions=decisions_of(self.codes),
            rules=rules_of(self.codes),
            freezes=flags["f"],
            summaries_updated=flags["u"],
            repeated_requests=flags["d"],
            retried=self.retried,
            errors=dict(self.errors.most_common()),
            source=info.source,
            duration_s=info.duration_s,
            model=live.target.model if live else UNSET,
            live=live.live if live else UNSET,
            threads=info.threads,
            summary_policy=info.snapshot.get("summary_policy", ""),
            signals_once=bool(info.snapshot.get(SIGNALS_ONCE)) or UNSET,
            namespace=info.namespace,
            turns_per_s=info.per_s,
            rates=outcome_rates(self.counts(info.total)),
        )


def error_code(row: TurnRow) -> str:
    """Returns the error code of a row that ended in error."""
    return POISON if "p" in row.code else _errors.decode(row.line).error.code
