"""Explores the word difference: no text is lost or invented, and what is not marked is in both."""

from time import perf_counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from producer.report.comparison.word_difference import (
    TextDifference,
    compare_lines,
    compare_words,
)

WORDS = st.sampled_from(
    ["the", "order", "14", "days", "naïve", "日本", "हिन्दी", "٤٥٢", ",", "\n", '{"a":', "☎️", "\u202e"]
)
TEXTS = st.lists(WORDS | st.text(max_size=4), max_size=30).map(" ".join) | st.text(max_size=60)
STEPS = st.sampled_from([0, 50, 1_000_000])


def kept(difference: TextDifference) -> list[str]:
    """What is not marked on either side, without white space."""
    sides = (difference.before, difference.after)
    return ["".join("".join(part.text for part in side if not part.is_changed).split()) for side in sides]


@given(before=TEXTS, after=TEXTS, steps=STEPS)
@example(before=" naïve", after="naïve", steps=0)
def test_parts_are_the_texts_and_what_is_not_marked_is_in_both(before: str, after: str, steps: int) -> None:
    """However little time there is."""
    found = compare_words(before, after, most_steps=steps)
    assert "".join(part.text for part in found.before) == before
    assert "".join(part.text for part in found.after) == after
    assert (found.sort == "same") == (before == after)
    if found.sort in {"words", "lines", "long"}:
        assert any(part.is_changed for part in (*found.before, *found.after))
    if found.sort == "lines":
        assert kept(found)[0] == kept(found)[1]


@given(text=TEXTS, word=st.sampled_from(["plus", "minus", "日"]))
def test_a_word_more_is_the_only_one_marked(text: str, word: str) -> None:
    """Texts that share nearly everything are never called rewritten."""
    longer = f"one two three {text} {word}"
    found = compare_words(f"one two three {text}", longer)
    assert not any(part.is_changed for part in found.before)
    assert [part.text for part in found.after if part.is_changed] == [word]


@given(before=TEXTS, after=TEXTS)
def test_lines_are_those_of_both_texts(before: str, after: str) -> None:
    """Lines without a plus are the first text, lines without a minus the second."""
    lines = compare_lines(before, after)
    assert "\n".join(line for mark, line in lines if mark != "+") == before
    assert "\n".join(line for mark, line in lines if mark != "-") == after
    assert all(mark == " " for mark, _ in lines) == (before == after)


@pytest.mark.parametrize(
    ("before", "after", "marked"),
    [
        ("Open from 10:00.", "Open until 10:00.", (["from"], ["until"])),
        (
            "within 30 days of delivery.",
            "within 14 days of delivery, so today.",
            (["30"], ["14", ", so today"]),
        ),
        ("営業は10時からです", "営業は11時からです", (["10"], ["11"])),
        ("हिन्दी में", "हिन्दू में", (["हिन्दी"], ["हिन्दू"])),
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 3}', (["2"], ["3"])),
    ],
)
def test_words_are_marked_as_people_read_them(
    before: str, after: str, marked: tuple[list[str], list[str]]
) -> None:
    """Whole words in any script, and signs between two changed ones with them."""
    found = compare_words(before, after)
    changed = [[part.text for part in side if part.is_changed] for side in (found.before, found.after)]
    assert changed == [*marked]


def test_long_texts_are_compared_line_by_line() -> None:
    """And what even that takes too long for, by its common beginning and end."""
    lines = [f"line {number} of a long answer" for number in range(3_000)]
    before = "\n".join(lines)
    found = compare_words(before, before.replace("line 7 of", "line seven of"))
    assert (found.sort, [part.text for part in found.after if part.is_changed]) == ("words", ["seven"])
    moved = "\n".join(["first", *lines[1:1_500], "middle", *lines[1_501:], "last"])
    assert compare_words(before, moved).sort == "lines"
    hostile = "a b " * 20_000
    assert compare_words(f"x {hostile}", f"{hostile} y").sort == "long"


@pytest.mark.slow
def test_no_text_takes_long() -> None:
    """Texts made to be slow stay below a few seconds."""
    started = perf_counter()
    for before, after in [
        ("ab " * 9_000, "ba " * 9_000),
        ("a b " * 800, "b c a " * 700),
        ("x" * 10**6, "y" * 10**6),
    ]:
        compare_words(before, after)
    assert perf_counter() - started < 5
