"""Translates providers into models: names as litellm has them, options, endpoints."""

from typing import Final

_SAME: Final = frozenset(
    {"bedrock", "cerebras", "cohere", "databricks", "deepseek", "groq", "mistral", "openrouter", "perplexity"}
    | {"replicate", "xai", "huggingface", "github", "snowflake", "sagemaker", "hyperbolic", "nscale"}
)
"""Kinds whose names are litellm's too."""
_RENAMED: Final = {
    "azureopenai": "azure",
    "azure": "azure",
    "together": "together_ai",
    "togetherai": "together_ai",
    "fireworks": "fireworks_ai",
    "google": "gemini",
    "palm": "gemini",
    "vertex": "vertex_ai",
    "ollama": "ollama_chat",
    "cloudflare-ai": "cloudflare",
    "watsonx": "watsonx",
    "ai21": "ai21",
    "anthropic": "anthropic",
    "openai": "openai",
    "litellm": "",
    "alibaba": "dashscope",
    "dashscope": "dashscope",
    "voyage": "voyage",
    "jina": "jina_ai",
    "nvidia": "nvidia_nim",
    "moonshot": "moonshot",
}
_FORMS: Final = frozenset(
    {"chat", "messages", "completion", "completions", "embedding", "embeddings"} | {"text-generation"}
)
"""What stands between a kind and a model, and says nothing."""
_NOT_MODELS: Final = frozenset(
    {"image", "realtime", "assistant", "agents", "codex-sdk", "transcription", "moderation"}
)
"""What of a provider are no models that answer texts."""


def model_name(provider: str) -> str | None:
    """Returns the name of a model by that of a provider; None where it is no model that Proctor calls.

    >>> model_name("openai:chat:gpt-4o"), model_name("google:gemini-2.5-pro"), model_name("echo")
    ('openai/gpt-4o', 'gemini/gemini-2.5-pro', 'echo')
    >>> model_name("openai:responses:gpt-5"), model_name("ollama:completion:llama3")
    ('openai/responses/gpt-5', 'ollama/llama3')
    """
    if provider == "echo":
        return provider
    kind, _, rest = provider.partition(":")
    prefix = kind if kind in _SAME else _RENAMED.get(kind)
    form, colon, model = rest.partition(":")
    if prefix is None or not rest or form in _NOT_MODELS:
        return None
    if kind == "openai" and form == "responses" and colon:
        return f"openai/responses/{model}"
    if form in _FORMS and colon:
        prefix = "ollama" if kind == "ollama" and form.startswith("completion") else prefix
        rest = model
    return f"{prefix}/{rest}" if prefix else rest
