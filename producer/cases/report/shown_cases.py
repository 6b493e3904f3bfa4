"""Makes of a case what a terminal shows of a single item."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from producer.cases.report.opened_rows import OpenedCase, opened
from producer.cases.report.reasons import reason_of
from producer.cases.report.wording import FREEFORM, check_line, dollars, latency
from producer.cases.results import CaseResult
from producer.report.shown_item import ShownItem
from producer.report.transcript import TOOL_CALL, Spoken, asked_of, call_text
from producer.text import plural
from shared.codecs.item_rows import CACHED, ItemRow
from shared.contracts.case_run import CasePayload, CaseRun, decode_case
from shared.contracts.case_vocabulary import STAGE_TABLE, Stage
from shared.contracts.sent_messages import messages_as_sent
from shared.names import Outcome
from shared.runs import RunInfo
from worker.validation.case_verdict import StageOutcome

LABELS: Final = {"regex_pattern": "Pattern", "validator": "Validator", "reference": "Reference"}
"""Criteria with a label of their own; others are labelled with their name."""
SHOWN_ELSEWHERE: Final = frozenset({"expected", "transform", "checks", "at_least", "paid_checks", "label"})
"""Criteria that are shown with the verdict."""
CHECKED: Final = "transformed"
"""What is checked in place of an answer."""
TITLES: Final[Mapping[Stage, str]] = {stage: row.title for stage, row in STAGE_TABLE.items()}
"""The stages as people call them."""
MARKS: Final = {StageOutcome.PASS: "✓", StageOutcome.FAIL: "✗"}
"""Of stages that ran."""


def shown_cases(info: RunInfo) -> Callable[[ItemRow], ShownItem]:
    """Returns what makes a shown item of a row with its input."""
    run = CaseRun.from_snapshot(info.snapshot)

    def shown(row: ItemRow) -> ShownItem:
        [case] = opened([row])
        return _shown(case, run)

    return shown


def row_keys(info: RunInfo) -> Callable[[ItemRow], Mapping[str, Any]]:
    """Returns what makes the further keys of a JSON row: `messages` as sent, and the hashes of the case."""
    system = CaseRun.from_snapshot(info.snapshot).system_prompt

    def keys(row: ItemRow) -> Mapping[str, Any]:
        item = decode_case(row.payload)
        sent = messages_as_sent(item, system, [f"sha256:{name}" for name in item.images])
        hashes = {"input_hash": item.input_hash, "expectation_hash": item.expectation_hash}
        return {"messages": sent, **hashes}

    return keys


def wanted_of(item: CasePayload) -> Iterator[tuple[str, str]]:
    """Yields what a good answer looks like: a label and a text each."""
    criteria = item.criteria
    if item.expected is not None:
        yield "Expected", json.dumps(item.expected, indent=2, ensure_ascii=False)
    for key in sorted(criteria.keys() - SHOWN_ELSEWHERE, key=[*LABELS, *criteria].index):
        yield LABELS.get(key) or key.replace("_", " ").capitalize(), str(criteria[key])


def _shown(case: OpenedCase, run: CaseRun) -> ShownItem:
    """Makes an item of a case."""
    item, result, outcome = case.item, case.answer, case.row.outcome
    is_free = run.mode == FREEFORM and outcome in {Outcome.PASSED, Outcome.FAILED}
    reason = None if is_free else reason_of(case)
    asked = asked_of(item, run.system_prompt)
    if item.images:
        asked.append(Spoken("images", ", ".join(item.images)))
    return ShownItem(
        position=case.row.index,
        name=f"{item.name} · {item.asked}",
        group=item.name,
        outcome=outcome,
        word="not checked" if is_free else outcome.value,
        asked=asked,
        answered=list(_answered(result)),
        reason="" if reason is None else reason.text,
        checks=() if is_free else [*_stages(result), *map(check_line, result.checks)],
        wanted=[Spoken(label.lower(), text) for label, text in wanted_of(item)],
        figures=list(_figures(case)),
    )


def _answered(result: CaseResult) -> Iterator[Spoken]:
    """Yields what a model answered; nothing where there is no answer."""
    if result.reasoning:
        yield Spoken("reasoning", result.reasoning)
    for call in result.tool_calls:
        yield Spoken(f"answer, {TOOL_CALL}", call_text(call))
    if result.refusal:
        yield Spoken("refusal", result.refusal)
    if result.raw_output or (result.raw_output == "" and not result.tool_calls and not result.refusal):
        yield Spoken("answer", result.raw_output or "(empty)")
    if result.checked_output is not UNSET:
        yield Spoken(CHECKED, result.checked_output or "(empty)")


def _stages(result: CaseResult) -> Iterator[str]:
    """Yields a line for each stage that ran."""
    for stage in result.stages:
        if mark := MARKS.get(stage.outcome):
            yield f"{mark} {TITLES[stage.stage]}: {stage.reason}".rstrip(": ")


def _figures(case: OpenedCase) -> Iterator[str]:
    """Yields what an answer took and cost."""
    row, result = case.row, case.result
    if result is not None and not case.code:
        if row.latency_ms is not None or CACHED in row.code:
            yield latency(row)
        if row.cost_usd is not None:
            yield dollars(row.cost_usd)
        if result.score is not None:
            yield f"score {result.score:.2f}"
    if row.attempts > 1:
        yield plural(row.attempts, "attempt")
