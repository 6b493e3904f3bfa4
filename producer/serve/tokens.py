"""Bearer tokens of `proctor serve`: who may send turns, and into which namespace."""

import stat
from collections.abc import Mapping, Sequence
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from typing import Final

import msgspec

from producer.load.problems import Place
from producer.text import plural
from shared.errors import ConfigError, UsageError
from shared.ledger.ledger import checked_name

DEFAULT_NAMESPACE: Final = "live"
"""Where turns go without a file of tokens."""
LEAST_CHARS: Final = 16
"""Shorter tokens can be guessed."""
BEARER: Final = "bearer"
_HINT: Final = "write a token and its namespace on each line, or a JSON object {token: namespace}"


class Tokens:
    """Namespaces by token.

    >>> tokens = Tokens({"0123456789abcdef": "shop"})
    >>> tokens.namespace_of("bearer 0123456789abcdef"), tokens.namespace_of("Bearer x")
    ('shop', None)
    """

    def __init__(self, namespaces: Mapping[str, str], warnings: Sequence[str] = ()) -> None:
        self._namespaces = dict(namespaces)
        self.warnings = warnings
        """What is unsafe about them."""

    @property
    def namespaces(self) -> frozenset[str]:
        """All that a token leads to."""
        return frozenset(self._namespaces.values())

    def namespace_of(self, authorization: str | None) -> str | None:
        """Returns the namespace of a request, by its `Authorization`; None if no token fits."""
        scheme, _, token = (authorization or "").strip().partition(" ")
        given = (token if scheme.casefold() == BEARER else "").strip().encode(errors="surrogateescape")
        found = [name for token, name in self._namespaces.items() if compare_digest(given, token.encode())]
        return found[0] if found else None


def new_token() -> str:
    """Makes a token."""
    return token_urlsafe(24)


def read_tokens(path: Path) -> Tokens:
    """Reads a file of tokens.

    Raises:
        ConfigError: it cannot be read, or a line cannot be used.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", hint=_HINT) from None
    pairs = _of_json(path, text) if text.lstrip().startswith("{") else _of_lines(path, text)
    if not pairs:
        raise ConfigError(f"{path}: no tokens in it", hint=_HINT)
    warnings = [f"{path}: everybody may read the tokens; chmod 600 {path}"] if mode & stat.S_IROTH else []
    if short := sum(len(token) < LEAST_CHARS for token in pairs):
        what = f"{plural(short, 'token')} of less than {LEAST_CHARS} characters can be guessed"
        warnings.append(f"{path}: {what}")
    return Tokens(pairs, warnings)


def _of_json(path: Path, text: str) -> dict[str, str]:
    try:
        pairs = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: {error}", hint=_HINT) from None
    for token, namespace in pairs.items():
        if token.split() != [token]:
            what = "a token is empty or contains white space"
            raise ConfigError(f"{path}: {what}", hint="requests could not be told from those without a token")
        _check(Place(str(path)), namespace)
    return pairs


def _of_lines(path: Path, text: str) -> dict[str, str]:
    pairs = dict[str, str]()
    for number, line in enumerate(text.splitlines(), 1):
        if words := line.partition("#")[0].split():
            place = Place(str(path), line=number)
            if len(words) > 2:  # noqa: PLR2004 - a token and its namespace
                raise ConfigError(place.error(f"{len(words)} words").message, hint=_HINT)
            token, namespace = words[0], words[1] if len(words) > 1 else DEFAULT_NAMESPACE
            _check(place, namespace)
            if token in pairs:
                what = place.error("the token stands above already").message
                raise ConfigError(what, hint="keep one of the two")
            pairs[token] = namespace
    return pairs


def _check(place: Place, namespace: str) -> None:
    """Refuses names that cannot be used."""
    try:
        checked_name("namespace", namespace)
    except UsageError as error:
        raise ConfigError(place.error(error.message).message, hint=error.hint or "") from None
