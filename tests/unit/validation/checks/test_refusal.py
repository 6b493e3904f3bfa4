"""The checks `refusal` and `no_refusal`: the provider's field, or usual words at the beginning."""

import pytest

from tests.support.checking import passes, reason
from worker.validation.checks import Answer

REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "I\u2019m sorry, but I can\u2019t assist with that request.",
    "Sorry, I cannot provide medical advice.",
    "I apologize, but I am unable to answer this.",
    "I can't help with that.",
    "I cannot assist you there.",
    "I'm not able to help with this.",
    "As an AI language model, I cannot have opinions.",
    "Unfortunately, I can't share that.",
    "I must decline this request.",
    "That is against my guidelines.",
    "Je ne peux pas vous aider.",
]
ANSWERS = [
    "Paris",
    "",
    "You cannot divide by zero.",
    "I am sorry for your loss. The capital is Paris.",
    "He said that he could not help.",
    "x" * 1_000 + " I'm sorry, but I can't help with that.",
]


@pytest.mark.parametrize("output", REFUSALS)
def test_usual_words_are_a_refusal(output: str) -> None:
    assert passes("refusal", output) is True
    assert passes("no_refusal", output) is False


@pytest.mark.parametrize("output", ANSWERS)
def test_other_answers_are_none(output: str) -> None:
    assert passes("refusal", output) is False
    assert passes("no_refusal", output) is True


def test_the_field_of_the_provider_is_a_refusal_and_is_named() -> None:
    assert (
        reason("refusal", "", answer=Answer(refusal="Not that."))
        == "refused: the provider's field says: Not that."
    )
    filtered = reason("no_refusal", "x", answer=Answer(finish_reason="content_filter"))
    assert filtered == "refused: the provider's content filter ended the answer"
