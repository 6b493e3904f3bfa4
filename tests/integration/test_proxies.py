"""Tests which calls go through a proxy, what the worker's rules say about them, and what goes wrong there."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from shared.contracts.query_run import QueryRun
from shared.settings import Settings
from shared.upstream.egress import EgressPolicy
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.http_session import open_session
from shared.upstream.model_target import ModelTarget
from tests.support.certificates import make_certificates
from tests.support.http_proxy import HttpProxy
from tests.support.https_server import https_server
from tests.support.model_server import ModelServer
from tests.support.query_results import put_once
from tests.support.scripted_api import ScriptedApi
from worker.queries.reply import Reply
from worker.upstream.chat import ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_clients import ModelClients
from worker.upstream.query_client import build_request

T = TypeVar("T")
ASKED: Final = {"PROCTOR_TRUST_ENV": "1"}
BLOCKED: Final = {**ASKED, "PROCTOR_BLOCK_PRIVATE": "1", "PROXY_BASE_URL": "http://127.0.0.1"}
"""The last names the proxy's own host, which is private."""


class NoNames(AbstractResolver):
    """Knows no host: what is reached by its name was looked up by the proxy."""

    async def resolve(
        self,
        host: str,
        port: int = 0,  # noqa: ARG002 - the interface's
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - the interface's
    ) -> list[ResolveResult]:
        """Fails as the system's resolver does."""
        raise socket.gaierror(socket.EAI_NONAME, f"{host}: name or service not known")

    async def close(self) -> None:
        """Has nothing to end."""


@pytest.fixture
def proxy() -> Iterator[HttpProxy]:
    """A proxy on the loopback."""
    with HttpProxy() as started:
        yield started


def with_session(
    environment: Mapping[str, str], folder: Path, work: Callable[[aiohttp.ClientSession], Awaitable[T]]
) -> T:
    """Does something with the session of a worker with these variables."""
    settings = Settings.from_environment({"PROCTOR_DATA_DIR": str(folder), **environment})

    async def run() -> T:
        """Has a session while it works."""
        async with open_session(EgressPolicy.of(settings, environment), NoNames()) as session:
            return await work(session)

    return asyncio.run(run())


def put(environment: Mapping[str, str], folder: Path, url: str) -> Reply:
    """Puts one query."""

    async def work(session: aiohttp.ClientSession) -> Reply:
        """Asks."""
        return (await put_once(session, build_request(QueryRun(api_url=url, timeout_s=10)), "How?")).reply

    return with_session(environment, folder, work)


def test_a_proxy_is_used_where_it_is_asked_for(tmp_path: Path, proxy: HttpProxy) -> None:
    """With PROCTOR_TRUST_ENV=1 a host that only the proxy can look up is asked, with its credentials."""
    place = proxy.url.replace("//", "//me:geheim@")
    with ScriptedApi() as api:
        url = f"http://api.test:{urlsplit(api.url).port}"
        reply = put({**ASKED, "HTTP_PROXY": place}, tmp_path, url)
        assert put({"HTTP_PROXY": place}, tmp_path, url).failure is FailureReason.UNREACHABLE
        direct = [
            put({**ASKED, "HTTP_PROXY": place}, tmp_path, api.url),
            put({**ASKED, "HTTP_PROXY": place, "NO_PROXY": "api.test"}, tmp_path, url),
        ]
    assert reply.error is None
    assert proxy.targets == [url.removeprefix("http://")]
    assert "Proxy-Authorization: Basic bWU6Z2VoZWlt" in proxy.heads[0]
    assert [found.failure for found in direct] == [None, FailureReason.UNREACHABLE]


def test_https_goes_through_a_tunnel(tmp_path: Path, proxy: HttpProxy) -> None:
    """The proxy sees host and port, and the certificate is still checked by the worker."""
    with https_server(make_certificates(tmp_path), b'{"answer": "yes"}') as server:
        url = f"https://api.test:{urlsplit(server).port}"
        reply = put({**ASKED, "HTTPS_PROXY": proxy.url}, tmp_path, url)
    assert proxy.targets == [url.removeprefix("https://")]
    assert (reply.failure, reply.ends_run) == (FailureReason.INSECURE, True)


@pytest.mark.parametrize(
    ("url", "environment", "words"),
    [
        ("http://metadata.google.internal", ASKED, "never called"),
        ("http://169.254.169.254", ASKED, "never called"),
        ("http://10.0.0.7", BLOCKED, "private address"),
        ("http://api.test", BLOCKED, "would be looked up by the proxy"),
        ("http://api.test", {**ASKED, "PROCTOR_ALLOWED_HOSTS": "other.test"}, "none of the hosts"),
        (
            "http://api.test",
            {**ASKED, "HTTP_PROXY": "socks5://127.0.0.1:1"},
            "names no HTTP proxy",
        ),
        (
            "http://api.test",
            {**ASKED, "PROCTOR_BLOCK_PRIVATE": "1", "PROCTOR_ALLOWED_HOSTS": "api.test"},
            "127.0.0.1 is a private address",
        ),
    ],
)
def test_rules_hold_through_a_proxy(
    tmp_path: Path, proxy: HttpProxy, url: str, environment: Mapping[str, str], words: str
) -> None:
    """What is called through it is judged by its name, and the proxy by its address; nothing is sent."""
    reply = put({"HTTP_PROXY": proxy.url, **environment}, tmp_path, url)
    assert (reply.failure, proxy.targets) == (FailureReason.FORBIDDEN, [])
    assert words in str(reply.error)


def test_listed_hosts_are_called_where_private_ones_are_blocked(tmp_path: Path, proxy: HttpProxy) -> None:
    """The host is on the list of allowed ones, so the proxy may look it up."""
    with ScriptedApi() as api:
        url = f"http://api.test:{urlsplit(api.url).port}"
        listed = {**BLOCKED, "HTTP_PROXY": proxy.url, "PROCTOR_ALLOWED_HOSTS": "*.test"}
        assert put(listed, tmp_path, url.replace("api", "api.a")).error is None


def test_a_proxy_that_does_not_help_is_named(tmp_path: Path) -> None:
    """A proxy that is away, unknown, or refuses, is not taken for the API."""
    with HttpProxy(refusal=b"407 Proxy Authentication Required") as proxy:
        refused = put({**ASKED, "HTTPS_PROXY": proxy.url}, tmp_path, "https://api.test")
    away = put({**ASKED, "HTTPS_PROXY": proxy.url}, tmp_path, "https://api.test")
    place = proxy.url.removeprefix("http://")
    assert refused.error == "the proxy does not connect to api.test: HTTP 407 Proxy Authentication Required"
    assert str(away.error).startswith(f"the proxy {place} cannot be reached: ")
    assert (refused.failure, away.failure) == (FailureReason.UNREACHABLE, FailureReason.UNREACHABLE)


def test_models_are_asked_through_it(tmp_path: Path, proxy: HttpProxy) -> None:
    """An endpoint's model too; one that refuses says so."""

    async def work(session: aiohttp.ClientSession) -> tuple[str, UpstreamError]:
        """Asks once over HTTP and once over HTTPS."""
        clients = ModelClients(lambda: session, {})
        text = (await clients.complete(ModelRequest(ModelTarget("m", api_base=place), "", "Hi"))).text
        proxy.refusal = b"403 Forbidden"
        with pytest.raises(UpstreamError) as caught:
            await clients.complete(ModelRequest(ModelTarget("m", api_base="https://llm.test/v1"), "", "Hi"))
        return text, caught.value

    with ModelServer() as server:
        place = f"http://llm.test:{urlsplit(server.api_base).port}/v1"
        both = {**ASKED, "HTTP_PROXY": proxy.url, "HTTPS_PROXY": proxy.url}
        text, error = with_session(both, tmp_path, work)
    assert text == "Hello"
    assert (error.reason, error.message) == (
        FailureReason.UNREACHABLE,
        "the proxy does not connect to llm.test: HTTP 403 Forbidden",
    )
