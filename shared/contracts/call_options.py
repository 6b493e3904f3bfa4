"""Options of calls to models as people write them, and how those of bench, model and prompt are merged."""

import re
from collections.abc import Mapping
from functools import reduce
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from shared.contracts.cases import Encodable, JsonObject, Text, is_json

ENVIRONMENT: Final = "env:"
"""A header with this before its value takes it from the workers' environment."""
SECRETS: Final = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"}
)
"""Headers that hold a secret, which is never stored."""
TEMPERATURE: Final = "temperature"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _headers(written: dict[str, str]) -> dict[str, str]:
    """Refuses what is no header, and secrets that would be stored with the run."""
    for name, value in written.items():
        if not _TOKEN.fullmatch(name):
            raise _refused(name, "is not the name of a header: write letters, digits and hyphens")
        if not value.isprintable() or not value.isascii():
            raise _refused(name, "has no printable ASCII text on one line: write one")
        variable = value.removeprefix(ENVIRONMENT)
        if value.startswith(ENVIRONMENT):
            if not variable.isidentifier():
                raise _refused(name, "does not name a variable: write env:VARIABLE")
        elif name.lower() in SECRETS:
            raise _refused(name, "holds a secret, which must not be stored: write env:VARIABLE")
    return written


def _refused(name: str, text: str) -> PydanticCustomError:
    """An error about one header; its value may be a secret and is not repeated."""
    return PydanticCustomError("header", "{name} {text}", {"name": repr(name), "text": text})


def _stops(value: Any) -> Any:
    """Refuses what is neither a text nor a list of texts."""
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        return is_json(value)
    raise PydanticCustomError("stop", "neither a text nor a list of texts: write stop: [END]")


def _choice(value: Any) -> Any:
    """Refuses what is neither a word nor an object."""
    if isinstance(value, str | dict):
        return is_json(value)
    raise PydanticCustomError("tool_choice", "neither a word nor an object: write auto, none or required")


Headers = Annotated[dict[str, Encodable], AfterValidator(_headers)]


class Params(BaseModel):
    """The `params` of a bench, a model, a prompt or the judges; null takes one back: it is not sent."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    """Sampling temperature; null: none is sent."""
    max_tokens: int | None = Field(None, ge=1)
    """Tokens of an answer, at most."""
    top_p: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    """Share of the most likely tokens that are sampled from."""
    seed: int | None = None
    """For providers that sample reproducibly."""
    stop: Annotated[Any, AfterValidator(_stops)] | None = None
    """Text, or texts, at which an answer ends."""
    presence_penalty: float | None = Field(None, ge=-2, le=2, allow_inf_nan=False)
    """Against tokens that occurred."""
    frequency_penalty: float | None = Field(None, ge=-2, le=2, allow_inf_nan=False)
    """Against tokens that occurred often."""
    reasoning_effort: Text | None = None
    """How long the model thinks, such as `low`."""
    response_format: JsonObject | None = None
    """Form of the answer, such as `{type: json_object}`."""
    tools: list[JsonObject] | None = None
    """Functions that the model may call, in OpenAI's form."""
    tool_choice: Annotated[Any, AfterValidator(_choice)] | None = None
    """Which of them it calls: `auto`, `none`, `required`, or one in OpenAI's form."""
    logprobs: bool | None = None
    """Whether log probabilities are returned."""
    extra_body: JsonObject | None = None
    """Other keys of the request's body, sent as they are."""
    headers: Headers | None = None
    """Headers of the request; the same as `headers` beside `params`."""

    @property
    def given(self) -> dict[str, Any]:
        """Those that are written, null included.

        >>> Params(temperature=None, seed=3).given
        {'temperature': None, 'seed': 3}
        """
        return {
            name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set
        }


def merge(*levels: Mapping[str, Any]) -> dict[str, Any]:
    """Merges options, later levels over earlier ones: maps by key, lists and all else as a whole.

    >>> merge({"a": 1, "b": {"x": 1, "y": [1]}}, {"b": {"y": [2]}}, {"a": None})
    {'a': None, 'b': {'x': 1, 'y': [2]}}
    """
    return reduce(_merged, levels, {})


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two levels."""
    both = {
        name: _merged(below[name], value)
        for name, value in above.items()
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping)
    }
    return {**below, **above, **both}


def sent(merged: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out what null has taken back, but for a temperature: without one the run's is sent.

    >>> sent({"seed": None, "temperature": None, "top_p": 0.5})
    {'temperature': None, 'top_p': 0.5}
    """
    return {name: value for name, value in merged.items() if value is not None or name == TEMPERATURE}
