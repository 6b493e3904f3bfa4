r"""Replaces personal data in texts before anything is stored: mail addresses, card numbers, own expressions.

    PROCTOR_REDACT="mail, card"
    PROCTOR_REDACT_PATTERNS="\bK-\d{6}\b"        one regular expression a line

What a file contains passes here before it is written to Redis, and what an upstream answers before it is
cached, judged or written. So models are sent the redacted text, and answers are judged redacted, beside
expectations that are redacted too. Different originals keep different replacements: each ends with some
digits of a hash, too few of them to find the original, and more in ids, of which two must not become one.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, Final

from shared.settings import Settings, names_in

DIGITS: Final = 4
"""Of the hash in a replacement: 65,536 originals of each kind are told apart, and millions share one."""
ID_DIGITS: Final = 12
"""Of the hash in an id."""
ID_FIELDS: Final = frozenset(("id", "case_id", "prompt_id", "threadId", "messageId", "clientRequestId"))
"""Fields whose texts are ids."""
LEAST_CARD: Final = 10**12
"""Smallest number that can be that of a card: 13 digits."""
CARD_DIGITS: Final = range(13, 20)

_FIXED: Final = re.compile(r"(\[(?:mail|card|redacted):[0-9a-f]{4,12}\]|\\u[0-9a-fA-F]{4}|\\[bfnrt\"/\\])")
"""What no rule looks into: earlier replacements, and escapes of JSON, which many answers are."""
_MAIL: Final = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@(?:[\w-]{1,63}\.){1,8}[\w-]{2,63}")
_NUMBERS: Final = re.compile(r"\d(?:[ \u00a0\u2009-]?\d){12,}")
"""Groups of digits that may hold the number of a card."""
_GROUP: Final = re.compile(r"\d+")
_ISSUED: Final = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:2[3-9]|[3-6]\d|7[01])\d{13}|22[12]\d{13}|2720\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}"
)
"""First digits and lengths that issuers use; nine of ten numbers with these fail the check digit."""
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
"""Keys that are names of fields, which no rule changes."""

Rule = Callable[[str, Callable[[str], str]], str]
"""Replaces what it finds in a text by what the second argument makes of it."""


class Redactor:
    r"""The rules of an installation.

    Args:
        names: of rules: `mail`, `card`.
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
        r"""Returns a text without what the rules find.

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
        """Returns a text without what the rules find, if it was cut to so many characters before.

        Its last word may be the beginning of something, and goes.

        >>> Redactor(["mail"]).cut_text("no mail for ann@exam", 20)
        'no mail for'
        """
        return self.text(text if len(text) < chars else text.rpartition(" ")[0].rstrip("0123456789 -"))

    def value(self, value: Any, digits: int = DIGITS) -> Any:
        """Returns a value of JSON without what the rules find in texts, numbers, and keys that are no names.

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
        """Returns JSON without what the rules find in it."""
        return json.dumps(self.value(json.loads(text)), separators=(",", ":")).encode()


def redactor_of(settings: Settings) -> Redactor | None:
    """Returns the rules of an installation; None where it has none."""
    patterns = (settings.redact_patterns or "").splitlines()
    if settings.redact is None and not patterns:
        return None
    return Redactor(names_in(settings.redact), patterns)


class _Replacement:
    """Writes what stands for an original."""

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
    """Replaces the cards among groups of digits; one begins and ends where a group does."""
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
    """Returns how many groups the card has that begins with this one, and its digits; 0 without a card."""
    digits = ""
    for taken, (start, end) in enumerate(groups[first : first + CARD_DIGITS[-1]], 1):
        digits += numbers[start:end]
        if len(digits) > CARD_DIGITS[-1]:
            break
        if len(digits) in CARD_DIGITS and is_card(digits):
            return taken, digits
    return 0, ""


def is_card(digits: str) -> bool:
    """Returns whether digits are those of a card: an issuer's, with the right check digit (Luhn).

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
