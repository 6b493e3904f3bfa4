"""The check `equals`: the whole text."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"equals": "Paris"}, "Paris"),
        ({"equals": "Paris", "normalize": True}, " Paris\n"),
        ({"equals": "café", "normalize": True}, "café"),
        ({"equals": "STRASSE", "ignore_case": True}, "Straße"),
        ({"equals": 42}, "42"),
        ({"equals": True}, "true"),
        ({"equals": ""}, ""),
        ({"equals": "Paris", "json_path": "$.city"}, '{"city": "Paris"}'),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"equals": "Paris"}, "paris"),
        ({"equals": "Paris"}, "Paris\n"),
        ({"equals": "café"}, "café"),
        ({"equals": "Paris", "json_path": "$.city"}, '{"city": "Rome"}'),
        ({"equals": "Paris", "json_path": "$.city"}, "{}"),
        ({"equals": "Paris", "json_path": "$.city"}, "Paris"),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert reason({"equals": "Paris"}, "Rome") == 'expected "Paris", found "Rome"'
    assert reason({"equals": "Paris", "json_path": "$.city"}, "{}") == "$.city selects nothing"
