"""Translates providers that are called over HTTP into the mapping `http` of a model."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from producer.convert.nunjucks import is_nunjucks
from producer.convert.promptfoo.suite import Provider
from producer.convert.promptfoo.written import WrittenApplication, mapping, read, unknown
from shared.errors import WrongInput

_NAME: Final = re.compile(r"(\{\{-?\s*)([A-Za-z_]\w*)")
_ARROW: Final = r"(?:\(?\s*json\s*(?:,\s*text\s*)?\)?\s*=>\s*)?"
_PATH: Final = re.compile(_ARROW + r"(?:json|data)((?:\??\.\w+|\[\d+\]|\['[^']+'\]|\[\"[^\"]+\"\])*);?")
_STEP: Final = re.compile(r"\w+")
_ENV: Final = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}")
_BEARER: Final = re.compile(r"Bearer \{\{\s*env\.(\w+)\s*\}\}")
_OURS: Final[Mapping[str, str]] = {"prompt": "input", "env": "env"}


_OWN_HEADERS: Final = frozenset({"content-type"})


def is_application(provider: str) -> bool:
    """Returns whether a provider is an address that is called over HTTP."""
    return provider in {"http", "https"} or provider.startswith(("http://", "https://"))


def to_http(provider: Provider, leave: Callable[[str, str], None]) -> dict[str, Any]:
    """Returns how an application is asked, with the keys of `http`.

    Args:
        provider: the provider.
        leave: lists what the mapping does not have.

    Raises:
        WrongInput: it cannot be asked so.
    """
    config = read(WrittenApplication, provider.config)
    if config.request is not None:
        raise WrongInput("a raw request has no counterpart: write url, headers and body")
    for key in unknown(WrittenApplication, provider.config):
        leave(f"config key {key}", "applications over HTTP have no such key")
    url = config.url or provider.id
    given: dict[str, Any] = {"url": _template(str(url))}
    method = str(config.method or ("GET" if config.body is None else "POST")).upper()
    given |= {"method": method} if method != "POST" else {}
    headers = {name: _header(str(value)) for name, value in mapping(config.headers).items()}
    headers = {name: value for name, value in headers.items() if name.lower() not in _OWN_HEADERS and value}
    given |= {"headers": headers} if headers else {}
    body = config.query_params if config.body is None else config.body
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            raise WrongInput("its body is no JSON before it is rendered") from None
    given |= {"body": _templates(body)} if body is not None else {}
    return given | {"answer": _pointer(config.transform_response or config.response_parser, leave)}


def _header(value: str) -> str:
    """The value of a header: a variable of the environment is named."""
    if _BEARER.fullmatch(value):
        return ""  # sent as the key of the model
    found = _ENV.fullmatch(value)
    return f"env:{found[1]}" if found else _template(value)


def bearer_variable(provider: Provider) -> str | None:
    """Returns the variable of the environment that a bearer token is in; None without one."""
    values = map(str, mapping(read(WrittenApplication, provider.config).headers).values())
    return next((found[1] for value in values if (found := _BEARER.fullmatch(value))), None)


def _template(text: str) -> str:
    """A template with the names that applications have."""
    if not is_nunjucks(text):
        return text
    return _NAME.sub(lambda found: f"{found[1]}{_OURS.get(found[2], f'vars.{found[2]}')}", text)


def _templates(value: Any) -> Any:
    """The templates in a JSON value."""
    if isinstance(value, str):
        return _template(value)
    if isinstance(value, list):
        return [_templates(each) for each in value]
    if isinstance(value, dict):
        return {key: _templates(each) for key, each in value.items()}
    return value


def _pointer(code: Any, leave: Callable[[str, str], None]) -> str:
    """The JSON pointer that code is, if it is only a path."""
    if code is None:
        return ""
    found = _PATH.fullmatch(str(code).strip())
    if found is None:
        leave("transformResponse", "it is more than a path: write a transform for the model")
        return ""
    return "".join(f"/{step}" for step in _STEP.findall(found[1].replace("?", "")))
