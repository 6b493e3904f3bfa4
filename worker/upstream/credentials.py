"""The API key and the headers that a request is sent with, out of the environment of a worker."""

from collections.abc import Mapping
from typing import Final

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.key_variables import (
    ELSEWHERE,
    ENV_PREFIX,
    key_in,
    key_variable,
    provider_of,
    unsendable,
)
from worker.upstream.chat import Destination
from worker.upstream.failures import UpstreamError

AUTHORIZATION: Final = "Authorization"


def variable_of(request: Destination) -> str:
    """Names the variable that holds the key of a request; empty when it needs none that we know."""
    return key_variable(request.model, api_base=request.api_base, api_key_env=request.api_key_env)


def key_of(request: Destination, environment: Mapping[str, str]) -> str:
    """Returns the key that a request is sent with; empty when there is none, or a header takes its place.

    >>> from worker.upstream.chat import ModelRequest
    >>> key_of(ModelRequest("openai/gpt-4o", "", "Hi"), {"OPENAI_API_KEY": "sk-1 "})
    'sk-1'
    """
    if _brings_authorization(request):
        return ""
    return key_in(variable_of(request), environment, is_usual=not request.api_key_env)


def needed_key(request: Destination, environment: Mapping[str, str]) -> str:
    """Returns the key that a request is sent with.

    Raises:
        UpstreamError: it needs one that this worker does not have; the same holds for the whole run.

    >>> from worker.upstream.chat import ModelRequest
    >>> needed_key(ModelRequest("openai/gpt-4o", "", "Hi"), {})
    Traceback (most recent call last):
        ...
    worker.upstream.failures.UpstreamError: openai/gpt-4o needs the variable OPENAI_API_KEY, which this \
worker does not have
    """
    variable = variable_of(request)
    if not variable or _brings_authorization(request):
        return ""
    if why := unsendable(variable, environment):
        raise UpstreamError(FailureReason.FORBIDDEN, f"{request.model}: the variable {why}")
    key = key_of(request, environment)
    is_needed = bool(request.api_key_env) or provider_of(request.model) not in ELSEWHERE
    if is_needed and not key:
        text = f"{request.model} needs the variable {variable}, which this worker does not have"
        raise UpstreamError(FailureReason.UNAUTHORISED, text)
    if not key.isascii() or not (key or "-").isprintable() or " " in key:
        text = f"the variable {variable} holds characters that no key has"
        raise UpstreamError(FailureReason.UNAUTHORISED, text)
    return key


def own_headers(request: Destination, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers that a request brings, with the values of variables that this worker may send.

    Raises:
        UpstreamError: a variable may not be sent, or has no value that can be; the same holds for the run.

    >>> from worker.upstream.chat import ModelRequest
    >>> request = ModelRequest("m", "", "Hi", headers={"X-Team": "evals", "X-Key": "env:MY_TOKEN"})
    >>> own_headers(request, {"MY_TOKEN": "abc "})
    {'X-Team': 'evals', 'X-Key': 'abc'}
    """
    sent: dict[str, str] = {}
    for given, value in request.headers.items():
        name = AUTHORIZATION if given.lower() == AUTHORIZATION.lower() else given  # litellm adds one else
        if not value.startswith(ENV_PREFIX):
            sent[name] = value
            continue
        variable = value.removeprefix(ENV_PREFIX)
        if why := unsendable(variable, environment):
            raise UpstreamError(FailureReason.FORBIDDEN, f"{request.model}: the variable {why}")
        sent[name] = environment.get(variable, "").strip()
        if not sent[name]:
            text = f"{request.model} needs the variable {variable}, which this worker does not have"
            raise UpstreamError(FailureReason.UNAUTHORISED, text)
        if not sent[name].isascii() or not sent[name].isprintable():
            text = f"the variable {variable} holds characters that no header has"
            raise UpstreamError(FailureReason.UNAUTHORISED, text)
    return sent


def _brings_authorization(request: Destination) -> bool:
    """Whether a header of the request takes the place of the key."""
    return any(name.lower() == AUTHORIZATION.lower() for name in request.headers)
