"""Chooses who calls a model: an endpoint is called directly, a named provider through litellm."""

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from worker.upstream.direct_client import DirectClient
from worker.upstream.failures import Trouble, UpstreamError
from worker.upstream.model import ModelClient, ModelReply, ModelRequest

if TYPE_CHECKING:
    import aiohttp

USUAL_KEYS: Final[Mapping[str, str]] = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "groq": "GROQ_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "xai": "XAI_API_KEY",
    "cohere": "COHERE_API_KEY",
}
"""Where providers' keys usually are; of others litellm knows where to look."""
DEFAULT_PROVIDER: Final = "openai"
"""Of a model without a provider in front of its name, such as `gpt-4o`."""


def provider_of(model: str) -> str:
    """Names the provider of a model.

    >>> provider_of("anthropic/claude-3"), provider_of("gpt-4o")
    ('anthropic', 'openai')
    """
    provider, slash, _ = model.partition("/")
    return provider if slash else DEFAULT_PROVIDER


def key_of(request: ModelRequest, environment: Mapping[str, str] = os.environ) -> str:
    """Finds the API key that a request is sent with; empty when there is none.

    A key goes to an `api_base` only when the configuration names its variable.

    >>> key_of(ModelRequest("gpt-4o", "", "Hi"), {"OPENAI_API_KEY": "k"})
    'k'
    >>> key_of(ModelRequest("m", "", "Hi", api_base="http://localhost/v1"), {"OPENAI_API_KEY": "k"})
    ''
    """
    usual = "" if request.api_base else USUAL_KEYS.get(provider_of(request.model), "")
    return environment.get(request.api_key_env or usual, "").strip()


class Clients:
    """Calls models of every sort.

    Args:
        session: returns the process's HTTP session; called on the loop.
        environment: of the worker: keys are looked up there, at each call.
    """

    def __init__(
        self, session: "Callable[[], aiohttp.ClientSession]", environment: Mapping[str, str] = os.environ
    ) -> None:
        self._environment = environment
        self._direct = DirectClient(session, self._key_of)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer, or no key to ask with.
        """
        self._check_key(request)
        client: ModelClient = self._direct if request.api_base else self._litellm
        return await client.complete(request)

    @cached_property
    def _litellm(self) -> ModelClient:
        """Made for the first call of a named provider."""
        from worker.upstream.litellm_client import LitellmClient  # noqa: PLC0415 - start-up: only where it is used

        return LitellmClient(self._key_of)

    def _key_of(self, request: ModelRequest) -> str:
        return key_of(request, self._environment)

    def _check_key(self, request: ModelRequest) -> None:
        """Refuses a call whose key is missing, before anything is sent.

        Raises:
            UpstreamError: the worker has no key.
        """
        usual = "" if request.api_base else USUAL_KEYS.get(provider_of(request.model), "")
        name = request.api_key_env or usual
        if name and not self._key_of(request):
            text = f"{request.model} needs a key in the variable {name}, which this worker does not have"
            raise UpstreamError(Trouble.UNAUTHORISED, text)
