"""Reports of two runs beside each other: what differs, both answers, and nothing that text could break."""

from dataclasses import replace
from typing import Any

import pytest

from producer.aggregate.comparison import ComparedSide, compare
from producer.cli.compare_inputs import sides_within
from producer.report.comparison.contents import Contents
from producer.report.comparison.to_html import comparison_page
from producer.report.comparison.to_markdown import comparison_markdown
from shared.contracts.case_hashes import hash_of
from shared.kinds import CASES, QUERIES, TURNS
from tests.support.comparisons import ALIKE, case_line, comparison
from tests.support.query_results import HOSTILE, answered
from tests.support.viewer_pages import unpacked


def page_of(contents: Contents) -> str:
    """The page of a comparison."""
    return b"".join(comparison_page(contents)).decode()


def text_of(contents: Contents) -> str:
    """The Markdown of a comparison."""
    return "\n".join(comparison_markdown(contents))


def test_markdown_begins_with_the_verdict_and_has_both_answers() -> None:
    """Broken first, with the reason; an error may be the API; equal answers are only counted."""
    before = [
        case_line(1, "within 14 days"),
        case_line(2, "Two left."),
        case_line(3, "no", is_good=False),
        case_line(4, "the shop opens at ten"),
        case_line(5, "the same"),
    ]
    after = [
        case_line(1, "within 30 days", is_good=False),
        case_line(2, None),
        case_line(3, "yes"),
        case_line(4, "the shop opens at eleven"),
        case_line(5, "the same"),
    ]
    with comparison(before, after) as contents:
        text = text_of(contents)
        assert [shown.sort for shown in contents.pairs()] == ["broken", "broken", "fixed", "text"]
    assert text.splitlines()[2] == "**= No significant difference: 2 of 5 cases broken, 1 fixed**"
    assert "1 of the 2 broken ended in an error in B: that may be the API and not the change." in text
    assert '| case-1 · m | passed | failed | does not contain "14 days" |' in text
    assert "| case-2 · m | passed | error | no answer within 60 s |" in text
    assert "<pre>A: within <del>14</del> days</pre>\n<pre>B: within <ins>30</ins> days</pre>" in text
    assert text.index("## Broken") < text.index("## Fixed") < text.index("## Other answers")
    assert "case-5" not in text


def test_the_page_names_its_first_column_and_sets_fenced_answers_as_code() -> None:
    """The head above the names says what they are of, and code in fences has the face of code."""
    fenced = "```json\n{}\n```"
    with comparison([case_line(1, "no", is_good=False)], [case_line(1, fenced)]) as contents:
        page = unpacked(page_of(contents))
    assert '<div class="headlead"><b>Case</b>' in page
    assert page.count('class="out code"') == 1


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (None, None, "The reports do not say how the runs were configured"),
        ({"temperature": 0.1}, {"temperature": 0.1}, "No setting differs: what changed is chance"),
        (
            {"system prompt": "a\nb", "models": ["m"]},
            {"system prompt": "a\nc\nd", "models": ["m", "n"]},
            "2 things differ: system prompt (1 line removed, 2 added); models m → m, n.",
        ),
        ({"recorded outputs": True}, {"recorded outputs": True}, "the recorded outputs are the same"),
        (
            {"schema": None},
            {"schema": {"type": "object"}},
            "One thing differs: schema (1 line removed, 3 added).",
        ),
    ],
)
def test_what_differs_between_the_runs_is_one_line(before: Any, after: Any, sentence: str) -> None:
    """Settings by their names; long ones by their lines; what reports do not contain is not claimed."""
    lines = [[case_line(1, "yes", is_good=is_good, known=ALIKE)] for is_good in (True, False)]
    with comparison(*lines, configurations=(before, after)) as contents:
        assert sentence in contents.differences
    with comparison(lines[0], lines[0], configurations=({}, {})) as contents:
        assert contents.differences == "No setting differs."


def test_settings_of_reports_are_not_all_settings() -> None:
    """A report contains a few: that none of them differs proves nothing."""
    line = [case_line(1, "yes", known=ALIKE)]
    for models, sentence in ((["m"], "Of the settings in the reports, none differs"), (["n"], "Of what the")):
        with comparison(line, line, configurations=({"models": ["m"]}, {"models": models})) as contents:
            one, other = (side._replace(is_stored=False) for side in contents.sides)
            assert replace(contents, sides=(one, other)).differences.startswith(sentence)


def test_other_inputs_and_criteria_are_counted_by_case() -> None:
    """What was asked belongs to what differs, wherever a run says it."""
    before = [case_line(number, "yes", known=ALIKE) for number in range(3)]
    other = ALIKE._replace(asked=hash_of("Why?"))
    after = [case_line(number, "yes", known=other if number else ALIKE) for number in range(3)]
    with comparison(before, after, configurations=({}, {})) as contents:
        assert contents.differences == "One thing differs: input of cases case-1 and case-2."


def test_groups_are_compared_one_by_one() -> None:
    """By model, prompt and tag, with the split of each."""
    before = [case_line(number, "yes", model=model, tags=["easy"]) for number in range(8) for model in "mn"]
    after = [
        case_line(number, "no", model=model, is_good=model == "n", tags=["easy"])
        for number in range(8)
        for model in "mn"
    ]
    with comparison(before, after) as contents:
        groups = contents.groups
        text = text_of(contents)
    assert list(groups) == ["model"]
    assert [(group.name, group.passed, group.broken) for group in groups["model"]] == [
        ("m", [8, 0], 8),
        ("n", [8, 8], 0),
    ]
    assert groups["model"][0].p_value < 0.01
    assert "| m | 8 | 8 | 0 | 8 | 0 | 0.0039 |" in text


def test_all_kinds_have_texts() -> None:
    """Queries show the answer and their checks, turns the decision, other items their result."""
    queries = [
        {"outcome": "failed", "error": None, "result": answered("Q-1", word)} for word in ("no", "nay")
    ]
    with comparison(queries[:1], queries[1:], kind=QUERIES) as contents:
        [shown] = contents.pairs()
    assert (shown.sort, shown.before.asked, shown.after.answer) == ("text", "What about Q-1?", "nay")
    assert shown.after.reason.startswith("must_contain: ")
    turn: dict[str, Any] = {"threadId": "t", "messageId": "1", "reason": "the message is only thanks"}
    decided = [
        {
            "outcome": "decided",
            "error": None,
            "message": "ok",
            "result": turn | {"decision": word, "response": None},
        }
        for word in ("must", "skip")
    ]
    with comparison(decided[:1], decided[1:], kind=TURNS) as contents:
        [shown] = contents.pairs()
    assert (shown.sort, shown.after.answer) == ("changed", "skip: the message is only thanks")


def test_hostile_text_stays_text() -> None:
    """Names, reasons and answers end no cell and no element."""
    before = [case_line(number, HOSTILE, case_id=f"{HOSTILE}{number}") for number in range(2)]
    after = [
        case_line(number, f"</pre>{HOSTILE}", case_id=f"{HOSTILE}{number}", is_good=False, message=HOSTILE)
        for number in range(2)
    ]
    with comparison(before, after, names=(HOSTILE, HOSTILE)) as contents:
        text = text_of(contents)
    assert "<script>" not in text
    assert "</pre>a" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_and_b_are_named_before_their_scores() -> None:
    """The table of A and B, with time, size and rate, stands below the verdict and above all scores."""
    lines = [case_line(number, "yes") for number in range(8)]
    with comparison(lines, lines) as contents:
        text = text_of(contents)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    figures = "8 | 100.0% (67.6-100.0) | 900 ms | $0.0080, $0.001000 per answer |"
    assert rows[:4] == [
        "| | run | input | started (UTC) | cases | passed (95% interval) | 95th percentile | cost |",
        "| --- | --- | --- | --- | ---: | --- | --- | --- |",
        f"| A | run-a | bench.yaml | 2026-11-22 17:20 | {figures}",
        f"| B | run-b | bench.yaml | 2026-11-22 17:20 | {figures}",
    ]
    assert rows[4].startswith("| score | A | B |")


def test_a_total_is_compared_only_with_one_of_the_same_items() -> None:
    """Twice as many answers cost twice as much, which is no change; the cost of one is compared then."""
    before = [case_line(number, "yes") for number in range(4)]
    slower = [case_line(number, "yes", ms=1800) | {"cost_usd": 0.002} for number in range(8)]
    with comparison(before, slower) as contents:
        unequal = contents.figures
    with comparison(before, slower[:4]) as contents:
        equal = contents.figures
    assert [(side.total, side.p95, side.cost) for side in unequal] == [
        (4, "900 ms", "$0.0040, $0.001000 per answer"),
        (8, "1,800 ms", "$0.02, $0.002000 per answer"),
    ]
    assert (equal[1].p95, equal[1].cost) == ("1,800 ms", "$0.0080, $0.002000 per answer")


def test_latencies_of_copies_are_left_out_and_the_rest_counted() -> None:
    """Cached answers have no part in means and percentiles; a percentile of other items has no change."""
    before = [case_line(number, "yes") for number in range(8)]
    after = [
        case_line(number, "yes", ms=1800) | ({"cached": True, "latency_ms": 9000} if number else {})
        for number in range(8)
    ]
    with comparison(before, after) as contents:
        sides, latency = contents.figures, contents.found.scores["latency_ms"]
    assert [side.p95 for side in sides] == ["900 ms", "1,800 ms (1 timed)"]
    assert (latency.b, latency.n) == (1800, 1)


def test_checks_that_did_not_change_are_folded() -> None:
    """A bench with a check for each case has no table of a hundred equal rows; a star is explained."""
    checks = [[{"name": name, "passed": True, "score": score} for name in "xy"] for score in (1.0, 0.25)]
    before = [case_line(number, "yes", checks=checks[0]) for number in range(8)]
    after = [case_line(number, "yes", checks=[checks[1][0], checks[0][1]]) for number in range(8)]
    with comparison(before, after) as contents:
        text = text_of(contents)
    assert "| check:x | 1.000 | 0.250 | -0.750 | - | 8 |" in text
    assert "<summary>1 check with the same mean in both</summary>" in text
    assert text.index("| check:x") < text.index("<details>") < text.index("| check:y")
    assert "chance" not in text
    after = [case_line(number, "no", is_good=False) for number in range(8)]
    with comparison(before, after) as contents:
        text = text_of(contents)
    assert "| pass rate | 100.0% | 0.0% | -100.0 pts \\* |" in text
    assert "\n\\* more than chance, by McNemar's test.\n" in text


def test_other_arguments_of_a_tool_call_are_another_answer() -> None:
    """Calls are shown as they are in results, so that two that differ are not shown as the same."""
    calls = [
        [{"type": "function", "function": {"name": "weather", "arguments": f'{{"city": "{city}"}}'}}]
        for city in ("Paris", "paris")
    ]
    before, after = ([case_line(1, "", tool_calls=call)] for call in calls)
    with comparison(before, after) as contents:
        [shown] = contents.pairs()
    assert (shown.before.answer, shown.after.answer) == (
        'weather({"city": "Paris"})',
        'weather({"city": "paris"})',
    )


def test_parts_of_one_run_are_named_by_what_is_compared() -> None:
    """Two models of a run are called by their names, and the run that both belong to stands beside them."""
    lines = [case_line(number, "yes", model=model) for number in range(3) for model in "mn"]
    with comparison(lines, lines) as contents:
        one, other = sides_within(contents.sides[0], "model", None)
        found = compare(CASES, one.items, other.items)
        document = found.as_document(one.as_document(), other.as_document())
        within = Contents(document, found, (one, other), "proctor compare run-a --by model")
        rows = [line for line in comparison_markdown(within) if line.startswith("| ")]
        named = [(side.letter, side.title, side.run_id, side.source) for side in within.figures]
    assert rows[0].startswith("| | model | input | started (UTC) | cases |")
    assert named == [("A", "m", "run-a", "bench.yaml"), ("B", "n", "run-a", "bench.yaml")]
    assert document.a == ComparedSide("run-a model m", "bench.yaml")


def test_runs_of_different_inputs_are_called_so_first() -> None:
    """Before the figures, with both benches and files; runs of one file, or of unknown ones, are not."""
    lines = [case_line(1, "yes")]
    with comparison(lines, lines) as contents:
        one, other = contents.sides
        assert contents.other_input == ""
        unlike = replace(contents, sides=(one._replace(bench="capitals"), other._replace(source="b.yaml")))
        text = text_of(unlike)
        page = page_of(unlike)
        unknown = replace(contents, sides=(one, other._replace(source="")))
        assert unknown.other_input == ""
    sentence = "These runs are of different inputs: A of capitals (bench.yaml), B of b.yaml."
    assert text.index(sentence) < text.index("| A |")
    assert page.index(sentence) < page.index("A, before")


def test_answers_that_are_judged_again_are_of_the_same_input() -> None:
    """A rescored run of the same bench has another source, which the settings explain."""
    lines, settings = [case_line(1, "yes")], ({"recorded outputs": False}, {"recorded outputs": True})
    with comparison(lines, lines, configurations=settings) as contents:
        one, other = (side._replace(bench="capitals") for side in contents.sides)
        again = replace(contents, sides=(one, other._replace(source="answers of another run")))
        assert again.other_input == ""
        assert again.differences == "One thing differs: recorded outputs false → true."


def test_the_panel_has_what_was_sent_what_was_checked_and_a_command() -> None:
    """System message, checks by their names, and the command that asks B again."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How long?"}]
    rubric = {"name": "rubric: Says that it does not exist.", "check": "rubric", "score": 0.25}
    checks = [[rubric | {"passed": passed, "reason": "It has 0 words of it."}] for passed in (True, False)]
    sides = [
        [case_line(1, text, is_good=is_good, checks=found, messages=messages, item_id="case-1")]
        for text, is_good, found in (("14 days", True, checks[0]), ("30 days", False, checks[1]))
    ]
    with comparison(*sides, configurations=({}, {})) as contents:
        one, other = (side._replace(label=side.name[-1:]) for side in contents.sides)
        page = page_of(replace(contents, sides=(one, other)))
        text = text_of(contents)
    assert 'data-part="system">Be brief.</div>' in page
    assert '<th scope="row" dir="auto">rubric: Says that it does not exist.</th>' in page
    assert "proctor retry run-b --item case-1" in page
    assert "rubric: Says that it does not exist: It has 0 words of it." in text.replace("\\", "")


def test_cards_are_headed_by_names_then_times_then_ids() -> None:
    """A run's name heads its card, else its bench; its id stands below the time at which it began."""
    lines = [case_line(1, "yes")]
    with comparison(lines, lines, names=("run-1m8", "run-1m9"), configurations=({}, {})) as contents:
        one, other = contents.sides
        named = replace(
            contents,
            sides=(
                one._replace(label="baseline"),
                other._replace(bench="capitals", began="2026-11-22T19:20:00Z"),
            ),
        )
        cards = [(side.heading, side.run, side.began) for side in named.figures]
        page = page_of(named)
    assert cards == [
        ("baseline", "run-1m8", "2026-11-22 17:20"),
        ("capitals", "run-1m9", "2026-11-22 19:20"),
    ]
    assert page.index("<bdi>baseline</bdi>") < page.index("2026-11-22 17:20 UTC") < page.index(">run-1m8<")


def test_the_page_counts_what_became_of_the_pairs() -> None:
    """Broken and fixed with their marks, the rest in words, and a table of each model."""
    before = [
        case_line(number, "no", is_good=number >= 3, model=model) for number in range(8) for model in "mn"
    ]
    after = [
        case_line(number, "yes, and much more than that", model=model)
        for number in range(8)
        for model in "mn"
    ]
    with comparison(before, after) as contents:
        page = page_of(contents)
    assert '<b class="p">✓ 6 fixed</b><span class="dim">nothing broken</span>' in page
    assert "10 with the same outcome (all passed)" in page
    assert "10 of them with another text" in page
    assert "<h3>By model</h3>" in page
    assert "fully rewritten" in page


def test_what_ended_differently_is_a_sentence() -> None:
    """A count of how many first, then the share, then what became what."""
    before = [case_line(number, "yes") for number in range(4)]
    after = [case_line(number, None if number < 2 else "yes") for number in range(4)]
    with comparison(before, after) as contents:
        text = text_of(contents)
    assert "2 of 4 cases ended differently (50.0%, 95% interval 15.0-85.0%): 2 passed → error." in text
