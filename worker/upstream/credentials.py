"""The API key and the headers that a request is sent with, out of the environment of a worker."""

from collections.abc import Mapping
from typing import Final

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.key_variables import (
    ELSEWHERE,
    ENV_PREFIX,
    key_in,
    provider_of,
    unsendable,
)
from shared.upstream.model_target import ModelTarget
from worker.upstream.failures import UpstreamError

AUTHORIZATION: Final = "Authorization"


def key_of(target: ModelTarget, environment: Mapping[str, str]) -> str:
    """Returns the key that calls are sent with; empty when there is none, or a header takes its place.

    >>> key_of(ModelTarget("openai/gpt-4o"), {"OPENAI_API_KEY": "sk-1 "})
    'sk-1'
    """
    if _brings_authorization(target):
        return ""
    return key_in(target.key_variable, environment, is_usual=not target.api_key_env)


def needed_key(target: ModelTarget, environment: Mapping[str, str]) -> str:
    """Returns the key that calls of a model are sent with.

    Raises:
        UpstreamError: it needs one that this worker does not have; the same holds for the whole run.

    >>> needed_key(ModelTarget("openai/gpt-4o"), {})
    Traceback (most recent call last):
        ...
    worker.upstream.failures.UpstreamError: openai/gpt-4o needs the variable OPENAI_API_KEY, which this \
worker does not have
    """
    variable = target.key_variable
    if not variable or _brings_authorization(target):
        return ""
    if why := unsendable(variable, environment):
        raise UpstreamError(FailureReason.FORBIDDEN, f"{target.model}: the variable {why}")
    key = key_of(target, environment)
    is_needed = bool(target.api_key_env) or provider_of(target.model) not in ELSEWHERE
    if is_needed and not key:
        text = f"{target.model} needs the variable {variable}, which this worker does not have"
        raise UpstreamError(FailureReason.UNAUTHORISED, text)
    if not key.isascii() or not (key or "-").isprintable() or " " in key:
        text = f"the variable {variable} holds characters that no key has"
        raise UpstreamError(FailureReason.UNAUTHORISED, text)
    return key


def own_headers(target: ModelTarget, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers of a model's calls, with the values of variables that this worker may send.

    Raises:
        UpstreamError: a variable may not be sent, or has no value that can be; the same holds for the run.

    >>> target = ModelTarget("m", headers={"X-Team": "evals", "X-Key": "env:MY_TOKEN"})
    >>> own_headers(target, {"MY_TOKEN": "abc "})
    {'X-Team': 'evals', 'X-Key': 'abc'}
    """
    sent: dict[str, str] = {}
    for given, value in target.headers.items():
        name = AUTHORIZATION if given.lower() == AUTHORIZATION.lower() else given  # litellm adds one else
        if not value.startswith(ENV_PREFIX):
            sent[name] = value
            continue
        variable = value.removeprefix(ENV_PREFIX)
        if why := unsendable(variable, environment):
            raise UpstreamError(FailureReason.FORBIDDEN, f"{target.model}: the variable {why}")
        sent[name] = environment.get(variable, "").strip()
        if not sent[name]:
            text = f"{target.model} needs the variable {variable}, which this worker does not have"
            raise UpstreamError(FailureReason.UNAUTHORISED, text)
        if not sent[name].isascii() or not sent[name].isprintable():
            text = f"the variable {variable} holds characters that no header has"
            raise UpstreamError(FailureReason.UNAUTHORISED, text)
    return sent


def _brings_authorization(target: ModelTarget) -> bool:
    """Whether a header of the request takes the place of the key."""
    return any(name.lower() == AUTHORIZATION.lower() for name in target.headers)
