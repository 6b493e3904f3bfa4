"""The keys of promptfoo's configurations, as types; values of any form are read later."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from pydantic import ValidationError

W = TypeVar("W", bound=msgspec.Struct)


class WrittenSuite(msgspec.Struct, frozen=True, rename="camel"):
    """The first level of a configuration."""

    description: Any = None
    providers: Any = None
    targets: Any = None
    prompts: Any = None
    tests: Any = None
    scenarios: Any = None
    default_test: Any = None
    env: Any = None
    evaluate_options: Any = None
    command_line_options: Any = None
    nunjucks_filters: Any = None
    assertion_templates: Any = None


class WrittenRunOptions(msgspec.Struct, frozen=True, rename="camel"):
    """`evaluateOptions`."""

    repeat: Any = None
    max_concurrency: Any = None
    cache: Any = None
    timeout_ms: Any = None
    delay: Any = None
    show_progress_bar: Any = None
    max_eval_time_ms: Any = None
    generate_suggestions: Any = None
    interactive_providers: Any = None
    event_source: Any = None
    silent: Any = None
    env_path: Any = None
    env_file: Any = None
    verbose: Any = None
    table: Any = None
    share: Any = None
    output: Any = None
    write: Any = None
    progress_bar: Any = None
    grader: Any = None
    filter_pattern: Any = None


class WrittenProvider(msgspec.Struct, frozen=True):
    """A provider that is a mapping."""

    id: Any = None
    label: Any = None
    config: Any = None
    prompts: Any = None
    delay: Any = None
    transform: Any = None
    env: Any = None


class WrittenGrader(msgspec.Struct, frozen=True):
    """A grader by what it is used for."""

    id: Any = None
    text: Any = None
    embedding: Any = None


class WrittenPrompt(msgspec.Struct, frozen=True):
    """A prompt that is a mapping."""

    raw: Any = None
    id: Any = None
    label: Any = None
    config: Any = None


class WrittenCsvPrompt(msgspec.Struct, frozen=True):
    """A prompt of a table."""

    prompt: Any = None
    label: Any = None


class WrittenMessage(msgspec.Struct, frozen=True):
    """A message of a conversation, or a part of one."""

    content: Any = None
    text: Any = None
    value: Any = None


class WrittenAssertion(msgspec.Struct, frozen=True, rename="camel"):
    """An assertion."""

    type: Any = None
    value: Any = None
    threshold: Any = None
    weight: Any = None
    metric: Any = None
    provider: Any = None
    rubric_prompt: Any = None
    transform: Any = None
    context_transform: Any = None
    config: Any = None
    inner: Any = msgspec.field(name="assert", default=None)


class WrittenTest(msgspec.Struct, frozen=True, rename="camel"):
    """A test, or the defaults of all."""

    id: Any = None
    description: Any = None
    vars: Any = None
    assertions: Any = msgspec.field(name="assert", default=None)
    threshold: Any = None
    options: Any = None
    metadata: Any = None
    provider: Any = None
    providers: Any = None
    prompts: Any = None
    provider_output: Any = None
    config: Any = None
    assert_scoring_function: Any = None
    path: Any = None


class WrittenRow(msgspec.Struct, frozen=True, rename="camel"):
    """The columns of a table of tests that begin with two underscores, but for those with several names."""

    description: str | None = None
    provider_output: str | None = None
    metric: str | None = None
    threshold: str | None = None
    prefix: str | None = None
    suffix: str | None = None


class WrittenTestOptions(msgspec.Struct, frozen=True, rename="camel"):
    """`options` of a test."""

    prefix: Any = None
    suffix: Any = None
    provider: Any = None
    rubric_prompt: Any = None
    transform: Any = None
    postprocess: Any = None
    disable_default_asserts: Any = None
    disable_var_expansion: Any = None
    repeat: Any = None


LEFT_OPTIONS: Final[Mapping[str, str]] = {
    "storeOutputAs": "cases do not see answers to others: write a conversation as `messages`",
    "transformVars": "variables are not changed by code: write them as prompts need them",
}
"""Options of tests without a counterpart, and why."""


class WrittenScenario(msgspec.Struct, frozen=True):
    """A scenario."""

    config: Any = None
    tests: Any = None


class WrittenModelConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Keys of a provider's `config` that say where it is called, and what is read in a form of its own."""

    api_key: Any = None
    api_key_envar: Any = None
    api_base_url: Any = None
    api_host: Any = None
    api_version: Any = None
    base_url: Any = None
    headers: Any = None
    organization: Any = None
    cost: Any = None
    input_cost: Any = None
    output_cost: Any = None
    show_thinking: Any = None
    base_path: Any = None
    region: Any = None
    generation_config: Any = None
    inference_config: Any = None
    interface_config: Any = None
    tool_config: Any = None
    tool_config_snake: Any = msgspec.field(name="tool_config", default=None)
    options: Any = None
    passthrough: Any = None
    extra_body: Any = msgspec.field(name="extra_body", default=None)
    tools: Any = None
    functions: Any = None
    reasoning: Any = None


class WrittenSystem(msgspec.Struct, frozen=True):
    """The system message of a provider, under its names."""

    text: Any = msgspec.field(name="systemPrompt", default=None)
    instruction: Any = msgspec.field(name="systemInstruction", default=None)
    snake: Any = msgspec.field(name="system_instruction", default=None)
    generation: Any = msgspec.field(name="generationConfig", default=None)
    parts: Any = None


class WrittenGemini(msgspec.Struct, frozen=True):
    """Keys of `config` that only Google's models have."""

    mime_type: Any = msgspec.field(name="response_mime_type", default=None)
    schema: Any = msgspec.field(name="response_schema", default=None)
    thinking: Any = msgspec.field(name="thinkingConfig", default=None)


class WrittenThinking(msgspec.Struct, frozen=True):
    """How much a model of Google's thinks."""

    level: Any = msgspec.field(name="thinkingLevel", default=None)
    budget: Any = msgspec.field(name="thinkingBudget", default=None)


class WrittenApplication(msgspec.Struct, frozen=True, rename="camel"):
    """`config` of a provider that is called over HTTP."""

    url: Any = None
    method: Any = None
    headers: Any = None
    body: Any = None
    query_params: Any = None
    transform_response: Any = None
    response_parser: Any = None
    request: Any = None


class WrittenElements(msgspec.Struct, frozen=True, rename="camel"):
    """What XML has to have."""

    required_elements: Any = None


class WrittenToolConfig(msgspec.Struct, frozen=True):
    """Which tools Amazon's models have, and which Amazon's and Google's call."""

    tools: Any = None
    choice: Any = msgspec.field(name="toolChoice", default=None)
    calling: Any = msgspec.field(name="function_calling_config", default=None)
    calling_camel: Any = msgspec.field(name="functionCallingConfig", default=None)


class WrittenCalling(msgspec.Struct, frozen=True):
    """How Google's models call tools."""

    mode: Any = None


class WrittenDeclarations(msgspec.Struct, frozen=True):
    """Tools that are declared together."""

    snake: Any = msgspec.field(name="function_declarations", default=None)
    camel: Any = msgspec.field(name="functionDeclarations", default=None)


class WrittenNamed(msgspec.Struct, frozen=True):
    """Which tool Amazon's models call, and the schema of one."""

    tool: Any = None
    json: Any = None


class WrittenForm(msgspec.Struct, frozen=True):
    """The form of an answer, as OpenAI's chat completions have it and as its responses do."""

    type: Any = None
    json_schema: Any = None
    name: Any = None
    schema: Any = None
    strict: Any = None
    description: Any = None


class WrittenTool(msgspec.Struct, frozen=True):
    """A tool in any provider's form."""

    type: Any = None
    function: Any = None
    name: Any = None
    description: Any = None
    parameters: Any = None
    input_schema: Any = None
    spec: Any = msgspec.field(name="toolSpec", default=None)
    amazon_schema: Any = msgspec.field(name="inputSchema", default=None)


def mapping(value: Any) -> dict[str, Any]:
    """Returns a mapping; an empty one of anything else.

    >>> mapping({"a": 1}), mapping("a")
    ({'a': 1}, {})
    """
    return dict(value) if isinstance(value, dict) else {}


def read(form: type[W], value: Any) -> W:
    """Reads a mapping; keys that its form does not have are left out.

    >>> read(WrittenPrompt, {"raw": "Hi", "other": 1}).raw
    'Hi'
    """
    return msgspec.convert(mapping(value), form)


def unknown(form: type[msgspec.Struct], value: Mapping[str, Any]) -> list[str]:
    """Returns the keys of a mapping that its form does not have.

    >>> unknown(WrittenPrompt, {"raw": "Hi", "other": 1})
    ['other']
    """
    known = {field.encode_name for field in msgspec.structs.fields(form)}
    return [key for key in value if key not in known]


def number(value: Any) -> float | None:
    """Returns a number, also one that is written as a text; None of anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def ignored(what: str) -> str:
    """Says that something means nothing to promptfoo."""
    return f"promptfoo has no {what}, and ignores it"


def first_problem(error: ValidationError) -> tuple[tuple[str | int, ...], str]:
    """Returns the place and the words of the first thing that a contract refuses."""
    first = error.errors(include_url=False, include_input=False)[0]
    return first["loc"], first["msg"].removeprefix("Value error, ")
