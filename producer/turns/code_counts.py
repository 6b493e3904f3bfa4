"""What turns of runs and of streams come to: by decision, rule and error from their codes, and latencies."""

from collections.abc import Mapping

from producer.documents import Percentiles
from producer.turns.documents import DECISIONS, RULES
from shared.codecs.turn_batches import DECISION_OF_CODE
from shared.runs.served import HourTotals


def decisions_of(codes: Mapping[str, int]) -> dict[str, int]:
    """Counts turns by decision, from numbers of turns by their codes, as all of these."""
    found = dict.fromkeys(DECISIONS, 0)
    for code, number in codes.items():
        if decision := DECISION_OF_CODE.get(code[:1]):
            found[decision] += number
    return found


def rules_of(codes: Mapping[str, int]) -> dict[str, int]:
    """Counts decided turns by rule."""
    return {rule: sum(n for code, n in codes.items() if code[1:2] == rule) for rule in RULES}


def errors_of(codes: Mapping[str, int]) -> int:
    """Counts turns that ended in error."""
    return sum(number for code, number in codes.items() if code[:1] == "x")


def latency_of(totals: HourTotals) -> Percentiles:
    """Returns latencies from acceptance to decision, right to 5 %; empty without turns."""
    if not totals.latency:
        return Percentiles()
    return Percentiles(*(round(totals.percentile_ms(share)) for share in (0.5, 0.9, 0.95, 0.99, 1.0)))
