"""What the sample models say as judges: a careful one reads values and words, a hasty one the surface."""

import json
import re
from typing import Any

import msgspec

from producer.sample_api.bench_answers import is_hasty
from producer.text import plural
from shared.contracts.case_vocabulary import JUDGE_QUESTION

EXPECTED = "Expected: "
ACTUAL = "Actual: "
CRITERION = "Criterion: "
OUTPUT = "Output: "
CHOICES = "Choices: "
ANSWER_A, ANSWER_B = "Answer A: ", "Answer B: "
ANSWERS = "Answers: "
BRIEF = ("nothing else", "brief", "short", "concise", "one word")
"""Parts of criteria that are about length."""
LENGTHS = ((3, 1.0), (6, 0.8), (12, 0.6))
"""Words of an output, at most, and the score that it has then."""
FEWEST_LINES = 2
"""Of a question about an output."""
_GRADED_KEY = re.compile(r'"(choice|steps|relevant|supported|attributed|useful)"|"score"(?=: a whole)')
"""What tells the questions of graded checks apart: the keys of their replies."""
_CHOSEN = re.compile(r'"choice": one of ("[^\n]*")\}\.\Z')
"""How a prompt of the user's own ends that asks for one of the choices."""
_SENTENCE = re.compile(r"\w[^.!?]*[.!?]?")
_WORDS = re.compile(r"[^\W_]+")


def verdict(model: str, prompt: str) -> str | None:
    r"""Answers as a judge; None where the prompt asks for no verdict.

    >>> prompt = f'{JUDGE_QUESTION}\n\nExpected: {{"n": 1}}\nActual: {{"n": "1.0"}}\n'
    >>> verdict("judge", prompt), verdict("judge", "Hi")
    ('PASS', None)
    >>> other = prompt.replace("1.0", "2")
    >>> verdict("judge", other), verdict("judge-mini", other)
    ('FAIL', 'PASS')
    """
    if not prompt.startswith(JUDGE_QUESTION):
        return None
    expected, actual = (_object(prompt, word) for word in (EXPECTED, ACTUAL))
    if is_hasty(model):
        return "PASS" if _keys(expected) == _keys(actual) else "FAIL"
    return "PASS" if _meaning(expected) == _meaning(actual) else "FAIL"


def grade(model: str, prompt: str) -> str | None:
    r"""Grades an output by a criterion, as JSON; None where the prompt does not ask for that.

    A hasty judge is content with any output.

    >>> prompt = 'Criterion: "Names the capital and nothing else."\nOutput: "%s"'
    >>> grade("judge", prompt % "Paris")
    '{"reason": "It has 1 word.", "score": 1.0}'
    >>> json.loads(grade("judge", prompt % ("a long story " * 9)) or "")["score"]
    0.2
    >>> json.loads(grade("judge-mini", prompt % ("a long story " * 9)) or "")["score"]
    1.0
    >>> grade("judge", "Hi") is None
    True
    """
    criterion, output = (_object(prompt, word) for word in (CRITERION, OUTPUT))
    if not isinstance(criterion, str) or not isinstance(output, str):
        return None
    score, reason = _score(criterion, output)
    if is_hasty(model):
        score, reason = float(bool(output)), "It reads well."
    return json.dumps({"reason": reason, "score": score})


def graded(system: str, prompt: str) -> str | None:
    r"""Answers a graded check, in the form that its system message names; None for other questions.

    What shares no long word with the first line of the question is not the same, relevant or supported.

    >>> graded('{"choice": "yes" if …, else "no"}', 'Criterion: "Names Paris."\nOutput: "It is Paris."')
    '{"reason": "They share a word.", "choice": "yes"}'
    >>> graded('{"parts": [{"statement": "…", "relevant": …}]}', 'Question: "Why?"\nOutput: "It rains. Bye."')
    '{"parts": [{"statement": "It rains.", "relevant": false}, {"statement": "Bye.", "relevant": false}]}'
    """
    asked = _GRADED_KEY.search(system)
    key = asked.group().strip('"') if asked else ""
    if key == "steps":
        return json.dumps({"steps": ["Read the output.", "Compare it with the criteria."]})
    lines = [_read(line.partition(": ")[2]) for line in prompt.splitlines()]
    if not key or len(lines) < FEWEST_LINES:
        return None
    first, second, last = lines[0], lines[1], lines[-1]
    if key == "useful":
        passages = first if isinstance(first, list) else []
        parts = [{"passage": at, key: _share_word(second, each)} for at, each in enumerate(passages, 1)]
        return json.dumps({"parts": parts})
    if key not in {"choice", "score"}:
        statements = _SENTENCE.findall(str(last))
        return json.dumps(
            {"parts": [{"statement": each, key: _share_word(first, each)} for each in statements]}
        )
    is_good = _share_word(first, last)
    usual = ("yes", "no") if '"yes"' in system else ("same", "disagree")
    choices = _object(prompt, CHOICES)
    yes, no = (choices[0], choices[-1]) if isinstance(choices, list) and choices else usual
    reply = {"choice": yes if is_good else no} if key == "choice" else {"score": 8 if is_good else 3}
    return json.dumps({"reason": f"They share {'a' if is_good else 'no'} word.", **reply})


def chosen(prompt: str) -> str | None:
    r"""Chooses for a prompt of the user's own, as JSON: the first. None for other questions.

    >>> chosen('Funny? Ha. Answer with one JSON object: {"reason": "…", "choice": one of "yes", "no"}.')
    '{"reason": "It is the first.", "choice": "yes"}'
    """
    asked = _CHOSEN.search(prompt.rstrip())
    choices = _read(f"[{asked[1]}]") if asked else None
    if not isinstance(choices, list):
        return None
    return json.dumps({"reason": "It is the first.", "choice": choices[0]})


def _read(text: str) -> Any:
    """A value of a question; a text that is no JSON as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _share_word(one: Any, other: Any) -> bool:
    """Whether two values have a word in common that is not short."""
    first, second = (_WORDS.findall(str(value).casefold()) for value in (one, other))
    return any(len(word) > len("the") for word in set(first).intersection(second))


class _Shown(msgspec.Struct):
    """One of the answers to choose from."""

    answer: int
    text: str


def choice(model: str, prompt: str) -> str | None:
    r"""Chooses the answer that meets a criterion best, as JSON; a hasty judge the first. None for others.

    >>> answers = [{"answer": 1, "text": "So it is, I think."}, {"answer": 2, "text": "Yes"}]
    >>> prompt = f'Criterion: "Brief."\nAnswers: {json.dumps(answers)}'
    >>> choice("judge", prompt), choice("judge-mini", prompt)
    ('{"reason": "It has 1 word.", "choice": 2}', '{"reason": "It comes first.", "choice": 1}')
    """
    criterion, answers = _object(prompt, CRITERION), _object(prompt, ANSWERS)
    if not isinstance(criterion, str) or not isinstance(answers, list):
        return None
    if is_hasty(model):
        return json.dumps({"reason": "It comes first.", "choice": 1})
    shown = msgspec.convert(answers, list[_Shown])
    found = [(*_score(criterion, each.text), each.answer) for each in shown]
    _, reason, best = max(found, key=lambda each: each[0])
    return json.dumps({"reason": reason, "choice": best})


def comparison(model: str, prompt: str) -> str | None:
    r"""Chooses which of two answers meets a criterion better, as JSON; None for other questions.

    A hasty judge prefers the first, whatever it says.

    >>> prompt = 'Criterion: "Brief."\nAnswer A: "I believe that it is Paris."\nAnswer B: "Paris"'
    >>> comparison("judge", prompt), comparison("judge-mini", prompt)
    ('{"reason": "It has 1 word.", "winner": "B"}', '{"reason": "It comes first.", "winner": "A"}')
    """
    criterion, *answers = (_object(prompt, word) for word in (CRITERION, ANSWER_A, ANSWER_B))
    if not isinstance(criterion, str) or not all(isinstance(answer, str) for answer in answers):
        return None
    if is_hasty(model):
        return json.dumps({"reason": "It comes first.", "winner": "A"})
    (first, why_first), (second, why_second) = (_score(criterion, answer) for answer in answers)
    if first == second:
        return json.dumps({"reason": "Both meet it alike.", "winner": "tie"})
    return json.dumps(
        {
            "reason": why_first if first > second else why_second,
            "winner": "A" if first > second else "B",
        }
    )


def _score(criterion: str, output: str) -> tuple[float, str]:
    """How well an output meets a criterion, as far as a sample can tell: by its length, else by its words."""
    words = output.split()
    if any(sign in criterion.casefold() for sign in BRIEF):
        score = next((score for most, score in LENGTHS if 0 < len(words) <= most), 0.2 if words else 0.0)
        return score, f"It has {plural(len(words), 'word')}."
    wanted = {word for word in _WORDS.findall(criterion.casefold()) if len(word) > len("the")}
    found = set(_WORDS.findall(output.casefold()))
    share = len(wanted & found) / len(wanted) if wanted else 0.0
    return round(
        0.5 + share / 2, 2
    ) if words else 0.0, f"It has {plural(len(wanted & found), 'word')} of the criterion."


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
