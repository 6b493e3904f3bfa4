"""The check `json`: JSON of any type."""

import pytest

from tests.support.checking import passes


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ("json", "[1]"),
        ("json", "4"),
        ("json", '```json\n{"a": 1}\n```'),
        ({"json": None}, "null"),
        ({"json": True}, '{"a": 1}'),
    ],
)
def test_it_passes(check: object, output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ("json", "Paris"),
        ("json", '{"a": 1'),
        ("json", ""),
        ("json", 'It is {"a": 1}.'),
        ("json", "[" * 100_000),
    ],
)
def test_it_fails(check: object, output: str) -> None:
    assert passes(check, output) is False


def test_lenient_extraction_finds_json_amid_prose() -> None:
    assert passes("json", 'It is {"a": 1}.', is_lenient=True) is True
