"""What filters look at in the rows of a turns run."""

from producer.row_filter import RowFacts
from producer.turns.report.opened_rows import opened
from shared.runs import TurnRow


def facts_of_turn(row: TurnRow) -> RowFacts:
    """Returns what is known of a turn; its status is the decision.

    >>> facts_of_turn(TurnRow(0, "", b"", 0, 0, 0)).outcome
    'skipped'
    """
    [found] = opened([row])
    facts = RowFacts(outcome=found.outcome.value, attempts=row.attempts)
    if found.result is not None:
        result = found.result
        facts.status, facts.thread, facts.id = result.decision or "", result.thread_id, result.message_id
        facts.reason, facts.output = result.reason, result.response or ""
    if found.error is not None:
        facts.error, facts.reason = found.error.code, found.error.message
    return facts
