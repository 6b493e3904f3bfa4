"""Numbers of a run come from its rows alone; the exit code follows from state and numbers."""

import pytest

from producer.document import document_of, exit_code
from producer.documents import Counts, WrittenFile
from producer.turns.totals import TurnTotals
from shared.names import RunState
from shared.runs import TurnRow
from tests.support.documents import printed
from tests.support.run_infos import info

ERROR = b'{"error":{"code":"etag_conflict","message":"m"},"result":{}}'


def rows(*codes: str) -> list[TurnRow]:
    """Rows that ended so."""
    return [TurnRow(at, code, ERROR, 1, 2, 1) for at, code in enumerate(codes)]


def test_decisions_rules_and_flags_are_counted() -> None:
    """Every part of a code is counted: decision, rule, freeze, summary, repetition."""
    totals = TurnTotals()
    totals.add(rows("m2u", "m2", "s6f", "k5fd"))
    totals.add(rows("m1u"))
    summary = totals.summary(info(total=5))
    assert summary.decisions == {"must": 3, "should": 1, "skip": 1}
    assert summary.rules == {"1": 1, "2": 2, "3": 0, "4": 0, "5": 1, "6": 1}
    assert (summary.freezes, summary.summaries_updated, summary.repeated_requests) == (2, 2, 1)


def test_errors_and_open_turns_are_no_decisions() -> None:
    """Errors are counted by code, poison and turns without result apart; all stay in the denominator."""
    totals = TurnTotals()
    totals.add([*rows("m2", "x0", "x0", "x0p", ""), TurnRow(9, "s6", b"", 1, 2, 3)])
    assert totals.counts(6) == Counts(6, error=3, skipped=1, decided=2)
    assert totals.summary(info(total=6)).errors == {"etag_conflict": 2, "poison": 1}
    assert totals.summary(info(total=6)).retried == 1


def test_the_document_has_the_agreed_keys() -> None:
    """`--json` prints these keys for every run, and nothing of the display counters."""
    totals = TurnTotals()
    totals.add(rows("m2", "s6"))
    document = document_of(info(total=2), totals, files=[WrittenFile("csv", "a.csv")])
    assert list(printed(document)) == [
        "schema_version",
        "run_id",
        "kind",
        "state",
        "counts",
        "summary",
        "files",
        "exit",
    ]
    assert document.schema_version == 2
    assert document.summary.decisions == {"must": 1, "should": 1, "skip": 0}
    assert document.summary.duration_s == 2.0
    assert document.summary.turns_per_s == 1.0
    assert document.exit == 0


@pytest.mark.parametrize(
    ("state", "errors", "code"),
    [
        (RunState.FINISHED, 0, 0),
        (RunState.FINISHED, 1, 1),
        (RunState.CANCELLED, 0, 4),
        (RunState.CANCELLED, 1, 4),
        (RunState.INCOMPLETE, 0, 4),
        (RunState.ABORTED, 1, 3),
        (RunState.RUNNING, 1, 0),
        (RunState.PAUSED, 0, 0),
    ],
)
def test_the_exit_code_follows_the_state(state: RunState, errors: int, code: int) -> None:
    """Finished is 0 unless items ended in error, cut short is 4, refused by the upstream 3."""
    assert exit_code(state, Counts(errors, error=errors)) == code
    totals = TurnTotals()
    totals.add(rows(*["x0"] * errors))
    assert document_of(info(state), totals).exit == code
