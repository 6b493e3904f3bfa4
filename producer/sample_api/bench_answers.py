"""What the sample models say to the packaged benches: a careful one, and a hasty one that errs."""

from collections.abc import Sequence
from typing import Final, NamedTuple


class Saying(NamedTuple):
    """The answers to one prompt."""

    about: str
    """A part of the prompt that no other one has."""
    careful: str
    hasty: str
    """Empty where it says the same."""


SAYINGS: Final[Sequence[Saying]] = (
    Saying(
        "land of cheese and the Eiffel tower",
        '```json\n{"country": "France", "capital": "Paris"}\n```',
        '{"capital": "Paris", "country": "The land of cheese"}',
    ),
    Saying(
        "computes the area of a rectangle",
        "```python\ndef rectangle_area(width: float, height: float) -> float:\n"
        '    """Returns width times height."""\n    return width * height\n```\n'
        "It takes the two sides in the same unit and returns the area in that unit squared.",
        "```python\ndef area(a, b): return a * b\n```",
    ),
    Saying("ada@example.com", '{"email": "ada@example.com"}', ""),
    Saying(
        "ten newest orders of one customer",
        "SELECT id, ordered_at, total\nFROM orders\nWHERE customer_id = :customer\n"
        "ORDER BY ordered_at DESC\nLIMIT 10;",
        "SELECT * FROM orders WHERE customer_id = 1 ORDER BY ordered_at DESC LIMIT 10",
    ),
    Saying(
        "why does a queue make a system of many workers more robust",
        "A queue keeps work until a worker is free, so a worker that dies loses nothing and others can be "
        "added at any time without anybody noticing.",
        "Because the work waits until somebody is free.",
    ),
    Saying("What is 17 + 25?", "17 + 25 = 42", "42"),
    Saying(
        "why the sky is blue",
        "Air scatters the short, blue waves of sunlight far more than the long, red ones, so blue reaches us "
        "from everywhere.",
        "Air scatters blue light more than red.",
    ),
    Saying(
        "haiku about a long train journey",
        "Rails hum through the night\nstations pass like thoughts half kept\nmorning finds the sea",
        "Window, fields, window\nthe same tea, colder each time\nhome is one more bridge",
    ),
)
OTHERWISE: Final = "I am a sample: I know the answers to the packaged benches and nothing else."
HASTY_NAME: Final = "-mini"
"""What the names of hasty models end in."""


def is_hasty(model: str) -> bool:
    """Tells which of the two a model is; any name will do.

    >>> is_hasty("openai/gpt-4o-mini"), is_hasty("mine")
    (True, False)
    """
    return model.endswith(HASTY_NAME)


def say(model: str, prompt: str) -> str:
    """Answers a prompt.

    >>> say("gpt-4o-mini", "What is 17 + 25?"), say("mine", "What is 17 + 25?")
    ('42', '17 + 25 = 42')
    """
    for saying in SAYINGS:
        if saying.about in prompt:
            return (is_hasty(model) and saying.hasty) or saying.careful
    return OTHERWISE
