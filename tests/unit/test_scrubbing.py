"""Tests that nothing of a secret is left in a text that is kept, however it is written."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, quote_plus

import pytest

from shared.scrubbing import MASK, MESSAGE_CHARS, kept, without_secrets

SECRET: Final = "Zq9/+ab cd&Ef=gh~IjKl7mN"  # noqa: S105 - made up, with what URLs and base64 write differently
ENVIRONMENT: Final = {"SOME_API_KEY": f" {SECRET} ", "HOME": "/home/me-and-you", "LANG": "C.UTF-8"}
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
    said = kept(f"{'.' * place} {form} {'.' * 400}", ENVIRONMENT)
    core = form[8:] if "login" in name else form  # what stands before it is no secret
    assert len(left(said, core)) < 5
    assert len(said) <= MESSAGE_CHARS


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
