"""Reads the prompts of a bench: those written in it, and those in files of their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict

from producer.load.case_contract import checked, refuse_twice
from producer.load.case_files import TextFile
from producer.load.places import Path, Place
from producer.load.problems import Problems, shown
from producer.load.template_engine import TemplateProblem
from producer.load.templates import check
from producer.load.yaml_events import YamlError, line_of
from producer.load.yaml_text import parse_yaml
from shared.contracts.call_options import merge_headers
from shared.contracts.prompts import SYSTEM_ROLES, Conversation, Prompt

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


class _PromptFile(BaseModel):
    """A file of messages."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    messages: Annotated[Conversation, ...]


def read_prompts(prompts: Sequence[Prompt], place: Place, read: ReadFile) -> list[BenchPrompt]:
    """Reads the prompts of a bench, and compiles their templates.

    Args:
        prompts: as they are written.
        place: where.
        read: reads a file beside the bench.

    Raises:
        InputError: a file or a template breaks the contract, or two prompts have the same id.
    """
    problems = Problems()
    tried = [
        problems.attempt(partial(_read, prompt, place.at(at), at, read)) for at, prompt in enumerate(prompts)
    ]
    found = [prompt for prompt in tried if prompt is not None]
    problems.attempt(partial(refuse_twice, [(prompt.place, prompt.id) for prompt in found], "prompt"))
    for prompt in found:
        problems.attempt(partial(_compile, prompt))
    problems.raise_found()
    return found


def _read(prompt: Prompt, place: Place, at: int, read: ReadFile) -> BenchPrompt:
    """Reads one prompt."""
    system, turns, stem, source = prompt.system, None, f"prompt-{at + 1}", place
    if prompt.user is not None:
        turns = [{"role": "user", "content": prompt.user}]
    if prompt.file is not None:
        file = read(place.at("file"), prompt.file, PROMPT_BYTES)
        stem, source = PurePath(prompt.file).stem, Place(file.name, file.text)
        written, turns = _of_file(file, place)
        if written is not None and system is not None:
            raise place.at("system").error("the file has a system message too", "keep one of them")
        system = written if system is None else system
    headers = merge_headers(prompt.params.headers or {}, prompt.headers)
    return BenchPrompt(prompt.id or stem, source, system, turns, prompt.params.given, headers)


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
    except YamlError as error:
        raise Place(f"{file.name}:{error.line}").error(error.message, error.hint) from None
    if not isinstance(parsed, list):
        is_bench = isinstance(parsed, dict) and "test_cases" in parsed
        what = "a bench" if is_bench else shown(parsed)
        raise Place(file.name, file.text).error(f"not a list of messages ({what})", _SHAPE)

    def line(path: Path) -> str:
        return f"{file.name}:{line_of(file.text, path[1:])}"

    messages = [each.as_sent for each in checked(_PromptFile, {"messages": parsed}, line).messages]
    if messages[0]["role"] in SYSTEM_ROLES and isinstance(messages[0]["content"], str):
        return messages[0]["content"], messages[1:]
    return None, messages


def _compile(prompt: BenchPrompt) -> None:
    """Compiles the templates of a prompt, so that a mistake is found whatever the cases are."""
    texts = [(("system",), prompt.system or "")]
    texts += [(("user",), text) for turn in prompt.turns or () for text in texts_in(turn["content"]) if text]
    for path, text in texts:
        try:
            check(text)
        except TemplateProblem as problem:
            where = prompt.place.at(*path) if prompt.place.path else prompt.place
            raise where.error(
                f"{problem.what} (line {problem.line} of prompt {prompt.id!r})", problem.hint
            ) from None


def texts_in(content: Any) -> list[str]:
    """Returns the texts of a message's content.

    >>> texts_in([{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "…"}}])
    ['Hi']
    """
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]
