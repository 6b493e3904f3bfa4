"""Translates prompts: texts, conversations in JSON or YAML, and code that writes them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from producer.convert.nunjucks import KnownVariables, is_nunjucks, raw, to_jinja
from producer.convert.promptfoo.programs import command_of, program
from producer.convert.promptfoo.providers import script_of
from producer.convert.promptfoo.suite import PromptTemplate
from producer.convert.promptfoo.written import WrittenMessage, first_problem, read
from producer.load.yaml_text import parse_yaml
from shared.contracts.prompts import Message, Prompt
from shared.errors import WrongInput

ID_CHARS: Final = 60
"""The longest label that becomes an id."""
_YAML_CHAT: Final = re.compile(r"\s*- role:")
_DUMPED: Final = re.compile(
    r"\{\{-?\s*(?:messages|chat|conversation|history|prompt)\s*\|\s*(?:dump|tojson)[^}]*\}\}"
)
"""A prompt that is a variable with messages, by the names that they have."""
_IMAGE: Final = re.compile(r"(?:data:image/[\w+]+;base64,)?\{\{\s*(\w+)\s*\}\}")


class Way(NamedTuple):
    """How a case is put to models."""

    messages: Sequence[Any] | None = None
    """Its own messages; None: what prompts say."""
    prompts: Sequence[str] | None = None
    """The only prompts; None: all."""

    def narrowed(self, chosen: Sequence[str] | None) -> Sequence[str] | None:
        """Returns what of the prompts that a test has chosen, or of all, is among these.

        >>> Way((), ("a",)).narrowed(("a", "b")), Way((), ("a",)).narrowed(("b",)), Way().narrowed(None)
        (('a',), (), None)
        """
        if self.prompts is None or chosen is None:
            return self.prompts if chosen is None else chosen
        return tuple(each for each in chosen if each in self.prompts)


USUAL: Final = Way()
"""By all prompts."""


@dataclass(slots=True)
class PromptWriter:
    """Translates the prompts of a configuration.

    Args:
        variables: what they may name.
        before: what stands before each text, and behind it.
        behind: what stands behind it.
    """

    variables: KnownVariables
    before: str = ""
    behind: str = ""
    taken: set[str] = field(default_factory=set)
    """Ids of the prompts that were translated."""
    images: set[str] = field(default_factory=set)
    """Variables that are images in a message."""
    note: Callable[[str], None] | None = None
    """Told of what is different in the prompt that is translated."""

    def prompt(self, template: PromptTemplate, note: Callable[[str], None]) -> Prompt:
        """Translates a prompt.

        Args:
            template: the prompt.
            note: told of what is different in Jinja.

        Raises:
            WrongInput: it has no counterpart.
        """
        self.note = note
        label = template.label or ""
        given: dict[str, Any] = {}
        if 0 < len(label) <= ID_CHARS and "\n" not in label and label not in self.taken:
            given |= {"id": label}
        try:
            found = Prompt(**given, **self._content(template))
        except ValidationError as error:
            raise WrongInput(first_problem(error)[1]) from None
        self.taken |= {label}
        return found

    def _content(self, template: PromptTemplate) -> dict[str, Any]:
        """What a prompt sends, with the keys of a prompt."""
        if template.is_code:
            return _code(template)
        written = messages_in(template.raw) if not (self.before or self.behind) else None
        if written is None:
            return {"user": self._text(template.raw)}
        messages = [self._message(each) for each in written]
        texts = [
            each.content if isinstance(each.content, str) and each.content.strip() else None
            for each in messages
        ]
        given: dict[str, Any] = {}
        if messages[0].role == "system" and texts[0] and messages[1:]:
            given, messages, texts = {"system": texts[0]}, messages[1:], texts[1:]
        is_text = len(messages) == 1 and messages[0].role == "user" and texts[0]
        return given | ({"user": texts[0]} if is_text else {"messages": messages})

    def _text(self, raw: str) -> str:
        """A text; one that is JSON is written again, as promptfoo does."""
        try:
            parsed = json.loads(raw)
        except ValueError:
            whole = f"{self.before}{raw}{self.behind}"
            return self._jinja(whole)
        return self._json(parsed, 0)

    def _jinja(self, text: str) -> str:
        """A template in Jinja; one without a counterpart stays a text."""
        if not is_nunjucks(text):
            return text
        try:
            return to_jinja(text, self.variables, self.note)
        except WrongInput as error:
            if self.note:
                self.note(f"it stays a text: {error.args[0]}")
            return raw(text)

    def _json(self, value: Any, indent: int) -> str:
        """JSON with templates in its texts, as JavaScript indents it."""
        pad, end = "  " * (indent + 1), "  " * indent
        if isinstance(value, dict) and value:
            lines = [f"{pad}{_plain(key)}: {self._json(each, indent + 1)}" for key, each in value.items()]
            return "{\n" + ",\n".join(lines) + f"\n{end}}}"
        if isinstance(value, list) and value:
            return "[\n" + ",\n".join(f"{pad}{self._json(each, indent + 1)}" for each in value) + f"\n{end}]"
        if not isinstance(value, str) or not is_nunjucks(value):
            return _plain(value)
        text = self._jinja(value)
        whole = re.fullmatch(r"\{\{\s*([\w.]+)\s*\}\}", text)
        is_text = whole is not None and self.variables.kinds(tuple(whole[1].split("."))) == {"text"}
        return f"{{{{ {whole[1]} | string | dump }}}}" if whole and is_text else _filtered(text)

    def _message(self, written: Mapping[str, Any]) -> Message:
        """A message of a conversation."""
        content = read(WrittenMessage, written).content
        if isinstance(content, str):
            content = self._jinja(content)
        elif isinstance(content, list):
            parts = [part for each in content if (part := self._part(each)) is not None]
            texts = [read(WrittenMessage, each).text for each in parts]
            content = texts[0] if len(texts) == 1 and texts[0] is not None else parts
        return Message(**{**written, "content": content})

    def _part(self, part: Any) -> Any:
        """A part of a message; None for an image, which is a file of the case."""
        given = read(WrittenMessage, part)
        text = given.value if given.text is None else given.text
        if isinstance(text, str):
            return {"type": "text", "text": self._jinja(text)}
        source = json.dumps(part)
        found = {each[1] for each in _IMAGE.finditer(source)}
        if found and all(self.variables.kinds((name,)) == {"file"} for name in found):
            self.images |= found
            return None
        if is_nunjucks(source):
            raise WrongInput("a part of a message that is no text has a template")
        return part


def is_conversation(template: PromptTemplate) -> bool:
    """Returns whether a prompt is a list of messages."""
    return not template.is_code and (messages_in(template.raw) is not None or late_messages(template))


def late_messages(template: PromptTemplate) -> bool:
    """Returns whether a prompt is a conversation only once it is rendered."""
    raw = template.raw.strip()
    is_list = raw.startswith("[") and '"role"' in raw and is_nunjucks(raw)
    is_list = is_list or _DUMPED.fullmatch(raw) is not None
    return not template.is_code and is_list and messages_in(template.raw) is None


def parsed_messages(text: str) -> list[dict[str, Any]]:
    """Reads the messages of a rendered prompt; a text that is no list of them is the user's.

    >>> parsed_messages("Hi")
    [{'role': 'user', 'content': 'Hi'}]
    """
    return [dict(each) for each in messages_in(text) or [{"role": "user", "content": text}]]


def _code(template: PromptTemplate) -> dict[str, Any]:
    """The code that writes a prompt."""
    command, script = command_of(template.raw), script_of(template.raw)
    if command:
        return program(command, "create_prompt", template.config)
    if script is None:
        raise WrongInput("it is a program: write it as a function of Python or JavaScript")
    given: dict[str, Any] = {script.language: script.path}
    return given | ({"config": dict(template.config)} if template.config else {})


def messages_in(raw: str) -> Sequence[Mapping[str, Any]] | None:
    """The messages of a prompt that is a conversation; None for one that is a text."""
    try:
        parsed = parse_yaml(raw) if _YAML_CHAT.match(raw) else json.loads(raw)
    except (ValueError, RecursionError):
        return None
    is_chat = (
        isinstance(parsed, list)
        and parsed
        and all(isinstance(each, dict) and "role" in each for each in parsed)
    )
    return parsed if is_chat else None


def _plain(value: Any) -> str:
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    text = json.dumps(number, ensure_ascii=False)
    return text if not is_nunjucks(text) else f"{{% raw %}}{text}{{% endraw %}}"


def _filtered(text: str) -> str:
    """A template whose result is written as JSON."""
    return f"{{% filter dump %}}{text}{{% endfilter %}}"
