"""Takes secrets out of texts that are kept or shown: first the secrets, then the length.

The order matters: a text that is cut first may end in the middle of a key, which then nobody recognises. One
function for every error that comes from outside: `kept`.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus, unquote

MESSAGE_CHARS: Final = 300
"""How much of an upstream's own words is kept: enough to understand, too little to fill a store."""
MASK: Final = "***"
KEY_VARIABLES: Final = "PROCTOR_KEY_VARIABLES"
_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
_PASSWORD_IN_URL: Final = re.compile(r"://[^/@\s]*:([^/@\s]+)@")
_LOOKS_SECRET: Final = re.compile(
    r"(?i:bearer|basic)\s+[\w.~+/=-]{6,}|\b(?:sk|pk|gsk|xai|key)-[\w*-]{6,}", re.ASCII
)
_SHORTEST: Final = 6
"""A shorter value of a variable is no secret, and would be found in ordinary words."""
_SHORTEST_PART: Final = 8
"""Characters of a longer secret that are taken out, where somebody else has cut it: these, or half of it."""
_SECRETS: Final = 256
"""Secrets whose forms a process remembers."""


def kept(text: str, environment: Mapping[str, str], chars: int = MESSAGE_CHARS) -> str:
    """Makes a text from outside fit to be kept and shown: no secret, one printable line, bounded.

    >>> kept("bad key abcdefgh, Bearer xyz12345", {"MY_KEY": "abcdefgh"})
    'bad key ***, ***'
    >>> kept("x" * 295 + "abcdefgh", {"MY_KEY": "abcdefgh"})[295:]
    '***'
    """
    text = _LOOKS_SECRET.sub(MASK, without_secrets(text, environment))
    return "".join(letter if letter.isprintable() else " " for letter in text[:chars])


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Takes the secrets of an environment out of a text, however they are written, and their beginnings.

    >>> without_secrets("Basic bWU6YWJjZGVmZ2g=, abcd%2Fefgh", {"A_KEY": "abcdefgh", "B_TOKEN": "abcd/efgh"})
    'Basic bWU6***g=, ***'
    >>> without_secrets("a key of 12 was cut: abcdefghi", {"A_KEY": "abcdefghijkl"})
    'a key of 12 was cut: ***'
    """
    found = {form for secret in _secrets(environment) for form in _forms(secret)}
    forms = sorted(found, key=len, reverse=True)
    for form in forms:
        text = text.replace(form, MASK)
    for form in forms:
        text = _without_beginnings(text, form)
    return text


def _secrets(environment: Mapping[str, str]) -> Iterator[str]:
    """The values of variables that hold secrets, and passwords inside URLs."""
    named = environment.get(KEY_VARIABLES, "").replace(",", " ").split()
    for name, value in environment.items():
        found = [value.strip()] if _SECRET_NAME.search(name) or name in named else []
        found += [unquote(password) for password in _PASSWORD_IN_URL.findall(value)]
        yield from (secret for secret in found if len(secret) >= _SHORTEST)


@lru_cache(_SECRETS)
def _forms(secret: str) -> frozenset[str]:
    """How a secret may be written: plain, in a URL, in JSON, in hexadecimal, inside of base64."""
    data = secret.encode(errors="surrogateescape")
    found = {secret, quote(data, safe=""), quote(data), quote_plus(data), repr(secret)[1:-1], data.hex()}
    found |= {quote(data, safe="").lower(), data.hex().upper()}
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            text = encode(bytes(before) + data).decode().rstrip("=")
            # What stands at the ends also depends on what stands around the secret.
            first, last = (0, 2, 3)[before], (len(data) + before) * 8 // 6
            found.add(text[first:last])
    return frozenset(form for form in found if len(form) >= _SHORTEST)


def _without_beginnings(text: str, form: str) -> str:
    """Masks a secret wherever enough of its beginning stands."""
    least = min(len(form), max(_SHORTEST_PART, -(-len(form) // 2)))
    start, parts, at = form[:least], [], 0
    while (found := text.find(start, at)) >= 0:
        end = found + least
        while end < len(text) and end - found < len(form) and text[end] == form[end - found]:
            end += 1
        parts += [text[at:found], MASK]
        at = end
    return "".join([*parts, text[at:]])
