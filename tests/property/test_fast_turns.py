"""The fast validation of turns accepts nothing that the contract refuses, and most valid turns."""

import json
from datetime import date, timedelta
from io import BytesIO
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from producer.load.source import Source
from producer.turns.fast_turns import NOT_ORDINARY, decode_ordinary
from shared.contracts.turns import Turn
from shared.errors import InputError
from tests.support.turn_files import read_turns
from tests.support.turn_strategies import spelt, turns

EDITS: Final = (
    b"null", b"true", b"7", b"0.5", b'""', b'"a"', b"[]", b"{}", b",", b":", b'"', b"\\", b"1e999", b"-0",
    b"NaN", b" ", b"\n", b"\x00", b"\xff", b"\\ud800", b"\\u0000", b'"message":"x",', b'"role":"bot",',
)  # fmt: skip
ODD_TIMES: Final = (
    "2026-02-01T00:00:00Z\n",
    "2026-02-01T24:00:00Z",
    "2026-02-01T23:59:60Z",
    "2026-02-01T00:00:00z",
    "2026-02-01 00:00:00Z",
    "2026-02-01T00:00:00",
    "2026-02-01T00:00:00+00:00",
    "0000-02-01T00:00:00Z",
    "2026-02-01T00:00:00.Z",
    "2026-02-01T00:00:00.1234567890Z",
    "٢٠٢٦-02-01T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-02-30T00:00:00Z",
)


def thread_by_the_contract(line: bytes) -> str | None:
    """The thread of a line that the contract accepts."""
    try:
        return Turn.model_validate_json(line).threadId
    except ValidationError:
        return None


def thread_by_the_fast_door(line: bytes) -> str | None:
    """The thread of a line that the fast door accepts."""
    try:
        return decode_ordinary(line).threadId
    except NOT_ORDINARY:
        return None


def assert_sound(line: bytes) -> None:
    """What the fast door accepts, the contract reads the same way."""
    found = thread_by_the_fast_door(line)
    assert found is None or found == thread_by_the_contract(line)


def with_time(text: str) -> bytes:
    """A turn with this time."""
    return b'{"threadId":"t","message":"hi","ts":"' + text.replace("\n", "\\n").encode() + b'"}'


@given(spelt(turns()))
def test_a_good_line_is_read_alike(line: bytes) -> None:
    """A valid turn has the same thread by both validations, unless the fast one leaves it to the contract."""
    assert_sound(line)
    assert thread_by_the_contract(line) is not None


@given(spelt(turns()), st.data())
def test_an_edited_line_is_never_let_in_wrongly(line: bytes, data: st.DataObject) -> None:
    """A line with something put in, taken out or exchanged passes the fast door only if it is still good."""
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(line)))
        end = data.draw(st.integers(start, min(len(line), start + 12)))
        line = line[:start] + data.draw(st.sampled_from(EDITS) | st.binary(max_size=2)) + line[end:]
    assert_sound(line)


@given(spelt(turns().filter(lambda turn: not turn.keys() & {"meta", "context"})))
def test_ordinary_lines_take_the_fast_door(line: bytes) -> None:
    """A valid turn without free maps is refused by the fast door for its time or its confidence only."""
    if b"ts" not in line and b"updatedAt" not in line and b"confidence" not in line:
        assert thread_by_the_fast_door(line) == "t"


@given(spelt(turns()))
def test_no_good_line_is_said_to_repeat_a_key(line: bytes) -> None:
    """A valid turn, however it is spelt, is read from a file."""
    assert [turn.raw for turn in read_turns(Source("-", stdin=BytesIO(line)))] == [line.strip()]


@given(spelt(turns()), st.data())
def test_a_key_that_stands_twice_is_always_found(line: bytes, data: st.DataObject) -> None:
    """A line that repeats one of its keys, with the same value or another, is refused."""
    name, value = data.draw(st.sampled_from(list(json.loads(line).items())))
    other = data.draw(st.sampled_from([value, "a:b", ":"]) if isinstance(value, str) else st.just(value))
    again = json.dumps({name: other}, ensure_ascii=data.draw(st.booleans()))[1:-1].encode()
    inner = line.strip().removeprefix(b"{").removesuffix(b"}")
    doubled = data.draw(st.sampled_from([b"{%b,%b}" % (again, inner), b"{%b , %b}" % (inner, again)]))
    with pytest.raises(InputError):
        read_turns(Source("-", stdin=BytesIO(doubled)))


def test_every_day_is_judged_alike() -> None:
    """Both validations accept every day of five years, but the fast one leaves 29 February to the other."""
    first = date(2023, 1, 1)
    for day in (first + timedelta(days) for days in range(5 * 365)):
        line = with_time(f"{day}T09:30:00.5Z")
        assert thread_by_the_contract(line) == "t"
        assert (thread_by_the_fast_door(line) == "t") is (not (day.month == 2 and day.day == 29)), day


@pytest.mark.parametrize("text", ODD_TIMES)
def test_odd_times_are_not_let_in(text: str) -> None:
    """A time that only looks like one is refused by both validations."""
    line = with_time(text)
    assert thread_by_the_fast_door(line) is None
    assert thread_by_the_contract(line) is None
