"""Judges of a run in figures: agreement, sameness over repeats, and people's labels, from rows alone."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from producer.cases.judge_statistics import alpha_of_tallies, krippendorff_alpha
from producer.cases.totals import CaseTotals
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, encode_case
from shared.contracts.case_vocabulary import Label
from tests.support.checking import judged_by, vote
from tests.unit.cases.test_case_reports import run_info
from worker.executors.case_results import case_document, case_line
from worker.validation.pipeline import before_judge

OUTPUT: Final = '{"n": 2}'


def judged(
    case: int,
    replies: Sequence[str | None],
    *,
    label: Label | None = None,
    repeat: int = 0,
    output: str = OUTPUT,
    model: str = "m",
) -> ItemRow:
    """A row of an answer that judges a, b, c were asked about; None could not be asked."""
    result = before_judge({"expected": {"n": 1}}, output)
    names = "abc"[: len(replies)]
    votes = [
        vote(name, reply, {"model": name, "cost_usd": 0.5})
        for name, reply in zip(names, replies, strict=True)
    ]
    result = judged_by(result, *votes)
    said_by_people = {} if label is None else {"label": label}
    item = CasePayload(case, model, "Hi", repeat, criteria={"expected": {"n": 1}, **said_by_people})
    line = case_line(case_document(item, result))
    code = "p" if result.passed else "f"
    return ItemRow(case, code, line, 1, 2, 1, 3, 0.5, encode_case(item))


def summary(rows: Sequence[ItemRow]) -> dict[str, Any]:
    """What the run's document says of the judges; it can be written as JSON."""
    totals = CaseTotals()
    for row in rows:
        totals.add([row])
    found: dict[str, Any] = json.loads(
        json.dumps(to_builtins(totals.summary(replace(run_info(), total=len(rows))).judge), allow_nan=False)
    )
    return found


def test_a_run_without_judges_has_no_figures() -> None:
    """Everything that needs a verdict of a judge is null, and counts are zero."""
    found = summary([judged(0, ["PASS"], output='{"n": 1}', label="pass")])
    assert (found["calls"], found["judged"], found["labelled"], found["judges"]) == (0, 0, 1, [])
    for name in ("pass_rate", "agreement", "consistency", "calibration", "corrected_pass_rate"):
        assert found[name] is None, name


def test_a_panel_is_summarized_with_its_agreement() -> None:
    """Alpha and the share of unanimous cases, with n; each judge with its votes, cost and dissent."""
    rows = [
        judged(0, ["PASS", "PASS", "PASS"]),
        judged(1, ["PASS", "PASS", "FAIL"]),
        judged(2, ["FAIL", "FAIL", "FAIL"]),
        judged(3, ["hm", "FAIL", "FAIL"]),
        judged(4, ["PASS", None, "FAIL"]),
        judged(5, [None, None, "FAIL"]),
    ]
    found = summary(rows)
    assert (found["calls"], found["cost_usd"], found["unreached"], found["judged"]) == (15, 7.5, 2, 4)
    assert (found["pass_rate"]["value"], found["pass_rate"]["n"]) == (0.5, 4)
    agreement = found["agreement"]
    assert (agreement["judges"], agreement["n"], agreement["unanimous"]["value"]) == (3, 5, 0.4)
    words: list[list[str | None]] = [
        ["p", "p", "p"],
        ["p", "p", "f"],
        ["f", "f", "f"],
        ["u", "f", "f"],
        ["p", None, "f"],
    ]
    assert agreement["krippendorff_alpha"] == pytest.approx(krippendorff_alpha(words), abs=1e-4)
    a, b, c = found["judges"]
    assert (a["votes"], a["passed"], a["failed"], a["unclear"], a["unreached"]) == (5, 3, 1, 1, 1)
    assert (b["votes"], b["unreached"], c["votes"], c["cost_usd"]) == (4, 2, 6, 3.0)
    assert (c["with_panel"]["value"], c["with_panel"]["n"]) == (0.75, 4)


def test_a_judge_that_always_says_the_same_has_no_alpha() -> None:
    """Chance alone would agree: there is no coefficient, and the share of unanimous cases is given."""
    found = summary([judged(case, ["PASS", "PASS"]) for case in range(3)])["agreement"]
    assert (found["krippendorff_alpha"], found["unanimous"]["value"]) == (None, 1.0)


def test_the_same_output_is_judged_the_same_way_or_not() -> None:
    """Only equal outputs of one case and model are compared; each judge has its own figure."""
    rows = [
        judged(0, ["PASS", "PASS", "PASS"]),
        judged(0, ["PASS", "PASS", "FAIL"], repeat=1),
        judged(0, ["FAIL", "FAIL", "FAIL"], repeat=2, output='{"n": 3}'),
        judged(1, ["PASS", "PASS", "PASS"]),
        judged(1, ["FAIL", "PASS", "FAIL"], repeat=1),
        judged(0, ["FAIL", "FAIL", "FAIL"], model="other"),
    ]
    found = summary(rows)
    assert (found["consistency"]["n"], found["consistency"]["same"]["value"]) == (2, 0.5)
    assert [judge["consistency"]["same"]["value"] for judge in found["judges"]] == [0.5, 1.0, 0.0]
    assert summary(rows[:1])["consistency"] is None


def test_labels_measure_the_judges() -> None:
    """Accuracy, precision and recall of PASS and the confusion counts, of the panel and of each judge."""
    rows = [
        judged(0, ["PASS", "PASS", "FAIL"], label="pass"),
        judged(1, ["PASS", "PASS", "PASS"], label="fail"),
        judged(2, ["FAIL", "FAIL", "PASS"], label="fail"),
        judged(3, ["FAIL", "FAIL", "FAIL"], label="pass"),
        judged(4, ["hm", "FAIL", None], label="fail"),
        judged(5, ["PASS", None, None], label="pass"),
        judged(6, ["PASS", "PASS", "PASS"]),
    ]
    found = summary(rows)
    calibration = found["calibration"]
    assert found["labelled"] == 6
    assert [
        calibration[f"{word}"] for word in ("true_passed", "false_passed", "true_failed", "false_failed")
    ] == [
        1,
        1,
        2,
        1,
    ]
    assert (calibration["n"], calibration["answers"], calibration["few"]) == (5, 5, True)
    assert [calibration[name]["value"] for name in ("accuracy", "precision", "recall")] == [0.6, 0.5, 0.5]
    assert found["judges"][2]["calibration"]["accuracy"] == {
        "value": 0.0,
        "low": 0.0,
        "high": 0.4899,
        "n": 4,
    }
    assert found["corrected_pass_rate"] is None, "of few labels nothing is corrected"


def test_repeats_of_an_answer_are_no_new_labels() -> None:
    """Thirty verdicts on one answer are still one answer, so the figures stay rough."""
    rows = [judged(0, ["PASS"], label="pass", repeat=repeat) for repeat in range(40)]
    calibration = summary(rows)["calibration"]
    assert (calibration["n"], calibration["answers"], calibration["few"], calibration["specificity"]) == (
        40,
        1,
        True,
        None,
    )


def test_with_enough_labels_the_rate_is_corrected() -> None:
    """Of a judge that passes too much, people's pass rate is estimated, with its bounds."""
    number = count()

    def some(often: int, reply: str, label: Label | None) -> Iterator[ItemRow]:
        """Some answers judged alike."""
        return (judged(next(number), [reply], label=label) for _ in range(often))

    rows = [*some(18, "PASS", "pass"), *some(2, "FAIL", "pass"), *some(5, "PASS", "fail")]
    rows += [*some(15, "FAIL", "fail"), *some(37, "PASS", None), *some(23, "FAIL", None)]
    found = summary(rows)
    assert (found["pass_rate"]["value"], found["calibration"]["few"]) == (0.6, False)
    assert found["corrected_pass_rate"]["value"] == pytest.approx(
        (0.6 + 0.75 - 1) / (0.9 + 0.75 - 1), abs=1e-4
    )


def fleiss_kappa(cases: list[list[str]]) -> float | None:
    """Agreement of three judges beyond chance (J. L. Fleiss, Psychological Bulletin 76, 1971)."""
    counts = [Counter(verdicts) for verdicts in cases]
    agreed = sum(sum(c * (c - 1) for c in count.values()) / 6 for count in counts) / len(cases)
    words = sum(counts, Counter[str]())
    chance = sum((c / (3 * len(cases))) ** 2 for c in words.values())
    return None if len(words) == 1 else (agreed - chance) / (1 - chance)


@given(st.lists(st.lists(st.sampled_from("pfu"), min_size=3, max_size=3), min_size=1, max_size=40))
def test_tallies_give_the_alpha_of_the_verdicts(cases: list[list[str]]) -> None:
    """Counts instead of cases change nothing; with all votes in, alpha is Fleiss' kappa nearly."""
    tallies: dict[tuple[int, ...], int] = {}
    for words in cases:
        tally = tuple(words.count(word) for word in "pfu")
        tallies[tally] = tallies.get(tally, 0) + 1
    alpha, kappa = alpha_of_tallies(tallies), fleiss_kappa(cases)
    assert alpha == pytest.approx(krippendorff_alpha(cases)) if alpha is not None else kappa is None
    if alpha is not None and kappa is not None:
        n = 3 * len(cases)
        assert alpha == pytest.approx(1 - (1 - kappa) * (n - 1) / n)
