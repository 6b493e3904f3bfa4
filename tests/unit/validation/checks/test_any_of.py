"""The check `any`: the greatest score of its checks."""

from tests.support.checking import outcome


def test_it_passes_when_one_passes_and_names_it() -> None:
    either = {"any": [{"contains": "a"}, {"contains": "b"}]}
    assert outcome(either, "b").reason == 'contains: b: "b" is in the output'
    row = outcome(either, "c")
    assert (row.passed, row.score) == (False, 0.0)
    assert row.reason.startswith("none passed: contains: a: ")


def test_its_score_is_the_greatest_also_of_one_that_fails() -> None:
    checks = [{"levenshtein": "abcd", "at_least": 1}, {"levenshtein": "xy", "at_least": 0}]
    row = outcome({"any": checks}, "abce")
    assert (row.score, row.passed) == (0.75, True)
    assert outcome({"any": checks[:1]}, "abce").passed is False


def test_skipped_checks_do_not_count() -> None:
    assert outcome({"any": [{"max_cost": 1}]}, "a").passed is None
