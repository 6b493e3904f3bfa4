"""Builds the context of a live turn: the latest memento as six labelled lines, then the last turns.

Only turns that were decided live are included; they are stored with the thread's state, up to a bound, so
that state and prompt stay within a few kilobytes. Both contain untrusted text: each field of the memento is
put on one line and each turn in quotes, so that neither can be mistaken for a part of the prompt.
"""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from worker.breakpoint.closure import on_one_line
from worker.breakpoint.memento import KeptMemento

MAX_RECENT: Final = 12
"""Messages and answers stored per thread."""
RECENT_CHARS: Final = 6_000
"""Characters of all of them together; the newest one is kept whatever its length."""
TEXT_CHARS: Final = 2_000
"""Characters of one; a longer one is cut."""
CUT: Final = "…"
NONE: Final = "(none)"
MEMENTO_HEADING: Final = "What the conversation came to so far:"
RECENT_HEADING: Final = "Its last turns, oldest first:"


class RecentMessage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One message or answer."""

    role: str
    """`user` or `assistant`."""
    text: str
    """The text, shortened if it is too long."""


_decode: Final = msgspec.json.Decoder(list[RecentMessage]).decode
_encode: Final = msgspec.json.Encoder().encode


def decode_recent(stored: msgspec.Raw | None) -> list[RecentMessage]:
    """Reads the stored messages of a thread; empty for a thread without live turns."""
    return _decode(stored) if stored and bytes(stored) else []


def encode_recent(recent: Sequence[RecentMessage]) -> msgspec.Raw:
    """Encodes the messages to be stored with a thread."""
    return msgspec.Raw(_encode(recent))


def append_recent(recent: Sequence[RecentMessage], *more: tuple[str, str]) -> list[RecentMessage]:
    """Appends the messages of a turn and drops the oldest ones that no longer fit.

    Args:
        recent: the stored messages, oldest first.
        more: role and text, in order.

    >>> recent = append_recent([RecentMessage("user", "x" * 6000)], ("user", "hi"), ("assistant", "ho"))
    >>> [each.text for each in recent]
    ['hi', 'ho']
    """
    kept, left = list[RecentMessage](), RECENT_CHARS
    for each in reversed([*recent, *(RecentMessage(role, _cut(text)) for role, text in more)]):
        left -= len(each.text)
        if len(kept) == MAX_RECENT or (kept and left < 0):
            break
        kept.append(each)
    return kept[::-1]


def retrieve_context(memento: KeptMemento, recent: Sequence[RecentMessage]) -> list[str]:
    """Returns the paragraphs about the thread that the prompt contains.

    Args:
        memento: the one that the turn builds on.
        recent: its last live turns.
    """
    items = ["\n".join([MEMENTO_HEADING, *memento_lines(memento)])]
    if recent:
        turns = (f"{each.role}: {json.dumps(each.text, ensure_ascii=False)}" for each in recent)
        items.append("\n".join([RECENT_HEADING, *turns]))
    return items


def memento_lines(memento: KeptMemento) -> list[str]:
    """Writes a memento as six labelled lines."""
    rollup = memento.affect.rollup
    fields = {
        "Arc": [memento.arc],
        "Active": memento.active,
        "Parked": memento.parked,
        "Decisions": memento.decisions,
        "Next": memento.next,
        "Affect": [f"{rollup.phase} ({rollup.intensity_bucket})"],
    }
    return [f"{label}: {' | '.join(map(on_one_line, texts)) or NONE}" for label, texts in fields.items()]


def _cut(text: str) -> str:
    """Shortens a long text."""
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - len(CUT)] + CUT
