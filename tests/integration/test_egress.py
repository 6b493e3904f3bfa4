"""Tests which places a worker calls: by name, by address, over DNS and redirects, against real sockets."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from shared.contracts.query_run import QueryRun
from shared.settings import Settings
from shared.upstream.egress import EgressError, EgressPolicy
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.http_session import open_session
from shared.upstream.model_target import ModelTarget
from tests.support.model_server import ModelServer
from tests.support.query_results import Put, put_once
from worker.upstream import query_client
from worker.upstream.chat import ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_clients import ModelClients

T = TypeVar("T")
METADATA: Final = (
    "169.254.169.254",
    "169.254.0.1",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]",
    "100.100.100.200",
    "168.63.129.16",
    "2852039166",
    "0xa9fea9fe",
    "169.254.43518",
)
"""Ways to write where clouds identify a machine."""
PRIVATE: Final = (
    "127.0.0.1",
    "10.1.2.3",
    "192.168.0.1",
    "172.16.0.1",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104 - to be refused
    "[::1]",
    "[::]",
    "[fc00::1]",
    "[::ffff:127.0.0.1]",
    "127.1",
    "2130706433",
)
"""Ways to write addresses of this machine and its neighbours."""


class Names(AbstractResolver):
    """Knows hosts as a test says."""

    def __init__(self, known: Mapping[str, list[str]]) -> None:
        self.known = known

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - the interface's
    ) -> list[ResolveResult]:
        """Looks up a host."""
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AddressInfo.AI_NUMERICHOST,
            )
            for address in self.known[host]
        ]

    async def close(self) -> None:
        """Has nothing to end."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model on the loopback."""
    with ModelServer() as started:
        yield started


def policy_of(tmp_path: Path, **environment: str) -> EgressPolicy:
    """What a worker with these variables may call."""
    given = {"PROCTOR_DATA_DIR": str(tmp_path), **environment}
    return EgressPolicy.of(Settings.from_environment(given), given)


def with_session(
    policy: EgressPolicy, work: Callable[[aiohttp.ClientSession], Awaitable[T]], **known: list[str]
) -> T:
    """Does something with the session of a worker."""

    async def run() -> T:
        """Has a session while it works."""
        names = Names({name.replace("_", "."): found for name, found in known.items()})
        async with open_session(policy, names) as session:
            return await work(session)

    return asyncio.run(run())


def why_not(policy: EgressPolicy, url: str, **known: list[str]) -> UpstreamError:
    """Asks a model at a place that may not be called."""

    async def ask(session: aiohttp.ClientSession) -> UpstreamError:
        """Asks for a place."""
        clients = ModelClients(lambda: session, {})
        with pytest.raises(UpstreamError) as caught:
            await clients.complete(ModelRequest(ModelTarget("m", api_base=url, timeout_s=5), "", "Hi"))
        return caught.value

    return with_session(policy, ask, **known)


def answer_of(policy: EgressPolicy, url: str, **known: list[str]) -> str:
    """Asks a model at a place that may be called."""

    async def ask(session: aiohttp.ClientSession) -> str:
        """Asks for a place."""
        clients = ModelClients(lambda: session, {})
        return (await clients.complete(ModelRequest(ModelTarget("m", api_base=url), "", "Hi"))).text

    return with_session(policy, ask, **known)


@pytest.mark.parametrize("host", METADATA)
@pytest.mark.parametrize("settings", [{}, {"OPENAI_BASE_URL": "http://{host}/v1"}])
def test_metadata_is_never_called(tmp_path: Path, host: str, settings: dict[str, str]) -> None:
    """However its address is written, also where a variable of the worker names it; the run ends."""
    policy = policy_of(tmp_path, **{name: value.format(host=host) for name, value in settings.items()})
    error = why_not(policy, f"http://{host}/v1")
    assert error.reason is FailureReason.FORBIDDEN
    assert error.ends_run
    assert "never called" in error.message


@pytest.mark.parametrize("host", PRIVATE)
def test_private_addresses_are_blocked_where_asked(tmp_path: Path, host: str) -> None:
    """With PROCTOR_BLOCK_PRIVATE=1 neither this machine nor its neighbours are called; a way out is named."""
    error = why_not(policy_of(tmp_path, PROCTOR_BLOCK_PRIVATE="1"), f"http://{host}/v1")
    assert error.reason is FailureReason.FORBIDDEN
    assert "PROCTOR_BLOCK_PRIVATE" in error.message
    assert "_BASE_URL" in error.message


def test_a_local_model_is_called_by_default(tmp_path: Path, server: ModelServer) -> None:
    """Local models are common: without the setting the loopback is called, by address and by name."""
    port = urlsplit(server.api_base).port
    assert answer_of(policy_of(tmp_path), server.api_base) == "Hello"
    assert answer_of(policy_of(tmp_path), f"http://llm.test:{port}/v1", llm_test=["127.0.0.1"]) == "Hello"


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OLLAMA_API_BASE"])
def test_own_hosts_are_always_called(tmp_path: Path, server: ModelServer, variable: str) -> None:
    """What the worker's own variables name is called in spite of both settings, by address and by name."""
    port = urlsplit(server.api_base).port
    strict = {"PROCTOR_BLOCK_PRIVATE": "1", "PROCTOR_ALLOWED_HOSTS": "api.openai.com"}
    assert answer_of(policy_of(tmp_path, **strict, **{variable: server.api_base}), server.api_base) == "Hello"
    named = f"http://llm.test:{port}/v1"
    assert (
        answer_of(policy_of(tmp_path, **strict, **{variable: named}), named, llm_test=["127.0.0.1"])
        == "Hello"
    )


@pytest.mark.parametrize(
    ("found", "settings"),
    [
        (["169.254.169.254"], {}),
        (["::ffff:169.254.169.254", "fe80::1"], {"OPENAI_BASE_URL": "http://llm.test"}),
        (["127.0.0.1"], {"PROCTOR_BLOCK_PRIVATE": "1"}),
        (["10.0.0.1", "::1"], {"PROCTOR_BLOCK_PRIVATE": "1", "PROCTOR_ALLOWED_HOSTS": "llm.test"}),
    ],
)
def test_a_name_is_judged_by_its_addresses(
    tmp_path: Path, found: list[str], settings: dict[str, str]
) -> None:
    """A harmless name that resolves to such an address is not called; name and address are both reported."""
    error = why_not(policy_of(tmp_path, **settings), "http://llm.test/v1", llm_test=found)
    assert error.reason is FailureReason.FORBIDDEN
    assert error.message.startswith("llm.test (")


def test_of_several_addresses_only_good_ones_are_called(tmp_path: Path, server: ModelServer) -> None:
    """A name with a metadata address beside a good one leads to the good one."""
    port = urlsplit(server.api_base).port
    found = ["169.254.169.254", "127.0.0.1"]
    assert answer_of(policy_of(tmp_path), f"http://llm.test:{port}/v1", llm_test=found) == "Hello"


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("http://llm.test:{port}/v1", True),
        ("http://LLM.test.:{port}/v1", True),
        ("http://a.b.example.test:{port}/v1", True),
        ("http://example.test:{port}/v1", False),
        ("http://llm.test.evil.test:{port}/v1", False),
        ("http://badexample.test:{port}/v1", False),
        ("http://127.0.0.1:{port}/v1", False),
    ],
)
def test_only_allowed_hosts_are_called(
    tmp_path: Path, server: ModelServer, url: str, *, is_allowed: bool
) -> None:
    """PROCTOR_ALLOWED_HOSTS names hosts, and all hosts below one; everything else is refused."""
    policy = policy_of(tmp_path, PROCTOR_ALLOWED_HOSTS="LLM.test, *.example.test")
    place = url.format(port=urlsplit(server.api_base).port)
    if is_allowed:
        names = {name: ["127.0.0.1"] for name in ("llm_test", "llm_test_", "a_b_example_test")}
        assert answer_of(policy, place, **names) == "Hello"
    else:
        error = why_not(policy, place)
        assert error.reason is FailureReason.FORBIDDEN
        assert "PROCTOR_ALLOWED_HOSTS" in error.message


@pytest.mark.parametrize("target", ["http://169.254.169.254/x", "http://meta.test/x", "http://other.test/x"])
def test_redirects_are_judged_again(tmp_path: Path, target: str) -> None:
    """Where somebody follows redirects with the session, each place on the way is judged."""

    async def follow(session: aiohttp.ClientSession) -> None:
        """Follows what a server sends it to."""

        async def send_on(_request: web.Request) -> web.Response:
            """Sends whoever asks to a forbidden place."""
            raise web.HTTPFound(target)

        app = web.Application()
        app.router.add_get("/", send_on)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            await session.get(f"http://good.test:{runner.addresses[0][1]}/")
        finally:
            await runner.cleanup()

    policy = policy_of(tmp_path, PROCTOR_ALLOWED_HOSTS="good.test, meta.test, 169.254.169.254")
    with pytest.raises(EgressError, match=r"never called|none of the hosts"):
        with_session(policy, follow, good_test=["127.0.0.1"], meta_test=["169.254.169.254"])


def test_a_query_to_a_forbidden_place_ends_its_run(tmp_path: Path) -> None:
    """The reply says why in the place of an answer, and no other query is sent."""

    async def ask(session: aiohttp.ClientSession) -> Put:
        """Puts one query."""
        run = QueryRun(api_url="http://169.254.169.254")
        return await put_once(session, query_client.build_request(run), "How?")

    reply = with_session(policy_of(tmp_path), ask).reply
    assert (reply.failure, reply.ends_run, reply.status_code) == (FailureReason.FORBIDDEN, True, 0)
    assert reply.error == "169.254.169.254 is a link-local or metadata address; never called"


def test_named_providers_keep_to_it(tmp_path: Path) -> None:
    """A provider that litellm calls is refused as well where it is none of the allowed hosts."""

    async def ask(session: aiohttp.ClientSession) -> UpstreamError:
        """Asks through litellm."""
        clients = ModelClients(lambda: session, {"OPENAI_API_KEY": "sk-0123456789"})
        try:
            with pytest.raises(UpstreamError) as caught:
                await clients.complete(ModelRequest(ModelTarget("openai/gpt-4o", timeout_s=60), "", "Hi"))
        finally:
            await clients.close()
        return caught.value

    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
            patch.delenv(name, raising=False)
        error = with_session(policy_of(tmp_path, PROCTOR_ALLOWED_HOSTS="llm.test"), ask)
    assert error.reason is FailureReason.FORBIDDEN
    assert "api.openai.com is none of the hosts" in error.message
