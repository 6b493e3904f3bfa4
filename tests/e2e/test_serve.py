"""`proctor serve`: turns decided over HTTP by a real server, workers and Redis; two servers behave as one."""

import asyncio
import json
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from proctor import AsyncProducer, Producer, TurnError
from tests.support.browser import Browser
from tests.support.chat_example import talk
from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer, Say
from tests.support.processes import Process, Processes
from tests.support.service_calls import Reply, ask
from tests.support.tools import require_tool
from tests.support.tree import ROOT

SCHEMATHESIS = ROOT / "tests" / "data" / "serve_schemathesis.toml"
PACKET = {"threadId": "chat", "message": "I decided: we go with plan B", "clientRequestId": "c1"}


class Service(NamedTuple):
    """A running `proctor serve`."""

    process: Process
    url: str
    token: str

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
    ) -> Reply:
        """Makes one request; dicts are sent as JSON."""
        return ask((self.url, self.token if token is None else token), method, path, body, headers)


def started(cli: Cli, *arguments: str) -> Service:
    """Starts a service and waits for its first line."""
    process = cli.start("serve", "--port", "0", "--json", *arguments)
    cli.eventually(lambda: "\n" in process.output, 40)
    first = json.loads(process.output.splitlines()[0])
    assert list(first) == ["url", "token"]
    return Service(process, first["url"], first["token"])


@pytest.fixture
def service(cli: Cli) -> Iterator[Service]:
    """A service on an embedded Redis, with a worker of its own."""
    running = started(cli, "--access-log")
    yield running
    if running.process.is_running():
        assert running.process.stop() == 0


def test_turns_and_packets_are_decided_while_people_wait(service: Service) -> None:
    """Single turns, lists and packets are answered with their decisions; what is wrong is one JSON error."""
    ask = service.ask
    one = ask("POST", "/v1/turns", {"threadId": "t", "message": "thanks"})
    assert (one.status, one.body["decision"], one.body["etag"]) == (200, "skip", "1")
    stale = {"threadId": "t", "message": "more", "thread_memento_etag": "7"}
    two = ask("POST", "/v1/turns", {"turns": [{"threadId": "t", "message": "ok"}, stale]}).body["results"]
    assert (two[0]["etag"], two[1]["error"]["code"]) == ("2", "etag_conflict")
    assert ask("POST", "/v1/turns", stale).status == 409
    wrong = ask("POST", "/v1/turns", {"turns": [{"threadId": "t"}]}).body["error"]
    assert wrong["message"] == "turns[0]: message: is missing"
    assert ask("POST", "/v1/turns", "{").status == ask("POST", "/v1/turns", {"turns": []}).status == 400
    never = {"threadId": "never", "message": "hm"}
    assert ask("POST", "/v1/turns?timeout_s=soon", never).body["error"]["code"] == "bad_request"
    assert ask("GET", "/v1/threads/never").status == 404, "what is refused does not count"
    assert ask("GET", "/v1/threads/t", token="").status == 401

    chat = ask("POST", "/v1/chat", PACKET | {"traceConfig": {"level": "debug"}}).body
    assert chat["decision"] in {"must", "should", "skip"}
    assert chat["trace"]["events"][0]["phase"] == "breakpoint"
    assert chat["affect"] == chat["thread_memento"]["affect"]
    again = ask("POST", "/v1/chat", PACKET).body
    assert (again["etag"], again["messageId"]) == (chat["etag"], chat["messageId"])
    assert ask("POST", "/v1/chat", PACKET | {"message": "another"}).status == 409
    off = ask("POST", "/v1/chat", {"threadId": "chat", "message": "x", "thread_context_mode": "off"}).body
    assert "memento" not in off
    dry = ask("POST", "/v1/chat", {"threadId": "chat", "message": "x", "simulate": True}).body
    assert dry["etag"] == "2"
    assert ask("POST", "/v1/chat", PACKET | {"zz": 1}).body["error"]["unrecognized_keys"] == ["zz"]

    state = ask("GET", "/v1/threads/chat")
    assert (state.body["etag"], state.headers["Etag"]) == ("1", '"1"')
    assert ask("GET", "/v1/threads/chat", **{"If-None-Match": '"9", W/"1"'}).status == 304
    assert ask("DELETE", "/v1/threads/chat", **{"If-Match": '"9"'}).status == 412
    assert ask("DELETE", "/v1/threads/chat", **{"If-Match": '"9", "1"'}).status == 204
    assert ask("GET", "/v1/threads/chat").status == 404
    assert ask("GET", "/readyz", token="").body == {"status": "ready"}
    large = ask("POST", "/v1/turns", "x" * (4 << 20 | 1))
    assert (large.status, large.body["error"]["message"]) == (413, "the body has more than 4,194,304 bytes")
    logged = service.process.errors
    assert '"method":"DELETE","route":"/v1/threads/{thread}","namespace":"live","status":204' in logged
    assert not [word for word in ("plan B", "threads/chat") if word in logged]


def test_requests_that_are_not_http_are_not_logged(service: Service) -> None:
    """Anybody can send them, with what is nobody's business."""
    place = urlsplit(service.url)
    with socket.create_connection((place.hostname, place.port), 10) as raw:
        raw.sendall(b"POST /a secret HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n")
        assert b" 400 " in raw.recv(1000)
    assert service.ask("GET", "/healthz").status == 200
    assert "secret" not in service.process.errors


def events_of(response: HTTPResponse) -> Iterator[tuple[str, Any]]:
    """Reads server-sent events while they come."""
    assert response.status == HTTPStatus.OK, response.read()
    name = ""
    for line in response:
        word, _, rest = line.decode().strip().partition(": ")
        if word == "event":
            name = rest
        elif word == "data":
            yield name, json.loads(rest)


def written(prompt: str, nth: int) -> Say:
    """A model that writes slowly, breaks off once, and refuses."""
    heard = prompt.rpartition("\n")[2]
    text = json.dumps({"response": f"You said: {heard}", "affect_signal": None, "shape": None})
    if "never" in heard:
        return Say("not that", 400)
    slow_s = 0.4 if "slow" in heard else 0.05
    return Say(text, end="half" if "breaks" in heard and nth == 1 else "whole", piece_s=slow_s)


def skip_while_slots_are_taken(service: Service) -> None:
    """Has a turn decided that asks nothing, while one waits in line for a slot and another is put aside."""
    for at in range(2):
        service.ask("POST", "/v1/turns?wait=0", {"threadId": f"line {at}", "message": "hm?"})
    began_s = monotonic()
    skipped = service.ask("POST", "/v1/turns", {"threadId": "other", "message": "ok thanks"})
    assert (skipped.body["decision"], monotonic() - began_s < 1) == ("skip", True)


def test_answers_are_sent_while_a_model_writes_them(cli: Cli) -> None:
    """The decision comes first, then words, then the result; a caller may leave, and the turn counts."""
    cli.processes.env["PROCTOR_TURN_SLOTS"] = "1"
    with ModelServer(written) as model, ExitStack() as connections:
        service = started(cli, "--model", "parrot", "--api-base", model.api_base)
        place = urlsplit(service.url)

        def streamed(message: str, path: str = "/v1/turns", **more: Any) -> HTTPResponse:
            connection = HTTPConnection(place.hostname or "", place.port, timeout=30)
            connections.callback(connection.close)
            headers = {"Authorization": f"Bearer {service.token}", "Accept": "text/event-stream"}
            body = {"threadId": "t", "message": message, **more}
            connection.request("POST", path, json.dumps(body), headers)
            return connection.getresponse()

        leaves = streamed("I leave a slow one")
        assert next(events_of(leaves)) == ("decision", {"decision": "should"})
        skip_while_slots_are_taken(service)
        leaves.close()
        connections.close()
        events = list(events_of(streamed("it breaks off?", "/v1/chat", meta={"x": 1})))
        names = [name for name, _ in events]
        assert (names[0], names[-1], names.count("restart")) == ("decision", "done", 1)
        words = [data["text"] for name, data in events[names.index("restart") :] if name == "delta"]
        assert len(words) > 1
        assert (events[-1][1]["response"], events[-1][1]["etag"]) == ("You said: it breaks off?", "2")
        assert "".join(words) == events[-1][1]["response"]
        assert [name for name, _ in events_of(streamed("ok thanks"))] == ["decision", "done"]
        late = list(events_of(streamed("slow?", "/v1/turns?timeout_s=0.5")))
        assert (late[-1][0], late[-1][1]["error"]["code"]) == ("error", "deadline")
        assert list(events_of(streamed("never")))[-1][1]["error"]["message"].endswith("not that")
        plain = service.ask("POST", "/v1/turns", {"threadId": "t", "message": "more?"}).body
        assert (plain["response"], plain["etag"]) == ("You said: more?", "5"), "the late turn counts"
        with Producer(service.url, service.token) as producer:
            assert producer.send({"threadId": "p", "message": "a?"}).result(30).response == "You said: a?"
        stale = streamed("x", thread_memento_etag="1")
        assert (stale.status, json.loads(stale.read())["error"]["code"]) == (409, "etag_conflict")
        assert service.ask("POST", "/v1/turns", {"turns": []}, Accept="text/event-stream").status == 400
        assert service.process.stop() == 0


def test_people_talk_in_a_browser(cli: Cli, browser: Browser, processes: Processes, tmp_path: Path) -> None:
    """The example's page shows decisions, answers, affect and the summary that a peak freezes."""
    api = cli.start("sample-api", "--port", "0", "--latency-ms", "30")
    cli.eventually(lambda: "http://" in api.output_text(), 20)
    [base] = re.findall(r"http://[\w.:]+", api.output_text())
    service = started(cli, "--model", "sample", "--api-base", f"{base}/v1")
    said = tmp_path / "service.json"
    said.write_text(json.dumps({"url": service.url, "token": service.token}))
    script = f"exec {sys.executable} {ROOT / 'examples/chat_server.py'} 0 < {said}"
    chat = processes.start(require_tool("bash"), "-c", script)
    chat.wait_for("chat at ", 20)
    talk(browser, chat.output.split()[2])
    assert browser.texts("#memory")[0].startswith("I can't keep up"), "the peak keeps the summary before it"
    assert (browser.complaints(), browser.strangers()) == ([], [])
    for process in (chat, api):
        process.stop()
    assert service.process.stop() == 0


def test_turns_are_fetched_later_and_files_are_runs(service: Service, cli: Cli) -> None:
    """With `wait=0` ids come back at once; a file is submitted and followed; micro-runs are not listed."""
    ids = service.ask("POST", "/v1/turns?wait=0", {"threadId": "t", "message": "hm"}).body["ids"]

    def decided() -> None:
        assert service.ask("GET", f"/v1/turns/{ids[0]}").body.get("decision") == "should"

    eventually(decided, 10)
    assert service.ask("GET", "/v1/turns/none.0").status == 404
    lines = '{"threadId": "a", "message": "one"}\n{"threadId": "b", "message": "two"}\n'
    run = service.ask("POST", "/v1/runs?name=file", lines, **{"Idempotency-Key": "k"})
    again = service.ask("POST", "/v1/runs?name=file", lines, **{"Idempotency-Key": "k"}).body
    assert (run.status, again["run_id"], again["duplicate"]) == (202, run.body["run_id"], True)
    events = service.ask("GET", f"{run.headers['Location']}/events").body.decode()
    assert json.loads(events.splitlines()[-2].removeprefix("data: "))["state"] == "finished"
    assert service.ask("GET", run.headers["Location"]).body["counts"]["decided"] == 2
    bench = {"name": "b", "models": ["echo"], "system_prompt": "x", "test_cases": [{"input": "hi"}]}
    cases = service.ask("POST", "/v1/runs", bench)
    assert b'"state": "finished"' in service.ask("GET", f"{cases.headers['Location']}/events").body
    unclear = service.ask("POST", "/v1/runs?kind=others", lines).body["error"]
    assert unclear["message"] == "kind is one of turns, cases, queries"
    listed = json.loads(cli("runs", "list", "--json").out)["runs"]
    assert {each["run_id"] for each in listed} == {run.body["run_id"], cases.body["run_id"]}


@pytest.mark.parametrize(
    "phases",
    [
        pytest.param(("--phases", "fuzzing", "-n", "5"), id="short"),
        pytest.param(
            ("--phases", "coverage,fuzzing,stateful", "-n", "100"), id="long", marks=pytest.mark.slow
        ),
    ],
)
def test_the_service_keeps_to_its_description(
    service: Service, processes: Processes, tmp_path: Path, phases: tuple[str, ...]
) -> None:
    """Schemathesis finds no undocumented status, type or body, and nothing wrong that is accepted."""
    [turn] = service.ask("POST", "/v1/turns?wait=0", {"threadId": "t", "message": "hm"}).body["ids"]
    lines = '{"threadId": "a", "message": "one"}\n'
    run = service.ask("POST", "/v1/runs", lines).body["run_id"]
    known = f'"path.turn" = "{turn}"\n"path.run" = "{run}"\n'
    config = tmp_path / "schemathesis.toml"
    config.write_text(SCHEMATHESIS.read_text().replace("[parameters]\n", f"[parameters]\n{known}"))
    checked = processes.start(
        f"{Path(sys.executable).parent}/st",
        *("--config-file", str(config), "run", f"{service.url}/openapi.json", "-c", "all"),
        *("-H", f"Authorization: Bearer {service.token}", *phases),
        cwd=tmp_path,
    )
    assert checked.wait(280) == 0, checked.output_text()
    unknown = service.ask("GET", "/nowhere")
    assert (unknown.status, unknown.body["error"]["code"]) == (404, "not_found")
    wrong = service.ask("PUT", "/v1/chat")
    assert (wrong.status, wrong.headers["Allow"]) == (405, "POST")
    assert wrong.body["error"] == {
        "code": "method_not_allowed",
        "message": "PUT is not taken here",
        "hint": "send POST",
    }


def test_a_service_without_workers_of_its_own_does_not_wait_for_any(cli: Cli) -> None:
    """With `--processes 0` it takes turns at once, for workers that start later."""
    process = cli.start("serve", "--port", "0", "--json", "--processes", "0")
    cli.eventually(lambda: "\n" in process.output, 25)
    assert process.stop() == 0


def test_a_killed_server_costs_no_turn(service: Service, cli: Cli) -> None:
    """Turns that were sent once more after `kill -9` count once, in their order, through another server."""
    other = started(cli)
    with Producer(service.url, service.token) as producer:
        sent = producer.send_many({"threadId": "t", "message": f"number {at}"} for at in range(50))
        assert [future.result(30).etag for future in sent] == [str(at + 1) for at in range(50)]
        with pytest.raises(TurnError, match="is empty"):
            producer.send({"threadId": "t", "message": ""}).result(30)
    said = {"threadId": "t", "message": "once", "clientRequestId": "one", "thread_memento_etag": "50"}
    answers = [each.ask("POST", "/v1/turns", said) for each in (service, other, service)]
    assert [(answer.status, answer.body["etag"]) for answer in answers] == [(200, "51")] * 3
    stale = other.ask("POST", "/v1/turns", said | {"clientRequestId": "two"})
    assert (stale.status, stale.body["error"]["code"]) == (409, "etag_conflict")
    turns = [{"threadId": "k", "message": f"{at}", "clientRequestId": f"r{at}"} for at in range(200)]
    first = service.ask("POST", "/v1/turns?wait=0", {"turns": turns})
    assert first.status == 202
    service.process.kill()

    async def once_more() -> list[str]:
        async with AsyncProducer(other.url, other.token) as producer:
            return [(await future).etag for future in await producer.send_many(turns)]

    assert asyncio.run(once_more()) == [str(at + 1) for at in range(200)]
    assert other.ask("GET", "/v1/threads/k").body["etag"] == "200"
    assert other.process.stop() == 0
