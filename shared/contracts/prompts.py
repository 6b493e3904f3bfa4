"""Prompts and messages as people write them: templates of what models are sent, and conversations."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from shared.contracts.call_options import Headers, Params
from shared.contracts.case_vocabulary import MAX_INPUT_CHARS
from shared.contracts.cases import MAX_ID_CHARS, JsonObject, Text, is_json
from shared.contracts.code_config import Code

SYSTEM_ROLES: Final = ("system", "developer")
"""Roles of messages that say how to answer."""
LAST_ROLES: Final = ("user", "tool")
"""Roles that a conversation can end with: the next word is the model's."""
MOST_MESSAGES: Final = 1_000
"""Messages of a conversation."""

_FORM: Final = "write it as a text, or as a list of parts in OpenAI's form"


def _content(value: Any) -> Any:
    """Refuses what is neither a text, nor parts, nor nothing."""
    if value is None or isinstance(value, str):
        return is_json(value)
    if isinstance(value, list) and all(isinstance(part, dict) and "type" in part for part in value):
        return is_json(value)
    raise PydanticCustomError("content", "{text}", {"text": f"no content of a message: {_FORM}"})


class Message(BaseModel):
    """One message of a conversation, in the protocol's form."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    role: Literal["system", "developer", "user", "assistant", "tool"]
    """Its author."""
    content: Annotated[Any, AfterValidator(_content)] = None
    """Its text or parts; null only beside `tool_calls`."""
    name: Text | None = None
    """Name of the speaker."""
    tool_calls: list[JsonObject] | None = None
    """What the assistant calls."""
    tool_call_id: Text | None = None
    """Which call a tool answers."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        """Refuses a message without content."""
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            raise PydanticCustomError("content", "a message without content: write content")
        return self

    @property
    def as_sent(self) -> dict[str, Any]:
        """The message as the protocol has it.

        >>> Message(role="user", content="Hi").as_sent
        {'role': 'user', 'content': 'Hi'}
        """
        others = {key: getattr(self, key) for key in ("name", "tool_calls", "tool_call_id")}
        given = {key: value for key, value in others.items() if value is not None}
        return {"role": self.role, "content": self.content, **given}


def _conversation(messages: list[Message]) -> list[Message]:
    """Refuses a conversation in which it is not the model's turn."""
    if messages[-1].role not in LAST_ROLES:
        text = (
            f"ends with a message of the role {messages[-1].role}: the last message is the user's or a tool's"
        )
        raise PydanticCustomError("conversation", "{text}", {"text": text})
    return messages


Conversation = Annotated[
    list[Message], Field(min_length=1, max_length=MOST_MESSAGES), AfterValidator(_conversation)
]


def _prompt(value: Any) -> Any:
    """A bare text is the user message."""
    return {"user": value} if isinstance(value, str) else value


class Prompt(Code):
    """A template of what models are sent, or code that makes it."""

    id: Annotated[Text, Field(max_length=MAX_ID_CHARS)] | None = None
    """What it is called; null: the stem of its file, else its position."""
    system: Text | None = None
    """The system message; null: the bench's."""
    user: Annotated[Text, Field(max_length=MAX_INPUT_CHARS)] | None = None
    """The user message; null: a case's `input`."""
    messages: Conversation | None = None
    """A conversation whose texts are templates, in place of `user`."""
    file: Text | None = None
    """Where it is written: `.yaml` has a list of messages, `.txt` and `.md` the user message."""
    params: Params = Params()
    """Options of calls; they go before those of bench and model."""
    headers: Headers = Field({})
    """Headers of the request."""

    @model_validator(mode="after")
    def _is_written_once(self) -> Self:
        """Refuses a prompt that is written here and in a file, or nowhere."""
        given = [key for key in ("user", "messages", "file") if getattr(self, key) is not None]
        if len(given) > 1:
            text = f"{' and '.join(given)} both stand here: keep one of them"
            raise PydanticCustomError("prompt", "{text}", {"text": text})
        code = self.python or self.javascript or self.plugin
        if code is not None and given:
            text = f"code makes the prompt, and {given[0]} is here too"
            raise PydanticCustomError("prompt", "{text}", {"text": text})
        if not given and self.system is None and code is None:
            raise PydanticCustomError("prompt", "nothing to send: write user, messages, system or file")
        return self


Prompts = Annotated[
    list[Annotated[Prompt, BeforeValidator(_prompt, json_schema_input_type=str | Prompt)]],
    Field(min_length=1, max_length=1_000),
]
