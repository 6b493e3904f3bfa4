"""What the counters of a stream come to: turns by decision and rule, errors, latency."""

from producer.documents import Percentiles
from producer.turns.documents import DECISIONS, RULES
from shared.codecs.turn_batches import DECISION_OF_CODE
from shared.runs.served import HourTotals


def decisions_of(totals: HourTotals) -> dict[str, int]:
    """Counts turns by decision."""
    found = dict.fromkeys(DECISIONS, 0)
    for code, number in totals.turns.items():
        if decision := DECISION_OF_CODE.get(code[0]):
            found[decision] += number
    return found


def rules_of(totals: HourTotals) -> dict[str, int]:
    """Counts decided turns by rule."""
    return {rule: sum(n for code, n in totals.turns.items() if code[1:] == rule) for rule in RULES}


def errors_of(totals: HourTotals) -> int:
    """Counts turns that ended in error."""
    return sum(number for code, number in totals.turns.items() if code[0] == "x")


def latency_of(totals: HourTotals) -> Percentiles:
    """Returns latencies from acceptance to decision, right to 5 %; empty without turns."""
    if not totals.latency:
        return Percentiles()
    p50, p90, p95, p99, most = (round(totals.percentile_ms(share)) for share in (0.5, 0.9, 0.95, 0.99, 1.0))
    return Percentiles(p50, p90, p95, p99, most)
