"""What is made of a model's reply, which may be anything."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.turns import SummaryShape
from tests.support.conversations import shape
from worker.breakpoint.model_reply import read_reply
from worker.breakpoint.turn_wire import WireShape

GOOD = {"response": "Hi", "affect_signal": {"label": "insight", "intensity": 0.4}, "shape": shape("arc")}


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "  {}\n",
        "\ufeff{}",
        "```json\n{}\n```",
        "```\n{}\n```\n",
        "```JSON\n{}\n```",
        "Sure!\n```json\n{}\n```\nBye.",
        "Here it is: {} Bye.",
    ],
)
def test_an_object_is_read_also_from_a_fence(form: str) -> None:
    """A fence around the object, prose around both, or a byte order mark do no harm."""
    read = read_reply(form.replace("{}", json.dumps(GOOD)))
    assert (read.response, read.shape) == ("Hi", WireShape("arc", [], [], [], []))
    assert read.affect_signal is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Just text.",
        '{"response": "Hi"',
        '["Hi"]',
        '"Hi"',
        "null",
        "```yaml\n{}\n```",
        "{}{}",
        "[" * 100_000,
    ],
)
def test_anything_else_is_the_response_itself(text: str) -> None:
    """Broken JSON, other JSON and plain text are what the user gets, with no summary and no emotion."""
    assert read_reply(text)[:4] == (text, None, None, False)


def test_signal_and_shape_may_stand_in_the_metadata() -> None:
    """`meta.affect_signal` and `meta.shape` count where the keys beside the response are absent."""
    meta = {"affect_signal": GOOD["affect_signal"], "shape": shape("of meta")}
    read = read_reply(json.dumps({"response": "Hi", "meta": meta}))
    assert read == read_reply(json.dumps({"response": "Hi", **meta}))
    assert read.shape == WireShape("of meta", [], [], [], [])
    both = read_reply(json.dumps({**GOOD, "meta": meta}))
    assert both.shape == WireShape("arc", [], [], [], [])
    assert read_reply(json.dumps({"response": "Hi", "meta": {"shape": {"arc": ""}}})).has_bad_shape
    assert read_reply(json.dumps({"response": "Hi", "meta": ["shape"]})).shape is None


@pytest.mark.parametrize("response", [None, 7, ["Hi"], {"text": "Hi"}])
def test_an_object_without_a_response_is_the_response(response: Any) -> None:
    """The whole reply is the answer; its other parts still count."""
    text = json.dumps({**GOOD, "response": response})
    read = read_reply(text)
    assert read.response == text
    assert read.shape is not None


@pytest.mark.parametrize(("text", "is_unread"), [('{"response": "Hi"}', False), ("{}", False), ("Hi", True)])
def test_a_reply_without_an_object_is_unread(text: str, *, is_unread: bool) -> None:
    """What holds no object can be counted."""
    assert read_reply(text).is_unread is is_unread


def test_half_a_surrogate_pair_is_replaced() -> None:
    """What no encoder takes is taken out, so that the result can be written."""
    assert read_reply("a\ud800b").response == "a?b"


lines = st.text(max_size=170)
shapes = st.fixed_dictionaries(
    {
        "arc": st.text(max_size=210),
        **{name: st.lists(lines, max_size=7) for name in ("active", "parked", "decisions", "next")},
    },
    optional={"extra": st.none()},
)


@given(shapes)
def test_live_shapes_keep_the_contract_of_recorded_ones(proposed: dict[str, Any]) -> None:
    """A shape is taken exactly when the same shape could stand in an input file."""
    try:
        SummaryShape.model_validate(proposed)
        is_good = True
    except ValueError:
        is_good = False
    read = read_reply(json.dumps({"response": "", "shape": proposed}))
    assert (read.shape is not None, read.has_bad_shape) == (is_good, not is_good)


@given(st.text())
def test_no_reply_breaks_the_reading(text: str) -> None:
    """Any text gives a response that can be encoded."""
    read_reply(text).response.encode()
