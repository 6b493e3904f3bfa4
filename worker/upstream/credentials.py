"""The API key that a request is sent with, out of the environment of a worker."""

from collections.abc import Mapping

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.key_variables import ELSEWHERE, key_in, key_variable, provider_of, unsendable
from worker.upstream.chat import ModelRequest
from worker.upstream.failures import UpstreamError


def variable_of(request: ModelRequest) -> str:
    """Names the variable that holds the key of a request; empty when it needs none that we know."""
    return key_variable(request.model, api_base=request.api_base, api_key_env=request.api_key_env)


def key_of(request: ModelRequest, environment: Mapping[str, str]) -> str:
    """Returns the key that a request is sent with; empty when there is none.

    >>> key_of(ModelRequest("openai/gpt-4o", "", "Hi"), {"OPENAI_API_KEY": "sk-1 "})
    'sk-1'
    """
    return key_in(variable_of(request), environment, is_usual=not request.api_key_env)


def needed_key(request: ModelRequest, environment: Mapping[str, str]) -> str:
    """Returns the key that a request is sent with.

    Raises:
        UpstreamError: it needs one that this worker does not have; the same holds for the whole run.

    >>> needed_key(ModelRequest("openai/gpt-4o", "", "Hi"), {})
    Traceback (most recent call last):
        ...
    worker.upstream.failures.UpstreamError: openai/gpt-4o needs the variable OPENAI_API_KEY, which this \
worker does not have
    """
    key, variable = key_of(request, environment), variable_of(request)
    if variable and (why := unsendable(variable, environment)):
        raise UpstreamError(FailureReason.FORBIDDEN, f"{request.model}: the variable {why}")
    is_needed = bool(request.api_key_env) or provider_of(request.model) not in ELSEWHERE
    if variable and is_needed and not key:
        text = f"{request.model} needs the variable {variable}, which this worker does not have"
        raise UpstreamError(FailureReason.UNAUTHORISED, text)
    if not key.isascii() or not (key or "-").isprintable() or " " in key:
        text = f"the variable {variable} holds characters that no key has"
        raise UpstreamError(FailureReason.UNAUTHORISED, text)
    return key
