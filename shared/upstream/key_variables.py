"""Which variables hold the keys of providers, and which a worker may send at all; reads no store."""

from collections.abc import Mapping
from typing import Final

from shared.scrubbing import KEY_VARIABLES
from shared.settings import names_in

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
ENV_PREFIX: Final = "env:"
"""How the value of a header begins that a worker takes from its environment."""
SENT_ENDINGS: Final = ("_API_KEY", "_TOKEN")
"""What the names of variables end with that may be sent to an upstream."""
SENT: Final = frozenset({*PROVIDERS.values(), *(name for names in OTHER_NAMES.values() for name in names)})
"""Variables of known providers, whatever they end with."""


def provider_of(model: str) -> str:
    """Returns the provider of a model; empty if the name does not contain it.

    >>> provider_of("groq/llama-3"), provider_of("gpt-3.5-turbo"), provider_of("mine")
    ('groq', 'openai', '')
    """
    provider, slash, _ = model.partition("/")
    if slash:
        return provider
    return next((name for start, name in FAMILIES.items() if model.startswith(start)), "")


def key_in(variable: str, environment: Mapping[str, str], *, is_usual: bool = True) -> str:
    """Returns the key that a variable holds; empty when there is none, or it may not be sent.

    Args:
        variable: its name.
        environment: holds it.
        is_usual: whether the provider's other names for it count too.

    >>> key_in("GEMINI_API_KEY", {"GOOGLE_API_KEY": "k1 "}), key_in("HOME", {"HOME": "/me"})
    ('k1', '')
    """
    if not variable or unsendable(variable, environment):
        return ""
    names = (variable, *(OTHER_NAMES.get(variable, ()) if is_usual else ()))
    found = (environment.get(name, "").strip() for name in names)
    return next(filter(None, found), "")


def unsendable(name: str, environment: Mapping[str, str], *, by: str = "this worker") -> str:
    """Returns why a worker does not send a variable; empty if it may be sent.

    A run names the variable and the endpoint that it is sent to, and a worker's environment also contains
    unrelated secrets.

    Args:
        name: of the variable.
        environment: of the worker.
        by: who would send it.

    >>> unsendable("MY_API_KEY", {}), unsendable("HOME", {"PROCTOR_KEY_VARIABLES": "HOME, OTHER"})
    ('', '')
    >>> unsendable("AWS_SECRET_ACCESS_KEY", {})
    'AWS_SECRET_ACCESS_KEY is not sent by this worker: names of keys end in _API_KEY or _TOKEN, others are \
listed in its PROCTOR_KEY_VARIABLES'
    """
    if f"_{name}".endswith(SENT_ENDINGS) or name in SENT or name in names_in(environment.get(KEY_VARIABLES)):
        return ""
    return (
        f"{name} is not sent by {by}: names of keys end in {' or '.join(SENT_ENDINGS)}, others are "
        f"listed in its {KEY_VARIABLES}"
    )
