"""What the sample models say to the packaged benches: a careful one, and a hasty one that errs."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple


class CannedAnswer(NamedTuple):
    """The answers to one prompt."""

    about: str
    """A part of the prompt that no other one has."""
    careful: str
    hasty: str
    """Empty where it says the same."""


CANNED_ANSWERS: Final[Sequence[CannedAnswer]] = (
    CannedAnswer(
        "land of cheese and the Eiffel tower",
        '```json\n{"country": "France", "capital": "Paris"}\n```',
        '{"capital": "Paris", "country": "The land of cheese"}',
    ),
    CannedAnswer(
        "computes the area of a rectangle",
        "```python\ndef rectangle_area(width: float, height: float) -> float:\n"
        '    """Returns width times height."""\n    return width * height\n```\n'
        "It takes the two sides in the same unit and returns the area in that unit squared.",
        "```python\ndef area(a, b): return a * b\n```",
    ),
    CannedAnswer("ada@example.com", '{"email": "ada@example.com"}', ""),
    CannedAnswer(
        "ten newest orders of one customer",
        "SELECT id, ordered_at, total\nFROM orders\nWHERE customer_id = :customer\n"
        "ORDER BY ordered_at DESC\nLIMIT 10;",
        "SELECT * FROM orders WHERE customer_id = 1 ORDER BY ordered_at DESC LIMIT 10",
    ),
    CannedAnswer(
        "why does a queue make a system of many workers more robust",
        "A queue keeps work until a worker is free, so a worker that dies loses nothing and others can be "
        "added at any time without anybody noticing.",
        "Because the work waits until somebody is free.",
    ),
    CannedAnswer("What is 17 + 25?", "17 + 25 = 42", "42"),
    CannedAnswer(
        "why the sky is blue",
        "Air scatters the short, blue waves of sunlight far more than the long, red ones, so blue reaches us "
        "from everywhere.",
        "Air scatters blue light more than red.",
    ),
    CannedAnswer(
        "haiku about a long train journey",
        "Rails hum through the night\nstations pass like thoughts half kept\nmorning finds the sea",
        "Window, fields, window\nthe same tea, colder each time\nhome is one more bridge",
    ),
)
OTHERWISE: Final = "I am a sample: I know the answers to the packaged benches and nothing else."
CAPITALS: Final = {
    "Australia": "Canberra",
    "Brazil": "Brasília",
    "Canada": "Ottawa",
    "Egypt": "Cairo",
    "France": "Paris",
    "Germany": "Berlin",
    "India": "New Delhi",
    "Italy": "Rome",
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Spain": "Madrid",
    "Switzerland": "Bern",
}
HASTY_CAPITALS: Final = {"Australia": "Sydney"}
"""Where a hasty model errs."""
_CAPITAL: Final = re.compile(r"capital of (?:the )?(\w[\w ]*)", re.IGNORECASE)
HASTY_NAME: Final = "-mini"
"""What the names of hasty models end in."""


def is_hasty(model: str) -> bool:
    """Returns which of the two a model is; any name will do.

    >>> is_hasty("openai/gpt-4o-mini"), is_hasty("mine")
    (True, False)
    """
    return model.endswith(HASTY_NAME)


def canned_answer(model: str, prompt: str) -> str | None:
    """Answers a prompt of a packaged bench; None for any other.

    >>> canned_answer("gpt-4o-mini", "What is 17 + 25?"), canned_answer("mine", "What is 17 + 25?")
    ('42', '17 + 25 = 42')
    >>> canned_answer("mine", "Hi") is None
    True
    """
    for each in CANNED_ANSWERS:
        if each.about in prompt:
            return (is_hasty(model) and each.hasty) or each.careful
    return None


def capital_answer(model: str, system: str, prompt: str) -> str | None:
    """Answers a question about a capital; None for any other. A hasty model errs about Australia.

    >>> capital_answer("mine", "", "What is the capital of France?")
    'The capital of France is Paris.'
    >>> capital_answer("mine", "Answer with one word.", "The capital of Australia?")
    'Canberra'
    >>> capital_answer("a-mini", "Answer with one word.", "The capital of Australia?")
    'Sydney, I believe.'
    """
    found = _CAPITAL.search(prompt)
    country = next(
        (name for name in CAPITALS if found and found[1].casefold().startswith(name.casefold())), ""
    )
    if not country:
        return None
    capital = HASTY_CAPITALS.get(country, CAPITALS[country]) if is_hasty(model) else CAPITALS[country]
    is_terse = "one word" in f"{system} {prompt}".casefold()
    if is_hasty(model):
        return (
            f"{capital}, I believe." if is_terse else f"I believe that it is {capital}, a city worth a visit."
        )
    return capital if is_terse else f"The capital of {country} is {capital}."
