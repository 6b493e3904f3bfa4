"""JUnit files hold every item of each kind, in what build servers read, whatever texts say."""

import json
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from producer.document import document_of, totals_of
from producer.report.formats import format_of
from producer.report.junit import UNKNOWN, Junit, JunitTest, xml_of
from producer.turns.report.to_junit import BLOCK, MOST_TURNS
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.kinds import QUERIES, TURNS
from shared.names import RunState
from shared.runs import RunInfo, TurnRow
from tests.support.conversations import decide, shape, signals, turn
from tests.support.junit import read_junit, suites_of
from tests.support.query_results import baseline, one_of_each
from tests.support.run_infos import info as turns_info
from tests.unit.cases.test_case_reports import run_info as cases_info
from tests.unit.cases.test_case_reports import standard

HOSTILE = "\x00\x1b[31m]]><b>&amp;\"'\ud800\u2028\ufffe\r\n" + "\U0001f600"


def written(info: RunInfo, rows: Sequence[Any], *, pages: int = 2) -> ET.Element:
    """Writes rows, page by page, and reads them again."""
    out, totals = BytesIO(), totals_of(info.kind)
    report = format_of(info.kind, "junit")(out, info)
    size = -(-len(rows) // pages)
    for begin in range(0, len(rows), size):
        totals.add(rows[begin : begin + size])
        report.page(rows[begin : begin + size])
    report.end(document_of(info, totals))
    return read_junit(out.getvalue())


def test_cases_are_grouped_by_model() -> None:
    """A suite a model: what failed says status, reason, wanted and given; an error its code."""
    root = written(cases_info(), standard())
    assert suites_of(root) == {
        "slow": [("first", "failure"), ("case 2", "error")],
        "good": [("first", "passed"), ("case 2", "passed")],
    }
    [failure], [error] = root.iter("failure"), root.iter("error")
    assert failure.attrib["type"] == "failed_equality"
    assert failure.attrib["message"] == "1 difference: /n: expected 1, found 2"
    assert failure.text == 'input: one\nexpected: {"n": 1}\noutput: {"n": 2}'
    assert (error.attrib["type"], error.attrib["message"]) == ("upstream_timeout", "late")
    assert [test.attrib["time"] for test in root.iter("testcase")] == ["2.000", "0.000", "0.400", "0.400"]
    properties = {each.attrib["name"]: each.attrib["value"] for each in root[0].iter("property")}
    assert properties == {
        "run_id": "run-1",
        "schema_version": "2",
        "kind": "cases",
        "state": "finished",
        "source": "bench.yaml",
    }


def test_queries_are_grouped_by_category() -> None:
    """A suite a category, whose queries lie apart in the file; checks that were missed are named."""
    results = one_of_each()
    rows = [_query_row(at, result) for at, result in enumerate(results)]
    rows.append(ItemRow(len(rows), "", json.dumps(baseline("Q-99")).encode()))
    snapshot: dict[str, Any] = {"v": 1, "source": "b.json", "queries": msgspec.to_builtins(QueryRun())}
    info = replace(turns_info(RunState.CANCELLED, len(rows)), kind=QUERIES, snapshot=snapshot)
    root = written(info, rows, pages=3)
    found = suites_of(root)
    assert list(found) == ["booking", "edge_case"]
    assert [name[:4] for name, _ in found["booking"]] == [
        *("Q-01", "Q-02", "Q-03", "Q-04", "Q-06", "Q-07", "Q-08", "Q-09", "Q-99")
    ]
    assert found["booking"][-1] == ("Q-99: What about Q-99?", "skipped")
    assert found["booking"][1][1] == "failure"
    [error] = root.iter("error")
    assert error.attrib["message"] == "Timeout after 30s"
    first = next(root.iter("failure"))
    assert first.attrib["message"] == 'must_contain: lacks "yes" (0 of 1 keyword found)'
    assert "response: {" in str(first.text)


def _query_row(at: int, result: dict[str, Any]) -> ItemRow:
    """A result as the store reads it."""
    if result["error"]:
        line = {"error": {"code": "timeout", "message": result["error"]}, "result": result}
        return ItemRow(at, "x", json.dumps(line).encode(), 1_000, 2_000, 1, 30_004)
    code = "p" if result["overall_pass"] else "f"
    return ItemRow(at, code, json.dumps(result).encode(), 1_000, 2_000, 1, 1_234)


def _turn_rows() -> list[TurnRow]:
    """A decision, an error, a poisoned turn and one that was never decided."""
    [block] = decide(
        turn(messageId="m-1 ]]>", signals=signals("pivot"), modelShape=shape("arc")),
        turn("again", thread_memento_etag="7"),
    ).outcome.blocks
    pairs = zip(block.codes, block.lines, strict=True)
    rows = [TurnRow(at, code, line, 1_000, 1_004, 1) for at, (code, line) in enumerate(pairs)]
    poisoned = json.dumps(turn("boom", messageId="m-2")).encode() + b"\n"
    return [*rows, TurnRow(2, "x0p", poisoned, 1_000, 1_000, 1), TurnRow(3, "", b"", 0, 0, 0)]


def test_each_turn_of_a_small_run_is_a_test() -> None:
    """Errors have their code, a turn that was never decided is skipped."""
    root = written(turns_info(RunState.CANCELLED, 4), _turn_rows())
    [(suite, tests)] = suites_of(root).items()
    assert suite == "a.jsonl"
    assert [ending for _, ending in tests] == ["passed", "error", "error", "skipped"]
    assert tests[0][0] == "turn-0: m-1 ]]>"
    assert [error.attrib["type"] for error in root.iter("error")] == ["etag_conflict", "poison"]


def test_a_big_run_is_reported_in_blocks() -> None:
    """Decided turns are a test a thousand, each error still has its own: no file that a server refuses."""
    good, bad, *_ = _turn_rows()
    total = MOST_TURNS + BLOCK
    rows = [good._replace(index=at) for at in range(total - 2)]
    rows[1_500] = bad._replace(index=1_500)
    rows += [TurnRow(at, "", b"", 0, 0, 0) for at in range(total - 2, total)]
    [tests] = suites_of(written(turns_info(RunState.CANCELLED, total), rows, pages=7)).values()
    assert len(tests) == total // BLOCK + 2
    assert tests[:3] == [
        ("turns 0 to 999: 1,000 decided", "passed"),
        (f"turn-1500: {tests[1][0].partition(': ')[2]}", "error"),
        ("turns 1,000 to 1,999: 999 decided", "passed"),
    ]
    assert tests[-1] == ("turns 20,000 to 20,999: 2 skipped", "skipped")


def test_hostile_text_stays_text() -> None:
    """Control characters, half surrogates and the end of CDATA break no parser; the rest stays as it was."""
    out = BytesIO()
    junit = Junit(out, turns_info())
    junit.add(HOSTILE, [JunitTest(HOSTILE, HOSTILE, "failure", 1.0, HOSTILE, HOSTILE, HOSTILE)])
    document = document_of(replace(turns_info(), run=HOSTILE), totals_of(TURNS))
    junit.end(document)
    root = read_junit(out.getvalue())
    [test], [failure] = root.iter("testcase"), root.iter("failure")
    safe = f"{UNKNOWN}{UNKNOWN}[31m]]><b>&amp;\"'{UNKNOWN}\u2028{UNKNOWN}\r\n\U0001f600"
    written = (root[0].attrib["name"], test.attrib["name"], test.attrib["classname"])
    assert written == (safe, safe, safe)
    assert (failure.attrib["message"], failure.attrib["type"], failure.text) == (safe, safe, safe)


@given(st.text(st.characters(exclude_categories=()), max_size=100))
def test_every_text_comes_back(text: str) -> None:
    """Whatever it says, a parser reads it; what XML can hold comes back as it was."""
    root = ET.fromstring(xml_of(JunitTest("c", text, "error", 0, "t", text, text)))  # noqa: S314 - our own file
    written = (root.attrib["name"], root[0].attrib["message"], root[0].text or "")
    assert all(len(each) == len(text) for each in written)
    assert set(written) == {
        "".join(new if new == UNKNOWN else old for new, old in zip(written[0], text, strict=True))
    }


def test_long_texts_are_cut() -> None:
    """A megabyte of output is quoted, not copied: servers refuse reports of many megabytes."""
    out = BytesIO()
    junit = Junit(out, turns_info())
    junit.add("s", [JunitTest("c", "n" * 10_000, "failure", 0, "t", "m" * 10_000, "b" * 1_000_000)] * 400)
    junit.end(document_of(turns_info(RunState.RUNNING), totals_of(TURNS)))
    assert len(out.getvalue()) < 400 * 5_000
    assert len(list(read_junit(out.getvalue()).iter("failure"))) == 400
