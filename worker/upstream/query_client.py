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
from typing import Any, NamedTuple

import aiohttp

from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import HEADER_VARIABLE
from shared.errors import ConfigError
from shared.scrubbing import without_secrets
from shared.upstream.addresses import with_path
from shared.upstream.egress import EgressError
from shared.upstream.key_variables import unsendable
from shared.upstream.proxies import proxy_problem
from worker.queries.fields import FieldMap
from worker.queries.reply import (
    MAX_REPLY_BYTES,
    Reply,
    connection_lost,
    forbidden,
    insecure,
    read_reply,
    timed_out,
    unreachable,
)
from worker.upstream.failures import tls_problem
from worker.upstream.model_clients import place_of
from worker.upstream.retry_after import read_retry_after


class SendResult(NamedTuple):
    """How one send ended."""

    reply: Reply
    """The reply of the API."""
    retry_after_s: float | None
    """What the server asked to wait."""


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """How a run's queries are sent, ready for use: secrets are filled in."""

    method: str
    url: str
    query_at: str
    headers: Mapping[str, str]
    timeout: aiohttp.ClientTimeout
    api_url: str
    fields: FieldMap

    def arguments(self, query: str) -> dict[str, Any]:
        """Returns where the query goes: a parameter of the URL, or the body."""
        if self.method == "GET":
            whole = query.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return {"params": {self.query_at.rpartition("/")[2]: whole}}
        return {"data": _encoded(body_with(self.query_at, query))}


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
        # aiohttp rounds limits above this threshold up to a whole second of the loop's clock.
        aiohttp.ClientTimeout(total=run.timeout_s, connect=run.timeout_s, ceil_threshold=run.timeout_s + 1),
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


async def send_once(session: aiohttp.ClientSession, request: QueryRequest, query: str) -> SendResult:
    """Sends a query once."""
    began, status = perf_counter(), 0

    def latency_ms() -> int:
        """Time since the query was sent."""
        return round(1000 * (perf_counter() - began))

    try:
        async with session.request(
            request.method,
            request.url,
            headers=request.headers,
            timeout=request.timeout,
            allow_redirects=False,
            **request.arguments(query),
        ) as response:
            status = response.status
            reply = read_reply(
                status_code=status,
                body=await _body(response),
                latency_ms=latency_ms(),
                fields=request.fields,
                charset=response.charset,
                scrub=partial(without_secrets, environment=os.environ),
            )
            return SendResult(reply, read_retry_after(response.headers.get("Retry-After"), now_s=time()))
    except EgressError as error:
        return SendResult(forbidden(str(error), latency_ms()), None)
    except TimeoutError:
        return SendResult(timed_out(latency_ms(), timeout_s=request.timeout.total or 0.0), None)
    except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError, aiohttp.InvalidURL) as error:
        return SendResult(_no_connection(error, request.api_url, latency_ms()), None)
    except (aiohttp.ClientError, OSError):
        return SendResult(connection_lost(latency_ms(), status_code=status), None)


def _no_connection(error: Exception, api_url: str, latency_ms: int) -> Reply:
    """Explains why no connection was made."""
    if problem := tls_problem(error, place_of(api_url)):
        return insecure(problem, latency_ms)
    return unreachable(api_url, latency_ms, proxy_problem(error, api_url))


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Reads a bounded body: what is more than we take is not even read."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            response.close()
            break
    return bytes(body)


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
