"""Applications over HTTP: their requests and replies by a mapping, and the sessions that they are asked in.

Models with `http` and queries with `api` are asked by this one piece of code.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from shared.codecs.json_pointers import at
from shared.contracts.merged_options import merge_headers
from shared.errors import WrongInput
from shared.templates.rendered_requests import is_quick, rendered_request, template_values
from shared.templates.template_texts import MARKS
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.http_mapping import HttpMapping, HttpRequest, HttpSession
from shared.upstream.key_variables import ENV_PREFIX
from shared.upstream.usage import NO_USAGE, Usage, count
from worker.queries.reply import NOT_WRONG
from worker.upstream.chat import ModelRequest, messages_of
from worker.upstream.completion import HttpCall, Piece, WireProtocol
from worker.upstream.failures import UpstreamError
from worker.upstream.protocols.conversation import conversation_of
from worker.upstream.protocols.openai_chat import read_usage
from worker.upstream.tool_calls import call_pieces, unreadable

T = TypeVar("T")
EXPIRED: Final = frozenset({401, 403, 419, 440})
"""Statuses of replies to a session that has ended; a new one is begun once."""
MOST_SESSIONS: Final = 256
"""Sessions that a process keeps."""
_ABSENT: Final = object()

SessionKey = tuple[str, str]
"""A run and the name of its model."""


class HttpSessions:
    """The sessions of one process, one for each run and application; used on the event loop alone."""

    def __init__(self) -> None:
        self._known: dict[SessionKey, Mapping[str, Any]] = {}
        self._locks: dict[SessionKey, asyncio.Lock] = {}

    async def within(
        self,
        key: SessionKey,
        session: HttpSession | None,
        begin: Callable[[HttpSession], Awaitable[Mapping[str, Any]]],
        ask: Callable[[Mapping[str, Any]], Awaitable[T]],
    ) -> T:
        """Asks within a session, which is begun before the first call, and anew when it has expired.

        Args:
            key: of the session.
            session: how it is begun; None: without one.
            begin: begins it.
            ask: asks with what it has brought.

        Raises:
            UpstreamError: as both do.
        """
        if session is None:
            return await ask({})
        values = await self._values(key, session, begin)
        try:
            return await ask(values)
        except UpstreamError as error:
            if error.status not in EXPIRED:
                raise
        if self._known.get(key) is values:
            del self._known[key]
        return await ask(await self._values(key, session, begin))

    async def _values(
        self,
        key: SessionKey,
        session: HttpSession,
        begin: Callable[[HttpSession], Awaitable[Mapping[str, Any]]],
    ) -> Mapping[str, Any]:
        """Returns what a session has brought; calls of one session wait for each other until it has begun."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._known:
                if len(self._known) >= MOST_SESSIONS:
                    oldest = next(iter(self._known))
                    del self._known[oldest], self._locks[oldest]
                self._known[key] = await begin(session)
            return self._known[key]


def taken(session: HttpSession, reply: Any) -> dict[str, Any]:
    """Takes out of the reply to a session what later requests need.

    Raises:
        UpstreamError: something is missing.

    >>> taken(HttpSession(HttpRequest("http://h"), {"id": "/data/id"}), {"data": {"id": "s1"}})
    {'id': 's1'}
    """
    found = {name: at(reply, pointer, _ABSENT) for name, pointer in session.take.items()}
    for name, value in found.items():
        if value is _ABSENT or value is None:
            raise unreadable(f"the reply to the session has nothing at {session.take[name] or 'its root'}")
    return found


def http_application(mapping: HttpMapping, session: Mapping[str, Any]) -> WireProtocol:
    """Returns how an application is asked in a session.

    >>> from shared.upstream.model_target import ModelTarget
    >>> request = HttpRequest("http://h/chat", body={"text": "{{ input }}", "user": "{{ session.id }}"})
    >>> spoken = http_application(HttpMapping(request, {"text": "/reply"}), {"id": 7})
    >>> spoken.request(ModelRequest(ModelTarget("app", "http://h/chat"), "", "Hi"), "").body
    {'text': 'Hi', 'user': 7}
    >>> spoken.read_reply({"reply": "Hello"}).text
    'Hello'
    """
    read = partial(_read, mapping)
    return WireProtocol(partial(_request, mapping, session), read, read)


def _request(mapping: HttpMapping, session: Mapping[str, Any], asked: ModelRequest, key: str) -> HttpCall:
    """Makes a request of what a model would be sent."""
    turns = conversation_of(asked).turns
    values = template_values(messages_of(asked), turns[-1].text if turns else "", asked.vars, session)
    return http_call(mapping.request, values, key)


def session_call(request: HttpRequest, key: str) -> HttpCall:
    """Makes the request that begins a session."""
    return http_call(request, {}, key)


def http_call(request: HttpRequest, values: Mapping[str, Any], key: str = "") -> HttpCall:
    """Makes a request.

    Args:
        request: with templates.
        values: what they name.
        key: sent as a bearer token; empty: none.

    Raises:
        UpstreamError: it cannot be rendered, or a header would have what none may have.
    """
    try:
        rendered = rendered_request(request, values)
    except WrongInput as problem:
        raise UpstreamError(FailureReason.REFUSED, f"{problem.what} ({problem.hint})") from None
    headers = dict[str, str]()
    for name, value in rendered.headers.items():
        is_template = any(mark in request.headers[name] for mark in MARKS)
        # What a template brings is no name of a variable: an application must not ask for a worker's secrets.
        if is_template and (not value.isprintable() or not value.isascii() or value.startswith(ENV_PREFIX)):
            text = f"the header {name} would have characters that no header has"
            raise UpstreamError(FailureReason.REFUSED, text)
        headers[name] = value
    bearer = {"Authorization": f"Bearer {key}"} if key else {}
    return HttpCall("", rendered.body, merge_headers(bearer, headers), rendered.url, rendered.method)


async def rendered_where(mapping: HttpMapping, make: Callable[[], HttpCall]) -> HttpCall:
    """Makes a request, in a thread where its templates may take their time."""
    return make() if is_quick(mapping.request) else await asyncio.to_thread(make)


def content_of(call: HttpCall) -> dict[str, Any]:
    """Returns what the HTTP client is given of a call's body.

    >>> content_of(HttpCall("/a", {"q": "Hi", "n": 3}, method="GET"))
    {'params': {'q': 'Hi', 'n': '3'}}
    >>> content_of(HttpCall("/a", {"q": "Hi"}))
    {'data': b'{"q":"Hi"}'}
    """
    if call.body is None:
        return {}
    if call.method == "GET":
        values = call.body if isinstance(call.body, Mapping) else {}
        return {
            "params": {
                name: each if isinstance(each, str) else json.dumps(each) for name, each in values.items()
            }
        }
    return {"data": msgspec.json.encode(call.body)}


def _read(mapping: HttpMapping, reply: Any) -> Piece:
    """Reads a reply.

    Raises:
        UpstreamError: it says that something went wrong, or has no answer.
    """
    raise_error_at(mapping, reply)
    pointers = mapping.answer
    found = {name: at(reply, pointer, _ABSENT) for name, pointer in pointers.items()}
    if all(value is _ABSENT for value in found.values()):
        places = " or ".join(pointer or "its root" for pointer in pointers.values())
        raise unreadable(f"the reply has nothing at {places}")
    text, calls = found.get("text"), found.get("tool_calls")
    return Piece(
        None if text is None or text is _ABSENT else _text(text),
        _text(found.get("reasoning")),
        _text(found.get("refusal")),
        () if calls is _ABSENT else call_pieces(calls),
        usage=_usage(mapping, reply),
        is_json=isinstance(text, dict | list),
    )


def raise_error_at(mapping: HttpMapping, reply: Any) -> None:
    """Raises what a reply says went wrong.

    Raises:
        UpstreamError: something is at the pointer `error`.
    """
    wrong = at(reply, mapping.error) if mapping.error else None
    if wrong not in NOT_WRONG:
        raise UpstreamError(FailureReason.SERVER_ERROR, _text(wrong))


def _text(value: Any) -> str:
    """Writes a value of a reply as a text."""
    if value is None or value is _ABSENT:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _usage(mapping: HttpMapping, reply: Any) -> Usage:
    """Reads tokens; a number alone is that of all of them, and taken for the answer's.

    >>> mapping = HttpMapping(HttpRequest("http://h"), tokens={"usage": "/usage"})
    >>> _usage(mapping, {"usage": {"input_tokens": 3, "output_tokens": 1}}).total_tokens
    4
    """
    places = mapping.tokens
    if not places:
        return NO_USAGE
    if "usage" not in places:
        asked, said = (
            count(at(reply, places[name])) if name in places else None for name in ("input", "output")
        )
        return Usage(asked, said)
    found = at(reply, places["usage"])
    if not isinstance(found, dict):
        return Usage(output_tokens=count(found))
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    return read_usage({names.get(name, name): value for name, value in found.items()})
