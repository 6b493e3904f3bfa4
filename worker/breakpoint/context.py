"""What a live turn is told of its thread: the latest memento as six labelled lines, then the last turns.

The last turns are those that were decided live; they are kept with the thread's state, the newest within a
bound, so that a state of any age stays a few kilobytes and a prompt does too. Both are texts of other people:
the memento stands on one line a field, each turn in quotes, so that none can pass for a part of the prompt.
"""

import json
from collections.abc import Sequence
from typing import Final

import msgspec

from worker.breakpoint.closure import on_one_line
from worker.breakpoint.memento import Memento

SAID_MOST: Final = 12
"""Messages and answers that are remembered of a thread."""
SAID_CHARS: Final = 6_000
"""Characters of all of them together; the newest one is kept whatever its length."""
TEXT_CHARS: Final = 2_000
"""Characters of one; a longer one is cut."""
CUT: Final = "…"
NONE: Final = "(none)"
MEMENTO_HEADING: Final = "What the conversation came to so far:"
SAID_HEADING: Final = "Its last turns, oldest first:"


class Said(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One message or answer."""

    role: str
    """`user` or `assistant`."""
    text: str
    """What was said, cut."""


_decode: Final = msgspec.json.Decoder(list[Said]).decode
_encode: Final = msgspec.json.Encoder().encode


def said_so_far(stored: msgspec.Raw | None) -> list[Said]:
    """Reads what was stored of a thread; nothing of a thread without live turns."""
    return _decode(stored) if stored and bytes(stored) else []


def stored_form(said: Sequence[Said]) -> msgspec.Raw:
    """Writes what is to be stored of a thread."""
    return msgspec.Raw(_encode(said))


def remember(said: Sequence[Said], *more: tuple[str, str]) -> list[Said]:
    """Adds what was said in a turn and forgets the oldest that no longer fits.

    Args:
        said: so far, oldest first.
        more: role and text, in order.

    >>> [each.text for each in remember([Said("user", "x" * 6000)], ("user", "hi"), ("assistant", "ho"))]
    ['hi', 'ho']
    """
    kept, left = list[Said](), SAID_CHARS
    for each in reversed([*said, *(Said(role, _cut(text)) for role, text in more)]):
        left -= len(each.text)
        if len(kept) == SAID_MOST or (kept and left < 0):
            break
        kept.append(each)
    return kept[::-1]


def retrieve_context(memento: Memento, said: Sequence[Said]) -> list[str]:
    """Lists what the prompt is to say of the thread, a paragraph an item.

    Args:
        memento: the one that the turn builds on.
        said: its last live turns.
    """
    items = ["\n".join([MEMENTO_HEADING, *memento_lines(memento)])]
    if said:
        turns = (f"{each.role}: {json.dumps(each.text, ensure_ascii=False)}" for each in said)
        items.append("\n".join([SAID_HEADING, *turns]))
    return items


def memento_lines(memento: Memento) -> list[str]:
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
