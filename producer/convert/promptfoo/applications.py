"""Translates providers that are called over HTTP into the mapping `http` of a model."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import PydanticCustomError

from producer.convert.nunjucks import is_nunjucks
from producer.convert.promptfoo.named_files import FILE
from producer.convert.promptfoo.suite import Provider
from producer.convert.promptfoo.written import WrittenApplication, ignored, mapping, read, unknown
from shared.contracts.call_options import check_headers
from shared.errors import WrongInput

_NAME: Final = re.compile(r"(\{\{-?\s*)([A-Za-z_]\w*)")
_ARROW: Final = r"(?:\(?\s*json\s*(?:,\s*text\s*)?\)?\s*=>\s*)?"
_PATH: Final = re.compile(_ARROW + r"(?:json|data)((?:\??\.\w+|\[\d+\]|\['[^']+'\]|\[\"[^\"]+\"\])*);?")
_STEP: Final = re.compile(r"\w+")
_FUNCTION: Final = re.compile(r"\(.*?\)\s*=>|function\s*\(.*?\)", re.DOTALL)
_TEXT: Final = re.compile(r"\btext\b")
_CONTEXT: Final = re.compile(r"\bcontext\b")
_ENV: Final = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}")
_BEARER: Final = re.compile(r"Bearer \{\{\s*env\.(\w+)\s*\}\}")
_OURS: Final[Mapping[str, str]] = {"prompt": "input", "env": "env"}


_ONLY_PROMPTFOO: Final = frozenset(
    {"auth", "session", "sessionParser", "signatureAuth", "tls", "tokenEstimation", "transformRequest"}
    | {"validateStatus", "multipart", "tools", "tool_choice", "transformToolsFormat", "body_type", "useHttps"}
    | {"requestTransform", "streamResponse", "sessionSource", "stateful", "guardrails"}
)
"""Keys that applications of promptfoo have beside those that are translated."""
_OWN_HEADERS: Final = frozenset({"content-type"})


def is_application(provider: str) -> bool:
    """Returns whether a provider is an address that is called over HTTP."""
    return provider in {"http", "https"} or provider.startswith(("http://", "https://"))


def to_http(
    provider: Provider, leave: Callable[[str, str], None], note: Callable[[str], None]
) -> dict[str, Any]:
    """Returns how an application is asked, with the keys of a model.

    Args:
        provider: the provider.
        leave: lists what the mapping does not have.
        note: told of keys that promptfoo does not have.

    Raises:
        WrongInput: it cannot be asked so.
    """
    config = read(WrittenApplication, provider.config)
    if config.request is not None:
        raise WrongInput("a raw request has no counterpart: write url, headers and body")
    for key in unknown(WrittenApplication, provider.config):
        if key in _ONLY_PROMPTFOO:
            leave(f"config key {key}", "applications over HTTP have no such key")
        else:
            note(ignored(f"key {key} of applications over HTTP"))
    url = config.url or provider.id
    given: dict[str, Any] = {"url": _template(str(url))}
    method = str(config.method or ("GET" if config.body is None else "POST")).upper()
    given |= {"method": method} if method != "POST" else {}
    headers = {name: _header(str(value)) for name, value in mapping(config.headers).items()}
    kept = dict[str, str]()
    for name, value in headers.items():
        try:
            if value and name.lower() not in _OWN_HEADERS:
                kept |= {name: value} if is_nunjucks(value) else check_headers({name: value})
        except PydanticCustomError as error:
            leave(f"header {name}", error.message())
    given |= {"headers": kept} if kept else {}
    body = config.query_params if config.body is None else config.body
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            raise WrongInput("its body is no JSON before it is rendered") from None
    given |= {"body": _templates(body)} if body is not None else {}
    code = _code(config)
    found = _PATH.fullmatch(code) if code else None
    steps = _STEP.findall(found[1].replace("?", "")) if found else ()
    made: dict[str, Any] = {"http": given | {"answer": "".join(f"/{step}" for step in steps)}}
    return made | ({"transform": {"javascript": _script(code)}} if code and not found else {})


def _code(config: WrittenApplication) -> str:
    """What finds the answer in a reply; empty for all of it.

    Raises:
        WrongInput: it is a file, or reads what is beside the reply.
    """
    code = str(config.transform_response or config.response_parser or "").strip().rstrip(";")
    if code.startswith(FILE) or _CONTEXT.search(code):
        raise WrongInput("its transformResponse is a file, or reads `context`: call it by code")
    return code


def _script(code: str) -> str:
    """Code that finds the answer in a reply, as a transform."""
    text = "const text = typeof output === 'string' ? output : JSON.stringify(output);\n"
    call = "(json, text)" if _FUNCTION.match(code) else ""
    return f"const json = output;\n{text if _TEXT.search(code) else ''}return ({code}){call};"


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
