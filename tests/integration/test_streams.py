"""Commands and pages that read a stream of served turns, and parts of it by their time."""

import asyncio
import json
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from producer import streams
from producer.cli.main import run
from producer.serve.micro_runs import MicroRuns
from producer.serve.turn_bodies import AcceptedTurn
from shared import keys
from shared.clock import iso_utc, now_ms
from shared.ledger import Keep
from shared.settings import Settings
from tests.support.inline_worker import InlineWorker
from tests.support.schemas import hold
from tests.support.viewed_runs import access_to, at, get, served, told

if TYPE_CHECKING:
    import redis

Serve = Callable[..., None]


@pytest.fixture
def serve(redis_url: str, inline_worker: InlineWorker, redis_client: "redis.Redis") -> Serve:
    """Decides turns as the service does: `serve("hm", "ok", …, namespace=…)`, one micro-run."""
    assert redis_url, "the commands of this test use the same server"
    inline_worker.register()
    requests = count()

    def decide(*messages: str, namespace: str = "live") -> None:
        access: Any = SimpleNamespace(
            ledger=inline_worker.ledger,
            client=redis_client,
            publisher=inline_worker,
            settings=Settings.from_environment({}),
        )
        runs = MicroRuns(access, namespace, "guardrail", Keep())
        lines = [
            json.dumps(
                {
                    "threadId": f"t{at}",
                    "message": text,
                    "messageId": f"m{at}",
                    "clientRequestId": f"c{next(requests)}",
                }
            ).encode()
            for at, text in enumerate(messages)
        ]
        run = runs.next_run()
        runs.submit(run, [AcceptedTurn(f"t{at}", line) for at, line in enumerate(lines)])
        inline_worker.work()
        runs.fold([run])

    return decide


def test_a_stream_is_one_line_among_runs(serve: Serve, printed: Callable[..., str]) -> None:
    """With its turns today and its rate; as JSON with decisions and latency."""
    assert "streams" not in json.loads(printed("--json", "runs"))
    serve("hm", "ok")
    serve("ok")
    [head, line] = printed("runs").splitlines()
    assert head.split()[:3] == ["RUN", "KIND", "NAME"]
    assert "served:live" in line
    assert "3 today" in line
    [stream] = hold("runs", printed("--json", "runs"))["streams"]
    assert (stream["turns_today"], stream["decisions_today"]) == (3, {"must": 0, "should": 1, "skip": 2})
    assert (stream["kept"], stream["errors_today"]) == (3, 0)
    assert stream["latency_ms"]["p50"] <= stream["latency_ms"]["max"]


def test_parts_of_a_stream_are_reported_as_runs_are(
    serve: Serve,
    printed: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`--since` and `--until` choose turns by when they ended; rows, totals and reports are those of runs."""
    serve("hm", "ok", "hm")
    Event().wait(0.01)
    middle = iso_utc(now_ms())
    Event().wait(0.01)
    serve("ok", "ok")
    lines = [json.loads(line) for line in printed("results", "served", "--format", "jsonl").splitlines()]
    assert [line["item_id"] for line in lines] == [f"turn-{at}" for at in range(5)]
    assert [line["result"]["decision"] for line in lines] == ["should", "skip", "should", "skip", "skip"]
    assert "turn-1" in printed("results", "served:live", "--since", "1h", "--where", "skip", "--first", "1")
    document = json.loads(printed("--json", "report", "served", "--since", middle))
    assert document["counts"]["total"] == 2
    assert document["summary"]["decisions"] == {"must": 0, "should": 0, "skip": 2}
    assert document["summary"]["threads"] == 2
    again = json.loads(printed("--json", "report", document["run_id"]))
    assert again == document, "the id of a part is a name of it"
    before = printed("report", f"served@1h..{middle}", "--format", "md")
    assert "3 turns of 3 threads" in before

    def refused(arguments: tuple[str, ...], problem: str) -> None:
        assert run(list(arguments)) == 2
        assert problem in capsys.readouterr().err

    assert printed("results", "served", "--until", "30m") == ""
    with monkeypatch.context() as behind:
        behind.setattr(streams, "now_ms", lambda: now_ms() - 60_000)
        lines = printed("results", "served", "--format", "jsonl").splitlines()
    assert len(lines) == 5, "the clock of Redis may be ahead"
    for arguments, problem in {
        ("results", "served:shop"): "there is no stream served:shop",
        ("results", "served", "--since", "soon"): "'soon' is not a time",
        ("results", "served@1h", "--since", "2h"): "has its times already",
        ("results", "served", "--since", "1h", "--until", "2h"): "ends before it begins",
        ("results", "run-1", "--since", "1h"): "--since and --until are for streams",
        ("retry", "served"): "served is a stream of turns, not a run",
    }.items():
        refused(arguments, problem)
    serve("hm", namespace="shop")
    refused(("results", "served"), "there are 2 streams: served:shop, served:live")


@pytest.mark.usefixtures("printed")
def test_a_filter_that_nothing_meets_says_of_how_many(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    """Turns that are there are not said to be missing, also where they were named before."""
    serve("hm", "ok", "hm")
    for chosen, said in {(): "none of 3 turns", ("--item", "turn-1"): "none of 1 turn"}.items():
        assert run(["results", "served", "--where", "must", *chosen]) == 0
        assert f"{said} meets the condition" in capsys.readouterr().err
    assert run(["results", "served", "--until", "30m", "--where", "must"]) == 0
    assert "no results yet" in capsys.readouterr().err


def test_a_turn_of_a_stream_is_shown_by_any_of_its_names(
    serve: Serve, printed: Callable[..., str], redis_client: "redis.Redis"
) -> None:
    """By its number, message, thread and request, and by the id that a caller got who did not wait."""
    serve("hm", "ok")
    serve("so be it", namespace="shop")
    serve("let us go")
    assert "let us go" in printed("show", "served:live")
    for name in ("turn-2", "2", "m0", "t0", "c3"):
        assert "let us go" in printed("show", "served:live@1h", name), name
    thread = printed("show", "served:live", "t0")
    assert (thread.index("hm"), "ok" in thread) < (thread.index("let us go"), True)
    lines = printed("results", "served:live", "--item", "t1", "--format", "jsonl").splitlines()
    assert [json.loads(line)["item_id"] for line in lines] == ["turn-1"]
    kept = json.dumps(["m1", {"threadId": "t1", "messageId": "m1"}, None])
    redis_client.set(keys.served_result_key("live", "served-ab-1.1"), kept)
    document = json.loads(printed("--json", "show", "served:live", "served-ab-1.1"))
    assert [item["item_id"] for item in document["items"]] == ["turn-1"]
    page = Path(printed("open", "served:live", "--no-open").strip())
    assert (page.name, "let us go" in page.read_text()) == ("served:live.html", True)


def test_times_of_a_stream_are_compared_by_their_shares(
    serve: Serve, printed: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two times of one stream, a run without partners, and two streams; what cannot be compared is said."""
    serve(*["hm"] * 60)
    middle = iso_utc(now_ms() + 1)
    Event().wait(0.01)
    serve(*["hm", "ok"] * 30)
    one, other = f"served@1h..{middle}", f"served@{middle}"
    shown = printed("compare", one, other)
    assert "More than chance" in shown
    assert "skip" in shown
    assert "+50.0 points *" in shown
    files = [tmp_path / "shares.md", tmp_path / "shares.json", tmp_path / "shares.html"]
    options = [word for file in files for word in ("-o", str(file))]
    document = hold("compare-streams", printed("--json", "compare", one, other, *options))
    assert document == hold("compare-streams", files[1].read_text())
    assert document["verdict"] == "different"
    assert list(document["shares"]) == ["should", "skip", "rule 5", "rule 6"]
    assert document["shares"]["skip"]["low"] > 0.3
    assert (document["a"]["turns"], document["b"]["threads"]) == (60, 60)
    assert "| skip | 0.0% | 50.0% | +50.0 points * |" in files[0].read_text()
    page = files[2].read_text()
    assert "<title>shares · More than chance" in page
    assert "+50.0 points *" in page

    serve(*["hm"] * 60, namespace="shop")
    same = json.loads(
        printed("--json", "compare", "served:shop", f"served:live@1h..{middle}", "--since", "1h")
    )
    assert same["verdict"] == "no significant difference"
    for arguments, problem in {
        ("compare", "run-1", "--since", "1h"): "--since and --until are for streams",
        ("compare", "served:live", "--by", "model"): "are for runs",
        ("compare", "served:live", "--since", "30m"): "has no turns",
    }.items():
        assert run(list(arguments)) == 2, arguments
        assert problem in capsys.readouterr().err


def test_turns_of_a_stream_are_filtered(serve: Serve, redis_url: str, tmp_path: Path) -> None:
    """Among all that are stored, in the words of `results --where`; a mistake is said with a hint."""
    serve(*["hm", "ok"] * 30)
    with access_to(redis_url, tmp_path) as access, served(access) as address:

        def page(where: str) -> str:
            return asyncio.run(get(at(address, "/run/served:live", where=where)))[1]

        found = page("id %3D m3, m50 and latency < 1h")
        assert re.findall(r'data-id="(\d+)"', found) == ["50", "3"]
        assert "No turn matches." in page("latency > 2d")
        assert "did you mean &#39;latency&#39;?" in page("latncy > 2d")


def test_a_stream_has_a_page_that_is_live(serve: Serve, redis_url: str, tmp_path: Path) -> None:
    """Totals of today and by the hour, latest turns page by page, one turn, the report of an hour."""
    serve(*["hm", "ok"] * 30)
    with access_to(redis_url, tmp_path) as access, served(access) as address:

        def page(path: str, **query: str) -> str:
            status, body = asyncio.run(get(at(address, path, **query)))
            assert status == 200, body
            return body

        def status_of(path: str, **query: str) -> int:
            return asyncio.run(get(at(address, path, **query)))[0]

        assert "60 turns today" in page("/")
        assert "0 must, 30 should, 30 skip" in page("/")
        newest = page("/run/served:live")
        assert "30 (50.0%)" in newest
        assert "Rule 5" in newest
        assert newest.index('data-id="59"') < newest.index('data-id="10"')
        older = re.search(r'href="([^"]+)" rel="next"', newest)
        assert older is not None
        _, _, words = older[1].replace("&amp;", "&").partition("?")
        last = page("/run/served:live", before=parse_qs(words)["before"][0])
        assert ('data-id="9"' in last, 'data-id="10"' in last, 'rel="next"' in last) == (True, False, False)
        turn = page("/run/served:live/item/turn-58", part="1")
        assert "t58/m58" in turn
        assert "Ask this again" not in turn
        assert status_of("/run/served:live/item/turn-60") == 404
        assert status_of("/run/served:no") == 404
        assert status_of("/run/served:live", before="x") == 400
        hour = re.search(r'href="(/run/served[^"]+/report)\?', newest)
        assert hour is not None
        assert "60 turns" in page(hour[1])

        live = asyncio.run(told(at(address, "/live", topic="served:live"), "served:live"))
        assert live["state"] == "59"
        serve("hm")
        live = asyncio.run(told(at(address, "/live", topic="served:live"), ">61<"))
        assert live["state"] == "60"
