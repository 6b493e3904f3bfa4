"""Checks of texts: equals, contains, contains_all, contains_any, starts_with, one_of, regex."""

from typing import Any

import pytest

from worker.validation.checks import Subject, parse_checks
from worker.validation.scoring import run_deterministic


def passes(check: Any, output: str) -> bool | None:
    [row] = run_deterministic(parse_checks([check]), Subject(output))
    assert row.reason
    return row.passed


@pytest.mark.parametrize(
    ("check", "output", "expected"),
    [
        ({"equals": "Paris"}, "Paris", True),
        ({"equals": "Paris"}, "paris", False),
        ({"equals": "Paris"}, "Paris\n", False),
        ({"equals": "Paris", "normalize": True}, " Paris\n", True),
        ({"equals": "caf\u00e9", "normalize": True}, "cafe\u0301", True),
        ({"equals": "caf\u00e9"}, "cafe\u0301", False),
        ({"equals": "STRASSE", "ignore_case": True}, "Stra\u00dfe", True),
        ({"equals": 42}, "42", True),
        ({"equals": ""}, "", True),
        ({"contains": "is Paris"}, "It is Paris.", True),
        ({"contains": "is paris"}, "It is Paris.", False),
        ({"contains": "is paris", "ignore_case": True}, "It is Paris.", True),
        ({"contains": "is Paris", "normalize": True}, "It is\n  Paris.", True),
        ({"contains_all": ["a", "b"]}, "b a", True),
        ({"contains_all": ["a", "b"]}, "a", False),
        ({"contains_all": ["A", "b"], "ignore_case": True}, "aB", True),
        ({"contains_any": ["a", "b"]}, "b", True),
        ({"contains_any": ["a", "b"]}, "", False),
        ({"starts_with": "Yes"}, "Yes.", True),
        ({"starts_with": "Yes"}, " Yes.", False),
        ({"starts_with": "Yes", "normalize": True}, " Yes.", True),
        ({"one_of": ["yes", "no"]}, "no", True),
        ({"one_of": ["yes", "no"]}, "No", False),
        ({"one_of": ["yes", "no"], "ignore_case": True}, "No", True),
        ({"one_of": [1, 2]}, "2", True),
        ({"regex": "^b"}, "a\nb", True),
        ({"regex": "^a$"}, "b", False),
    ],
)
def test_a_text_is_compared(check: dict[str, Any], output: str, *, expected: bool) -> None:
    assert passes(check, output) is expected


def test_reasons_name_what_was_expected_and_found() -> None:
    checks = parse_checks(
        [
            {"equals": "Paris"},
            {"contains": "Paris"},
            {"contains_all": ["Paris", "R"]},
            {"contains_any": ["Paris", "Berlin"]},
            {"starts_with": "Paris"},
            {"one_of": ["Paris", "Berlin"]},
            {"regex": "Par.s"},
        ]
    )
    reasons = [row.reason for row in run_deterministic(checks, Subject("Rome"))]
    assert reasons == [
        'expected "Paris", found "Rome"',
        '"Paris" is nowhere in the output, which begins: Rome',
        '1 of 2 texts is missing: "Paris" in the output, which begins: Rome',
        'none of "Paris", "Berlin" is in the output, which begins: Rome',
        '"Paris" is not the start of the output, which begins: Rome',
        'expected one of "Paris", "Berlin", found "Rome"',
        'pattern "Par.s" is nowhere in the output, which begins: Rome',
    ]
