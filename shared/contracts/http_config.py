"""The contract of the mapping `http` of a model, and `api` of queries.

>>> mapping = HttpConfig.model_validate(
...     {"url": "http://h/chat", "body": {"q": "{{ input }}"}, "answer": "/text"}
... ).mapping
>>> mapping.request.url, mapping.answer
('http://h/chat', {'text': '/text'})
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from shared.contracts.call_options import check_headers
from shared.contracts.cases import Encodable, Text, is_json
from shared.contracts.transform_config import Pointer, template_text
from shared.scrubbing import is_secret_field
from shared.templates.template_texts import MARKS
from shared.upstream.addresses import NO_ADDRESS, address_problem
from shared.upstream.http_mapping import HttpMapping, HttpRequest, HttpSession

TEXT: Final = "text"
"""What `answer` is where it is a pointer alone."""
MOST_TAKEN: Final = 32
"""Values of a session."""
_ENV: Final = "env:TEMPLATE"


def _url(text: str) -> str:
    """Refuses an address that cannot be called, or contains a secret; templates stand behind the host."""
    address, fixed = HttpRequest(template_text(text)).address, text.partition("{{")[0]
    problem = address_problem(address)
    is_whole = fixed == text or "/" in fixed.partition("://")[2]
    if problem == NO_ADDRESS or not is_whole or any(mark in address for mark in MARKS):
        raise PydanticCustomError("url", "not a web address: write http://host:port/path")
    if problem:
        text = "{problem}: send it as a header, {NAME: env:VARIABLE}"
        raise PydanticCustomError("url_secret", text.replace("{NAME", "{{NAME"), {"problem": problem})
    return text


def _headers(written: dict[str, str]) -> dict[str, str]:
    """Refuses what is no header; one with a template holds no secret by itself."""
    check_headers(
        {name: _ENV if any(mark in value for mark in MARKS) else value for name, value in written.items()}
    )
    return {name: template_text(value) for name, value in written.items()}


def _body(value: Any) -> Any:
    """Refuses what JSON cannot hold, broken templates and secrets."""
    for name, text in _texts(is_json(value), ""):
        template_text(text)
        if not any(mark in text for mark in MARKS) and is_secret_field(name, text):
            what = "{name} holds a secret, which must not be stored: send it as a header, env:VARIABLE"
            raise PydanticCustomError("secret", what, {"name": name})
    return value


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yields the texts of a JSON value with their keys."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, name)


def _answer(value: Any) -> Any:
    """Takes a pointer alone for that to the text."""
    return {TEXT: value} if isinstance(value, str) else value


def _tokens(value: Any) -> Any:
    """Takes a pointer alone for that to an object with both counts."""
    return {"usage": value} if isinstance(value, str) else value


class _Strict(BaseModel):
    """What all parts have in common."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class _Request(_Strict):
    """A request."""

    url: Annotated[Text, AfterValidator(_url)]
    """Where it goes; templates may stand in its path and query."""
    method: Literal["POST", "GET", "PUT", "PATCH"] = "POST"
    """Of HTTP; with GET the keys of `body` are parameters of the URL."""
    headers: Annotated[dict[str, Encodable], AfterValidator(_headers)] = {}
    """Literal, `env:VARIABLE` of the workers, or templates over `session`."""
    body: Annotated[Any, AfterValidator(_body)] = None
    """Any JSON value; its texts are templates over `input`, `messages`, `vars`, `system` and `session`."""

    @property
    def request(self) -> HttpRequest:
        """As it is stored."""
        return HttpRequest(self.url, self.method, self.headers, self.body)


class SessionConfig(_Request):
    """A request that is made once before the first case; its templates have nothing to name."""

    take: Annotated[dict[str, Pointer], Field(min_length=1, max_length=MOST_TAKEN)]
    """Values of its reply for later requests, as `session.NAME`: JSON pointers."""

    @model_validator(mode="after")
    def _has_names(self) -> Self:
        """Refuses names that no template can write."""
        for name in self.take:
            if not name.isidentifier():
                text = "{name} is no name for a template: write letters and digits"
                raise PydanticCustomError("name", text, {"name": repr(name)})
        return self


class TokenPointers(_Strict):
    """Where a reply counts its tokens."""

    input: Pointer | None = None
    """Number of tokens of the question."""
    output: Pointer | None = None
    """Number of tokens of the answer."""
    usage: Pointer | None = None
    """An object with both, as OpenAI's or Anthropic's."""


class AnswerPointers(_Strict):
    """Where a reply has the parts of an answer; the lower ones are for queries."""

    text: Pointer | None = None
    """Its text; a value that is no text is taken as JSON."""
    tool_calls: Pointer | None = None
    """A list of `{name, arguments}`, or in OpenAI's form."""
    refusal: Pointer | None = None
    """Why it does not answer."""
    reasoning: Pointer | None = None
    """What it thought; never judged."""
    sources: Pointer | None = None
    """Of queries: list of sources."""
    citations: Pointer | None = None
    """Of queries: list of citations."""
    related_docs: Pointer | None = None
    """Of queries: list of related documents."""
    doc_id: Pointer | None = None
    """Of queries, inside a related document: its id."""
    confidence: Pointer | None = None
    """Of queries: a level, or an object with level and reason."""
    chunks_retrieved: Pointer | None = None
    """Of queries: how many chunks the retrieval found."""
    latency_ms: Pointer | None = None
    """Of queries: the server's own latency."""


class HttpConfig(_Request):
    """An application over HTTP."""

    answer: Annotated[AnswerPointers, BeforeValidator(_answer, json_schema_input_type=str | AnswerPointers)]
    """JSON pointer to the text of a reply, or pointers by name."""
    tokens: (
        Annotated[TokenPointers, BeforeValidator(_tokens, json_schema_input_type=str | TokenPointers)] | None
    ) = None
    """JSON pointer to the counts of tokens, or pointers by name."""
    error: Pointer | None = None
    """JSON pointer to what is there, and not empty, only when something went wrong."""
    session: SessionConfig | None = None
    """A request that is made once before the first case, for what the others need of it."""

    @property
    def mapping(self) -> HttpMapping:
        """As it is stored."""
        tokens, session = self.tokens, self.session
        return HttpMapping(
            self.request,
            self.answer.model_dump(exclude_none=True),
            tokens.model_dump(exclude_none=True) if tokens else {},
            self.error or "",
            HttpSession(session.request, session.take) if session else None,
        )
