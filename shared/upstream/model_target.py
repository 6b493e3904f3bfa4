"""Where a model is called, and what every call to it carries: made once at submit, and carried whole."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from shared.code.code_file import CodeFile
from shared.upstream.http_mapping import HttpMapping
from shared.upstream.key_variables import PROVIDERS, provider_of
from shared.upstream.protocol_names import HTTP, OPENAI, protocol_of

DEFAULT_TIMEOUT_S: Final = 120.0
"""Hard limit of one call where the configuration says nothing."""
FLEX_TIMEOUT_S: Final = 900.0
"""The same of the service tier `flex`, whose answers may take that long by OpenAI's guide."""
ECHO: Final = "echo"
"""The model that answers with its last user message, without a call; also `echo/NAME`, for several of it."""


FUNCTION_PATH: Final = "/function/"
"""Begin of the path of a function of Python that is served for the time of a run (`proctor.app`); its port is
another one each time."""


def is_function(api_base: str) -> bool:
    """Returns whether an endpoint is such a function.

    >>> is_function("http://127.0.0.1:43203/function/v1"), is_function("http://127.0.0.1:43203/v1")
    (True, False)
    """
    return urlsplit(api_base).path.startswith(FUNCTION_PATH)


class ModelTarget(msgspec.Struct, frozen=True, gc=False):
    """A model at its endpoint; it names variables of the workers' environment and contains no secret."""

    model: str
    """Its name as litellm has it, such as `openai/gpt-4o`; any name with an `api_base`."""
    api_base: str = ""
    """URL of an endpoint; empty: the provider's own."""
    api_key_env: str = ""
    """The variable of the worker's environment that holds the key, as it is written; see `key_variable`."""
    headers: Mapping[str, str] = {}
    """Headers of each request: literal, or `env:VARIABLE` of the worker's environment."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Hard limit of one call."""
    protocol: str = ""
    """How the `api_base` is spoken to, one of `PROTOCOLS`; empty: as the model's name says."""
    http: HttpMapping | None = None
    """How the application at `api_base` is asked that speaks none of these."""
    code: CodeFile | None = None
    """The code that is called instead of an endpoint; `api_base` is its place."""
    plugin: str = ""
    """The installed client that is called instead; likewise."""
    config: Mapping[str, Any] = {}
    """What code or client is given beside each call."""

    @property
    def place(self) -> dict[str, str]:
        """What decides who answers: neither the key that pays, nor the time that it may take."""
        spoken = {"protocol": self.protocol} if self.protocol else {}
        spoken |= {"http": msgspec.json.encode(self.http).decode()} if self.http else {}
        if self.is_hosted:
            called = f"{self.code.sha256} {self.code.function}" if self.code else self.plugin
            spoken |= {"called": called, "config": msgspec.json.encode(self.config, order="sorted").decode()}
        return {"model": self.model, "api_base": self.api_base, **spoken}

    @property
    def is_hosted(self) -> bool:
        """Whether code or an installed client is called instead of an endpoint."""
        return self.code is not None or bool(self.plugin)

    @property
    def spoken(self) -> str:
        """How the `api_base` is spoken to; `HTTP` by its own mapping.

        >>> ModelTarget("ollama/llama", "http://h:11434").spoken, ModelTarget("m", "http://h").spoken
        ('ollama', 'openai')
        """
        if self.is_hosted:
            return OPENAI
        return HTTP if self.http else protocol_of(self.model, self.api_base, self.protocol)

    @property
    def is_echo(self) -> bool:
        """Whether the worker answers itself, with the last user message.

        >>> ModelTarget("echo").is_echo, ModelTarget("echo/b").is_echo, ModelTarget("echo", "http://h").is_echo
        (True, True, False)
        """
        return not self.api_base and self.model.partition("/")[0] == ECHO

    @property
    def is_free(self) -> bool:
        """Whether its calls cost nothing: those of `echo`, and of functions that judge."""
        return self.is_echo or (self.code is not None and self.code.is_check)

    def compatible(self) -> "ModelTarget":
        """Returns the target at an OpenAI-compatible endpoint, whatever its name says; its own word stays.

        >>> ModelTarget("anthropic/claude", "http://h/v1").compatible().spoken
        'openai'
        >>> ModelTarget("mine", "http://h/v1").compatible().protocol
        ''
        """
        is_named = bool(self.api_base) and not self.protocol and self.spoken not in {OPENAI, HTTP}
        return msgspec.structs.replace(self, protocol=OPENAI) if is_named else self

    @property
    def key_variable(self) -> str:
        """The variable that holds the key: the given one, else the provider's; empty if none is known.

        A provider's key is not sent to another server: an `api_base` has only the variable that is given.

        >>> [ModelTarget("openai/gpt-4o", base).key_variable for base in ("", "http://localhost:8000/v1")]
        ['OPENAI_API_KEY', '']
        """
        usual = "" if self.api_base else PROVIDERS.get(provider_of(self.model), "")
        return self.api_key_env or usual
