"""The check `contains`: a part of the text."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"contains": "is Paris"}, "It is Paris."),
        ({"contains": "is paris", "ignore_case": True}, "It is Paris."),
        ({"contains": "is Paris", "normalize": True}, "It is\n  Paris."),
        ({"contains": "a", "json_path": "$[*]"}, '["b", "a"]'),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"contains": "is paris"}, "It is Paris."),
        ({"contains": "Paris"}, ""),
        ({"contains": "c", "json_path": "$[*]"}, '["b", "a"]'),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert reason({"contains": "Paris"}, "Rome") == '"Paris" is nowhere in the output, which begins: Rome'
    assert reason({"contains": "Paris"}, "") == '"Paris" is nowhere in the output, which is empty'
