"""Translates providers into models: names as litellm has them, options, endpoints, code."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from producer.convert.promptfoo.applications import is_application, to_http
from producer.convert.promptfoo.suite import Provider
from shared.contracts.case_config import ModelEntry
from shared.errors import WrongInput

Leave = Callable[[str, str], None]
"""Lists what is left, and why."""

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


_PARAMS: Final = frozenset(
    {"temperature", "max_tokens", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty"}
    | {"reasoning_effort", "service_tier", "response_format", "tools", "tool_choice", "logprobs"}
)
"""Options with the same name and meaning."""
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "num_predict": "max_tokens",
    "max_new_tokens": "max_tokens",
    "maxTokenCount": "max_tokens",
    "topP": "top_p",
    "stopSequences": "stop",
    "stop_sequences": "stop",
    "stop_sequence": "stop",
    "toolChoice": "tool_choice",
}
_READ: Final = frozenset(
    {"apiKey", "apiKeyEnvar", "apiBaseUrl", "apiHost", "baseUrl", "headers", "organization", "cost"}
    | {"inputCost", "outputCost", "showThinking", "basePath", "region"}
    | {"generationConfig", "options", "inferenceConfig", "passthrough", "extra_body"}
)
"""Options that are read elsewhere, or change no answer."""
_BODY: Final = frozenset(
    {"thinking", "verbosity", "top_k", "min_p", "repetition_penalty", "modalities", "user"}
)
"""Options that are keys of the request's body."""
_ENV: Final = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}|\$\{?(\w+)\}?")
_SCRIPTS: Final[Mapping[str, str]] = {".py": "python"} | dict.fromkeys((".js", ".mjs", ".cjs"), "javascript")
_MILLION: Final = 1_000_000


class Script(NamedTuple):
    """Code that answers, or that makes something."""

    language: str
    """`python` or `javascript`."""
    path: str
    """The file, with a function where one is named."""


def script_of(written: str) -> Script | None:
    """Returns the code that a text names; None for anything else.

    >>> script_of("file://app.py:ask"), script_of("python:app.py"), script_of("openai:gpt-4o")
    (Script(language='python', path='app.py:ask'), Script(language='python', path='app.py'), None)
    """
    path = written.removeprefix("file://").removeprefix("python:").removeprefix("javascript:")
    found = re.fullmatch(r"([^:]+(\.\w+))(:\w+)?", path)
    language = _SCRIPTS.get(found[2]) if found else None
    return Script(language, path.removeprefix("./")) if language else None


def to_model(provider: Provider, leave: Leave) -> str | ModelEntry:
    """Translates a provider.

    Args:
        provider: the provider.
        leave: lists options that models do not have.

    Raises:
        WrongInput: no model is like it.
    """
    config = dict(provider.config)
    given: dict[str, Any] = {}
    script = script_of(provider.id)
    name = model_name(provider.id)
    if script is not None:
        name = provider.label or script.path.partition(":")[0].rpartition("/")[2].partition(".")[0]
        given = {script.language: script.path, **({"config": config} if config else {})}
    elif is_application(provider.id):
        name = provider.label or config.get("url", provider.id)
        given = {"http": to_http(provider, leave)}
    elif name is None:
        raise WrongInput("no model is called like that: name one, or call it over HTTP or by code")
    else:
        given = _endpoint(config, leave) | _params(config, leave)
    if name == "echo":
        given = {}
    if not given:
        return str(name)
    try:
        return ModelEntry(name=str(name), **given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"] if not str(part).startswith("function"))
        leave(f"config of provider {provider.id}", f"{where}: {first['msg'].removeprefix('Value error, ')}")
        return str(name)


def _endpoint(config: Mapping[str, Any], leave: Leave) -> dict[str, Any]:
    """Where a model is called, and with which key."""
    given: dict[str, Any] = {}
    host = config.get("apiHost")
    base = config.get("apiBaseUrl") or config.get("baseUrl") or (f"https://{host}" if host else None)
    if base:
        given["api_base"] = base
    variable = config.get("apiKeyEnvar")
    key = config.get("apiKey")
    if isinstance(key, str):
        found = _ENV.fullmatch(key.strip())
        variable = (found[1] or found[2]) if found else variable
        if not found:
            leave("apiKey", "keys are not written into benches: set the variable of the provider")
    if variable:
        given["api_key_env"] = variable
    headers = {name: env_header(str(value)) for name, value in (config.get("headers") or {}).items()}
    if config.get("organization"):
        headers["OpenAI-Organization"] = str(config["organization"])
    if headers:
        given["headers"] = headers
    costs = config.get("inputCost", config.get("cost")), config.get("outputCost", config.get("cost"))
    if all(isinstance(each, int | float) for each in costs):
        prompt, completion = costs
        given["prices"] = {
            "prompt_per_million": prompt * _MILLION,
            "completion_per_million": completion * _MILLION,
        }
    return given


def env_header(value: str) -> str:
    """A header's value: one that is a variable of the environment is named."""
    found = _ENV.fullmatch(value.strip())
    return f"env:{found[1] or found[2]}" if found else value


def _params(config: Mapping[str, Any], leave: Leave) -> dict[str, Any]:
    """Options of calls."""
    params: dict[str, Any] = {}
    body: dict[str, Any] = dict(config.get("passthrough") or config.get("extra_body") or {})
    flat = {
        **config,
        **_part(config, "generationConfig"),
        **_part(config, "options"),
        **_part(config, "inferenceConfig"),
    }
    for key, value in flat.items():
        name = _OTHER_NAMES.get(key, key)
        if value is None or key in _READ:
            continue
        if name in _PARAMS:
            params[name] = _param(name, value)
        elif key == "reasoning" and isinstance(value, dict) and value.keys() == {"effort"}:
            params["reasoning_effort"] = value["effort"]
        elif key in _BODY or key == "reasoning":
            body[key] = value
        elif key == "functions" and isinstance(value, list):
            params["tools"] = [{"type": "function", "function": each} for each in value]
        else:
            leave(f"config key {key}", "models have no such option: see params.extra_body")
    if body:
        params["extra_body"] = body
    return {"params": params} if params else {}


def _part(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = config.get(key)
    return value if isinstance(value, dict) else {}


def _param(name: str, value: Any) -> Any:
    """The value of an option."""
    if name == "tools" and isinstance(value, list):
        return [_tool(each) for each in value]
    if name in {"max_tokens", "seed"} and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _tool(tool: Any) -> Any:
    """A tool in OpenAI's form: Anthropic's and that of OpenAI's responses are flat."""
    if not isinstance(tool, dict) or "function" in tool or "name" not in tool:
        return tool
    schema = tool.get("input_schema", tool.get("parameters", {"type": "object"}))
    described = {"description": tool["description"]} if tool.get("description") else {}
    return {"type": "function", "function": {"name": tool["name"], **described, "parameters": schema}}
