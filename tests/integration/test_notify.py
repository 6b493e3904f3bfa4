"""`--notify` posts a run's summary to real servers on loopback: one that is well, and many that misbehave."""

import asyncio
import hmac
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

import pytest

from producer import notify
from producer.notify import Webhook
from shared.settings import Settings
from tests.support.cli import Cli
from tests.support.ports import free_port
from tests.support.schemas import hold
from tests.support.tree import ROOT

TURNS: Final = ROOT / "examples" / "turns.jsonl"
OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
DOCUMENT: Final[dict[str, Any]] = {"schema_version": 2, "run_id": "run-1", "kind": "turns", "exit": 0}


class Post(NamedTuple):
    """One request, as it arrived."""

    line: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[socket.socket], None]


def says(raw: bytes) -> Answer:
    """Sends some bytes and closes the connection."""
    return lambda connection: connection.sendall(raw)


def status(code: int, *headers: str) -> Answer:
    """Answers with a status."""
    return says("\r\n".join([f"HTTP/1.1 {code} X", *headers, "Content-Length: 0", "", ""]).encode())


def never_ends(connection: socket.socket) -> None:
    """Answers well, and then with a body that goes on for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")


def says_nothing(connection: socket.socket) -> None:
    """Takes the request and keeps silent until the other side has gone."""
    connection.recv(1)


@contextmanager
def serving(*answers: Answer) -> Iterator[tuple[str, list[Post]]]:
    """Serves one connection after the other, the last answer repeatedly: its URL, and what it was sent."""
    posts = list[Post]()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, ExitStack() as stack:
                stack.push(lambda *error: isinstance(error[1], OSError))
                posts.append(received(connection))
                answers[min(len(posts), len(answers)) - 1](connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook/geheim", posts
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def received(connection: socket.socket) -> Post:
    """Reads one request."""
    with connection.makefile("rb") as stream:
        line = stream.readline().decode().strip()
        headers = {}
        while (text := stream.readline().decode().strip()) != "":
            name, _, value = text.partition(": ")
            headers[name.lower()] = value
        return Post(line, headers, stream.read(int(headers["content-length"])))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries of this process follow each other quickly."""
    monkeypatch.setattr(notify, "TRY_S", 0.3)
    monkeypatch.setattr(notify, "FIRST_WAIT_S", 0.01)


def posted(url: str, **variables: str) -> str:
    """Posts a message from this process: why it was not taken."""
    settings = Settings.from_environment({"PROCTOR_DATA_DIR": "/tmp", **variables})  # noqa: S108 - nothing is written
    hook = Webhook(url, settings.notify_secret or "")
    return asyncio.run(notify._post(hook, json.dumps(DOCUMENT).encode(), settings))


@pytest.mark.parametrize(
    ("answers", "tries", "why"),
    [
        ([says(OK)], 1, ""),
        ([status(204)], 1, ""),
        ([status(500), status(503), status(200)], 3, ""),
        ([status(429, "Retry-After: 0"), status(200)], 2, ""),
        ([says(b""), says(b"\x00\xffnonsense\r\n\r\n"), says_nothing, says(OK)], 4, ""),
        ([never_ends], 1, ""),
        ([status(404)], 1, "status 404"),
        ([status(302, "Location: http://169.254.169.254/")], 1, "status 302"),
        ([status(502)], 4, "status 502, 4 times"),
        ([says_nothing], 4, "no answer within 0.3 s, 4 times"),
        ([says(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000)], 4, "4 times"),
    ],
    ids=[
        *("taken", "empty", "recovers", "busy", "broken", "endless"),
        *("gone", "redirected", "fails", "silent", "flooding"),
    ],
)  # fmt: skip - what is answered, and what comes of it
def test_what_a_server_can_do(answers: Sequence[Answer], tries: int, why: str) -> None:
    """Refusals are final; failures, silence and nonsense are tried again, four times, and never for long."""
    began_s = monotonic()
    with serving(*answers) as (url, posts):
        found = posted(url)
    assert found.endswith(why)
    assert bool(found) is bool(why)
    assert len(posts) == tries
    assert all(json.loads(post.body) == DOCUMENT for post in posts)
    assert "geheim" not in found
    assert monotonic() - began_s < 5


def test_nobody_listens() -> None:
    """A port without a server is a reason without the path, which may be a secret."""
    found = posted(f"http://127.0.0.1:{free_port()}/hook/geheim")
    assert "ClientConnectorError" in found
    assert found.endswith(", 4 times")
    assert "geheim" not in found


@pytest.mark.parametrize(
    ("url", "variables", "why"),
    [
        ("", {"PROCTOR_BLOCK_PRIVATE": "1"}, "private address"),
        ("", {"PROCTOR_ALLOWED_HOSTS": "hooks.example.com"}, "none of the hosts"),
        ("http://169.254.169.254/latest", {}, "metadata address"),
    ],
)
def test_egress_rules_hold(url: str, variables: dict[str, str], why: str) -> None:
    """A webhook is a place like any other: what may not be called is not, and not tried again."""
    with serving(says(OK)) as (served, posts):
        assert why in posted(url or served, **variables)
    assert posts == []


def test_a_run_notifies(cli: Cli) -> None:
    """One signed message that Slack can read and that fits its schema; its address is never printed."""
    with serving(says(OK)) as (url, posts):
        env = {"HOOK_URL": url, "PROCTOR_NOTIFY_SECRET": "s3cret"}
        done = cli("run", TURNS, "--notify", "env:HOOK_URL", "--processes", "1", "-v", "--json", env=env)
        assert done.code == 0, done
        run = json.loads(done.out)["run_id"]
        watched = cli("watch", run, "--notify", url)
        assert watched.code == 0, watched
    first, second = posts
    assert first.line == "POST /hook/geheim HTTP/1.1"
    posted = hold("notify", first.body)
    assert posted["text"].splitlines()[0].startswith(run)
    assert "61 turns" in posted["text"]
    assert (posted["event"], posted["run_id"], posted["exit"]) == ("run.finished", run, 0)
    assert posted["counts"]["total"] == 61
    assert posted["summary"]
    signed = f"{first.headers['x-proctor-timestamp']}.".encode() + first.body
    assert first.headers["x-proctor-signature"] == f"v1={hmac.new(b's3cret', signed, 'sha256').hexdigest()}"
    assert "x-proctor-signature" not in second.headers
    assert hold("notify", second.body)["text"] == posted["text"]
    for text in (done.out, done.err, watched.err):
        assert "geheim" not in text
        assert "s3cret" not in text


def test_a_failed_notification_is_a_warning(cli: Cli) -> None:
    """The exit code is the run's; a wrong address is refused before anything is sent."""
    with serving(status(410)) as (url, _):
        done = cli("run", TURNS, "--notify", url, "--processes", "1", "-q")
    place = url.removesuffix("/hook/geheim")
    assert (done.code, done.err) == (0, f"warning: the notification to {place} failed: status 410\n"), done
    for wrong, words in (
        ("hooks.example.com/geheim", "that is no address"),
        ("https://me:geheim@hooks.example.com", "that is no address"),
        ("env:NOT_THERE", "the variable NOT_THERE is not set"),
    ):
        done = cli("run", TURNS, "--notify", wrong)
        assert (done.code, words in done.err, "geheim" in done.err) == (2, True, False), done
    assert cli("run", TURNS, "--detach", "--notify", "http://localhost:1").code == 2


def test_the_secret_is_masked(cli: Cli, tmp_path: Path) -> None:
    """`config show` says that there is a secret, and not which; it may stand in a file."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    done = cli("config", "show", env={"PROCTOR_NOTIFY_SECRET_FILE": str(secret)})
    [line] = [line for line in done.out.splitlines() if line.startswith("notify_secret")]
    assert "***" in line
    assert "s3cret" not in done.out
