"""Removes secrets from texts that are stored, shown or logged: first the secrets, then the length.

values     of variables that are named like secrets, and passwords of URLs, however they are written
patterns   userinfo of URLs, bearer tokens, keys of the usual providers, `password=…`

The order matters: a text that is cut first may end in the middle of a key, which is then not recognised. One
function for every error that comes from outside, `kept`; log events use the same two lists (`worker.logs`).
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus, unquote

MESSAGE_CHARS: Final = 300
"""Longest stored text of an upstream: enough to understand it, too little to fill the store."""
MASK: Final = "***"
KEY_VARIABLES: Final = "PROCTOR_KEY_VARIABLES"
SECRET_NAME: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTHORIZATION|COOKIE|OTLP_HEADERS", re.IGNORECASE
)
"""Variables and fields whose values are secret."""
SECRET_PARAMETER: Final = re.compile(r"key|token|secret|passw|credential|sig$|signature", re.IGNORECASE)
"""Parameters of URLs whose values are secret; a signature counts as well."""
_PASSWORDS_IN_URL: Final = (
    re.compile(r"://[^\s:/@]*:(\S+)@"),  # a password may hold / and @ itself
    re.compile(r"://[^/@\s]*:([^/@\s]+)@"),  # of several URLs in one value
)
_LOOKS_SECRET: Final = re.compile(
    r"(?i:bearer)\s+[\w.~+/=-]{6,}|(?i:basic)\s+(?:[\w+/=-]{16,}|(?=[\w+/-]*[\d=]|[a-z]+[A-Z])[\w+/=-]{6,})"
    r"|\b(?:sk|pk|gsk|xai|key|pplx|xox[abp])-[\w*-]{6,}|\b(?:hf|gh[oprsu]|gsk|sk|pk)_\w{10,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}|(?<![\w-])eyJ[\w-]{6,}\.[\w-]+(?:\.[\w-]+)?",
    re.ASCII,
)
_NAMED: Final = re.compile(
    r"""(?ix)( [?&;\s"'{(,] | ^ )
    ( [\w-]* (?: (?: password | passwd | secret | api[_-]?key | authorization | credential ) s? | token ) )
    ( ["']? \s* [:=] \s* ["']? ) [^\s"'&;,)}]+"""
)
"""`token` has no plural here: `max_tokens: 4096` is no secret."""
_SECRET_HEADER: Final = re.compile(
    r"authoriz|cookie|token|secret|passw|credential|signature|(?:^|[-_])auth(?:$|[-_])"
    r"|(?:^|(?<!idempotency)(?<!cache)[-_])key(?:$|[-_])"
    r"|(?:api|access|functions?|subscription|private|account|master|service)key",
    re.IGNORECASE,
)
_SECRET_FIELD: Final = re.compile(
    r"token|auth|authorization|credentials?|cookie|\w*secret|\w*pass(?:word|wd|phrase)"
    r"|\w*(?:api|access|private|subscription|functions?|auth|account|master|service|signing)[-_]?key"
    r"|\w*(?:access|auth|bearer|refresh|id|session|api)[-_]?token",
    re.IGNORECASE,
)
"""Keys of a request's body whose texts are secret; `eos_token` and `prompt_cache_key` are not."""
_SCHEME: Final = re.compile(r"(?:bearer|basic|token|apikey)\s+[\w.~+/=-]{6,}\s*", re.IGNORECASE)
_LONG_WORD: Final = 24
"""Letters from which a word that begins like a key is one, also without a digit."""
_WORD: Final = re.compile(r"\S+")
_SHORTEST: Final = 6
"""A shorter value of a variable is no secret, and would be found in ordinary words."""
_SHORTEST_PART: Final = 8
_LONGEST_PART: Final = 12
"""Where other code has cut a secret, a part is taken out from half of it on, within these bounds."""
_SECRETS: Final = 256
"""Secrets whose forms a process caches."""


def kept(text: str, environment: Mapping[str, str], chars: int = MESSAGE_CHARS) -> str:
    """Cleans a text from outside for storage and display: no secret, one printable line, bounded.

    >>> kept("bad key abcdefgh, Bearer xyz12345", {"MY_KEY": "abcdefgh"})
    'bad key ***, ***'
    >>> kept("x" * 295 + "abcdefgh", {"MY_KEY": "abcdefgh"})[295:]
    '***'
    """
    return _printable(_masked(text, forms_of(environment))[:chars])


def scrubbed(text: str, forms: Iterable[str]) -> str:
    r"""Takes out whatever is, or looks like, a secret, and everything that is not printable.

    Args:
        text: of any origin.
        forms: what must not be shown, see `forms_of`.

    >>> scrubbed("redis://me:a/b@c@db:6379 answered\x1b[31m no?api_key=x1&n=2, max_tokens: 4", [])
    'redis://me:***@db:6379 answered [31m no?api_key=***&n=2, max_tokens: 4'
    """
    return _printable(_masked(text, forms))


def without_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Takes the secrets of an environment out of a text, however they are written, and their beginnings.

    What only looks like a secret stays, so that JSON stays JSON.

    >>> without_secrets("Basic bWU6YWJjZGVmZ2g=, abcd%2Fefgh", {"A_KEY": "abcdefgh", "B_TOKEN": "abcd/efgh"})
    'Basic bWU6***g=, ***'
    >>> without_secrets("a key of 12 was cut: abcdefghi", {"A_KEY": "abcdefghijkl"})
    'a key of 12 was cut: ***'
    """
    return _without(text, forms_of(environment))


def holds_key(text: str) -> bool:
    """Returns whether a text contains what looks like the key of a provider.

    >>> holds_key("Bearer sk-proj-4f9aB2c8"), holds_key("with bearer authentication, as key-values")
    (True, False)
    """
    words = (found[0].split()[-1] for found in _LOOKS_SECRET.finditer(text))
    return any(len(word) >= _LONG_WORD or any(map(str.isdigit, word)) for word in words)


def is_secret_header(name: str, value: str) -> bool:
    """Returns whether a header carries a secret, by its name or its value.

    >>> is_secret_header("x-functions-key", "abc"), is_secret_header("X-Auth-Mode", "Bearer abcdef")
    (True, True)
    >>> is_secret_header("Idempotency-Key", "run-1"), is_secret_header("X-Team", "evaluation")
    (False, False)
    """
    return bool(_SECRET_HEADER.search(name) or _SCHEME.fullmatch(value)) or holds_key(value)


def is_secret_field(name: str, value: str) -> bool:
    """Returns whether a text in a request's body is a secret, by its key or itself.

    >>> is_secret_field("api_key", "abc"), is_secret_field("user", "sk-live-0123")
    (True, True)
    >>> is_secret_field("token", ""), is_secret_field("eos_token", "</s>")
    (False, False)
    """
    return bool(value and _SECRET_FIELD.fullmatch(name)) or holds_key(value)


def without_lookalikes(text: str) -> str:
    """Masks what looks like a secret, and changes nothing else.

    >>> without_lookalikes("http://me:pw@host/v1?api_key=x1")
    'http://me:***@host/v1?api_key=***'
    """
    return _masked(text, ())


def forms_of(environment: Mapping[str, str], *urls: str | None) -> list[str]:
    """Lists how the secrets of a process may be written, the longest first.

    Args:
        environment: the process's variables.
        urls: more URLs, such as those that were read from files.

    >>> found = forms_of({"MY_KEY": "abcdefgh", "DB": "redis://:p%40ssword@db", "HOME": "/srv/me"})
    >>> {"abcdefgh", "YWJjZGVmZ2", "p%40ssword", "p@ssword"} <= set(found), "/srv/me" in found
    (True, False)
    """
    found = {form for secret in _secrets(environment, urls) for form in _forms(secret)}
    return sorted(found, key=lambda form: (-len(form), form))


def _secrets(environment: Mapping[str, str], urls: Iterable[str | None]) -> Iterator[str]:
    """The values of variables that hold secrets, and passwords inside URLs."""
    named = environment.get(KEY_VARIABLES, "").replace(",", " ").split()
    for name, value in environment.items():
        if SECRET_NAME.search(name) or name in named:
            yield value.strip()
    for url in (*environment.values(), *filter(None, urls)):
        for pattern in _PASSWORDS_IN_URL:
            for password in pattern.findall(url):
                yield from (password, unquote(password))


@lru_cache(_SECRETS)
def _forms(secret: str) -> frozenset[str]:
    """How a secret may be written: plain, in a URL, in JSON, in hexadecimal, inside of base64."""
    if len(secret) < _SHORTEST:
        return frozenset()
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


def _masked(text: str, forms: Iterable[str]) -> str:
    """Masks secrets, and what looks like one."""
    text = _WORD.sub(_without_password, _without(text, forms))
    return _NAMED.sub(rf"\g<1>\g<2>\g<3>{MASK}", _LOOKS_SECRET.sub(MASK, text))


def _printable(text: str) -> str:
    """Makes a text one line without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _without(text: str, forms: Iterable[str]) -> str:
    """Masks secrets, and then what is left of their beginnings and ends."""
    forms = tuple(forms)
    for form in forms:
        text = text.replace(form, MASK)
    for form in forms:
        text = _without_beginnings(text, form)
    text = text[::-1]
    for form in forms:
        text = _without_beginnings(text, form[::-1])
    return text[::-1]


def _without_beginnings(text: str, form: str) -> str:
    """Masks a secret wherever enough of its beginning stands."""
    half = -(-len(form) // 2)
    least = min(len(form), max(_SHORTEST_PART, min(half, _LONGEST_PART)))
    start, parts, at = form[:least], [], 0
    while (found := text.find(start, at)) >= 0:
        end = found + least
        while end < len(text) and end - found < len(form) and text[end] == form[end - found]:
            end += 1
        parts += [text[at:found], MASK]
        at = end
    return "".join([*parts, text[at:]])


def _without_password(word: re.Match[str]) -> str:
    """Masks the userinfo of a URL: up to the last @, as a password may hold / and @ itself."""
    scheme, colons, rest = word[0].partition("://")
    userinfo, at, place = rest.rpartition("@")
    if not (colons and at and scheme[-1:].isalnum()):
        return word[0]
    user, colon, _ = userinfo.partition(":")
    shown = f"{user}:" if colon and "/" not in user and "@" not in user else ""
    return f"{scheme}://{shown}{MASK}@{place}"
