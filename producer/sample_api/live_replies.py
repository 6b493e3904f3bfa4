"""Replies of the sample models to live turns: they repeat the message, name its mood and summarise it."""

import json
from typing import Final

from worker.breakpoint.prompt import MESSAGE_HEADING

MOODS: Final = (
    ("thank", "gratitude", 0.5),
    ("can't keep up", "overwhelm", 0.9),
    ("overwhelm", "overwhelm", 0.9),
    ("let's", "resolve", 0.5),
    ("?", "curiosity", 0.3),
)
"""A part of a message, the mood that it shows, and how strongly."""
MOST_CHARS: Final = 120


def live_reply(prompt: str) -> str | None:
    r"""Answers a live turn; None where the prompt is none.

    >>> json.loads(live_reply("Arc: trip\n\nThe latest message:\nThank you!") or "")["affect_signal"]["label"]
    'gratitude'
    >>> live_reply("Hi") is None
    True
    """
    _, heading, message = prompt.rpartition(f"{MESSAGE_HEADING}\n")
    heard = " ".join(message.split())[:MOST_CHARS]
    if not heading or not heard:
        return None
    mood = next((each for each in MOODS if each[0] in heard.lower()), None)
    signal = mood and {"label": mood[1], "intensity": mood[2], "confidence": "med"}
    shape = {"arc": heard, "active": [heard], "parked": [], "decisions": [], "next": []}
    return json.dumps({"response": f"You said: {heard}", "affect_signal": signal, "shape": shape})
