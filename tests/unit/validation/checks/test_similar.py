"""The check `similar`: which texts are embedded, and what their cosine means."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.checks import Check
from tests.support.checking import outcome
from worker.validation.checks.similar import cosine_of, score_without_asking, similarity_score, texts_of

SIMILAR = Check("similar", "It is Paris.", at_least=0.8, options={"model": "m"})
VECTORS = st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3)


@given(VECTORS, VECTORS)
def test_a_cosine_is_within_its_bounds(one: list[float], other: list[float]) -> None:
    assert -1.0001 <= cosine_of(one, other) <= 1.0001
    assert cosine_of(one, other) == pytest.approx(cosine_of(other, one))
    assert 0 <= (similarity_score(SIMILAR, "x", (one, other)).value or 0.0) <= 1


@given(VECTORS.filter(lambda vector: math.hypot(*vector) > 1e-3))
def test_a_vector_is_like_itself_and_unlike_its_opposite(vector: list[float]) -> None:
    assert cosine_of(vector, vector) == pytest.approx(1)
    assert similarity_score(SIMILAR, "x", (vector, [-number for number in vector])).value == 0


def test_long_texts_are_cut_and_said_to_be() -> None:
    assert [len(text) for text in texts_of(SIMILAR, "x" * 50_000)] == [24_000, 12]
    score = similarity_score(SIMILAR, "x" * 50_000, ([1.0], [1.0]))
    assert score.reason == "cosine similarity 1.000, of the first 24,000 characters"


def test_an_empty_output_needs_no_call() -> None:
    score = score_without_asking(" \n")
    assert score is not None
    assert score.value == 0
    assert score_without_asking("Hi") is None


def test_it_is_not_asked_without_embeddings_at_hand() -> None:
    row = outcome({"similar": "Paris", "model": "m", "at_least": 0.8}, "Hi")
    assert (row.score, row.passed, row.reason) == (None, None, "not asked yet")
