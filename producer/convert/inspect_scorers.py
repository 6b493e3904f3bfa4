"""How scorers of Inspect compare an answer with its targets, copied beside benches as functions of checks."""

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Sequence

PATTERNS = {
    "letter": r"(?is)ANSWER\s*:\s*([A-Za-z])(?:[^\w]|\n|$)(?!.*ANSWER\s*:)",
    "word": r"(?is)ANSWER\s*:\s*(\S+?)(?=[.,;:!?]?\s*(?:\n|$))(?!.*ANSWER\s*:)",
    "line": r"(?i)ANSWER\s*:\s*([^\n]+)\s*\Z",
}
_OVER = (2, 3, 3, 4, 4, 5, 5, 5, 5, 6, 6, 7, 8, 8, 8, 8, 9, 10)
_TOPS = (1, 1, 2, 1, 3, 1, 2, 3, 4, 1, 5, 1, 1, 3, 5, 7, 1, 1)
FRACTIONS = {sign: top / over for sign, top, over in zip("½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒", _TOPS, _OVER, strict=True)}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
SIGNS = str.maketrans("\u2212\ufe63\uff0d\uff0b\ufe62\uff0e", "---++.")
EDGES = string.whitespace + string.punctuation
QUOTES = "!?:;()[]{}'\"`"
"""What may stand around a number."""
ODD_NUMBER = re.compile(rf"([-+]*)([\d.,'\u2019]*)([{''.join(FRACTIONS)}]?)([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]*)")
"""A number with a fraction or an exponent that are characters: 2½, 3²."""


def matches(
    output: str,
    targets: Sequence[str],
    location: str = "end",
    *,
    ignore_case: bool = True,
    numeric: bool = False,
) -> bool:
    """Whether a target is at a place of the answer; numbers are compared by their values."""
    return any(
        _is_at(output.strip(), each.strip(), location, ignore_case=ignore_case, numeric=numeric)
        for each in targets
    )


def _is_at(text: str, target: str, location: str, *, ignore_case: bool, numeric: bool) -> bool:
    if ignore_case:
        text, target = text.casefold(), target.casefold()
    target = _without_marks(target) if numeric else target
    if numeric and (number := _shown(target)):
        return _has_number(_without_marks(text), number, location)
    text, target = text.strip(EDGES), target.strip(EDGES)
    if location == "begin":
        return text.startswith(target)
    if location == "exact":
        return text == target
    return target in text if location == "any" else text.endswith(target)


def _has_number(text: str, target: str, location: str) -> bool:
    if location == "exact":
        return (_shown(text, around="") or text) == target
    numbers = [number for each in text.split() if (number := _shown(each))]
    if location == "any":
        return target in numbers
    return bool(numbers) and numbers[0 if location == "begin" else -1] == target


def _shown(word: str, around: str = QUOTES) -> str:
    """A number as it is compared; empty where a word is none. Numerals are digits, and no letters."""
    number = _number(word.strip(around))
    return "" if number is None else f"{number:.5g}"


def _without_marks(text: str) -> str:
    text = re.sub(r"\\([$,£€*_])", r"\1", text)
    return re.sub(r"\.(?=\s|$|\D)", "", re.sub(r"[$,£€*_]", "", text))


def _number(word: str) -> float | None:
    word = word.translate(SIGNS)
    try:
        number: float | None = float(word)
    except ValueError:
        number = _odd_number(word)
    return number if number is not None and math.isfinite(number) else None


def _odd_number(word: str) -> float | None:
    found = ODD_NUMBER.fullmatch(word)
    if found is None or not found[2] + found[3]:
        return None
    digits = re.sub("[,'\u2019]", "", found[2])
    try:
        base = float(digits or 0) + FRACTIONS.get(found[3], 0)
        value = (-base if found[1].count("-") % 2 else base) ** int(found[4].translate(SUPERSCRIPTS) or 1)
    except (ValueError, ArithmeticError):
        return None
    return value


def is_exact(output: str, targets: Sequence[str]) -> bool:
    """Whether the answer is a target, but for case, punctuation and articles."""
    return any(normalized(each) == normalized(output) for each in targets if normalized(each))


def f1_score(output: str, targets: Sequence[str], stop_words: Sequence[str] = ()) -> float:
    """How many words an answer and the most similar target have in common."""
    stop = [_plain(each) for each in stop_words]
    scores = [_f1(normalized(output, stop), words) for each in targets if (words := normalized(each, stop))]
    return round(max(scores, default=0), 2)


def _f1(answer: str, target: str) -> float:
    said, wanted = answer.split(), target.split()
    common = sum((Counter(said) & Counter(wanted)).values())
    precision = common / len(said) if said else 1
    recall = common / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0


def normalized(text: str, stop_words: Collection[str] = ()) -> str:
    """The words of a text without punctuation and articles."""
    tokens = [token for each in re.split("[ -]", text) if (token := _plain(each)) not in stop_words]
    return " ".join(filter(None, tokens))


def _plain(token: str) -> str:
    token = token.casefold()
    if not _is_finite(token):
        inner = token.strip(EDGES)
        token = (
            inner if _is_finite(inner) else "".join(each for each in token if each not in string.punctuation)
        )
    token = str(float(token)) if _is_finite(token) else token
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", token).split())


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def finds(
    output: str, targets: Sequence[str], pattern: str, *, ignore_case: bool = True, match_all: bool = False
) -> bool:
    """Whether what a pattern finds in the answer is a target."""
    found = re.search(pattern, output, re.IGNORECASE if ignore_case else 0)
    if found is None:
        return False
    groups = [each for each in found.groups() or (found[0],) if each is not None]
    known = [each.lower() for each in targets] if ignore_case else targets
    are_known = [(each.lower() if ignore_case else each) in known for each in groups]
    return bool(groups) and all(are_known) if match_all else any(are_known)


def answers(output: str, targets: Sequence[str], pattern: str) -> bool:
    """Whether what follows ANSWER: is a target."""
    return finds(output, targets, PATTERNS[pattern])


def chooses(output: str, targets: Sequence[str], letters: Sequence[str], *, several: bool = False) -> bool:
    """Whether the letters that follow the last ANSWER: are the right ones."""
    said = re.sub(r"\$\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\$", r"\1", output)
    said = re.sub(r"\*\*\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\*\*", r"\1", said)
    said = re.sub(r"(?i)(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))", r"\1\2\3", said)
    found = re.findall(r"(?im)^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", said)
    found = found or re.findall(r"(?i)ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)", said)
    named = found[-1].strip().upper() if found else ""
    named = named.replace(" AND ", ",").replace(" ", "") if several else named
    chosen = [each for each in named.split(",") if each]
    if several and not set(chosen) <= set(letters):
        chosen = list(named)
    if not set(chosen) <= set(letters) or (not several and len(chosen) != 1):
        chosen = []
    tokens = [each for target in targets for each in target.replace(",", " ").split()]
    right = [one for each in tokens for one in ([each] if each.isnumeric() else each.upper())]
    return sorted(set(chosen)) == sorted(right)
