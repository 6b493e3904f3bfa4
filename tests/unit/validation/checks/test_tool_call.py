"""The check `tool_call`: a call by name, with checks of its arguments, or no call."""

import pytest

from shared.contracts.checks import Check
from tests.support.checking import call, outcome
from worker.validation.checks import Answer, label

WEATHER = {"tool_call": {"name": "weather", "arguments": {"json_equals": {"city": "Paris"}}}}
PARIS = call("weather", '{"city": "Paris"}')


@pytest.mark.parametrize(
    ("check", "calls", "expected"),
    [
        ({"tool_call": "weather"}, [PARIS], True),
        ({"tool_call": {"name": "weather"}}, [call("time"), PARIS], True),
        ({"tool_call": "weather"}, [call("time")], False),
        ({"tool_call": "weather"}, [], False),
        ({"tool_call": "none"}, [], True),
        ({"tool_call": "none"}, [PARIS], False),
        ({"tool_call": {"name": "none"}}, [call("none")], True),
        (WEATHER, [call("weather", '{"city": "Rome"}'), PARIS], True),
        (WEATHER, [call("weather", '{"city": "Rome"}')], False),
        (WEATHER, [call("weather", "city=Paris")], False),
        (
            {"tool_call": {"name": "weather", "arguments": {"json_path": "$.city", "equals": "Paris"}}},
            [PARIS],
            True,
        ),
        ({"tool_call": {"name": "weather", "arguments": ["json", {"json_equals": {}}]}}, [PARIS], False),
        ({"not": {"tool_call": "weather"}}, [PARIS], False),
        ({"tool_call": "weather"}, [{}], False),
        ({"tool_call": "weather"}, [{"function": {"name": 5, "arguments": None}}], False),
    ],
)
def test_a_call_is_found(check: object, calls: list[dict[str, object]], *, expected: bool) -> None:
    assert outcome(check, answer=Answer(tool_calls=calls)).passed is expected


def test_its_reason_names_the_calls_and_what_is_wrong() -> None:
    found = outcome(WEATHER, answer=Answer(tool_calls=[call("weather", '{"city": "Rome"}')]))
    assert found.reason == (
        'found weather({…}): arguments: 1 difference: /city: expected "Paris", found "Rome"'
    )
    assert outcome({"tool_call": "weather"}).reason == "expected a call of weather, found none"


def test_calls_with_other_arguments_have_other_names() -> None:
    """Two checks of one tool are two rows, named by what they check of its arguments."""
    checks = [Check("tool_call", "fly", checks=(Check("contains", city),)) for city in ("Rome", "Lima")]
    assert [label(check) for check in checks] == [
        "tool_call: fly(contains: Rome)",
        "tool_call: fly(contains: Lima)",
    ]
    assert label(Check("tool_calls", checks=tuple(checks))) == (
        "tool_calls: fly(contains: Rome), fly(contains: Lima)"
    )
