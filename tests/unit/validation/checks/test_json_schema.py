"""The check `json_schema`: a JSON schema."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"json_schema": {"type": "array", "items": {"type": "integer"}}}, "[1, 2]"),
        ({"json_schema": True}, "4"),
        ({"json_schema": {"type": "object"}, "json_path": "$.a"}, '{"a": {}}'),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"json_schema": {"type": "array", "items": {"type": "integer"}}}, '["1"]'),
        ({"json_schema": {"type": "array", "items": {"type": "integer"}}}, "[1"),
        ({"json_schema": False}, "1"),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert (
        reason({"json_schema": {"required": ["a"]}}, "{}")
        == 'breaks the schema: the whole: "a" is a required property'
    )
