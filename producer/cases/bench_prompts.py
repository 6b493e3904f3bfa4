"""Reads the prompts of a bench, renders templates, and makes what a model is sent for a case by a prompt."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from producer.cases.bench_cases import BenchCase
from producer.cases.bench_code import BenchCode, MakePrompt, messages_made
from producer.cases.bench_files import TextFile
from producer.load.contracts import checked
from producer.load.problems import Place, Problems, refuse_twice
from producer.load.yaml_text import parse_yaml
from producer.text import shown
from shared.contracts.call_options import Headers, Params
from shared.contracts.case_config import BenchConfig
from shared.contracts.merged_options import TEMPERATURE, merge, merge_headers, sent
from shared.contracts.prompts import SYSTEM_ROLES, Conversation, Prompt
from shared.errors import WrongInput
from shared.templates.template_rendering import check, render

PROMPT_BYTES: Final = 1 << 20
"""The largest file of a prompt."""
_LISTS: Final = (".yaml", ".yml", ".json")
_TEXTS: Final = (".txt", ".md")
_SHAPE: Final = "write a list of messages: - {role: user, content: …}"

ReadFile = Callable[[Place, str, int], TextFile]
"""Reads a file that the bench names at a place, of so many bytes at most."""


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """A prompt, ready to be rendered."""

    id: str
    """What it is called, uniquely in the run."""
    place: Place
    """Where it is written."""
    system: str | None = None
    """Template of the system message; None: the bench's is sent."""
    turns: Sequence[Mapping[str, Any]] | None = None
    """Messages with templates as content; None: the case's input is sent."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Options of calls."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the request."""
    make: MakePrompt | None = None
    """The code that makes its messages of a case's variables for a model; None: they are templates."""


class _PromptFile(BaseModel):
    """A file of messages."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    messages: Annotated[Conversation, ...]


def read_prompts(
    prompts: Sequence[Prompt], root: Place, read: ReadFile, code: BenchCode
) -> list[BenchPrompt]:
    """Reads the prompts of a bench, and compiles their templates.

    Args:
        prompts: as they are written.
        root: the bench.
        read: reads a file beside the bench.
        code: of the bench.

    Raises:
        InputError: a file or a template breaks the contract, or two prompts have the same id.
    """
    problems, place = Problems(), root.at("prompts")
    tried = [
        problems.attempt(partial(_read, prompt, place.at(at), at, read, code))
        for at, prompt in enumerate(prompts)
    ]
    found = [prompt for prompt in tried if prompt is not None]
    problems.attempt(partial(refuse_twice, [(prompt.place, prompt.id) for prompt in found], "prompt"))
    for prompt in found:
        problems.attempt(partial(_compile, prompt))
    problems.raise_found()
    return found


def _read(prompt: Prompt, place: Place, at: int, read: ReadFile, code: BenchCode) -> BenchPrompt:
    """Reads one prompt."""
    system, turns, stem, source = prompt.system, None, f"prompt-{at + 1}", place
    if prompt.user is not None:
        turns = [{"role": "user", "content": prompt.user}]
    if prompt.messages is not None:
        turns = [message.as_sent for message in prompt.messages]
    if prompt.file is not None:
        file = read(place.at("file"), prompt.file, PROMPT_BYTES)
        stem, source = PurePath(prompt.file).stem, Place(file.name, file.text)
        written, turns = _of_file(file, place)
        if written is not None and system is not None:
            raise place.at("system").error("the file has a system message too", "keep one of them")
        system = written if system is None else system
    make = None
    if prompt.plugin is not None or prompt.named is not None:
        make = code.prompt(place, prompt)
        stem = prompt.plugin or (PurePath(prompt.named.file).stem if prompt.named else "")
        if prompt.named and prompt.named.function:
            stem = prompt.named.function
    headers = merge_headers(prompt.params.headers or {}, prompt.headers)
    return BenchPrompt(prompt.id or stem, source, system, turns, prompt.params.given, headers, make)


def _of_file(file: TextFile, place: Place) -> tuple[str | None, list[dict[str, Any]]]:
    """Reads system message and other messages of a file."""
    suffix = PurePath(file.name).suffix.lower()
    if not file.text.strip():
        raise place.at("file").error(f"{file.name} is empty", _SHAPE)
    if suffix in _TEXTS:
        text = file.text.replace("\r\n", "\n").removesuffix("\n")  # of any editor: the prompt is the same
        return None, [{"role": "user", "content": text}]
    if suffix not in _LISTS:
        what = f"{shown(file.name)} is neither .yaml, .txt nor .md"
        raise place.at("file").error(what, "save it as one of them")
    try:
        parsed = parse_yaml(file.text)
    except WrongInput as error:
        raise Place(file.name, line=error.line).error(error.what, error.hint) from None
    whole = Place(file.name, file.text)
    if not isinstance(parsed, list):
        is_bench = isinstance(parsed, dict) and "test_cases" in parsed
        what = "a bench" if is_bench else shown(parsed)
        raise whole.error(f"not a list of messages ({what})", _SHAPE)

    messages = [each.as_sent for each in checked(_PromptFile, {"messages": parsed}, whole, below=1).messages]
    if messages[0]["role"] in SYSTEM_ROLES and isinstance(messages[0]["content"], str):
        return messages[0]["content"], messages[1:]
    return None, messages


def _compile(prompt: BenchPrompt) -> None:
    """Compiles the templates of a prompt, so that a mistake is found whatever the cases are."""
    texts = [(("system",), prompt.system or "")]
    texts += [(("user",), text) for text in texts_of(prompt.turns or ()) if text]
    for path, text in texts:
        try:
            check(text)
        except WrongInput as problem:
            where = prompt.place.at(*path) if prompt.place.path else prompt.place
            raise where.error(
                f"{problem.what} (line {problem.line} of prompt {prompt.id!r})", problem.hint
            ) from None


def texts_of(turns: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the texts of messages."""
    return [text for turn in turns for text in texts_in(turn["content"])]


def texts_in(content: Any) -> list[str]:
    """Returns the texts of a message's content.

    >>> texts_in([{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "…"}}])
    ['Hi']
    """
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]


class SentMessages(NamedTuple):
    """What is sent."""

    input: str
    """The text of the last message."""
    system: str
    """The system message; empty: none, or it is among the messages."""
    messages: Sequence[Mapping[str, Any]] | None = None
    """All but the system message; None: only `input`, as the user's message."""


def conversation(
    case: BenchCase,
    values: Mapping[str, Any],
    prompt: BenchPrompt | None,
    system_prompt: str,
    *,
    provider: Mapping[str, str],
) -> SentMessages:
    """Renders what is sent.

    Args:
        case: the case.
        values: its variables.
        prompt: the templates; None: the case's input as it is.
        system_prompt: the bench's.
        provider: the model that it is sent to, `id` and `label`, for code that makes prompts.

    Raises:
        InputError: a template cannot be rendered with the case's variables, or the case has no input.
    """
    try:
        return _conversation(case, values, prompt, system_prompt, provider)
    except WrongInput as problem:
        by = f"prompt {prompt.id!r}: " if prompt else ""
        raise case.place.error(f"{by}{problem.what}", problem.hint) from None


def _conversation(
    case: BenchCase,
    values: Mapping[str, Any],
    prompt: BenchPrompt | None,
    system_prompt: str,
    provider: Mapping[str, str],
) -> SentMessages:
    if case.messages is not None:
        turns = case.messages
    elif prompt is not None and prompt.make is not None:
        turns = _made(prompt.make({"vars": dict(values), "provider": provider}, case.place), case.place)
    elif prompt is not None and prompt.turns is not None:
        turns = [{**turn, "content": _rendered(turn["content"], values)} for turn in prompt.turns]
    elif case.input is not None:
        return SentMessages(case.input, _system(case, values, prompt, system_prompt))
    else:
        why = f"prompt {prompt.id!r} has no user message of its own" if prompt else "this key is required"
        raise case.place.at("input").error("is missing", why)
    is_whole = case.messages is not None or (prompt is not None and prompt.make is not None)
    has_own = is_whole and any(turn["role"] in SYSTEM_ROLES for turn in turns)
    system = "" if has_own else _system(case, values, prompt, system_prompt)
    text = "\n".join(texts_of(turns[-1:]))
    is_plain = len(turns) == 1 and turns[0].keys() == {"role", "content"} and turns[0]["content"] == text
    return SentMessages(text, system, None if is_plain and turns[0]["role"] == "user" else turns)


def _made(made: Any, place: Place) -> list[dict[str, Any]]:
    """Checks the messages that a function has made."""
    messages = messages_made(made, place)
    found = checked(_PromptFile, {"messages": messages}, Place(str(place), case=place.case))
    return [each.as_sent for each in found.messages]


def _system(
    case: BenchCase, values: Mapping[str, Any], prompt: BenchPrompt | None, system_prompt: str
) -> str:
    """Returns the system message: the case's, else the prompt's, else the bench's."""
    if case.system_prompt is not None:
        return case.system_prompt
    if prompt is not None and prompt.system is not None:
        return render(prompt.system, values)
    return system_prompt


def _rendered(content: Any, values: Mapping[str, Any]) -> Any:
    """Renders a text, or the texts among the parts of a message."""
    if isinstance(content, list):
        return [
            {**part, "text": render(part["text"], values)} if isinstance(part.get("text"), str) else part
            for part in content
        ]
    return render(content, values) if isinstance(content, str) else content


def merged_calls(
    config: BenchConfig,
    models: Sequence[str],
    prompts: Sequence[BenchPrompt],
    *,
    fixed_temperature: bool,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Merges `params` and `headers`: the bench's, above them the model's, above them the prompt's.

    Args:
        config: the bench.
        models: the models under test.
        prompts: its prompts; none: cases are sent as they are.
        fixed_temperature: whether the command line says the temperature, which goes before all others.

    Returns:
        By model and prompt id (`""` without prompts); what has no options is left out.
    """
    above = {prompt.id: [(prompt.params, prompt.headers)] for prompt in prompts} or {"": []}
    found = dict[str, dict[str, dict[str, Any]]]()
    for model in models:
        own = config.config_of(model)
        levels = [(each.params.given, headers_of(each.params, each.headers)) for each in (config, own)]
        for name, of_prompt in above.items():
            call = _call([*levels, *of_prompt])
            if fixed_temperature:
                call["params"].pop(TEMPERATURE, None)
            if any(call.values()):
                found.setdefault(model, {})[name] = {key: value for key, value in call.items() if value}
    return found


def _call(levels: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]) -> dict[str, dict[str, Any]]:
    """Merges all levels."""
    params = sent(merge(*(params for params, _ in levels)))
    return {"params": params, "headers": merge_headers(*(headers for _, headers in levels))}


def headers_of(params: Params, headers: Headers) -> dict[str, str]:
    """The headers that are written inside of `params`, or beside them."""
    return merge_headers(params.headers or {}, headers)
