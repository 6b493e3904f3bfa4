"""The check `not`: 1 less the score of its check."""

from tests.support.checking import outcome


def test_it_turns_the_verdict_and_the_score() -> None:
    assert outcome({"not": {"contains": "a"}}, "a").passed is False
    assert outcome({"not": {"contains": "a"}}, "b").passed is True
    assert outcome({"not": "refusal"}, "b").passed is True
    row = outcome({"not": {"levenshtein": "abcd", "at_least": 0.8}}, "abce")
    assert (row.score, row.passed) == (0.25, True)


def test_what_is_skipped_stays_skipped() -> None:
    assert outcome({"not": {"max_cost": 1}}, "a").score is None


def test_twice_is_the_check_itself() -> None:
    assert outcome({"not": {"not": {"contains": "a"}}}, "a").passed is True
