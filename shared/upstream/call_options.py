"""Options of model calls (`params`, `headers`): what may be in them, and how several places are merged.

    bench  <  model (`model_configs.M`)  <  prompt  <  command line (`-t`)

Maps are merged by key, unless they name another `type`; everything else replaces what stood before. An option
that is null is not sent.

>>> bench = CallOptions(temperature=0.2, extra_body={"top_k": 5}, stop="END")
>>> model = CallOptions(temperature=None, extra_body={"min_p": 0.1})
>>> merged = merge_options(given(bench), given(model))
>>> merged
{'extra_body': {'top_k': 5, 'min_p': 0.1}, 'stop': 'END', 'temperature': None}
>>> split_temperature(merged, default=0.1)
(None, {'extra_body': {'top_k': 5, 'min_p': 0.1}, 'stop': 'END'})
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from shared.contracts.case_vocabulary import why_not_json
from shared.upstream.key_variables import ENV_PREFIX, unsendable

MOST_STOPS: Final = 16
"""Texts at which an answer may be ended; most providers take four."""
MOST_TOOLS: Final = 128
MOST_HEADERS: Final = 32
MAX_HEADER_CHARS: Final = 4_096
OURS: Final = frozenset({"model", "messages", "stream", "stream_options", "n", "input"})
"""Keys of a request's body that are not for options to set."""
RESERVED_HEADERS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that belong to the exchange itself."""
_SECRET_HEADER: Final = re.compile(r"authorization|cookie|token|secret|password|(api|subscription)[-_]?key")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


def _json(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses values that no request can carry."""
    if problem := why_not_json(value):
        raise PydanticCustomError("not_json", "{problem}", {"problem": problem})
    return value


def _typed(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses a map that does not say what it is: providers tell them apart by `type`."""
    if not isinstance(value.get("type"), str) or not value["type"]:
        raise PydanticCustomError("no_type", "has no type: write for example type: function")
    return value


def _tool(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses a function without a name."""
    function = value.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if value.get("type") == "function" and not (isinstance(name, str) and name):
        text = "the tool has no name: write {type: function, function: {name: weather, parameters: …}}"
        raise PydanticCustomError("no_name", text)
    return value


def _body(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses keys that have a place of their own."""
    for key in value:
        if key in CallOptions.model_fields:
            raise PydanticCustomError("misplaced", "{key} is an option: write params.{key}", {"key": key})
        if key in OURS:
            raise PydanticCustomError("reserved", "{key} is set by proctor: remove it", {"key": key})
    return value


def _headers(headers: dict[str, str]) -> dict[str, str]:
    """Refuses headers that would break the exchange, and secrets that would be stored."""
    if len(headers) > MOST_HEADERS:
        raise PydanticCustomError("headers", "more than {most} headers", {"most": MOST_HEADERS})
    if len({name.lower() for name in headers}) < len(headers):
        raise PydanticCustomError("headers", "a header is there twice: names differ in more than case")
    for name, value in headers.items():
        if problem := header_problem(name, value):
            raise PydanticCustomError("header", "{problem}", {"problem": problem})
    return headers


def header_problem(name: str, value: str) -> str:
    """Says why a header cannot be sent, or must not be stored; empty when it may.

    >>> header_problem("X-Team", "evals"), header_problem("Authorization", "env:MY_TOKEN")
    ('', '')
    >>> header_problem("Authorization", "Bearer abc")
    'Authorization would be stored with the run: write env:VARIABLE, a variable of the workers'
    """
    if _HEADER_NAME.fullmatch(name) is None:
        return f"{name[:40]!r} is not the name of a header"
    if name.lower() in RESERVED_HEADERS:
        return f"{name} is set by proctor: remove it"
    if value.startswith(ENV_PREFIX):
        variable = value.removeprefix(ENV_PREFIX)
        is_name = variable.isascii() and variable.isidentifier()
        return "" if is_name else f"{name}: {value[:40]!r} names no variable: write env:VARIABLE"
    if _SECRET_HEADER.search(name.lower()):
        return f"{name} would be stored with the run: write env:VARIABLE, a variable of the workers"
    is_sendable = value.isascii() and value.isprintable() and value == value.strip()
    return "" if is_sendable and len(value) <= MAX_HEADER_CHARS else f"{name}: its value cannot be sent"


Json = Annotated[dict[str, Any], AfterValidator(_json)]
Word = Annotated[str, Field(min_length=1, max_length=100)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
"""Headers of a request: literal, or `env:VARIABLE`."""


class CallOptions(BaseModel):
    """What may be in `params`; null means that the option is not sent."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    """It goes before `config.temperature`."""
    max_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Tokens of an answer, at most."""
    top_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """Share of the likeliest tokens that are drawn from."""
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    """For providers that draw tokens in the same way again."""
    stop: Word | Annotated[list[Word], Field(min_length=1, max_length=MOST_STOPS)] | None = None
    """Texts at which an answer ends."""
    presence_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)] | None = None
    """Against words that have been used."""
    frequency_penalty: Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)] | None = None
    """Against words that have been used often."""
    reasoning_effort: Word | None = None
    """`low`, `medium`, `high`, or another word of the provider."""
    response_format: Annotated[Json, AfterValidator(_typed)] | None = None
    """`{type: json_object}`, or a JSON schema that answers must keep to."""
    tools: (
        Annotated[
            list[Annotated[Json, AfterValidator(_typed), AfterValidator(_tool)]],
            Field(min_length=1, max_length=MOST_TOOLS),
        ]
        | None
    ) = None
    """Tools that the model may call; they are never run."""
    tool_choice: Word | Annotated[Json, AfterValidator(_typed)] | None = None
    """`none`, `auto`, `required`, or one tool."""
    logprobs: bool | None = None
    """Whether the provider is asked for probabilities of tokens."""
    extra_body: Annotated[Json, AfterValidator(_body)] | None = None
    """Other keys of the request's body, as the provider names them."""


OPTION_NAMES: Final = tuple(CallOptions.model_fields)
"""In the order of the documentation."""


def given(options: CallOptions | None) -> dict[str, Any]:
    """Returns the options that are written down, also those that are null.

    >>> given(CallOptions(top_p=None, seed=1)), given(None)
    ({'top_p': None, 'seed': 1}, {})
    """
    return {} if options is None else options.model_dump(exclude_unset=True)


def merge_options(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merges options, later layers over earlier ones; names are sorted, so that equal options are equal text.

    Nulls remain: `split_temperature` leaves them out.

    >>> merge_options({"a": {"b": 1}, "c": [1, 2]}, {"a": {"d": 2}, "c": [3]})
    {'a': {'b': 1, 'd': 2}, 'c': [3]}
    >>> merge_options({"a": {"type": "json_schema", "json_schema": {}}}, {"a": {"type": "text"}})
    {'a': {'type': 'text'}}
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = _merge_maps(merged, layer)
    return dict(sorted(merged.items()))


def _merge_maps(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two maps by key, at every depth."""
    merged = dict(before)
    for key, value in after.items():
        known = merged.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping) and _have_one_type(known, value):
            merged[key] = _merge_maps(known, value)
        else:
            merged[key] = value
    return merged


def _have_one_type(known: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return bool(value.get("type", known.get("type")) == known.get("type"))


def merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Merges headers, whose names have no case; later layers go before earlier ones.

    >>> merge_headers({"X-Team": "a", "X-Run": "1"}, {"x-team": "b"})
    {'X-Run': '1', 'x-team': 'b'}
    """
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            merged.pop(name.lower(), None)
            merged[name.lower()] = (name, value)
    return dict(merged.values())


def split_temperature(
    options: Mapping[str, Any], default: float | None
) -> tuple[float | None, dict[str, Any]]:
    """Parts merged options into the temperature and the others, as a request has them, without nulls.

    Args:
        options: merged.
        default: the temperature where no layer names one; null in a layer means that none is sent.

    >>> split_temperature({"seed": 1, "top_p": None}, default=0.1)
    (0.1, {'seed': 1})
    """
    others = {name: value for name, value in options.items() if name != "temperature" and value is not None}
    return options.get("temperature", default), others


def unsendable_headers(headers: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Says why a worker would not send one of the headers; empty when it may send all of them.

    Args:
        headers: of a request.
        environment: of the worker, or of whoever submits, for a warning.

    >>> unsendable_headers({"X-Key": "env:HOME"}, {})[:34]
    'HOME is not sent by this worker: n'
    """
    variables = (value.removeprefix(ENV_PREFIX) for value in headers.values() if value.startswith(ENV_PREFIX))
    return next(filter(None, (unsendable(variable, environment) for variable in variables)), "")
