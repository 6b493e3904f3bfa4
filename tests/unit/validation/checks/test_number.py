"""The check `number`: the only number of a text."""

import pytest

from tests.support.checking import passes, reason


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"number": 2.1, "tolerance": 0.05}, "2.15"),
        ({"number": 2.1, "tolerance": 0.05}, "About 2.14 million."),
        ({"number": 200, "tolerance": "1%"}, "198"),
        ({"number": 0.3}, "0.3"),
        ({"number": "1,234.5"}, "It costs $1,234.50!"),
        ({"number": -3}, "-3°C"),
        ({"number": -3}, "\u22123"),
        ({"number": 1000}, "1e3"),
        ({"number": 5}, "5."),
        ({"number": 0.5}, ".5"),
        ({"number": 2, "json_path": "$.n"}, '{"n": 2.0}'),
        ({"number": 7}, "v2 has 7"),
    ],
)
def test_it_passes(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is True


@pytest.mark.parametrize(
    ("check", "output"),
    [
        ({"number": 2.1}, "2.11"),
        ({"number": 2.1, "tolerance": 0.05}, "2.151"),
        ({"number": 3}, "3 of 5"),
        ({"number": 3}, "three"),
        ({"number": 3}, ""),
        ({"number": 1}, "1,2"),
        ({"number": 1}, "9" * 10_000),
        ({"number": 200, "tolerance": "1%"}, "197.9"),
    ],
)
def test_it_fails(check: dict[str, object], output: str) -> None:
    assert passes(check, output) is False


def test_its_reason_names_what_was_expected_and_found() -> None:
    assert reason({"number": 3}, "3 of 5") == "expected 3, found 2 numbers: 3, 5"
    assert reason({"number": 2.1, "tolerance": "5%"}, "Two") == "expected 2.1 ± 5%, found no number in: Two"


def test_tenths_are_exact() -> None:
    """0.1 + 0.2 is not 0.3 in binary, but a tolerance is meant in decimals."""
    assert passes({"number": 0.3, "tolerance": 0.1}, "0.2") is True
    assert passes({"number": 0.3, "tolerance": 0.1}, "0.19999") is False
