"""Puts one query to an API over HTTP and says what came back, in the words of the harness specification.

Knows sockets, timeouts and how a request is made of a run's settings; what the reply amounts to is decided by
`worker.queries.reply`. A redirect is not followed: it is a refusal, and what it says is the error.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter, time
from typing import Any

import aiohttp

from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import HEADER_VARIABLE
from shared.errors import ConfigError
from shared.scrubbing import without_secrets
from shared.upstream.addresses import with_path
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.key_variables import unsendable
from worker.queries.fields import FieldMap
from worker.queries.reply import DOCUMENT_WORDS, MAX_REPLY_BYTES, Reply, failed_reply, read_reply
from worker.upstream.exchange import exchange, read_body, since_ms
from worker.upstream.failures import UpstreamError
from worker.upstream.retry_after import read_retry_after


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """How a run's queries are sent, ready for use: secrets are filled in."""

    method: str
    url: str
    query_at: str
    headers: Mapping[str, str]
    timeout_s: float
    api_url: str
    fields: FieldMap

    def arguments(self, query: str) -> dict[str, Any]:
        """Returns where the query goes: a parameter of the URL, or the body."""
        if self.method == "GET":
            whole = query.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return {"params": {self.query_at.rpartition("/")[2]: whole}}
        return {"data": _encoded(body_with(self.query_at, query))}

    def failed(self, error: UpstreamError) -> Reply:
        """Reports why there is no answer, in the specification's words."""
        # A URL that cannot be called is in its words one where nobody listens.
        is_unsent = error.reason is FailureReason.REFUSED and not error.status
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
    return QueryRequest(
        run.method,
        with_path(run.api_url, run.path),
        run.query_at,
        headers,
        run.timeout_s,
        run.api_url,
        FieldMap(**run.places),
    )


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


async def send_once(session: aiohttp.ClientSession, request: QueryRequest, query: str) -> Reply:
    """Sends a query once.

    Raises:
        UpstreamError: there is no answer; `QueryRequest.failed` says so in the specification's words.
    """
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
        )
        if reply.failure is not None:
            wait_s = read_retry_after(response.headers.get("Retry-After"), now_s=time())
            raise UpstreamError(reply.failure, reply.error or "", status=reply.status_code, wait_s=wait_s)
        return reply

    try:
        return await exchange(
            session,
            request.method,
            request.url,
            read,
            headers=request.headers,
            timeout_s=request.timeout_s,
            **request.arguments(query),
        )
    except UpstreamError as error:
        error.latency_ms = since_ms(began)
        raise


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
