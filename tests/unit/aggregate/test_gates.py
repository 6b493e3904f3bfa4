"""Gates are read strictly, know each kind's numbers, and are judged by the document."""

from dataclasses import replace

import pytest
from msgspec import structs

from producer.aggregate.gate_metrics import QUERY_METRICS
from producer.aggregate.gates import check_gate_names, check_gates, judge_gates, parse_gate
from producer.aggregate.queries import metrics_of
from producer.document import document_of, totals_of
from producer.documents import AnyRun, Counts, JudgedGate, Percentiles
from producer.turns.totals import TurnTotals
from shared.errors import UsageError
from shared.kinds import CASES, QUERIES, TURNS
from shared.runs import TurnRow
from tests.support.documents import printed, with_summary
from tests.support.query_results import one_of_each
from tests.support.run_infos import info
from tests.support.run_pages import queries_run
from tests.unit.cases.test_case_reports import run_info, standard


def queries(total: int = 0, **counts: int) -> AnyRun:
    """The document of a queries run."""
    document = document_of(queries_run(total), totals_of(QUERIES))
    times = Percentiles(p50=20, p90=30, p95=40, p99=40, max=40)
    known = with_summary(document, metrics=metrics_of(one_of_each()), latency_ms=times)
    return structs.replace(known, counts=Counts(total, **counts))


def judged(text: str, document: AnyRun) -> JudgedGate:
    """One gate against a document."""
    [found] = judge_gates([parse_gate(text)], document)
    return found


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("pass_rate<0.9", 0.75, False),
        ("pass_rate < 75%", 0.75, True),
        ("pass_rate<=.75", 0.75, False),
        ("error_rate>0.2", 0.25, False),
        ("latency_p95_ms>=41", 40, True),
        ("deflection_rate<0.9", 0.833, False),
        ("total_queries<9", 9, True),
    ],
)
def test_a_gate_is_compared_with_the_documents_number(text: str, value: float, *, met: bool) -> None:
    """Rates are fractions of all items, percentages of the document become such, the rest stays as it is."""
    found = judged(text, queries(total=4, passed=3, error=1))
    assert found.value == pytest.approx(value, abs=0.001)
    assert found.met is met


def test_a_bound_that_is_met_exactly_is_met_whatever_the_rounding() -> None:
    """90.1% is a little less than 901 of 1,000 as Python divides them."""
    found = queries(total=1000, passed=901)
    assert [judged(f"pass_rate{each}90.1%", found).met for each in ("<", "<=", ">", ">=")] == [
        True,
        False,
        True,
        False,
    ]


def test_a_gate_without_a_number_is_missed() -> None:
    """What cannot be shown to hold does not hold, and the line says why."""
    found = judged("pass_rate<0.9", queries())
    assert not found.met
    assert found.text == "gate failed: the run has no pass rate"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pass_rate", "no metric, relation"),
        ("pass_rate==1", "no metric, relation"),
        ("pass_rate<nan", "no metric, relation"),
        ("pass_rate<90", "between 0 and 1"),
        ("latency_p95_ms>5%", "is no share"),
        ("pass_rat<0.9", "no metric is called 'pass_rat'"),
    ],
)
def test_a_gate_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    """The error says what is wrong, and its hint how to write it."""
    with pytest.raises(UsageError, match=message) as caught:
        parse_gate(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        ("pas_rate<0.9", "did you mean pass_rate or "),
        ("latency_p9_ms>5", "did you mean latency_p99_ms or latency_p95_ms or latency_p90_ms?"),
        ("check:brief.pasrate<1", "did you mean check:NAME.pass_rate or "),
        ("q<1", "there are pass_rate, fail_rate, error_rate, skipped_rate, …"),
    ],
)
def test_the_closest_metrics_are_suggested(text: str, suggested: str) -> None:
    """A name that is unknown brings a few names, and where all of them are listed, on one short line."""
    with pytest.raises(UsageError) as caught:
        parse_gate(text)
    assert caught.value.hint.startswith(suggested), caught.value.hint
    assert caught.value.hint.endswith(" All: docs/exports.md, section Gates")
    assert len(caught.value.hint) < 130


def test_a_kind_refuses_what_it_has_no_number_for() -> None:
    """The hint names the nearest of its numbers, and all of them."""
    with pytest.raises(UsageError) as caught:
        check_gates([parse_gate("must_share<0.1")], QUERIES)
    assert all(name in caught.value.hint for name in QUERY_METRICS)
    check_gates([parse_gate("must_share<0.1")], TURNS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pass_rate<0.9", "gate failed: pass rate 50.0%, at least 90% needed"),
        ("pass_rate<50%", "gate passed: pass rate 50.0%, at least 50% needed"),
        ("fail_rate>10%", "gate failed: fail rate 50.0%, at most 10% allowed"),
        ("duration_s>=1", "gate failed: the run has no duration"),
        ("total_queries<3", "gate failed: total queries 2, at least 3 needed"),
    ],
)
def test_a_gate_says_what_was_found_and_what_was_needed(text: str, words: str) -> None:
    """In words without a double negative; the same in terminal, page, JSON and annotations."""
    document = queries(total=2, passed=1, failed=1)
    metrics = structs.replace(document.summary.metrics, total_queries=2)
    assert judged(text, with_summary(document, metrics=metrics, duration_s=None)).text == words


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        ("prompt:shrt.pass_rate<1", "the run has no prompt 'shrt'; did you mean 'short'?"),
        ("tag:x.pass_rate<1", "the run has no tag 'x'"),
        ("prompt:short.pass_rate<1", "prompt 'short' pass rate has no value"),
    ],
)
def test_a_name_that_no_run_has_gets_its_nearest(gate: str, text: str) -> None:
    """A gate on what is not there fails and names what was probably meant, before a run and after it."""
    rows = [{"prompt": "short", "pass_rate": {"value": None, "n": 0}}]
    found = judged(gate, with_summary(document_of(run_info(), totals_of(CASES)), prompts=rows, tags=[]))
    assert found.text == f"gate failed: {text}".replace("short' pass", "short': pass")
    if found.metric != "prompt:short.pass_rate":
        with pytest.raises(UsageError, match="--fail-on: the run has no "):
            check_gate_names([parse_gate(gate)], {"prompt": ["short"], "tag": []})


def test_gates_alone_decide_about_a_finished_run() -> None:
    """Failures that the gate allows exit with 0; without any answer there is nothing to decide about."""
    totals, gates = totals_of(CASES), [parse_gate("pass_rate<0.1")]
    totals.add(standard())
    some = document_of(run_info(), totals, gates=gates)
    assert (document_of(run_info(), totals).exit, some.exit) == (1, 0)
    broken = totals_of(CASES)
    broken.add(standard()[1:2])
    nothing = document_of(replace(run_info(), total=1), broken, gates=[parse_gate("error_rate>=2%")])
    assert nothing.exit == 1
    lenient = document_of(replace(run_info(), total=1), broken, gates=[parse_gate("duration_s<0")])
    assert lenient.exit == 1


def test_a_missed_gate_changes_the_exit_code_and_stands_in_the_document() -> None:
    """Exit 1 when one is missed; met ones leave it; without gates the document is as ever."""
    totals = TurnTotals()
    totals.add([TurnRow(at, code, b"{}", 1, 2, 1) for at, code in enumerate(("m2", "s6", "k5", "k5"))])
    gates = [parse_gate("must_share>0.5"), parse_gate("skip_share>=0.5")]
    document = document_of(info(total=4), totals, gates=gates)
    assert ([gate.met for gate in document.gates or ()], document.exit) == ([True, False], 1)
    assert document_of(info(total=4), totals, gates=gates[:1]).exit == 0
    plain = printed(document_of(info(total=4), totals))
    assert "gates" not in plain
    assert plain["summary"]["rates"]["pass_rate"] == {"value": 1.0, "low": 0.5101, "high": 1.0, "n": 4}
