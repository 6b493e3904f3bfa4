"""Tests ROUGE-L: which words count, and that long texts take no time."""

import subprocess
import sys
from time import process_time

import pytest

from worker.validation.rouge import MAX_TOKENS, rouge_l, unicode_words


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [
        ("the cat sat", "the cat sat", 1.0),
        ("The CAT, sat!", "the cat sat", 1.0),
        ("a b c d", "a c", 2 / 3),
        ("a b", "c d", 0.0),
        ("", "a", 0.0),
        ("a", "", 0.0),
        ("!?", "a", 0.0),
        ("it\u2019s \u201cfine\u201d \u2014 \U0001f600", "it's fine", 1.0),
    ],
)
def test_ascii_words_are_scored_as_the_package_scores_them(
    prediction: str, reference: str, score: float
) -> None:
    """Case and punctuation do not count, order does; signs outside of ASCII do not change the tokenizer."""
    result = rouge_l(prediction, reference)
    assert result.fmeasure == pytest.approx(score)
    assert result.tokenizer == "rouge-score"


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [
        ("Кошка спит на окне", "кошка спит на окне.", 1.0),
        ("東京は日本の首都です", "東京は日本の首都です。", 1.0),
        ("東京", "京都", 0.5),
        ("สวัสดี", "สวัสดี", 1.0),
        ("नमस्ते दुनिया", "नमस्ते दुनिया", 1.0),
        ("cafe\u0301", "caf\u00e9", 1.0),
        ("der Weg", "der Straße Weg", 0.8),
    ],
)
def test_other_letters_are_cut_into_words_by_unicodes_rules(
    prediction: str, reference: str, score: float
) -> None:
    """Texts that the package scores 0 get a score, and the reason names whose words were counted."""
    result = rouge_l(prediction, reference)
    assert result.fmeasure == pytest.approx(score)
    assert result.tokenizer == "unicode"


def test_words_of_mixed_scripts() -> None:
    """Marks belong to their letters, digits are words, scripts without spaces are cut into characters."""
    assert unicode_words("Ünï-code 42%東京!") == ["ünï", "code", "42", "東", "京"]


def test_long_texts_are_scored_quickly_and_very_long_ones_cut() -> None:
    """Five thousand words take milliseconds; beyond 50,000 the score is of the beginning, and says so."""
    words = [f"w{index % 900}" for index in range(5_000)]
    before = process_time()
    assert not rouge_l(" ".join(words), " ".join(words[::-1])).is_cut
    assert process_time() - before < 1
    long = "a " * (MAX_TOKENS + 1)
    assert rouge_l(long, "a b").is_cut
    assert rouge_l(long, long).fmeasure == 1.0


def test_the_engine_is_imported_without_its_tools() -> None:
    """Importing the pipeline brings neither DeepDiff nor jsonschema-rs nor rouge-score."""
    heavy = ["deepdiff", "jsonschema_rs", "rouge_score", "nltk", "numpy", "celery", "redis", "aiohttp"]
    program = (
        "import sys; from worker.validation.pipeline import validate; "
        'validate({"expected": {"a": 1}}, \'{"a": 1}\'); '
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
