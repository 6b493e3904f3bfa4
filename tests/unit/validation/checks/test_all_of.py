"""The check `all`: the least score of its checks."""

from tests.support.checking import outcome


def test_it_passes_when_each_passes_and_names_those_that_do_not() -> None:
    both = {"all": [{"contains": "a"}, {"contains": "b"}]}
    assert outcome(both, "ab").passed is True
    row = outcome(both, "a")
    assert (row.passed, row.score) == (False, 0.0)
    assert row.reason.startswith('1 of 2 failed: contains: b: "b" is nowhere')


def test_its_score_is_the_least() -> None:
    checks = [{"levenshtein": "abcd", "at_least": 0.5}, {"levenshtein": "abce", "at_least": 0.7}]
    row = outcome({"all": checks}, "abcd")
    assert (row.score, row.passed) == (0.75, True)


def test_its_own_threshold_replaces_theirs() -> None:
    checks = [{"levenshtein": "abcd"}, {"levenshtein": "abce"}]
    assert outcome({"all": checks, "at_least": 0.75}, "abcd").passed is True
    assert outcome({"all": checks, "at_least": 0.8}, "abcd").passed is False


def test_skipped_checks_do_not_count() -> None:
    assert outcome({"all": [{"max_cost": 1}, {"contains": "a"}]}, "a").passed is True
    assert outcome({"all": [{"max_cost": 1}]}, "a").passed is None
