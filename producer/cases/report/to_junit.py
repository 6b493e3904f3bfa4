"""Writes a cases run as JUnit XML: a suite for each model, with the reason where a case did not pass."""

import json
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from producer.cases.report.opened_rows import OpenedCase, opened
from producer.cases.report.wording import case_name, untold_checks
from producer.report.junit import NEVER, JunitTest, SuitePerClass
from producer.report.transcript import as_read, as_text
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload
from shared.runs import RunInfo


def junit_report(out: BinaryIO, info: RunInfo) -> SuitePerClass:
    """Begins the file: a suite for each model."""
    return SuitePerClass(out, info, tests_of)


def tests_of(rows: Iterable[ItemRow]) -> Iterator[JunitTest]:
    """Makes a test of each row."""
    return (case_test(case)._replace(case=case.item.case) for case in opened(rows))


def case_test(case: OpenedCase) -> JunitTest:
    """Makes a test of a case."""
    row, item, result = case.row, case.item, case.result
    name = case_name(item)
    time_s = (row.latency_ms or 0) / 1000
    if result is None:
        return JunitTest(item.model, name, "skipped", message=NEVER)
    if case.code:
        return JunitTest(item.model, name, "error", time_s, case.code, case.message, _asked(item))
    if result.passed:
        return JunitTest(item.model, name, time_s=time_s)
    body = [_asked(item)]
    if item.expected is not None:
        body.append(f"expected: {json.dumps(item.expected, ensure_ascii=False)}")
    body += untold_checks(case)
    body.append(f"output: {result.text}")
    status = str(result.status)
    return JunitTest(item.model, name, "failure", time_s, status, case.message or status, "\n".join(body))


def _asked(item: CasePayload) -> str:
    """Writes the conversation of a case, or its input."""
    return as_text(as_read(item.messages)) if item.messages else f"input: {item.input}"
