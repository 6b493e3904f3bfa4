"""Every kind of bad input is one clear line with its place, and a hint how to mend it."""

import io
import json
from typing import Any, Final

import pytest

from producer.load.source import Source
from producer.turns.load import MAX_LINE_BYTES, problems_in
from shared.errors import InputError
from tests.support.turn_files import ReadTurn, read_turns

ITEM: Final = {"endMessageId": "m", "kind": "pivot", "confidence": "high", "source": "model"}
MEMENTO: Final = {
    "mementoId": "m",
    "threadId": "t",
    "createdTs": "2026-02-01T00:00:00Z",
    "version": "memento-v0.2",
    "arc": "a",
    "active": [],
    "parked": [],
    "decisions": [],
    "next": [],
    "affect": {
        "points": [],
        "rollup": {"phase": "peak", "intensityBucket": "high", "updatedAt": "2026-02-01T00:00:00Z"},
    },
}

STORED: Final = {
    **MEMENTO,
    "version": "memento-v0.1",
    "id": MEMENTO["mementoId"],
    "createdAt": MEMENTO["createdTs"],
    "updatedAt": MEMENTO["createdTs"],
}


def signals(count: int = 1, **keys: Any) -> dict[str, Any]:
    """Signals, with something else in their items."""
    return {"updatedAt": "2026-02-01T00:00:00Z", "items": [{**ITEM, **keys}] * count}


def line(**keys: Any) -> bytes:
    """A turn, with something else in it."""
    return json.dumps({"threadId": "t", "message": "hi", **keys}).encode()


BAD_LINES: Final[dict[str, tuple[bytes, str, str]]] = {
    "cut off": (b'{"threadId": "t", "message": "b"', "not valid JSON: EOF while parsing an object", "JSON"),
    "no json": (b"nonsense", "not a JSON object ('nonsense')", "{…}"),
    "a list": (b"[1]", "not an object ([1])", "{…}"),
    "lone surrogate": (b'{"threadId":"t","message":"\\ud800"}', "not valid JSON", "JSON"),
    "not utf-8": (
        b'{"threadId":"t","message":"\xff"}',
        "not UTF-8 text (byte 28 of the line is 0xff)",
        "iconv",
    ),
    "too deep": (line(meta={"a": 1}).replace(b"1", b"[" * 300 + b"]" * 300), "recursion limit", "JSON"),
    "nul inside": (b'{"threadId":"t","message":"a\x00"}', "control character", "JSON"),
    "unknown key": (line(signls={}), "signls: unknown key", "did you mean 'signals'?"),
    "typo for a required key": (b'{"threadId":"t","mesage":"x"}', "mesage: unknown key", "'message'"),
    "unknown inner key": (
        line(context={"thread_mementos": 1}),
        "context.thread_mementos",
        "'thread_memento'",
    ),
    "hostile key": (line(**{"\x1b[31m": 1}), r"'\x1b[31m': unknown key", "known keys: affectSignal, "),
    "missing key": (b'{"message":"x"}', "threadId: is missing", "required"),
    "null for a required key": (line(threadId=None), "threadId: null is not a value here", "is required"),
    "null for an inner required key": (
        line(signals=signals(kind=None)),
        "signals.items[0].kind: null is not a value here",
        "is required",
    ),
    "null in a list": (
        line(modelShape={"arc": "a", "active": [None], "parked": [], "decisions": [], "next": []}),
        "modelShape.active[0]: null is not a value here",
        "take it out of the list",
    ),
    "key twice": (
        b'{"threadId": "t", "message": "one", "message": "two"}',
        "message: the key stands twice in one object",
        "keep one",
    ),
    "key twice, one spelt with an escape": (
        rb'{"threadId": "t", "message": "hi", "messag\u0065": "hi"}',
        "message: the key stands twice in one object",
        "keep one",
    ),
    "key twice, an escaped colon beside it": (
        rb'{"threadId": "t", "message": "a\u003ab", "driftRisk": true, "driftRisk": false}',
        "driftRisk: the key stands twice in one object",
        "keep one",
    ),
    "inner key twice": (
        line(signals=signals()).replace(b'"kind"', b'"kind": "ack_only", "kind"'),
        "signals.items[0].kind: the key stands twice in one object",
        "keep one",
    ),
    "key twice in free metadata": (
        line(meta={"x": {"a": 1}}).replace(b'"a"', b'"a": 1, "a"'),
        "meta.x.a: the key stands twice in one object",
        "keep one",
    ),
    "null": (line(messageId=None), "messageId: null is not a value here", "leave the key out"),
    "too long": (line(message="x" * 20_001), "message: 20,001 characters, at most 20,000", "shorten"),
    "empty": (line(message=""), "message: is empty ('')", "value"),
    "wrong type": (line(threadId=7), "threadId: not a text (7)", "quotes"),
    "not a truth value": (line(driftRisk=1), "driftRisk: not a truth value (1)", "true or false"),
    "nine signals": (line(signals=signals(9)), "signals.items: 9 items, at most 8", "shorten it to 8 items"),
    "unknown signal": (
        line(signals=signals(kind="decision_mad")),
        "signals.items[0].kind: unknown value 'decision_mad'",
        "did you mean 'decision_made'?",
    ),
    "unknown role": (line(role="bot"), "role: unknown value 'bot'", "one of: user, assistant"),
    "naive time": (line(ts="2026-02-01T00:00:00"), "ts: time without a zone ('2026", "UTC with Z"),
    "offset": (line(ts="2026-02-01T00:00:00+02:00"), "ts: time not written with Z", "UTC with Z"),
    "no such day": (line(ts="2026-02-30T00:00:00Z"), "ts: no such time", "day is out of range"),
    "no time": (line(ts="soon"), "ts: not a time ('soon')", "UTC with Z"),
    "signals twice": (
        line(signals=signals(), context={"thread_memento": {**MEMENTO, "signals": signals()}}),
        "context: signals stand both on the turn and in context.thread_memento",
        "once",
    ),
    "memento of another version": (
        line(context={"thread_memento": {**MEMENTO, "version": "memento-v0.3"}}),
        "context.thread_memento.version: unknown value 'memento-v0.3'",
        "'memento-v0.2'",
    ),
    "memento without a version": (
        line(context={"thread_memento": {key: MEMENTO[key] for key in MEMENTO if key != "version"}}),
        "context.thread_memento.version: is missing",
        "required",
    ),
    "memento of the stored form with a wrong value": (
        line(context={"thread_memento": {**STORED, "arc": 7}}),
        "context.thread_memento.arc: not a text (7)",
        "quotes",
    ),
    "memento of the stored form with signals": (
        line(context={"thread_memento": {**STORED, "signals": signals()}}),
        "context.thread_memento.signals: unknown key",
        "known keys",
    ),
    "too intense": (
        line(affectSignal={"label": "x", "intensity": 2, "confidence": "low"}),
        "affectSignal.intensity: 2 is too much",
        "at most 1",
    ),
    "unknown confidence": (
        line(affectSignal={"label": "x", "intensity": 0.5, "confidence": "lo"}),
        "affectSignal.confidence: unknown value 'lo'",
        "'low'",
    ),
    "nan in meta": (line(meta={"x": float("nan")}), "meta: numbers must be finite", "correct"),
}


def read(content: bytes) -> list[ReadTurn]:
    """Reads all turns of a stream with this content."""
    return read_turns(Source("-", stdin=io.BytesIO(content)))


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_with_its_mend(name: str) -> None:
    """The error says where, what and how to mend it, on one printable line."""
    bad, what, hint = BAD_LINES[name]
    with pytest.raises(InputError) as caught:
        read(line() + b"\n\n" + bad + b"\n")
    assert caught.value.message.startswith("stdin:3: ")
    assert what in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 250
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "stdin: no turns in it"),
        (b"\n \r\n\n", "stdin: no turns in it"),
        (b"\x7fELF\0\0\0", "stdin: is a binary file"),
        (b"\x1f\x8b\x08", "stdin: is a gzip file"),
        ("{}".encode("utf-16"), "stdin: is UTF-16 text"),
        (b"a" * (MAX_LINE_BYTES + 1), "stdin:1: the line is longer than 1,048,576 bytes"),
        (line() + b"\n" + b"a" * (MAX_LINE_BYTES + 1), "stdin:2: the line is longer than"),
        (b"{\n" + b"a" * (MAX_LINE_BYTES + 1) + b"\n", "stdin:1: not valid JSON"),
    ],
)
def test_a_file_that_is_no_turns_file_is_named(content: bytes, what: str) -> None:
    """Empty, binary, packed or endless input is refused with its own words."""
    with pytest.raises(InputError) as caught:
        read(content)
    assert caught.value.message.startswith(what)
    assert caught.value.hint


def test_several_problems_of_a_line_are_counted() -> None:
    """The first problem is reported in full, the others are counted."""
    with pytest.raises(InputError, match=r"\(and 3 more problems in this line\)$"):
        read(b'{"thread": "t", "role": "bot"}')


def test_crlf_bom_and_blank_lines_are_accepted() -> None:
    """Files of other systems are read: byte order mark, CRLF, blank lines, no newline at the end."""
    turns = read(b"\xef\xbb\xbf" + line(message="a") + b"\r\n\r\n  " + line(message="b") + b"\t\n" + line())
    assert [(turn.position, turn.thread) for turn in turns] == [(0, "t"), (1, "t"), (2, "t")]
    assert [turn.raw for turn in turns] == [line(message="a"), line(message="b"), line()]


def test_raw_lines_are_single_lines() -> None:
    """What travels holds no newline, or a batch would fall apart."""
    assert all(b"\n" not in turn.raw for turn in read(line(message="a\nb") + b"\n" + line()))


def test_problems_are_listed_up_to_a_bound() -> None:
    """For `validate` reading goes on after a problem: good turns are counted, the first problems listed."""
    content = b"\n".join([line(), b"x", b"", line(role="bot"), line(), b"{}"])
    good, problems = problems_in(Source("-", stdin=io.BytesIO(content)))
    assert good == 2
    assert [problem.message.split(": ")[0] for problem in problems] == ["stdin:2", "stdin:4"] + [
        "stdin:6"
    ] * 2
    assert len(problems_in(Source("-", stdin=io.BytesIO(b"x\n" * 50)), most=7)[1]) == 7
