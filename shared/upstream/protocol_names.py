"""Which protocol an `api_base` is spoken to in: by the word of its configuration, else by the model's name.

    openai      POST {api_base}/chat/completions, as most servers have it
    responses   POST {api_base}/responses: OpenAI's later one
    anthropic   POST {api_base}/v1/messages
    gemini      POST {api_base}/v1beta/models/{model}:generateContent
    ollama      POST {api_base}/api/chat
    azure       POST {api_base}/openai/deployments/{model}/chat/completions

A path that the address has already is not repeated.
"""

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

OPENAI: Final = "openai"
PROTOCOLS: Final = (OPENAI, "responses", "anthropic", "gemini", "ollama", "azure")
"""What `protocol` may be; the first is that of names which say nothing."""
PLACES: Final = 256
"""Names at endpoints that a process keeps in memory: a run calls a few of them thousands of times."""
HTTP: Final = "http"
"""Of an application with a mapping of its own."""
PREFIXES: Final = {
    "openai/responses/": "responses",
    "openai/": OPENAI,
    "custom_openai/": OPENAI,
    "hosted_vllm/": OPENAI,
    "lm_studio/": OPENAI,
    "llamafile/": OPENAI,
    "anthropic/": "anthropic",
    "gemini/": "gemini",
    "ollama/": "ollama",
    "ollama_chat/": "ollama",
    "azure/": "azure",
}
"""Beginnings of names that say the protocol; the longer one goes before."""
OWN_NAMES: Final = frozenset({"anthropic/", "gemini/"})
"""Of those, the names that an OpenAI-compatible server takes whole: gateways choose the provider by them."""
_COMPATIBLE: Final = {"ollama": ("/v1",), "gemini": ("/openai",), "azure": ("/v1",)}
"""Ends of the paths where servers of a protocol speak OpenAI's."""
_OLLAMA_PORT: Final = 11434
_HOSTS: Final = {
    "api.openai.com": (OPENAI, "responses"),
    "openrouter.ai": (OPENAI,),
    "api.anthropic.com": ("anthropic",),
    "generativelanguage.googleapis.com": ("gemini",),
}
"""What well-known places speak."""
_AZURE_HOST: Final = ".openai.azure.com"


@lru_cache(PLACES)
def protocol_of(model: str, api_base: str, given: str = "") -> str:
    """Returns the protocol of a model at an endpoint.

    Args:
        model: as the configuration names it.
        api_base: of its endpoint.
        given: the configuration's word; empty for none.

    >>> [protocol_of(name, "http://h") for name in ("mine", "anthropic/claude", "openai/responses/gpt")]
    ['openai', 'anthropic', 'responses']
    >>> protocol_of("ollama/llama", "http://h:11434"), protocol_of("ollama/llama", "http://h:11434/v1")
    ('ollama', 'openai')
    """
    if given:
        return given
    found = next((name for prefix, name in PREFIXES.items() if model.startswith(prefix)), OPENAI)
    is_compatible = urlsplit(api_base).path.rstrip("/").endswith(_COMPATIBLE.get(found, ()))
    return OPENAI if is_compatible else found


def served_name(model: str, protocol: str = OPENAI) -> str:
    """Returns the name of a model at its server, without what names the protocol.

    >>> served_name("openai/mine"), served_name("meta-llama/Llama-3"), served_name("ollama/llama3")
    ('mine', 'meta-llama/Llama-3', 'llama3')
    >>> served_name("anthropic/claude"), served_name("anthropic/claude", "anthropic")
    ('anthropic/claude', 'claude')
    """
    prefix = next((prefix for prefix in PREFIXES if model.startswith(prefix)), "")
    return model if prefix in OWN_NAMES and protocol != PREFIXES[prefix] else model.removeprefix(prefix)


def misfit(model: str, api_base: str, given: str = "") -> str:
    """Returns what does not fit in the protocol of a model at a well-known place, with the mend; or nothing.

    >>> misfit("claude-x", "https://api.anthropic.com/v1")
    'is called in the protocol openai, and api.anthropic.com speaks anthropic: write protocol: anthropic'
    >>> misfit("anthropic/claude-x", "https://api.anthropic.com"), misfit("mine", "http://localhost:8000/v1")
    ('', '')
    """
    protocol, spoken = protocol_of(model, api_base, given), _spoken_at(api_base)
    if not spoken or protocol in spoken:
        return ""
    place = urlsplit(api_base).netloc
    meant = " or ".join(spoken)
    return f"is called in the protocol {protocol}, and {place} speaks {meant}: write protocol: {spoken[0]}"


def _spoken_at(api_base: str) -> tuple[str, ...]:
    """What a well-known place speaks; nothing of any other."""
    parts = urlsplit(api_base)
    host, path = parts.hostname or "", parts.path.rstrip("/")
    if host.endswith(_AZURE_HOST):
        spoken: tuple[str, ...] = ("azure",)
    elif parts.port == _OLLAMA_PORT:
        spoken = ("ollama",)
    else:
        spoken = _HOSTS.get(host, ())
    is_compatible = bool(spoken) and path.endswith(_COMPATIBLE.get(spoken[0], ()))
    return (OPENAI, "responses") if is_compatible else spoken
