"""The check `json_equals`: a JSON value."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"json_equals": ["a", "b"]}, '["b", "a"]'),
        ({"json_equals": {"a": [1]}}, '```json\n{"a": [1]}\n```'),
        ({"json_equals": None}, "null"),
        ({"json_equals": "Paris", "json_path": "$.city"}, '{"city": "Paris"}'),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"json_equals": 4}, "4.0"),
        ({"json_equals": {"a": 1}}, '{"a": 2}'),
        ({"json_equals": "Paris"}, "Paris"),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert reason({"json_equals": {"a": 1}}, '{"a": 2}') == "1 difference: /a: expected 1, found 2"
