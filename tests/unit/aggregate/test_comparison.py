"""Two runs are paired by what their items are, and only more than chance is called worse."""

from typing import Any

import pytest

from producer.aggregate.compared_items import Items, items_of, lines_of_results
from producer.aggregate.comparison import Comparison, compare
from producer.report.comparison.wording import counted, headline, score_rows, sentences
from shared.kinds import CASES, QUERIES, TURNS
from tests.support.query_results import answered, one_of_each


def case(number: int, outcome: str = "passed", **changes: Any) -> dict[str, Any]:
    """A line of a cases run."""
    result = {
        "model": changes.get("model", "m"),
        "case_index": number,
        "case_id": changes.get("name"),
        "repeat_index": changes.get("repeat", 0),
        "metrics": {"rouge_l": changes.get("rouge", 0.5)},
    }
    line = {"outcome": outcome, "cached": False, "latency_ms": changes.get("ms", 100), "cost_usd": 0.01}
    return line | {"result": None if outcome == "skipped" else result}


def turn(thread: str, message: str, decision: str | None = "must") -> dict[str, Any]:
    """A line of a turns run."""
    result = {"threadId": thread, "messageId": message, "decision": decision, "response": None}
    return {
        "outcome": "decided" if decision else "error",
        "latency_ms": 3,
        "cost_usd": None,
        "result": result,
    }


def cases(*lines: dict[str, Any]) -> Items:
    """The items of a cases run."""
    return items_of(CASES, lines)


def compared(worse: int, total: int = 40, **options: Any) -> Comparison:
    """A run of which B breaks some cases."""
    before = [case(number) for number in range(total)]
    after = [case(number, "failed" if number < worse else "passed") for number in range(total)]
    return compare(CASES, cases(*before), cases(*after), **options)


def test_items_meet_whatever_their_order() -> None:
    """Fixed, broken, unchanged, changed, only in one of the runs, skipped: each item is counted once."""
    a = cases(
        case(0), case(1, "failed"), case(2), case(3, "failed"), case(4, name="four"), case(9, "skipped")
    )
    b = cases(case(3, "error"), case(2), case(1), case(0, "failed"), case(7))
    found = compare(CASES, a, b).as_document()
    assert found["counts"] == {
        "pairs": 4,
        "fixed": 1,
        "broken": 1,
        "changed": 1,
        "unchanged": 1,
        "only_a": 1,
        "only_b": 1,
        "skipped_a": 1,
        "skipped_b": 0,
    }
    assert found["broken"] == [{"item": "case 1 · m", "a": "passed", "b": "failed"}]
    assert found["fixed"] == [{"item": "case 2 · m", "a": "failed", "b": "passed"}]
    assert (found["only_a"], found["only_b"]) == (["four · m"], ["case 8 · m"])
    assert found["transitions"] == {"passed → failed": 1, "failed → passed": 1, "failed → error": 1}


@pytest.mark.parametrize(("worse", "regressions"), [(0, []), (1, []), (4, []), (5, ["outcomes"])])
def test_only_more_than_chance_is_a_regression(worse: int, regressions: list[str]) -> None:
    """One lone broken case is none, nor are four of forty; five are."""
    assert compared(worse).regressions == regressions


def test_the_other_way_round_it_is_better() -> None:
    """Swapping the runs swaps the verdict and keeps the p-value."""
    a = cases(*[case(number, "failed") for number in range(8)])
    b = cases(*[case(number) for number in range(8)])
    there, back = compare(CASES, a, b), compare(CASES, b, a)
    assert (there.verdict, back.verdict) == ("better", "worse")
    assert there.test.p_value == back.test.p_value
    assert [score.difference.value for score in there.scores if score.name == "pass_rate"] == [1.0]


def test_repeats_and_models_of_one_case_count_once() -> None:
    """Ten repeats of one broken case prove as much as one: a case is the unit of the test."""
    before = cases(*[case(0, repeat=repeat, model=model) for repeat in range(5) for model in "mn"])
    after = cases(*[case(0, "failed", repeat=repeat, model=model) for repeat in range(5) for model in "mn"])
    found = compare(CASES, before, after)
    assert (len(found.broken), found.units, found.worse, found.regressions) == (10, 1, 1, [])


def test_two_models_are_compared_case_by_case() -> None:
    """When each run asked one model, and not the same, the cases meet in spite of it."""
    found = compare(CASES, cases(case(0), case(1)), cases(case(0, model="n"), case(1, model="n")))
    assert (found.pairs, found.models) == (2, ("m", "n"))


def test_scores_decide_only_when_they_are_asked_to() -> None:
    """Slower and longer answers are reported with their intervals; `judged` makes them a regression."""
    a = cases(*[case(number, ms=100 + number) for number in range(30)])
    b = cases(*[case(number, ms=150 + 2 * number, rouge=0.5) for number in range(30)])
    assert compare(CASES, a, b).regressions == []
    judged = compare(CASES, a, b, judged=("latency_ms", "rouge_l"))
    assert judged.regressions == ["latency_ms"]
    assert judged.level_each == pytest.approx(0.05 / 3)
    latency = judged.as_document()["scores"]["latency_ms"]
    assert (latency["difference"], latency["significant"]) == (64.5, True)
    assert compare(CASES, b, a, judged=("latency_ms",)).regressions == []


def test_turns_are_paired_by_thread_and_message() -> None:
    """Other decisions are changes, errors are breaks, and a message id that comes twice makes two items."""
    a = items_of(TURNS, [turn("t", "1"), turn("t", "1", "skip"), turn("t", "2"), turn("u", "1")])
    b = items_of(TURNS, [turn("t", "1"), turn("t", "1", "must"), turn("t", "2", None), turn("u", "1")])
    found = compare(TURNS, a, b).as_document()
    assert found["changed"] == [{"item": "t · 1 #2", "a": "skip", "b": "must"}]
    assert found["broken"] == [{"item": "t · 2", "a": "must", "b": "error"}]
    assert list(found["scores"]) == ["pass_rate"]


def test_queries_are_read_from_the_harness_document() -> None:
    """Results without an envelope have the same outcomes and scores; repeats of an id meet in order."""
    a = items_of(QUERIES, lines_of_results([*one_of_each(), answered("Q-01", "no")]))
    b = items_of(QUERIES, lines_of_results([*one_of_each(), answered("Q-01")]))
    found = compare(QUERIES, a, b).as_document()
    assert found["fixed"] == [{"item": "Q-01 #2", "a": "failed", "b": "passed"}]
    assert list(found["scores"]) == ["pass_rate", "keywords_found", "latency_ms"]
    assert found["unchanged"]["error"] == 1


def test_sentences_say_how_sure_it_is() -> None:
    """The verdict, the interval, how often chance does the same, and what is in doubt."""
    lost = compared(9, 9).as_document()
    assert headline(lost) == "B is worse: 9 answers broken, none fixed"
    assert sentences(lost)[0].startswith("Pass rate 100.0 % → 0.0 %, a loss of 100.0 points (95 % interval")
    assert (
        "9 of 9 cases got worse, 0 better; by chance alone, so uneven a split comes up" in sentences(lost)[1]
    )
    assert "once in 510 comparisons (McNemar p = 0.002, level 0.05)." in sentences(lost)[1]
    few = compared(2, 6).as_document()
    assert headline(few) == "No significant difference: 2 answers broken, none fixed"
    assert sentences(few)[1].endswith("6 cases cannot tell A and B apart.")
    same = compared(0).as_document()
    assert (headline(same), sentences(same)) == (
        "Nothing changed: all 40 answers ended as before",
        [
            "Pass rate 100.0 % in both (95 % interval of the change -6.6 to +6.6, paired by case).",
            "None of 40 cases got better or worse.",
        ],
    )
    assert counted(lost) == "pairs 9 · broken 9 · fixed 0 · changed 0 · unchanged 0"
    assert score_rows(lost)[0][:4] == ["passed, pairs", "100.0 %", "0.0 %", "-100.0 pts *"]
