"""The check `no_refusal`: the opposite of `refusal`, whose tests have both."""

from tests.support.checking import reason


def test_its_reason_names_the_words() -> None:
    assert reason("no_refusal", "Sorry, I can't.") == 'refused: the output has the words "Sorry, I can\'t"'
