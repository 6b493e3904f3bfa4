"""Normal forms in bounded time, whatever marks a text has."""

from time import process_time
from unicodedata import normalize

from hypothesis import given
from hypothesis import strategies as st

from tests.support.checking import passes
from worker.validation.rouge import rouge_l
from worker.validation.unicode_forms import MAX_MARKS, normalized

HOSTILE = "e" + "\u0315\u0301" * 500_000
"""A character with a million marks, which Python sorts for minutes."""


@given(st.text(max_size=50))
def test_ordinary_texts_have_their_usual_form(text: str) -> None:
    assert normalized("NFC", text) == normalize("NFC", text)
    assert normalized("NFKC", text) == normalize("NFKC", text)


def test_a_character_may_have_many_marks() -> None:
    text = "e" + "\u0301" * MAX_MARKS
    assert normalized("NFC", text) == normalize("NFC", text)


def test_a_hostile_text_stays_as_it_is() -> None:
    """Checks and ROUGE come to an end all the same."""
    started = process_time()
    assert normalized("NFC", HOSTILE) == HOSTILE
    assert passes({"equals": "Paris", "normalize": True}, HOSTILE) is False
    assert rouge_l(HOSTILE, "caf\u00e9").fmeasure == 0
    assert process_time() - started < 10
