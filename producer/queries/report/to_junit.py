"""Writes a queries run as JUnit XML: a suite for each category, with the checks that a query did not pass."""

import json
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import msgspec

from producer.queries.report.check_reasons import failures
from producer.queries.report.opened_rows import OpenedQuery, opened
from producer.queries.results import AskedQuery
from producer.report.junit import NEVER, JunitTest, SuitePerClass
from shared.codecs.item_rows import ItemRow
from shared.names import Outcome
from shared.runs import RunInfo

_decode = msgspec.json.decode


def junit_report(out: BinaryIO, info: RunInfo) -> SuitePerClass:
    """Begins the file: a suite for each category."""
    return SuitePerClass(out, info, tests_of)


def tests_of(rows: Iterable[ItemRow]) -> Iterator[JunitTest]:
    """Makes a test of each row."""
    return map(query_test, opened(rows))


def query_test(query: OpenedQuery) -> JunitTest:
    """Makes a test of a query."""
    # Of a query that was never sent the row has its input, with the same keys.
    named = query.result or AskedQuery(_decode(query.row.line))
    return _query_test(query, str(named.category), f"{named.id}: {named.query}")


def _query_test(query: OpenedQuery, category: str, name: str) -> JunitTest:
    """Makes the test."""
    if query.result is None:
        return JunitTest(category, name, "skipped", message=NEVER)
    time_s = (query.result.client_ms or 0) / 1000
    if query.row.outcome is Outcome.ERROR:
        return JunitTest(category, name, "error", time_s, query.code, str(query.shown.error or query.code))
    if query.result.passed:
        return JunitTest(category, name, time_s=time_s)
    checks = {word: query.result.check(word) for word in query.result.checks}
    missed = {word: each.keys for word, each in checks.items() if each.is_applicable and not each.passed}
    why = "; ".join(failures(query.result)) or "no check is applicable"
    body = [f"{word}: {json.dumps(check, ensure_ascii=False)}" for word, check in missed.items()]
    body.append(f"response: {json.dumps(query.result.keys.get('response'), ensure_ascii=False)}")
    return JunitTest(category, name, "failure", time_s, "failed_checks", why, "\n".join(body))
