"""Writes a cases run as JUnit XML: a suite for each model, with the reason where a case did not pass."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from producer.cases.documents import CasesRun
from producer.cases.report.opened_rows import OpenedCase, opened
from producer.cases.report.wording import case_name, untold_checks
from producer.report.junit import NEVER, Ending, Junit, JunitTest
from producer.report.transcript import as_read, as_text
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, Quorum
from shared.names import Outcome
from shared.runs import RunInfo


class CasesJunitReport:
    """Writes a test for each answer, and one for the answers to a case that count together.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._junit = Junit(out, info)
        self._quorum = Quorum(1, 1)
        self._answers = list[OpenedCase]()
        """To the case at hand, which has this quorum."""

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        self._junit.add_by_class(self._tests(rows))

    def end(self, document: CasesRun) -> None:
        """Writes the file."""
        self._junit.add_by_class(self._closed())
        self._junit.end(document)

    def _tests(self, rows: Sequence[ItemRow]) -> Iterator[JunitTest]:
        """Makes tests of the cases that are complete."""
        for case in opened(rows):
            if self._answers and _place(self._answers[0].item) != _place(case.item):
                yield from self._closed()
            if case.item.quorum is None:
                yield case_test(case)._replace(tags=case.item.tags)
            else:
                self._quorum = case.item.quorum
                self._answers.append(case)

    def _closed(self) -> list[JunitTest]:
        """Makes the test of the case at hand."""
        answers, self._answers = self._answers, []
        return [quorum_test(self._quorum, answers)._replace(tags=answers[0].item.tags)] if answers else []


def _place(item: CasePayload) -> tuple[str, str | None, int]:
    return item.model, item.prompt_id, item.case


def quorum_test(quorum: Quorum, answers: Sequence[OpenedCase]) -> JunitTest:
    """Makes a test of all answers to a case by a model and prompt; why each one did not pass is its body."""
    item = answers[0].item
    counts = Counter(case.row.outcome for case in answers)
    verdict = quorum.outcome(counts)
    name, time_s = case_name(item), sum(case.row.latency_ms or 0 for case in answers) / 1000
    if verdict is Outcome.PASSED:
        return JunitTest(item.model, name, time_s=time_s)
    asked = counts.total() - counts[Outcome.SKIPPED]
    message = f"{counts[Outcome.PASSED]} of {asked} answers passed, {quorum.needed} of {quorum.times} must"
    if verdict is Outcome.SKIPPED:
        return JunitTest(item.model, name, "skipped", time_s, message=NEVER)
    ending: Ending = "failure" if verdict is Outcome.FAILED else "error"
    told = [case for case in answers if case.row.outcome in {Outcome.FAILED, Outcome.ERROR}]
    body = [_asked(item), *(f"#{case.item.repeat + 1} {case.message or case.status}" for case in told)]
    return JunitTest(item.model, name, ending, time_s, told[0].status, message, "\n".join(body))


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
