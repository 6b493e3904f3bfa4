"""What the sample models say as judges: a careful one reads values, a hasty one looks at the keys alone."""

import json
from typing import Any

from producer.sample_api.bench_answers import is_hasty
from shared.contracts.case_vocabulary import JUDGE_QUESTION

EXPECTED = "Expected: "
ACTUAL = "Actual: "


def verdict(model: str, prompt: str) -> str | None:
    r"""Answers as a judge; None where nobody asks for a verdict.

    >>> asked = f'{JUDGE_QUESTION}\n\nExpected: {{"n": 1}}\nActual: {{"n": "1.0"}}\n'
    >>> verdict("judge", asked), verdict("judge", "Hi")
    ('PASS', None)
    >>> other = asked.replace("1.0", "2")
    >>> verdict("judge", other), verdict("judge-mini", other)
    ('FAIL', 'PASS')
    """
    if not prompt.startswith(JUDGE_QUESTION):
        return None
    expected, actual = (_object(prompt, word) for word in (EXPECTED, ACTUAL))
    if is_hasty(model):
        return "PASS" if _keys(expected) == _keys(actual) else "FAIL"
    return "PASS" if _meaning(expected) == _meaning(actual) else "FAIL"


def _object(prompt: str, word: str) -> Any:
    """Reads the object in the line that begins with a word; None without one."""
    line = next((line for line in prompt.splitlines() if line.startswith(word)), "")
    try:
        return json.loads(line.removeprefix(word))
    except ValueError:
        return None


def _keys(value: Any) -> Any:
    """What a hasty judge looks at."""
    return sorted(value) if isinstance(value, dict) else value


def _meaning(value: Any) -> Any:
    """What a careful judge compares: numbers by value, texts without case and spaces around them."""
    match value:
        case dict():
            return {key: _meaning(each) for key, each in value.items()}
        case list():
            return [_meaning(each) for each in value]
        case str():
            try:
                return float(value)
            except ValueError:
                return " ".join(value.casefold().split())
        case _:
            return value
