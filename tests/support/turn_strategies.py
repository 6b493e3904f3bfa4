"""Hypothesis strategies for turns as their contract allows them, and for what nearly is one."""

import json
from typing import Any

from hypothesis import strategies as st

from shared.contracts.turn_vocabulary import (
    AffectPhase,
    Confidence,
    IntensityBucket,
    RequestPointSource,
    Role,
    SignalSource,
    ThreadMementoSignalKind,
)

Strategy = st.SearchStrategy[Any]


def text(least: int = 1, most: int = 30) -> st.SearchStrategy[str]:
    """Any text that UTF-8 can carry."""
    return st.text(st.characters(codec="utf-8"), min_size=least, max_size=most)


def one_of_words(words: Any) -> st.SearchStrategy[str]:
    """A word of a vocabulary, as plain text."""
    return st.sampled_from([str(word) for word in words])


def keys(required: dict[str, Strategy], optional: dict[str, Strategy]) -> Strategy:
    """An object with all required and some optional keys."""
    return st.fixed_dictionaries(required, optional=optional)


times = st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z") | st.sampled_from(
    ["2026-01-01T00:00:00Z", "2026-01-01T00:20:00.5Z", "2024-02-29T12:00:00.123456789Z"]
)
intensities = st.floats(0, 1) | st.sampled_from([0, 1, 0.34, 0.7, 0.8, 0.85, 0.9])
short_lists = st.lists(text(), max_size=3)
ack_messages = st.sampled_from(["ok", "ok thanks", "Sounds good!", "yep!", "all right."])
messages = text(1, 60) | ack_messages

signal_items = keys(
    {
        "endMessageId": text(),
        "kind": one_of_words(ThreadMementoSignalKind),
        "confidence": one_of_words(Confidence),
        "source": one_of_words(SignalSource),
    },
    {"summary": text(0)},
)
signals = keys({"updatedAt": times}, {"items": st.lists(signal_items, max_size=8)})
shapes = keys(
    {
        "arc": text(),
        "active": short_lists,
        "parked": short_lists,
        "decisions": short_lists,
        "next": short_lists,
    },
    {},
)
points = keys(
    {
        "endMessageId": text(),
        "label": text(),
        "intensity": intensities,
        "confidence": one_of_words(Confidence),
        "source": one_of_words(RequestPointSource),
    },
    {},
)
rollups = keys(
    {
        "phase": one_of_words(AffectPhase),
        "intensityBucket": one_of_words(IntensityBucket),
        "updatedAt": times,
    },
    {},
)
affect_signals = keys(
    {"label": text(), "intensity": intensities},
    {"confidence": one_of_words(Confidence) | intensities},
)


def mementos(threads: Strategy, *, own_signals: bool) -> Strategy:
    """A client's memento of one of these threads."""
    return keys(
        {
            "mementoId": text(),
            "threadId": threads,
            "createdTs": times,
            "version": st.just("memento-v0.2"),
            "arc": text(),
            "active": short_lists,
            "parked": short_lists,
            "decisions": short_lists,
            "next": short_lists,
            "affect": keys({"points": st.lists(points, max_size=5), "rollup": rollups}, {}),
        },
        {"signals": signals} if own_signals else {},
    )


def turns(thread: str = "t") -> Strategy:
    """Valid turns of a thread; some carry a memento or reference, of this thread or another."""
    threads = st.sampled_from([thread, "another"])
    refs = keys(
        {"mementoId": st.sampled_from([f"memento_latest_{thread}", "m"])},
        {"threadId": threads, "createdTs": times},
    )
    required = {"threadId": st.just(thread), "message": messages}
    optional: dict[str, Strategy] = {
        "messageId": text(),
        "role": one_of_words(Role),
        "contextWindowPressure": st.booleans(),
        "driftRisk": st.booleans(),
        "summaryChanged": st.booleans(),
        "affectSignal": affect_signals,
        "ts": times,
        "modelShape": shapes,
        "thread_memento_etag": st.sampled_from(["0", "1", "2", "x"]),
        "meta": st.dictionaries(text(), json_values, max_size=2),
    }
    variants = []
    for own_signals in (True, False):
        memento = mementos(threads, own_signals=own_signals)
        context = keys({}, {"thread_memento": memento, "thread_memento_ref": refs})
        extra = {} if own_signals else {"signals": signals}
        variants.append(keys(required, {**optional, **extra, "context": context}))
    return st.one_of(variants)


json_values: Strategy = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text(0),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spelt(draw: st.DrawFn, packets: Strategy) -> bytes:
    """Packets as JSON lines, in one of the ways that JSON may be spelt."""
    packet = draw(packets)
    names = draw(st.permutations(sorted(packet)))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    ordered = {name: packet[name] for name in names}
    return json.dumps(ordered, ensure_ascii=draw(st.booleans()), separators=separators).encode()
