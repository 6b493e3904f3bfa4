"""API keys: which one a request is sent with.

api_base with api_key_env      that variable
api_base without               none: a provider's key is not sent to somebody else's server
no api_base, with api_key_env  that variable
no api_base                    the provider's usual variable
"""

from collections.abc import Mapping
from typing import Final

from worker.upstream.failures import Trouble, UpstreamError
from worker.upstream.model import ModelRequest

PROVIDERS: Final = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "azure": "AZURE_API_KEY",
    "azure_ai": "AZURE_AI_API_KEY",
    "cerebras": "CEREBRAS_API_KEY",
    "cohere": "COHERE_API_KEY",
    "cohere_chat": "COHERE_API_KEY",
    "deepinfra": "DEEPINFRA_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks_ai": "FIREWORKS_AI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "perplexity": "PERPLEXITYAI_API_KEY",
    "replicate": "REPLICATE_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "xai": "XAI_API_KEY",
}
"""Providers and the variable that people keep their key in."""
ELSEWHERE: Final = frozenset({"azure"})
"""Providers with other ways to sign in than a key."""
FAMILIES: Final = {"gpt-": "openai", "chatgpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai"} | {
    "claude-": "anthropic"
}
"""Beginnings of model names that need no provider's name."""
OTHER_NAMES: Final = {
    "GEMINI_API_KEY": ("GOOGLE_API_KEY",),
    "COHERE_API_KEY": ("CO_API_KEY",),
    "FIREWORKS_AI_API_KEY": ("FIREWORKS_API_KEY",),
    "PERPLEXITYAI_API_KEY": ("PERPLEXITY_API_KEY",),
    "TOGETHERAI_API_KEY": ("TOGETHER_AI_TOKEN",),
}


def provider_of(model: str) -> str:
    """Names the provider of a model; empty when the name does not say.

    >>> provider_of("groq/llama-3"), provider_of("gpt-3.5-turbo"), provider_of("mine")
    ('groq', 'openai', '')
    """
    provider, slash, _ = model.partition("/")
    if slash:
        return provider
    return next((name for start, name in FAMILIES.items() if model.startswith(start)), "")


def variable_of(request: ModelRequest) -> str:
    """Names the variable that holds the key of a request; empty when it needs none that we know.

    >>> variable_of(ModelRequest("openai/gpt-4o", "", "Hi"))
    'OPENAI_API_KEY'
    >>> variable_of(ModelRequest("openai/gpt-4o", "", "Hi", api_base="http://localhost:1"))
    ''
    """
    if request.api_key_env or request.api_base:
        return request.api_key_env
    return PROVIDERS.get(provider_of(request.model), "")


def key_of(request: ModelRequest, environment: Mapping[str, str]) -> str:
    """Returns the key that a request is sent with; empty when there is none.

    >>> key_of(ModelRequest("openai/gpt-4o", "", "Hi"), {"OPENAI_API_KEY": "sk-1 "})
    'sk-1'
    """
    variable = variable_of(request)
    names = (variable, *(() if request.api_key_env else OTHER_NAMES.get(variable, ())))
    found = (environment.get(name, "").strip() for name in names if name)
    return next(filter(None, found), "")


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
    is_needed = bool(request.api_key_env) or provider_of(request.model) not in ELSEWHERE
    if variable and is_needed and not key:
        text = f"{request.model} needs the variable {variable}, which this worker does not have"
        raise UpstreamError(Trouble.UNAUTHORISED, text)
    if not key.isascii() or not (key or "-").isprintable() or " " in key:
        text = f"the variable {variable} holds characters that no key has"
        raise UpstreamError(Trouble.UNAUTHORISED, text)
    return key
