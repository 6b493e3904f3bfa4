"""Puts one query to an API over HTTP and says what came back, in the words of the harness specification.

Knows sockets, timeouts and how a request is made of a run's settings; what the reply amounts to is decided by
`worker.queries.reply`. A redirect is not followed: it is a refusal, and what it says is the error.
"""

import dataclasses
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter, time
from typing import Any, Final, TypeVar

import aiohttp

from shared.contracts.merged_options import merge_headers
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import HEADER_VARIABLE
from shared.errors import ConfigError
from shared.scrubbing import without_secrets
from shared.templates.rendered_requests import query_values
from shared.upstream.addresses import with_path
from shared.upstream.failure_reasons import OK, FailureReason, reason_of_status
from shared.upstream.http_mapping import HttpMapping, HttpRequest, HttpSession
from shared.upstream.key_variables import unsendable
from shared.upstream.model_target import ModelTarget
from worker.queries.fields import FieldMap
from worker.queries.reply import DOCUMENT_WORDS, MAX_REPLY_BYTES, Reply, failed_reply, read_reply
from worker.upstream.completion import HttpCall, decoded
from worker.upstream.credentials import own_headers
from worker.upstream.exchange import exchange, read_body, since_ms
from worker.upstream.failures import UpstreamError
from worker.upstream.http_applications import HttpSessions, content_of, http_call, rendered_where, taken
from worker.upstream.retry_after import read_retry_after

T = TypeVar("T")
NO_VARS: Final[Mapping[str, Any]] = {}
_QUERY: Final = "{{ input }}"
"""The place of the query in a request that the run's settings make."""
_SESSION: Final = ("", "")
"""A request belongs to one run, and has one session."""


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """How a run's queries are sent, ready for use: secrets are filled in."""

    mapping: HttpMapping
    """Of the file, or made of the run's method, path and place."""
    headers: Mapping[str, str]
    """Headers of each request; those of the mapping go before them."""
    timeout_s: float
    api_url: str
    fields: FieldMap
    environment: Mapping[str, str]
    """Holds the variables that headers of the mapping name."""
    is_mapped: bool = False
    """Whether the file says how the API is asked."""
    sessions: HttpSessions = field(default_factory=HttpSessions)

    def call(self, query: str, variables: Mapping[str, Any], session: Mapping[str, Any]) -> HttpCall:
        """Returns the request of a query in a session."""
        return http_call(self.mapping.request, query_values(query, variables, session))

    def headers_of(self, call: HttpCall) -> dict[str, str]:
        """Returns all headers of a request."""
        place = ModelTarget(self.api_url, headers=call.headers)
        return merge_headers(self.headers, own_headers(place, self.environment))

    def failed(self, error: UpstreamError) -> Reply:
        """Reports why there is no answer, in the specification's words."""
        # A URL that cannot be called is in its words one where nobody listens.
        is_unsent = error.reason is FailureReason.REFUSED and not error.status and not self.is_mapped
        reason = FailureReason.UNREACHABLE if is_unsent else error.reason
        is_documented = reason in DOCUMENT_WORDS and not error.is_proxy
        return failed_reply(
            reason,
            error.latency_ms,
            status_code=error.status,
            why="" if is_documented else error.message,
            api_url=self.api_url,
            timeout_s=self.timeout_s,
        )


def build_request(run: QueryRun, environment: Mapping[str, str] = os.environ) -> QueryRequest:
    """Makes the request of a run's settings.

    Raises:
        ConfigError: a variable that holds a secret is not set in this worker, or is none that it sends.
    """
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    headers |= {name: _filled(name, value, environment) for name, value in run.headers.items()}
    if run.bearer_env:
        headers["Authorization"] = f"Bearer {_variable(run.bearer_env, 'the bearer token', environment)}"
    mapping = run.http or _mapping(run)
    places = {("answer" if name == "text" else name): pointer for name, pointer in mapping.answer.items()}
    known = {each.name for each in dataclasses.fields(FieldMap)}
    fields = FieldMap(**{name: pointer for name, pointer in places.items() if name in known})
    is_mapped = run.http is not None
    return QueryRequest(mapping, headers, run.timeout_s, run.api_url, fields, environment, is_mapped)


def _mapping(run: QueryRun) -> HttpMapping:
    """Makes the mapping of a run's method, path and places."""
    if run.method == "GET":
        body: Any = {run.query_at.rpartition("/")[2]: _QUERY}
    else:
        body = body_with(run.query_at, _QUERY)
    request = HttpRequest(with_path(run.api_url, run.path), run.method, body=body)
    return HttpMapping(request, dict(run.places))


def _content(call: HttpCall) -> dict[str, Any]:
    """Returns where the query goes: parameters of the URL, or the body."""
    if call.method != "GET":
        return {} if call.body is None else {"data": _encoded(call.body)}
    params: dict[str, str] = content_of(call).get("params", {})
    whole = {name: each.encode("utf-16", "surrogatepass") for name, each in params.items()}
    return {"params": {name: each.decode("utf-16", "replace") for name, each in whole.items()}}


def body_with(pointer: str, query: str) -> Any:
    """Makes the smallest body that has the query at a place.

    >>> body_with("/query", "How?"), body_with("/input/text", "How?")
    ({'query': 'How?'}, {'input': {'text': 'How?'}})
    >>> body_with("/conversation/0/text", "How?")
    {'conversation': [{'text': 'How?'}]}
    """
    body: Any = query
    for step in reversed(pointer.split("/")[1:]):
        body = [body] if step == "0" else {step.replace("~1", "/").replace("~0", "~"): body}
    return body


def _encoded(body: Any) -> bytes:
    """Writes JSON in UTF-8; where that cannot hold it, as with half a surrogate pair, with escapes."""
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body).encode()


async def send_once(
    session: aiohttp.ClientSession, request: QueryRequest, query: str, variables: Mapping[str, Any] = NO_VARS
) -> Reply:
    """Sends a query once. Longer than 40 lines: its steps share the request and when it began.

    Args:
        session: the process's.
        request: how it is sent.
        query: its text.
        variables: what stands beside it in its file, for templates.

    Raises:
        UpstreamError: there is no answer; `QueryRequest.failed` says so in the specification's words.
    """

    async def begin(asked: HttpSession) -> Mapping[str, Any]:
        """Asks for what the calls of a session need."""
        call = http_call(asked.request, {})
        return taken(asked, await _exchanged(session, request, call, _read_session))

    async def ask(brought: Mapping[str, Any]) -> Reply:
        """Asks the query."""
        call = await rendered_where(request.mapping, partial(request.call, query, variables, brought))
        return await _ask(session, request, call)

    return await request.sessions.within(_SESSION, request.mapping.session, begin, ask)


async def _ask(session: aiohttp.ClientSession, request: QueryRequest, call: HttpCall) -> Reply:
    """Makes one call and reads its reply."""
    began = perf_counter()

    async def read(response: aiohttp.ClientResponse) -> Reply:
        body = await read_body(response, MAX_REPLY_BYTES)
        reply = read_reply(
            status_code=response.status,
            body=body,
            latency_ms=since_ms(began),
            fields=request.fields,
            charset=response.charset,
            scrub=partial(without_secrets, environment=os.environ),
            error_at=request.mapping.error,
        )
        if reply.failure is not None:
            wait_s = read_retry_after(response.headers.get("Retry-After"), now_s=time())
            raise UpstreamError(reply.failure, reply.error or "", status=reply.status_code, wait_s=wait_s)
        return reply

    try:
        return await _exchanged(session, request, call, read)
    except UpstreamError as error:
        error.latency_ms = since_ms(began)
        raise


async def _exchanged(
    session: aiohttp.ClientSession,
    request: QueryRequest,
    call: HttpCall,
    read: Callable[[aiohttp.ClientResponse], Awaitable[T]],
) -> T:
    """Makes one call."""
    return await exchange(
        session,
        call.method,
        call.url,
        read,
        headers=request.headers_of(call),
        timeout_s=request.timeout_s,
        **_content(call),
    )


async def _read_session(response: aiohttp.ClientResponse) -> Any:
    """Reads the reply to the request that begins a session."""
    body = await read_body(response, MAX_REPLY_BYTES)
    if response.status // 100 != OK // 100:
        text = f"the session: HTTP {response.status}"
        raise UpstreamError(reason_of_status(response.status), text, status=response.status)
    return decoded(body, response.charset)


def _filled(name: str, value: str, environment: Mapping[str, str]) -> str:
    """Puts variables of the environment into a header's value."""

    def variable(match: re.Match[str]) -> str:
        return _variable(match[1].strip("{}"), f"the header {name}", environment)

    return HEADER_VARIABLE.sub(variable, value)


def _variable(name: str, what: str, environment: Mapping[str, str]) -> str:
    """Reads a variable that has to be there."""
    if why := unsendable(name, environment):
        raise ConfigError(f"{what} needs the variable {name}; {why}")
    value = environment.get(name, "").strip()
    if not value or not value.isprintable():
        raise ConfigError(f"{what} needs the variable {name}, which this worker does not have")
    return value
