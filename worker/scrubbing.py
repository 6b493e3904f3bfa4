"""Keeps secrets, content and control characters out of log events.

values     of variables that are named like secrets, and passwords of URLs, wherever they turn up
patterns   userinfo of URLs, bearer tokens, keys of the usual providers, `password=…`
fields     named like a secret, or like something that people or models have written
"""

import re
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import quote, unquote

MASK: Final = "***"
WITHHELD: Final = "[withheld]"
"""Stands for content."""
SHORTEST: Final = 6
"""A shorter value of a variable is no secret, and would be found in ordinary words."""
MOST_CHARS: Final = 2_000
"""Longer texts are cut, a traceback excepted."""
MOST_DEPTH: Final = 4
"""Deeper values are withheld."""
CONTENT: Final = frozenset(
    {
        "prompt",
        "prompts",
        "message",
        "messages",
        "input",
        "output",
        "outputs",
        "raw_output",
        "content",
        "text",
    }
    | {"system_prompt", "response", "reply", "answer", "query", "question", "expected", "payload", "body"}
)
"""Fields that hold what people or models have written."""
MULTILINE: Final = frozenset({"exception"})
"""Fields that keep their line ends."""

SECRET_NAME: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION|COOKIE|OTLP_HEADERS", re.IGNORECASE
)
"""Variables and fields whose values are secret."""
_LOOKS_SECRET: Final = re.compile(
    r"(?i:bearer)\s+[\w.~+/=-]{6,}|(?i:basic)\s+[\w+/=-]{16,}"
    r"|\b(?:sk|pk|gsk|xai|key|pplx|xox[abp])-[\w*-]{6,}|\b(?:hf|gh[oprsu]|gsk|sk|pk)_\w{10,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}|\beyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]+)?",
    re.ASCII,
)
_USERINFO: Final = re.compile(r"(\b[a-zA-Z][\w+.-]*://)([^\s:/@]*:)?\S*@")
"""Up to the last @, as a password may hold / and @ itself."""
_NAMED: Final = re.compile(
    r"""(?ix)( [?&;\s"'{(,] | ^ )
    ( [\w-]* (?: password | passwd | secret | token | api[_-]?key | authorization | credential ) s? )
    ( ["']? \s* [:=] \s* ["']? ) [^\s"'&;,)}]+"""
)
_PASSWORD_OF_URL: Final = re.compile(r"://[^\s:/@]*:([^\s]+)@")


def secrets_of(environment: Mapping[str, str], *urls: str | None) -> list[str]:
    """Lists what must not be shown: values of secret variables, and the passwords of all URLs.

    Args:
        environment: the process's variables.
        urls: more URLs, such as those that were read from files.

    >>> secrets_of({"MY_KEY": "abcdefgh", "DB": "redis://:p%40ssword@db", "HOME": "/srv"})
    ['p%2540ssword', 'p%40ssword', 'abcdefgh', 'p@ssword']
    """
    found = {value.strip() for name, value in environment.items() if SECRET_NAME.search(name)}
    for url in (*environment.values(), *filter(None, urls)):
        found.update(_PASSWORD_OF_URL.findall(url))
    spellings = {
        spelling for secret in found for spelling in (secret, unquote(secret), quote(secret, safe=""))
    }
    return sorted((each for each in spellings if len(each) >= SHORTEST), key=lambda each: (-len(each), each))


class Scrubber:
    """Scrubs texts, and as a structlog processor all values of an event.

    Args:
        secrets: the longest first, see `secrets_of`.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secrets)

    def text(self, text: str) -> str:
        r"""Scrubs one text, on one line.

        >>> Scrubber([]).text("redis://me:a/b@c@db:6379 said\x1b[31m no?api_key=x1&n=2")
        'redis://me:***@db:6379 said [31m no?api_key=***&n=2'
        """
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        text = _USERINFO.sub(rf"\g<1>\g<2>{MASK}@", text)
        text = _LOOKS_SECRET.sub(MASK, text)
        text = _NAMED.sub(rf"\g<1>\g<2>\g<3>{MASK}", text)
        return "".join(letter if letter.isprintable() else " " for letter in text)

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Scrubs an event; keys that begin with an underscore are structlog's own."""
        for name, value in event.items():
            if not name.startswith("_"):
                event[name] = self._field(name, value, 0)
        return event

    def _field(self, name: str, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if SECRET_NAME.search(name):
            return MASK
        if name.lower() in CONTENT or depth > MOST_DEPTH:
            return WITHHELD
        if name in MULTILINE and isinstance(value, str):
            return "\n".join(self.text(line) for line in value.splitlines())
        return self._value(value, depth)

    def _value(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {
                self._cut(str(name)): self._field(str(name), inner, depth + 1)
                for name, inner in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._value(inner, depth + 1) if depth < MOST_DEPTH else WITHHELD for inner in value]
        return self._cut(value.decode(errors="replace") if isinstance(value, bytes) else str(value))

    def _cut(self, text: str) -> str:
        # Scrubbed before it is cut: half of a secret would not be recognised.
        clean = self.text(text[: 4 * MOST_CHARS])
        return clean if len(clean) <= MOST_CHARS else f"{clean[:MOST_CHARS]}…"
