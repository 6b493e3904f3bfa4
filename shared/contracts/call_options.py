"""Options of calls to models as people write them, and how those of bench, model and prompt are merged.

    bench  <  model (`model_configs.M`)  <  prompt  <  command line (`-t`)

Maps are merged by key, unless they name another `type`; everything else replaces what stood before. An option
that is null is not sent.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from shared.contracts.cases import Encodable, JsonObject, Text, is_json
from shared.scrubbing import holds_key, is_secret_field, is_secret_header
from shared.upstream.key_variables import ENV_PREFIX

RESERVED: Final = frozenset(
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
OURS: Final = frozenset({"model", "messages", "stream", "stream_options", "n"})
"""Keys of a request's body that no option sets."""
MOST_HEADERS: Final = 32
MAX_HEADER_CHARS: Final = 4_096
MOST_TOOLS: Final = 128
MOST_STOPS: Final = 16
"""Texts at which an answer may end; most providers take four."""
HEADERS: Final = "headers"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def check_headers(written: dict[str, str]) -> dict[str, str]:
    """Refuses what is no header, and secrets that would be stored with the run."""
    if len(written) > MOST_HEADERS:
        raise PydanticCustomError("headers", "more than {most} headers: remove some", {"most": MOST_HEADERS})
    lower = [name.lower() for name in written]
    for name, value in written.items():
        if not _TOKEN.fullmatch(name):
            raise _refused(name, "is not the name of a header: write letters, digits and hyphens")
        if lower.count(name.lower()) > 1:
            raise _refused(name, "stands twice, in other letters: keep one")
        if name.lower() in RESERVED:
            raise _refused(name, "is set by proctor: remove it")
        if not value.isprintable() or not value.isascii() or len(value) > MAX_HEADER_CHARS:
            raise _refused(name, "has no printable ASCII text on one line: write one")
        variable = value.removeprefix(ENV_PREFIX)
        if value.startswith(ENV_PREFIX):
            if not variable.isidentifier():
                raise _refused(name, "does not name a variable: write env:VARIABLE")
        elif is_secret_header(name, value):
            raise _refused(name, "holds a secret, which must not be stored: write env:VARIABLE")
    return written


def _refused(name: str, text: str) -> PydanticCustomError:
    """An error about one header; its value may be a secret and is not repeated."""
    return PydanticCustomError("header", "{name} {text}", {"name": repr(name), "text": text})


def _stops(value: Any) -> Any:
    """Refuses what is neither a text nor a list of texts."""
    texts = [value] if isinstance(value, str) else value
    is_list = isinstance(texts, list) and 0 < len(texts) <= MOST_STOPS
    if is_list and all(isinstance(each, str) and each for each in texts):
        return is_json(value)
    raise PydanticCustomError("stop", "neither a text nor a list of texts: write stop: [END]")


def _choice(value: Any) -> Any:
    """Refuses what is neither a word nor an object."""
    if (isinstance(value, str) and value) or (isinstance(value, dict) and _type_of(value)):
        return is_json(value)
    raise PydanticCustomError("tool_choice", "neither a word nor an object: write auto, none or required")


def _typed(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses an object without a type, by which providers tell them apart."""
    if not _type_of(value):
        raise PydanticCustomError("no_type", "has no type: write for example type: json_object")
    return value


def _type_of(value: dict[str, Any]) -> str:
    """What an object says that it is."""
    written = value.get("type")
    return written if isinstance(written, str) else ""


def _tool(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses a tool that no provider can offer."""
    function = value.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    if not _type_of(value) or (value["type"] == "function" and not (isinstance(name, str) and name)):
        text = "no tool: write {type: function, function: {name: weather, parameters: {type: object}}}"
        raise PydanticCustomError("tool", text)
    return value


def _body(value: dict[str, Any]) -> dict[str, Any]:
    """Refuses keys that have a place of their own."""
    for key in value:
        if key in Params.model_fields:
            raise PydanticCustomError("misplaced", "{key} is an option: move it into params", {"key": key})
        if key in OURS:
            raise PydanticCustomError("reserved", "{key} is set by proctor: remove it", {"key": key})
    if path := next(_secrets_in(value, ""), ""):
        text = "{path} holds a secret, which must not be stored: send it as a header, {NAME: env:VARIABLE}"
        raise PydanticCustomError("secret", text, {"path": path})
    return value


def _secrets_in(value: Any, path: str) -> Iterator[str]:
    """Yields where secrets stand in a body."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _secrets_in(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _secrets_in(inner, path)
    elif isinstance(value, str) and is_secret_field(path.rpartition(".")[2], value):
        yield path


def _no_key(value: Any) -> Any:
    """Refuses a key of a provider anywhere in an option; its value is not repeated."""
    if holds_key(json.dumps(value)):
        raise PydanticCustomError("secret", "holds a secret, which must not be stored: remove it")
    return value


Headers = Annotated[dict[str, Encodable], AfterValidator(check_headers)]
"""Headers of a request: literal, or `env:VARIABLE` of the workers."""


class Params(BaseModel):
    """The `params` of a bench, a model, a prompt or the judges; null takes one back: it is not sent."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    """Sampling temperature; null: none is sent."""
    max_tokens: int | None = Field(None, ge=1, le=10_000_000)
    """Tokens of an answer, at most."""
    top_p: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    """Share of the most likely tokens that are sampled from."""
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    """For providers that sample reproducibly."""
    stop: Annotated[Any, AfterValidator(_stops), AfterValidator(_no_key)] | None = None
    """Text, or texts, at which an answer ends."""
    presence_penalty: float | None = Field(None, ge=-2, le=2, allow_inf_nan=False)
    """Against tokens that occurred."""
    frequency_penalty: float | None = Field(None, ge=-2, le=2, allow_inf_nan=False)
    """Against tokens that occurred often."""
    reasoning_effort: Text | None = None
    """How long the model thinks, such as `low`."""
    service_tier: Text | None = None
    """The provider's service tier, such as `flex`: cheaper and slower."""
    response_format: Annotated[JsonObject, AfterValidator(_typed), AfterValidator(_no_key)] | None = None
    """Form of the answer, such as `{type: json_object}`."""
    tools: list[Annotated[JsonObject, AfterValidator(_tool), AfterValidator(_no_key)]] | None = Field(
        None, min_length=1, max_length=MOST_TOOLS
    )
    """Functions that the model may call, in OpenAI's form; they are never run."""
    tool_choice: Annotated[Any, AfterValidator(_choice), AfterValidator(_no_key)] | None = None
    """Which of them it calls: `auto`, `none`, `required`, or one in OpenAI's form."""
    logprobs: bool | None = None
    """Whether log probabilities are returned."""
    extra_body: Annotated[JsonObject, AfterValidator(_body)] | None = None
    """Other keys of the request's body, sent as they are."""
    headers: Headers | None = None
    """Headers of the request; the same as `headers` beside `params`."""

    @property
    def given(self) -> dict[str, Any]:
        """Those that are written, null included, and headers aside.

        >>> Params(temperature=None, seed=3).given
        {'temperature': None, 'seed': 3}
        """
        written = [name for name in type(self).model_fields if name in self.model_fields_set]
        return {name: getattr(self, name) for name in written if name != HEADERS}
