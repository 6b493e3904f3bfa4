r"""Replaces personal data in texts before they are stored: mail addresses, card numbers, configured patterns.

    PROCTOR_REDACT="mail, card"
    PROCTOR_REDACT_PATTERNS="\bK-\d{6}\b"        one regular expression a line

The contents of a file are redacted before they are written to Redis, and the answers of an upstream before
they are cached, judged or written. Models are therefore sent redacted text, and redacted answers are judged
against redacted expectations. Different originals have different replacements: each ends with digits of a
hash, too few to find the original; ids have more digits, because no two of them may become equal.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, Final

from shared.settings import Settings, names_in

DIGITS: Final = 4
"""Digits of the hash in a replacement: it has 65,536 values, so that millions of originals share each."""
ID_DIGITS: Final = 12
"""Digits of the hash in an id."""
ID_FIELDS: Final = frozenset(("id", "case_id", "prompt_id", "threadId", "messageId", "clientRequestId"))
"""Fields whose texts are ids."""
LEAST_CARD: Final = 10**12
"""Smallest number that can be a card number: 13 digits."""
CARD_DIGITS: Final = range(13, 20)

_FIXED: Final = re.compile(r"(\[(?:mail|card|redacted):[0-9a-f]{4,12}\]|\\u[0-9a-fA-F]{4}|\\[bfnrt\"/\\])")
"""Parts that no rule is applied to: earlier replacements, and escapes of JSON, which many answers contain."""
_MAIL: Final = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@(?:[\w-]{1,63}\.){1,8}[\w-]{2,63}")
_NUMBERS: Final = re.compile(r"\d(?:[ \u00a0\u2009-]?\d){12,}")
"""Groups of digits that may contain a card number."""
_GROUP: Final = re.compile(r"\d+")
_ISSUED: Final = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:2[3-9]|[3-6]\d|7[01])\d{13}|22[12]\d{13}|2720\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}"
)
"""First digits and lengths that issuers use; nine of ten numbers with these fail the check digit."""
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
"""Keys that are field names, which no rule changes."""

Rule = Callable[[str, Callable[[str], str]], str]
"""Replaces each match in a text with what the second argument returns for it."""


class Redactor:
    r"""The rules of an installation.

    Args:
        names: names of rules: `mail`, `card`.
        patterns: regular expressions.

    >>> redactor = Redactor(["mail", "card"], [r"K-\d{4}"])
    >>> redactor.text("Ask ann@example.com, who paid with 4111 1111 1111 1111 for K-1234.")
    'Ask [mail:71d4], who paid with [card:9bbe] for [redacted:f20f].'
    >>> redactor.text("4111 1111 1111 1112, 1760000000412345 and me@here")
    '4111 1111 1111 1112, 1760000000412345 and me@here'
    """

    def __init__(self, names: Iterable[str], patterns: Iterable[str] = ()) -> None:
        own = [_of_pattern(re.compile(pattern)) for pattern in patterns]
        self._rules = [*((name, RULES[name]) for name in names), *(("redacted", rule) for rule in own)]

    def text(self, text: str, digits: int = DIGITS) -> str:
        r"""Returns a text with all matches of the rules replaced.

        >>> Redactor(["mail"]).text('{"to":"Hi\\nann@example.com"}')
        '{"to":"Hi\\n[mail:71d4]"}'
        """
        text = text.replace("\\u0040", "@")
        for name, rule in self._rules:
            replaced = _Replacement(name, digits)
            parts = _FIXED.split(text) if "\\" in text or "[" in text else [text]
            text = "".join(part if at % 2 else rule(part, replaced) for at, part in enumerate(parts))
        return text

    def cut_text(self, text: str, chars: int) -> str:
        """Redacts a text that was already cut to `chars` characters.

        Its last word is dropped, because it may be the beginning of a match.

        >>> Redactor(["mail"]).cut_text("no mail for ann@exam", 20)
        'no mail for'
        """
        return self.text(text if len(text) < chars else text.rpartition(" ")[0].rstrip("0123456789 -"))

    def value(self, value: Any, digits: int = DIGITS) -> Any:
        """Redacts the texts, the numbers, and the keys that are not field names in a JSON value.

        >>> Redactor(["card"]).value({"4111111111111111": [4111111111111111, 1.5], "id": "4111111111111111"})
        {'[card:9bbe]': ['[card:9bbe]', 1.5], 'id': '[card:9bbef1947662]'}
        """
        if isinstance(value, str):
            return self.text(value, digits)
        if isinstance(value, dict):
            return {
                name if _NAME.fullmatch(name) else self.text(name): self.value(
                    each, ID_DIGITS if name in ID_FIELDS else digits
                )
                for name, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(each, digits) for each in value]
        if isinstance(value, int) and not isinstance(value, bool) and value >= LEAST_CARD:
            found = self.text(str(value), digits)
            return value if found == str(value) else found
        return value

    def json(self, text: bytes) -> bytes:
        """Redacts encoded JSON."""
        return json.dumps(self.value(json.loads(text)), separators=(",", ":")).encode()


def redactor_of(settings: Settings) -> Redactor | None:
    """Returns the redactor of an installation; None if it has no rules."""
    patterns = (settings.redact_patterns or "").splitlines()
    if settings.redact is None and not patterns:
        return None
    return Redactor(names_in(settings.redact), patterns)


class _Replacement:
    """Returns the replacement of an original."""

    __slots__ = ("_digits", "_name")

    def __init__(self, name: str, digits: int) -> None:
        self._name, self._digits = name, digits

    def __call__(self, original: str) -> str:
        digest = sha256(original.encode(errors="surrogatepass")).hexdigest()
        return f"[{self._name}:{digest[: self._digits]}]"


def _mail(text: str, replaced: Callable[[str], str]) -> str:
    return _MAIL.sub(lambda found: replaced(found[0]), text) if "@" in text else text


def _card(text: str, replaced: Callable[[str], str]) -> str:
    return _NUMBERS.sub(lambda found: _without_cards(found[0], replaced), text)


def _without_cards(numbers: str, replaced: Callable[[str], str]) -> str:
    """Replaces card numbers in groups of digits; they begin and end at the bounds of groups."""
    groups = [found.span() for found in _GROUP.finditer(numbers)]
    kept, at, first = list[str](), 0, 0
    while first < len(groups):
        taken, digits = _card_at(numbers, groups, first)
        if taken:
            kept += (numbers[at : groups[first][0]], replaced(digits))
            at = groups[first + taken - 1][1]
        first += taken or 1
    return "".join([*kept, numbers[at:]])


def _card_at(numbers: str, groups: Sequence[tuple[int, int]], first: int) -> tuple[int, str]:
    """Returns how many groups make up the card number that begins here, and its digits; 0 if none begins."""
    digits = ""
    for taken, (start, end) in enumerate(groups[first : first + CARD_DIGITS[-1]], 1):
        digits += numbers[start:end]
        if len(digits) > CARD_DIGITS[-1]:
            break
        if len(digits) in CARD_DIGITS and is_card(digits):
            return taken, digits
    return 0, ""


def is_card(digits: str) -> bool:
    """Returns whether digits are a card number: an issuer's prefix, and the right check digit (Luhn).

    >>> is_card("4111111111111111"), is_card("4111111111111112"), is_card("0000000000000000")
    (True, False, False)
    """
    if not _ISSUED.fullmatch(digits):
        return False
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _of_pattern(pattern: re.Pattern[str]) -> Rule:
    return lambda text, replaced: pattern.sub(lambda found: replaced(found[0]) if found[0] else "", text)


RULES: Final[dict[str, Rule]] = {"mail": _mail, "card": _card}
"""The rules that settings can name."""
