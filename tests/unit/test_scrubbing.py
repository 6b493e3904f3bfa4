"""Tests that nothing of a secret is left in a text that is kept, however it is written."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from time import process_time
from typing import Final
from urllib.parse import quote, quote_plus

import pytest

from shared.scrubbing import MASK, MESSAGE_CHARS, forms_of, kept, scrubbed, without_secrets

SECRET: Final = "Zq9/+ab cd&Ef=gh~IjKl7mN"  # noqa: S105 - made up, with what URLs and base64 write differently
ENVIRONMENT: Final = {"SOME_API_KEY": f" {SECRET} ", "HOME": "/home/me-and-you", "LANG": "C.UTF-8"}
NAMES: Final = (
    "MY_KEY",
    "X_TOKEN",
    "A_SECRET",
    "DB_PASSWORD",
    "DB_PASSWD",
    "GPG_PASSPHRASE",
    "AWS_CREDENTIAL",
    "AUTHORIZATION",
    "SESSION_COOKIE",
    "OTEL_EXPORTER_OTLP_HEADERS",
)  # fmt: skip - a list of words
"""Variables whose values are secret."""
LOOKS_SECRET: Final = (
    ("redis://:p/w@rd!@db.example:6379/0 is away", "p/w@rd!"),
    ("Authorization: Bearer abc.def-123", "abc.def-123"),
    ("authorization=Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
    ("wrong Basic bWU6eW91", "bWU6eW91"),
    ("Incorrect API key provided: sk-proj-4f9aB2c8", "sk-proj-4f9aB2c8"),
    ("token ghp_0123456789abcdefghij", "ghp_0123456789abcdefghij"),
    ("AKIAIOSFODNN7EXAMPLE was used", "AKIAIOSFODNN7EXAMPLE"),
    ("jwt eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl", "eyJzdWIiOi"),
    ("GET http://api.example/x?n=1&api_key=zzz9&m=2", "zzz9"),
    ('{"password": "zzz9", "n": 1}', "zzz9"),
)
"""What is taken for a secret by its looks, and the secret in it."""
FORMS: Final[dict[str, Callable[[str], str]]] = {
    "plain": str,
    "in a URL": lambda secret: quote(secret, safe=""),
    "in a URL, small letters": lambda secret: quote(secret, safe="").lower(),
    "in a form": quote_plus,
    "in JSON": json.dumps,
    "in hexadecimal": lambda secret: secret.encode().hex(),
    "in base64": lambda secret: b64encode(secret.encode()).decode(),
    "in base64 for URLs": lambda secret: urlsafe_b64encode(secret.encode()).decode(),
    "as a login": lambda secret: b64encode(f"me:{secret}".encode()).decode(),
    "as a login of another length": lambda secret: b64encode(f"you:{secret}\n".encode()).decode(),
    "as a login of a third length": lambda secret: b64encode(f"they:{secret}.".encode()).decode(),
}


def left(text: str, form: str) -> str:
    """The longest part of a form of the secret that stands in a text."""
    parts = (form[start:end] for start in range(len(form)) for end in range(start + 1, len(form) + 1))
    return max((part for part in parts if part in text), key=len, default="")


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("place", [0, 1, 150, MESSAGE_CHARS - 20, MESSAGE_CHARS - 1, MESSAGE_CHARS, 2000])
def test_a_secret_is_found_before_the_text_is_cut(name: str, place: int) -> None:
    """Wherever it stands, also across the end of what is kept, no five letters of it are left."""
    form = FORMS[name](SECRET)
    scrubbed_text = kept(f"{'.' * place} {form} {'.' * 400}", ENVIRONMENT)
    core = form[8:] if "login" in name else form  # what stands before it is no secret
    assert len(left(scrubbed_text, core)) < 5
    assert len(scrubbed_text) <= MESSAGE_CHARS


@pytest.mark.parametrize("cut", range(12, len(SECRET)))
def test_a_secret_that_others_have_cut_is_found(cut: int) -> None:
    """Half of a secret, or more of it, is as secret as the whole."""
    assert without_secrets(f"wrong key {SECRET[:cut]}", ENVIRONMENT) == f"wrong key {MASK}"


def test_other_texts_stay_as_they_are() -> None:
    """Ordinary words and the values of ordinary variables are no secrets."""
    text = "the file /home/me-and-you/a.txt is not there (C.UTF-8)\nnext line"
    assert without_secrets(text, ENVIRONMENT) == text
    assert kept(text, ENVIRONMENT) == text.replace("\n", " ")


def test_passwords_in_urls_and_listed_variables_are_secrets() -> None:
    """Whatever a variable is called: a password in its URL; and all that a worker may send as a key."""
    environment = {
        "REDIS": "redis://me:geheim%2F12@db:6379/0",
        "ODD": "another-one",
        "PROCTOR_KEY_VARIABLES": "OTHER, ODD",
    }
    text = "geheim/12 geheim%2F12 another-one redis"
    assert without_secrets(text, environment) == f"{MASK} {MASK} {MASK} redis"


@pytest.mark.parametrize(("text", "secret"), LOOKS_SECRET)
def test_what_looks_like_a_secret_is_masked_in_errors_and_logs(text: str, secret: str) -> None:
    """Nobody has to know a key for it to be taken out."""
    assert secret not in kept(text, {})
    assert secret not in scrubbed(text, [])


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_that_is_named_like_a_secret_is_one_in_errors_and_logs(name: str) -> None:
    """There is one list of such names; logs also find a secret in all its spellings."""
    environment = {name: SECRET}
    for form in (SECRET, quote(SECRET, safe=""), SECRET.encode().hex()):
        assert kept(f"wrong: {form}", environment) == f"wrong: {MASK}"
        assert scrubbed(f"wrong: {form}", forms_of(environment)) == f"wrong: {MASK}"


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096 is too large: 4096 > 2048",
        "Basic authentication is not supported",
        "see https://docs.example/errors#tokens",
    ],
)
def test_what_an_upstream_explains_stays(text: str) -> None:
    """Words about keys and tokens are no keys and tokens."""
    assert kept(text, {}) == text


def test_each_password_of_several_urls_is_a_secret() -> None:
    """One variable may name many servers, and a password may hold @ and /."""
    servers = {"SERVERS": "sentinel://me:first-word@a:1,me:2 redis://you:p/w@rd-two@b"}
    assert kept("first-word p/w@rd-two", servers) == f"{MASK} {MASK}"


@pytest.mark.parametrize("word", ["eyJaaaaaa-", "a://", "a.", "password", "&token", "://u:", "bearer "])
def test_scrubbing_takes_time_in_proportion(word: str) -> None:
    """A hostile error of the largest size that is read costs milliseconds, not a worker's loop."""
    began = process_time()
    kept(word * (64_000 // len(word)), ENVIRONMENT)
    assert process_time() - began < 1


@pytest.mark.parametrize("cut", [12, 18, 25])
@pytest.mark.parametrize("between", ["\n", "…", " and "])
def test_a_secret_that_is_cut_in_two_leaves_neither_part(cut: int, between: str) -> None:
    """Of a key of 37 characters in two pieces, each from a third on is masked."""
    key = "Q7rTzZ04Lm9Xw2Kp8Vb5Nc1Yh3Gd6Fs0Ja4Pe"
    assert len(key) == 37
    cleaned = without_secrets(f"bad key {key[:cut]}{between}{key[cut:]}.", {"MY_KEY": key})
    assert cleaned == f"bad key {MASK}{between}{MASK}."
