"""Translates providers into models: names as litellm has them, options, endpoints, code."""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from producer.convert.promptfoo.applications import bearer_variable, is_application, to_http
from producer.convert.promptfoo.programs import EXEC, command_of, program
from producer.convert.promptfoo.suite import Provider
from producer.convert.promptfoo.written import (
    WrittenApplication,
    WrittenCalling,
    WrittenDeclarations,
    WrittenForm,
    WrittenGemini,
    WrittenModelConfig,
    WrittenNamed,
    WrittenThinking,
    WrittenTool,
    WrittenToolConfig,
    first_problem,
    ignored,
    mapping,
    read,
    unknown,
)
from shared.contracts.case_config import ModelEntry
from shared.errors import WrongInput
from shared.upstream.key_variables import PROVIDERS, provider_of

API_KEY: Final = "api_key_env"
Leave = Callable[[str, str], None]
"""Lists what is left, and why."""
Note = Callable[[str], None]
"""Told of what means nothing to promptfoo."""

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
    "aimlapi": "aiml",
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
    kind, _, rest = provider.removeprefix("adaline:").partition(":")  # a gateway on the caller's machine
    prefix = kind if kind in _SAME else _RENAMED.get(kind)
    form, colon, model = rest.partition(":")
    if prefix is None or not rest or form in _NOT_MODELS:
        return None
    if kind == "openai" and form == "responses" and colon:
        return f"openai/responses/{model}"
    if kind == "bedrock" and form == "converse" and colon:
        return f"bedrock/converse/{model}"
    if form in _FORMS and colon:
        prefix = "ollama" if kind == "ollama" and form.startswith("completion") else prefix
        rest = model
    return f"{prefix}/{rest}" if prefix else rest


_PARAMS: Final = frozenset(
    {"temperature", "max_tokens", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty"}
    | {"reasoning_effort", "service_tier", "response_format", "tool_choice", "logprobs"}
)
"""Options with the same name and meaning."""
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "num_predict": "max_tokens",
    "max_new_tokens": "max_tokens",
    "max_gen_len": "max_tokens",
    "maxTokenCount": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
    "stop_sequences": "stop",
    "stop_sequence": "stop",
    "toolChoice": "tool_choice",
}
_BODY: Final = frozenset(
    {"thinking", "verbosity", "top_k", "min_p", "repetition_penalty", "modalities", "user", "audio", "n"}
    | {"search_parameters", "connectors", "prompt_truncation", "store", "metadata", "prediction", "think"}
    | {"parallel_tool_calls", "include", "instructions", "truncation", "background", "text", "logit_bias"}
    | {"prompt_cache_key", "prompt_cache_retention", "max_tool_calls", "function_call", "top_logprobs"}
    | {"previous_response_id", "safe_prompt", "repeat_penalty", "repeat_last_n", "mirostat", "mirostat_eta"}
    | {"mirostat_tau", "num_ctx", "num_gpu", "keep_alive", "format", "ignore_eos", "best_of", "cache_control"}
    | {
        "transforms",
        "route",
        "models",
        "provider",
        "data_sources",
        "dataSources",
        "safetySettings",
        "plugins",
    }
    | {"cachedContent", "guardrailIdentifier", "guardrailVersion", "additionalModelRequestFields", "usage"}
    | {
        "performanceConfig",
        "serviceTier",
        "anthropic_version",
        "web_search_options",
        "output_config",
        "safety_settings",
    }
    | {
        "output_format",
        "effort",
        "mcp_servers",
        "container",
        "context_management",
        "tool_resources",
        "moderation",
    }
)
"""Options that are keys of the request's body."""
_NOT_SENT: Final = frozenset(
    {"apiKeyRequired", "inferenceModelType", "maxConcurrency", "stream", "streaming", "omitDefaults"}
    | {"systemPrompt", "systemInstruction", "system_instruction"}  # they are prompts
    | {"maxRetries", "retries", "verbose", "debug", "profile", "useDefaultCredentials", "cacheReadCost"}
)
"""Keys that change nothing of what is sent."""
_OF_APPLICATIONS: Final = frozenset(
    {"url", "method", "body", "queryParams", "transformResponse", "responseParser", "validateStatus"}
)
"""Keys that mean something to applications over HTTP alone."""
_ENV: Final = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}|\$\{?(\w+)\}?")
_SCRIPTS: Final[Mapping[str, str]] = {".py": "python"} | dict.fromkeys(
    (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"), "javascript"
)
_EMBEDDING: Final = re.compile(r":embeddings?:")
_MILLION: Final = 1_000_000


class ScriptPath(NamedTuple):
    """Code that answers, or that makes something."""

    language: str
    """`python` or `javascript`."""
    path: str
    """The file, with a function where one is named."""


def script_of(written: str) -> ScriptPath | None:
    """Returns the code that a text names; None for anything else.

    >>> script_of("file://app.py:ask"), script_of("python:app.py"), script_of("openai:gpt-4o")
    (ScriptPath(language='python', path='app.py:ask'), ScriptPath(language='python', path='app.py'), None)
    """
    path = written.removeprefix("file://").removeprefix("python:").removeprefix("javascript:")
    found = re.fullmatch(r"([^:]+(\.\w+))(:[\w.]+)?", path)
    language = _SCRIPTS.get(found[2]) if found else None
    return ScriptPath(language, path.removeprefix("./")) if language else None


def to_model(provider: Provider, leave: Leave, note: Note) -> str | ModelEntry:
    """Translates a provider.

    Args:
        provider: the provider.
        leave: lists options that models do not have.
        note: told of options that promptfoo does not have.

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
    elif provider.id.startswith(EXEC):
        name = provider.label or provider.id
        given = program(command_of(provider.id) or [], "call_api", config)
    elif is_application(provider.id):
        name = provider.label or read(WrittenApplication, config).url or provider.id
        key = bearer_variable(provider)
        given = {**to_http(provider, leave, note), **({"api_key_env": key} if key else {})}
    elif name is None or _EMBEDDING.search(provider.id):
        raise WrongInput("no model is called like that: name one, or call it over HTTP or by code")
    else:
        endpoint = read(WrittenModelConfig, config)
        if _OF_APPLICATIONS & config.keys():
            config = _without_applications(config, note)
            endpoint = read(WrittenModelConfig, config)
        given = _endpoint(endpoint, leave) | _params(config, endpoint, leave)
        if given.get(API_KEY) == PROVIDERS.get(provider_of(name)):
            given.pop(API_KEY, None)
    if name == "echo":
        given = {}
    if not given:
        return str(name)
    try:
        return ModelEntry(name=str(name), **given)
    except ValidationError as error:
        location, message = first_problem(error)
        where = ".".join(str(part) for part in location if not str(part).startswith("function"))
        leave(f"config of provider {provider.id}", f"{where}: {message}")
        return str(name)


def name_of(model: str | ModelEntry) -> str:
    """Returns what a model is called."""
    return model if isinstance(model, str) else model.name


def free_name(called: str, label: str | None, taken: Container[str]) -> str:
    """Returns a name for a model of which there are several.

    >>> free_name("openai/gpt-4o", None, ["openai/gpt-4o"]), free_name("echo", "polite", [])
    ('openai/gpt-4o (2)', 'echo/polite')
    """
    name = called if label is None else f"{called}/{label}" if called == "echo" else label
    ends = (f"/{at}" if name == "echo" else f" ({at})" for at in count(2))
    return name if name not in taken else next(name + end for end in ends if name + end not in taken)


def named(model: str | ModelEntry, name: str, prompts: Sequence[str] | None = None) -> str | ModelEntry:
    """Returns a model with another name, and the only prompts that it is sent."""
    called = name_of(model)
    is_same = name == called or (model == "echo" and name.startswith("echo/"))
    if is_same and prompts is None:
        return name if isinstance(model, str) else model
    own = {} if isinstance(model, str) else model.model_dump(exclude_unset=True, by_alias=True)
    is_called = not is_same and (isinstance(model, str) or not (model.http or model.named))
    added: dict[str, Any] = {"name": name, **({"model": called} if is_called else {})}
    added |= {} if prompts is None else {"prompts": prompts}
    return ModelEntry(**{**own, **added})


def _endpoint(config: WrittenModelConfig, leave: Leave) -> dict[str, Any]:
    """Where a model is called, and with which key."""
    host = f"https://{str(config.api_host).removeprefix('https://')}" if config.api_host else None
    variable, key = config.api_key_envar, config.api_key
    if isinstance(key, str):
        found = _ENV.fullmatch(key.strip())
        variable = (found[1] or found[2]) if found else variable
        if not found:
            leave("apiKey", "keys are not written into benches: set the variable of the provider")
    headers = {name: env_header(str(value)) for name, value in mapping(config.headers).items()}
    headers |= {"OpenAI-Organization": str(config.organization)} if config.organization else {}
    base = config.api_base_url or config.base_url or host
    if config.api_version and base:
        base = f"{str(base).rstrip('/')}?api-version={config.api_version}"
    elif config.api_version:
        leave("apiVersion", "write the api_base of the model, with ?api-version=… at its end")
    given = {
        "api_base": base,
        "api_key_env": variable,
        "headers": headers or None,
        "prices": _prices(config),
    }
    return {name: value for name, value in given.items() if value is not None}


def _prices(config: WrittenModelConfig) -> dict[str, float] | None:
    """What a model costs; None where that is not written."""
    costs = [config.cost if each is None else each for each in (config.input_cost, config.output_cost)]
    if not all(isinstance(each, int | float) for each in costs):
        return None
    names = ("prompt_per_million", "completion_per_million")
    return {name: each * _MILLION for name, each in zip(names, costs, strict=True)}


def env_header(value: str) -> str:
    """A header's value: one that is a variable of the environment is named."""
    found = _ENV.fullmatch(value.strip())
    return f"env:{found[1] or found[2]}" if found else value


def _params(config: Mapping[str, Any], read_config: WrittenModelConfig, leave: Leave) -> dict[str, Any]:
    """Options of calls."""
    body = mapping(read_config.passthrough) | mapping(read_config.extra_body)
    parts = (read_config.generation_config, read_config.options, read_config.inference_config)
    flat = dict(config)
    for part in (*parts, read_config.interface_config):
        flat |= mapping(part)
    called = _tool_config(read_config)
    tools = [_tool(each) for each in _tools(read_config)]
    params: dict[str, Any] = {"tools": tools} if tools else {}
    if choice := _tool_choice(called):
        params["tool_choice"] = choice
    effort = mapping(read_config.reasoning)
    if effort.keys() == {"effort"}:
        params["reasoning_effort"] = next(iter(effort.values()))
    elif effort:
        body |= {"reasoning": effort}
    params |= _of_google(read(WrittenGemini, flat), body)
    for key in unknown(WrittenGemini, {each: flat[each] for each in unknown(WrittenModelConfig, flat)}):
        name, value = _OTHER_NAMES.get(key, key), flat[key]
        if name in _PARAMS:
            is_whole = isinstance(value, float) and value.is_integer() and name in {"max_tokens", "seed"}
            value = _form(value) if name == "response_format" else value
            params |= {} if value is None else {name: int(value) if is_whole else value}
        elif name in _BODY:
            body[name] = value
        elif key not in _NOT_SENT:
            leave(f"config key {key}", "models have no such option: see params.extra_body")
    params |= {"extra_body": body} if body else {}
    return {"params": params} if params else {}


def _of_google(config: WrittenGemini, body: dict[str, Any]) -> dict[str, Any]:
    """Options that Google's models have; some are keys of the body."""
    thinking = read(WrittenThinking, config.thinking)
    if thinking.budget is not None:
        body["thinking"] = {"type": "enabled", "budget_tokens": thinking.budget}
    given: dict[str, Any] = {"reasoning_effort": str(thinking.level).lower()} if thinking.level else {}
    if config.schema is not None:
        form = {"name": "answer", "schema": config.schema}
        return given | {"response_format": {"type": "json_schema", "json_schema": form}}
    if config.mime_type == "application/json":
        return given | {"response_format": {"type": "json_object"}}
    return given


def _form(written: Any) -> Any:
    """The form of an answer as chat completions have it, of that of responses.

    >>> _form({"type": "json_schema", "name": "a", "schema": True})
    {'type': 'json_schema', 'json_schema': {'name': 'a', 'schema': True}}
    """
    form = read(WrittenForm, written)
    if form.type != "json_schema" or form.json_schema is not None:
        return written
    given = {"name": form.name, "description": form.description, "strict": form.strict, "schema": form.schema}
    return {"type": form.type, "json_schema": {key: each for key, each in given.items() if each is not None}}


def _without_applications(config: Mapping[str, Any], note: Note) -> dict[str, Any]:
    """Options without those of applications, which models of promptfoo do not read."""
    for key in config:
        if key in _OF_APPLICATIONS:
            note(ignored(f"key {key} of models"))
    headers = {
        name: each
        for name, each in mapping(read(WrittenModelConfig, config).headers).items()
        if name != "Content-Type"
    }
    return {key: each for key, each in {**config, "headers": headers}.items() if key not in _OF_APPLICATIONS}


def is_option(key: str) -> bool:
    """Returns whether a key of `config` says how models are called.

    >>> is_option("temperature"), is_option("apiHost"), is_option("only")
    (True, True, False)
    """
    names = {_OTHER_NAMES.get(key, key)}
    is_read = not (unknown(WrittenModelConfig, {key: 1}) and unknown(WrittenGemini, {key: 1}))
    return is_read or bool(names & (_PARAMS | _BODY))


def tools_of(provider: Provider) -> list[Any]:
    """Returns the tools that a provider is offered."""
    return _tools(read(WrittenModelConfig, provider.config))


def _tools(config: WrittenModelConfig) -> list[Any]:
    """The tools of a provider, as they are written."""
    functions = [{"function": each} for each in config.functions or ()]
    return _declared(config.tools or _tool_config(config).tools or functions)


def _tool_config(config: WrittenModelConfig) -> WrittenToolConfig:
    """Which tools there are, and which is called, as Amazon and Google have it."""
    return read(WrittenToolConfig, mapping(config.tool_config) or mapping(config.tool_config_snake))


def _declared(tools: Any) -> list[Any]:
    """The tools that are declared one by one, or together as Google's are.

    >>> _declared({"function_declarations": [{"name": "a"}]}), _declared([{"name": "b"}])
    ([{'name': 'a'}], [{'name': 'b'}])
    """
    listed = tools if isinstance(tools, list) else [tools] if isinstance(tools, dict) else []
    found = list[Any]()
    for each in listed:
        declared = read(WrittenDeclarations, each)
        found += declared.snake or declared.camel or [each]
    return found


def _tool_choice(config: WrittenToolConfig) -> Any:
    """Which tool is called, in OpenAI's words, of Google's and Amazon's.

    >>> _tool_choice(WrittenToolConfig(choice={"tool": {"name": "a"}}))
    {'type': 'function', 'function': {'name': 'a'}}
    >>> _tool_choice(WrittenToolConfig(choice={"any": {}})), _tool_choice(WrittenToolConfig())
    ('required', None)
    """
    calling = read(WrittenCalling, config.calling or config.calling_camel)
    word = str(calling.mode or next(iter(mapping(config.choice)), "")).lower()
    if word == "tool":
        return {
            "type": "function",
            "function": {"name": read(WrittenTool, read(WrittenNamed, config.choice).tool).name},
        }
    return {"any": "required", "auto": "auto", "none": "none"}.get(word)


def _tool(tool: Any) -> Any:
    """A tool in OpenAI's form: Anthropic's and that of OpenAI's responses are flat."""
    flat = read(WrittenTool, read(WrittenTool, tool).spec or tool)
    is_other = flat.type not in {None, "function", "custom"}
    if is_other or flat.function is not None or flat.name is None:
        return {"type": "function", "function": flat.function} if flat.function else tool
    amazon = read(WrittenNamed, flat.amazon_schema).json
    schema = flat.input_schema or flat.parameters or amazon or {"type": "object"}
    described = {"description": flat.description} if flat.description else {}
    return {"type": "function", "function": {"name": flat.name, **described, "parameters": schema}}
