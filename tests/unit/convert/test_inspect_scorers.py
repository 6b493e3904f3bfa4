"""Answers are compared with targets as Inspect 0.3.285 does, whose scores these are."""

from typing import Any

import pytest

from producer.convert import inspect_scorers as scorers


@pytest.mark.parametrize(
    ("output", "target", "options", "is_right"),
    [
        ("It is Paris", "Paris.", {}, True),
        ("It is **Paris**", "paris", {}, True),
        ("Paris, France", "Paris", {}, False),
        ("Paris, France", "Paris", {"location": "begin"}, True),
        ("PARIS", "Paris", {"ignore_case": False}, False),
        ("(Paris)", "Paris", {"location": "exact"}, True),
        ("Straße", "STRASSE", {}, True),
        ("", ".", {}, True),
        ("2 + 2 = 4", "4", {"numeric": True}, True),
        ("so 9 * 2 = \\$18.", "18", {"numeric": True}, True),
        ("4 of 5", "4", {"numeric": True}, False),
        ("4 of 5", "4", {"numeric": True, "location": "begin"}, True),
        ("1 4 5", "4", {"numeric": True, "location": "any"}, True),
        ("(42)", "42", {"numeric": True, "location": "exact"}, False),
        ("25", "5", {"numeric": True}, False),
        ("42%", "42", {"numeric": True}, False),
        ("It is Paris", "Paris", {"numeric": True}, True),
        ("1,000", "1e3", {"numeric": True}, True),
        ("3.141592653", "3.14159", {"numeric": True}, True),
        ("2½ cups", "2.5", {"numeric": True, "location": "begin"}, True),
        ("3²", "9", {"numeric": True}, True),
        ("\u22123", "-3", {"numeric": True}, True),
        ("4th", "4", {"numeric": True}, False),
    ],
)
def test_match(output: str, target: str, options: dict[str, Any], *, is_right: bool) -> None:
    assert scorers.matches(output, ["zzz", target], **options) is is_right


@pytest.mark.parametrize(
    ("output", "target", "is_right"),
    [
        ("Paris.", "the Paris", True),
        ("Paris, Texas", "Paris", False),
        ("(3.0)", "3", True),
        ("a", "the", False),
    ],
)
def test_exact(output: str, target: str, *, is_right: bool) -> None:
    assert scorers.is_exact(output, [target]) is is_right


@pytest.mark.parametrize(
    ("output", "target", "stop", "score"),
    [
        ("the quick fox", "quick brown fox", [], 0.8),
        ("quick fox", "quick brown fox", ["Quick"], 0.67),
        ("", "fox", [], 0),
        ("a", "the", [], 0),
    ],
)
def test_f1(output: str, target: str, stop: list[str], score: float) -> None:
    assert scorers.f1_score(output, [target], stop) == score


@pytest.mark.parametrize(
    ("output", "pattern", "target", "is_right"),
    [
        ("ANSWER: Paris, Texas", "line", "Paris", False),
        ("ANSWER: Paris, Texas", "line", "paris, texas", True),
        ("ANSWER: A\nANSWER: B", "letter", "A", False),
        ("ANSWER: A\nANSWER: B", "letter", "B", True),
        ("ANSWER: yes.", "word", "yes", True),
        ("ANSWER: (A)", "letter", "A", False),
    ],
)
def test_answer(output: str, pattern: str, target: str, *, is_right: bool) -> None:
    assert scorers.answers(output, [target], pattern) is is_right


@pytest.mark.parametrize(
    ("output", "options", "is_right"),
    [
        ("<a>b</a>", {"pattern": "<a>(.)</a>"}, True),
        ("<a>B</a>", {"pattern": "<a>(.)</a>", "ignore_case": False}, False),
        ("bc", {"pattern": "(b)(c)"}, True),
        ("bc", {"pattern": "(b)(c)", "match_all": True}, False),
        ("x", {"pattern": "(b)?x", "match_all": True}, False),
        ("b", {"pattern": "b"}, True),
    ],
)
def test_pattern(output: str, options: dict[str, Any], *, is_right: bool) -> None:
    assert scorers.finds(output, ["b"], **options) is is_right


@pytest.mark.parametrize(
    ("output", "targets", "several", "is_right"),
    [
        ("ANSWER: A", ["A"], False, True),
        ("ANSWER: $A$", ["A"], False, True),
        ("ANSWER: (a).", ["A"], False, True),
        ("ANSWER: A\nANSWER: B", ["A"], False, False),
        ("ANSWER: A,B", ["A"], False, False),
        ("ANSWER: B and A", ["A", "B"], True, True),
        ("ANSWER: AB", ["A,B"], True, True),
        ("ANSWER: A, Z", ["A"], True, False),
        ("I think A", ["A"], False, False),
    ],
)
def test_choice(output: str, targets: list[str], *, several: bool, is_right: bool) -> None:
    assert scorers.chooses(output, targets, ["A", "B", "C"], several=several) is is_right
