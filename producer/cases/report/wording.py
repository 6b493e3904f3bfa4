"""Texts about single cases that several formats share: names, latencies, costs, what a check found."""

from typing import Final

from producer.cases.report.opened_rows import OpenedCase
from producer.cases.results import CheckRow
from producer.report.figures import latency_s
from producer.text import cost
from shared.codecs.item_rows import CACHED, ItemRow
from shared.contracts.case_run import CasePayload
from shared.contracts.checks import example_finding, finding

FREEFORM: Final = "freeform"
NO_VERDICTS: Final = "no verdicts"
"""In the place of a rate: the models did not answer, or the checks of their answers could not be asked."""
UNKNOWN: Final = "unknown"
"""In the place of a cost."""
FROM_CACHE: Final = "cached"
"""Beside a latency: that of the call whose answer was taken."""


def latency(row: ItemRow) -> str:
    """Writes the latency of an answer; one from the cache has that of its first call."""
    time = latency_s(row.latency_ms)
    return f"{time}, {FROM_CACHE}" if CACHED in row.code else time


def dollars(cost_usd: float | None) -> str:
    """Writes a cost; small ones with four decimals.

    >>> dollars(0.0002), dollars(0.00001), dollars(1.5), dollars(0.0), dollars(None)
    ('$0.0002', '<$0.0001', '$1.50', '$0.00', 'unknown')
    """
    return UNKNOWN if cost_usd is None else cost(cost_usd)


def case_name(item: CasePayload) -> str:
    """Names a case by its id, or as people count, with its prompt and repeat.

    >>> case_name(CasePayload(2, "m", "Hi", id="fr", prompt_id="terse", repeat=1))
    'fr · terse #2'
    >>> case_name(CasePayload(2, "m", "Hi"))
    'case 3'
    """
    name = item.name + (f" · {item.prompt_id}" if item.prompt_id is not None else "")
    return name + (f" #{item.repeat + 1}" if item.repeat else "")


def model_and_prompt(item: CasePayload) -> str:
    """Names the model of an item, and its prompt.

    >>> model_and_prompt(CasePayload(2, "m", "Hi", prompt_id="terse"))
    'm · terse'
    """
    return item.model if item.prompt_id is None else f"{item.model} · {item.prompt_id}"


def check_line(row: CheckRow) -> str:
    """Writes a check and what it found, not made safe.

    >>> check_line(CheckRow("rubric: Brief.", "rubric", 0.25, False, "Long.", None, {}, at_least=0.7))
    '✗ rubric: Brief: 0.25, at least 0.70 needed; Long.'
    >>> check_line(CheckRow("rubric: Brief.", "rubric", 0.25, True, "Long.", None, {}))
    '✓ rubric: Brief (0.25): Long.'
    """
    mark = "·" if row.passed is None else "✓" if row.passed else "✗"
    return f"{mark} {check_finding(row)}"


def untold_checks(case: OpenedCase) -> list[str]:
    """Writes the failed checks that the message of a case does not name, one a line, not made safe."""
    failed = case.result.failed_checks if case.result else ()
    return [check_line(row) for row in failed if check_finding(row) not in case.message]


def check_finding(row: CheckRow) -> str:
    """Writes what a check found, given its row."""
    return finding(row.name, row.reason, row.score, row.missed)


def check_example(row: CheckRow) -> str:
    """Writes what a check found in one of many answers, given its row."""
    return example_finding(row.name, row.reason, row.score, row.missed)
