"""Two runs are paired by what their items are, and only more than chance is called worse."""

import tracemalloc
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pytest

from producer import kinds
from producer.aggregate.compared_items import Items, items_of, lines_of_results
from producer.aggregate.comparison import (
    ChangedItem,
    ComparedCounts,
    ComparedNames,
    CompareDocument,
    ComparedSide,
    Comparison,
    compare,
)
from producer.cases.case_groups import ScoreMean
from producer.report.comparison.wording import counted, headline, score_table, sentences, transitions
from shared.kinds import CASES, QUERIES, TURNS, Kind
from tests.support.comparisons import known_line
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


def document_of(found: Comparison) -> CompareDocument:
    """A comparison of two runs without names, for programs."""
    return found.as_document(ComparedSide("a", ""), ComparedSide("b", ""))


def turn(thread: str, message: str, decision: str | None = "must") -> dict[str, Any]:
    """A line of a turns run."""
    result = {"threadId": thread, "messageId": message, "decision": decision, "response": None}
    return {
        "outcome": "decided" if decision else "error",
        "latency_ms": 3,
        "cost_usd": None,
        "result": result,
    }


def items(kind: Kind, lines: Iterable[Mapping[str, Any]]) -> Items:
    """The items of a run of any kind."""
    comparing = kinds.of(kind).compared().comparing
    return items_of(comparing, (known_line(comparing, line) for line in lines))


def cases(*lines: dict[str, Any]) -> Items:
    """The items of a cases run."""
    return items(CASES, lines)


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
    found = document_of(compare(CASES, a, b))
    assert found.counts == ComparedCounts(
        pairs=4,
        fixed=1,
        broken=1,
        changed=1,
        unchanged=1,
        only_a=1,
        only_b=1,
        skipped_a=1,
        skipped_b=0,
    )
    assert found.broken == (ChangedItem("case 1 · m", "passed", "failed"),)
    assert found.fixed == (ChangedItem("case 2 · m", "failed", "passed"),)
    assert (found.only_a, found.only_b) == (("four · m",), ("case 8 · m",))
    assert found.transitions == {"passed → failed": 1, "failed → passed": 1, "failed → error": 1}


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
    assert there.scores["pass_rate"].difference == 1.0


def test_repeats_and_models_of_one_case_count_once() -> None:
    """Ten repeats of one broken case prove as much as one: a case is the unit of the test."""
    before = cases(*[case(0, repeat=repeat, model=model) for repeat in range(5) for model in "mn"])
    after = cases(*[case(0, "failed", repeat=repeat, model=model) for repeat in range(5) for model in "mn"])
    found = compare(CASES, before, after)
    assert (found.counts.broken, found.test.units, found.test.worse) == (10, 1, 1)
    assert found.regressions == []


def test_two_models_are_compared_case_by_case() -> None:
    """When each run asked one model, and not the same, the cases meet in spite of it."""
    found = compare(CASES, cases(case(0), case(1)), cases(case(0, model="n"), case(1, model="n")))
    assert (found.counts.pairs, found.models) == (2, ComparedNames("m", "n"))


def test_scores_decide_only_when_they_are_asked_to() -> None:
    """Slower and longer answers are reported with their intervals; `judged` makes them a regression."""
    a = cases(*[case(number, ms=100 + number) for number in range(30)])
    b = cases(*[case(number, ms=150 + 2 * number, rouge=0.5) for number in range(30)])
    assert compare(CASES, a, b).regressions == []
    judged = compare(CASES, a, b, judged=("latency_ms", "rouge_l"))
    assert judged.regressions == ["latency_ms"]
    assert judged.test.level_each == pytest.approx(0.05 / 3)
    latency = judged.scores["latency_ms"]
    assert (latency.difference, latency.significant) == (64.5, True)
    assert compare(CASES, b, a, judged=("latency_ms",)).regressions == []


def test_turns_are_paired_by_thread_and_message() -> None:
    """Other decisions are changes, errors are breaks, and a message id that comes twice makes two items."""
    a = items(TURNS, [turn("t", "1"), turn("t", "1", "skip"), turn("t", "2"), turn("u", "1")])
    b = items(TURNS, [turn("t", "1"), turn("t", "1", "must"), turn("t", "2", None), turn("u", "1")])
    found = document_of(compare(TURNS, a, b))
    assert found.changed == (ChangedItem("t · 1 #2", "skip", "must"),)
    assert found.broken == (ChangedItem("t · 2", "must", "error"),)
    assert list(found.scores) == ["pass_rate"]


def test_queries_are_read_from_the_harness_document() -> None:
    """Results without an envelope have the same outcomes and scores; repeats of an id meet in order."""
    a = items(QUERIES, lines_of_results([*one_of_each(), answered("Q-01", "no")]))
    b = items(QUERIES, lines_of_results([*one_of_each(), answered("Q-01")]))
    found = document_of(compare(QUERIES, a, b))
    assert found.fixed == (ChangedItem("Q-01 #2", "failed", "passed"),)
    assert list(found.scores) == ["pass_rate", "keywords_found", "latency_ms"]
    assert found.unchanged["error"] == 1


def test_sentences_say_how_sure_it_is() -> None:
    """The verdict, the test that it follows, the interval, and what is in doubt; cases are counted in all."""
    lost = compared(9, 9)
    assert headline(lost) == "B is worse: 9 of 9 cases broken, nothing fixed"
    test, rate = sentences(lost)
    assert test == (
        "9 of 9 cases got worse, none better, which is more than chance"
        " (McNemar's mid-p test: p = 0.002, level 0.05)."
    )
    assert rate == "Pass rate 100.0% → 0.0%, a loss of 100.0 points (95% interval -100.0 to -47.8)."
    few = compared(2, 6)
    assert headline(few) == "No significant difference: 2 of 6 cases broken, nothing fixed"
    assert sentences(few)[0] == (
        "2 of 6 cases got worse, none better, which may be chance"
        " (McNemar's mid-p test: p = 0.25, level 0.05); 2 changed cases are too few to decide."
    )
    same = compared(0)
    assert (headline(same), sentences(same)) == (
        "Nothing changed: all 40 cases ended as before",
        [
            "None of 40 cases got better or worse.",
            "Pass rate 100.0% in A and B (95% interval of the change -6.6 to +6.6).",
        ],
    )
    assert counted(lost) == "9 cases in both: 9 broken."
    assert score_table(lost).rows[0][:4] == ["pass rate", "100.0%", "0.0%", "-100.0 pts *"]


def flipped(broken: int, fixed: int, total: int = 40, *, answers: int = 1, **options: Any) -> Comparison:
    """A comparison of which B breaks some cases and fixes others, each with so many answers."""
    worse, better = range(broken), range(broken, broken + fixed)
    sides = [
        [
            case(number, "failed" if number in failed else "passed", repeat=repeat)
            for number in range(total)
            for repeat in range(answers)
        ]
        for failed in (better, worse)
    ]
    return compare(CASES, *(cases(*side) for side in sides), **options)


@pytest.mark.parametrize(
    ("broken", "fixed", "answers", "headed"),
    [
        (7, 1, 1, "B is worse: 7 of 40 cases broken, 1 fixed"),
        (1, 9, 1, "B is better: 1 of 40 cases broken, 9 fixed"),
        (0, 9, 1, "B is better: 9 of 40 cases fixed, nothing broken"),
        (7, 1, 2, "B is worse: 14 of 80 answers broken, 2 fixed"),
    ],
)
def test_broken_is_counted_before_fixed(broken: int, fixed: int, answers: int, headed: str) -> None:
    """The order is the same whoever wins, zeros are words, and several answers of a case are no cases."""
    assert headline(flipped(broken, fixed, answers=answers)) == headed


def test_answers_and_cases_are_named_where_they_differ() -> None:
    """Answers are counted with the cases that they belong to; the table and the test count cases."""
    document = flipped(7, 1, answers=2)
    assert counted(document) == "80 answers (40 cases) in both: 14 broken, 2 fixed, 64 unchanged."
    assert sentences(document)[0].startswith("7 of 40 cases got worse, 1 better, which is more than chance")
    table = score_table(document)
    assert table.headings == ("score", "A", "B", "change", "95% interval", "cases")
    assert table.rows[0][-1] == "40"


def test_what_is_not_in_both_runs_is_counted() -> None:
    """The rate that is compared is of what both runs have, and is called that."""
    a = cases(*[case(number) for number in range(6)], case(9, "skipped"))
    b = cases(*[case(number, "failed" if number < 2 else "passed") for number in range(8)])
    found = sentences(compare(CASES, a, b))
    assert found[1].startswith("Pass rate over the 6 answers (6 cases) in both: 100.0% → 66.7%, a loss of")
    assert found[-1] == "Not compared: 2 answers only in B, 1 answer skipped in A."


@pytest.mark.parametrize("total", [6, 40, 100])
def test_the_interval_never_contradicts_the_verdict(total: int) -> None:
    """Where the interval of the rate and McNemar's test disagree, a sentence names the test that decides."""
    number = 0
    for broken in range(min(total, 16)):
        for fixed in range(min(broken, total - broken) + 1):
            document = flipped(broken, fixed, total)
            differs = (document.scores["pass_rate"].high < 0) != (document.verdict == "worse")
            assert any("the verdict follows the test" in each for each in sentences(document)) == differs
            has_star = score_table(document).rows[0][3].endswith(" *")
            assert has_star == (document.verdict == "worse")
            number += differs
    assert number > 0


def test_a_p_value_is_on_its_side_of_the_level() -> None:
    """A p of 0.0501 is not written as 0.05 beside a level of 0.05."""
    document = flipped(21, 10)
    assert document.verdict == "no significant difference"
    assert "(McNemar's mid-p test: p = 0.0501, level 0.05)." in sentences(document)[0]


def test_a_handful_of_cases_has_no_interval_and_decides_nothing() -> None:
    """An interval resampled from a few cases that all became slower is narrow, and wrong too often."""

    def slower(total: int) -> Comparison:
        a = cases(*[case(number, ms=100 + number) for number in range(total)])
        b = cases(*[case(number, ms=200 + 2 * number) for number in range(total)])
        return compare(CASES, a, b, judged=("latency_ms",))

    few, enough = slower(5), slower(6)
    assert (few.regressions, enough.regressions) == ([], ["latency_ms"])
    assert [each.scores["latency_ms"].significant for each in (few, enough)] == [False, True]
    rows = [score_table(each).rows[2] for each in (few, enough)]
    assert [row[3:5] for row in rows] == [["+102 ms", "-"], ["+102 ms *", "+101 to +104"]]


def test_a_judged_score_says_why_b_is_worse() -> None:
    """Its interval is in a sentence, and outcomes that are worse too are not hidden by it."""
    a = cases(*[case(number, ms=100 + number) for number in range(30)])
    b = cases(*[case(number, "failed" if number < 9 else "passed", ms=200) for number in range(30)])
    document = compare(CASES, a, b, judged=("latency_ms",))
    assert headline(document) == "B is worse, also in latency: 9 of 30 cases broken, nothing fixed"
    assert sentences(document)[1].startswith(
        "Mean latency is worse by more than chance: +86 ms (97.5% interval +"
    )


def test_items_are_called_by_what_the_test_counts() -> None:
    """A case with one answer is a case, with several each is an answer; of turns, decisions change."""
    words = ("must", "must", "skip", "should")
    turns = [[turn("t", str(at), word) for at, word in enumerate(each)] for each in (words, words[::-1])]
    found = compare(TURNS, *(items(TURNS, each) for each in turns))
    assert headline(found) == "No significant difference: 4 of 4 decisions changed, nothing broken"
    assert counted(found) == "4 turns (1 thread) in both: 4 changed."
    rate = "(100.0%, 95% interval 20.6-100.0%)"
    listed = "1 must → should, 1 must → skip, 1 skip → must, 1 should → must"
    assert transitions(found) == f"4 of 4 turns ended differently {rate}: {listed}."
    assert transitions(flipped(3, 2)) == "", "broken and fixed say the same"
    lone = compare(CASES, cases(case(0)), cases(case(0)))
    assert headline(lone) == "Nothing changed: the only case ended as before"
    partly = compare(CASES, cases(case(0), case(1)), cases(case(0)))
    assert headline(partly) == "Nothing changed: the only answer ended as before"


CHANCE: Final = "by chance, this happens for 1 in 20 unchanged scores."


@pytest.mark.parametrize(
    ("broken", "ms", "note"),
    [
        (9, 100, "* more than chance, by McNemar's test."),
        (0, 150, f"* the interval leaves out 0; {CHANCE}"),
        (
            9,
            150,
            "* more than chance: pass rate by McNemar's test, other scores where the interval leaves out 0; "
            + CHANCE,
        ),
        (0, 100, ""),
    ],
)
def test_a_star_is_explained_where_there_is_one(broken: int, ms: int, note: str) -> None:
    """The note says which test made it."""
    a = cases(*[case(number) for number in range(30)])
    b = cases(*[case(n, "failed" if n < broken else "passed", ms=ms + n % 2 * (ms > 100)) for n in range(30)])
    assert score_table(compare(CASES, a, b)).note == note


def test_memory_of_a_pair_is_bounded() -> None:
    """Runs of 100,000 items are compared in memory, so a pair with six scores takes less than 2 kB."""
    number, names = 3_000, ("contains: 14 days", "brief")

    def lines(ms: float) -> Iterator[dict[str, Any]]:
        for each in range(number):
            line = case(each, name=f"case-{each}", ms=ms + each, rouge=each / number)
            checks = [{"name": name, "score": each / number} for name in names]
            yield line | {"result": line["result"] | {"checks": checks, "score": each / number}}

    def peak() -> int:
        tracemalloc.start()
        try:
            a, b = (items(CASES, lines(ms)) for ms in (100.5, 200.5))
            assert compare(CASES, a, b).counts.pairs == number
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # The first time may import modules, and a thread that another test has left may allocate meanwhile.
    assert any(peak() / number < 2_000 for _ in range(3))


def weighted(number: int, score: float, weight: float, prompt: str = "") -> dict[str, Any]:
    """A line of a case that counts by its weight."""
    line = case(number, "passed" if score == 1 else "failed", name=f"case-{number}")
    return line | {"result": line["result"] | {"score": score, "weight": weight, "prompt_id": prompt}}


def test_scores_count_by_the_weights_of_cases_as_in_reports() -> None:
    """The mean score is the one of report and gate, in two runs and within one; the rate counts answers."""
    answers = [(0, 1.0, 9.0), (1, 0.0, 1.0), (1, 0.5, 1.0), (2, 0.25, 2.0)]
    mean = ScoreMean()
    for number, score, weight in answers:
        mean.add(number, score, weight)
    lines = [
        line | {"result": line["result"] | {"repeat_index": at}}
        for at, answer in enumerate(answers)
        for line in [weighted(*answer)]
    ]
    reported = mean.summary()
    found = compare(CASES, cases(*lines), cases(*lines)).scores
    assert reported is not None
    assert (round(found["score"].a, 4), round(found["score"].b, 4)) == (reported.value,) * 2
    assert found["pass_rate"].a == 0.25
    both = cases(*(weighted(at, score, 9 - 8 * at, by) for by in "ab" for at, score in enumerate((1.0, 0.0))))
    parts = both.parts("prompt")
    within = compare(CASES, parts["a"], parts["b"]).scores
    assert (within["score"].a, within["pass_rate"].a) == (0.9, 0.5)


def test_an_edited_expectation_is_no_regression() -> None:
    """Pairs that were judged by another expectation are listed and named, and no test counts them."""
    hashes = [{"input_hash": "aa", "expectation_hash": each} for each in ("bb", "cc")]
    before = cases(*[case(number) | hashes[0] for number in range(12)])
    edited = range(9)
    after = cases(
        *[case(at, "failed" if at in edited else "passed") | hashes[at in edited] for at in range(12)]
    )
    found = compare(CASES, before, after, judged=("score",))
    document = document_of(found)
    assert (found.counts.broken, found.test.worse, found.regressions) == (9, 0, [])
    assert found.scores["pass_rate"].n == 3
    assert document.expectation_changed == tuple(f"case {at + 1} · m" for at in edited)
    assert document.input_changed == ()
    assert headline(found).startswith("No significant difference: 9 of 12 cases broken")
    assert (
        "9 of the 9 that ended differently had another expectation in A: no test counts this."
        in sentences(found)
    )
    other = cases(*[case(at) | hashes[0] | {"input_hash": "dd" if at == 3 else "aa"} for at in range(12)])
    assert document_of(compare(CASES, before, other)).input_changed == ("case 4 · m",)


def test_weights_decide_with_a_judged_score() -> None:
    """A heavy case that became worse outweighs many light ones that became better by as much."""
    before = cases(*(weighted(number, 0.5, 100.0 if number < 9 else 1.0) for number in range(18)))
    after = cases(*(weighted(number, *((0.2, 100.0) if number < 9 else (0.8, 1.0))) for number in range(18)))
    light = [item._replace(weight=1.0) for item in after.items]
    score = compare(CASES, before, after).scores["score"]
    assert round(score.difference, 3) == -0.294
    assert score.high < 0
    even = compare(CASES, before, after._replace(items=light), judged=("score",))
    assert even.regressions == []
    assert compare(CASES, before, after, judged=("score",)).regressions == ["score"]
