"""The check `bleu`: phrases of a reference."""

import nltk.translate.bleu_score as oracle  # type: ignore[import-untyped] # it ships no type information
import pytest

from tests.support.checking import outcome, passes
from worker.validation.checks.bleu import bleu_score


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"bleu": "The cat sat on the mat.", "at_least": 1}, "The cat sat on the mat."),
        ({"bleu": ["A dog.", "The cat sat."], "at_least": 1}, "The cat sat."),
        ({"bleu": "a", "at_least": 0}, "b"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"bleu": "The cat sat on the mat.", "at_least": 0.1}, "Completely different words here"),
        ({"bleu": "The cat sat on the mat.", "at_least": 0.6}, "The cat"),
        ({"bleu": "a", "at_least": 0.1}, ""),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


@pytest.mark.parametrize(
    ("found", "references"),
    [
        ("the cat sat on a mat today", ["the cat sat on the mat"]),
        ("the the the the", ["the cat the dog"]),
        ("a b c d e f", ["a b c d", "b c d e f g h"]),
        ("a b c d", ["a b c d e f g h"]),
    ],
)
def test_scores_are_those_of_nltk(found: str, references: list[str]) -> None:
    """Its second smoothing adds 1 to the counts of phrases of two words and more, as ours does."""
    expected = oracle.sentence_bleu(
        [reference.split() for reference in references],
        found.split(),
        smoothing_function=oracle.SmoothingFunction().method2,
    )
    assert bleu_score(found.split(), [reference.split() for reference in references]) == pytest.approx(
        expected
    )


def test_long_texts_are_cut_and_said_to_be() -> None:
    row = outcome({"bleu": "a b c", "at_least": 0}, "a " * 500_000)
    assert row.reason.endswith("of the first 20,000 words")
