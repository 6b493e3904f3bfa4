"""`runs forget` deletes the texts of runs of each kind, wherever they are, and keeps their figures."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from producer.cli.main import run as command_line
from shared.clock import now_ms
from shared.keys import FORGETTING_KEY, results_key
from shared.runs import RunStore
from shared.runs.forgetting import forget_old_texts
from tests.support.benches import write
from tests.support.cli import Cli
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.turn_files import write_turns

if TYPE_CHECKING:
    import redis

Run = Callable[..., str]
"""Runs a file; returns the run's id."""
PLANTED: Final = "geheim"
ROWS: Final = 1_000
"""Of cases: so many are packed with a dictionary."""
BENCH: Final = f"""
name: bench
description: about {PLANTED}
system_prompt: You are {PLANTED}.
models: [m]
prompts: [{{id: p, user: "{PLANTED} {{{{ q }}}}"}}]
default_checks: [{{contains: "1"}}]
test_cases_file: cases.jsonl
"""


def values(client: Any) -> Iterator[tuple[bytes, bytes]]:
    """Every key of a server with all that it holds."""
    read = {
        b"hash": lambda key: b" ".join(part for pair in client.hgetall(key).items() for part in pair),
        b"string": client.get,
        b"set": lambda key: b" ".join(client.smembers(key)),
        b"zset": lambda key: b" ".join(client.zrange(key, 0, -1)),
        b"list": lambda key: b" ".join(client.lrange(key, 0, -1)),
    }
    for key in client.scan_iter():
        yield key, read[client.type(key)](key)


def unpacked(store: RunStore, run: str) -> bytes:
    """The texts of a packed run as readers see them."""
    pages = store.item_pages(run, with_payload=True)
    return b" ".join(row.line + row.payload for page in pages for row in page)


def cases(folder: Path, run: Run) -> str:
    """A packed run with one case in three that fails."""
    rows = [{"id": f"c{at}", "input": PLANTED, "vars": {"q": PLANTED}, "tags": ["t"]} for at in range(ROWS)]
    (folder / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = [{"case": at, "model": "m", "output": f"{PLANTED} {at % 3}"} for at in range(ROWS)]
    (folder / "said.jsonl").write_text("\n".join(map(json.dumps, said)))
    path = write(folder, BENCH)
    return run(path, "--outputs", folder / "said.jsonl")


def queries(folder: Path, run: Run) -> str:
    """A query that is answered, and one that ends in the dead set."""
    query = {
        "category": "sla",
        "query": PLANTED,
        "is_oos": False,
        "expected_docs": [],
        "must_contain": [PLANTED],
    }
    entries = [{**query, "id": name, "must_not_contain": []} for name in ("Q-1", "Q-2")]
    path = folder / "queries.json"
    path.write_text(json.dumps({"version": "1", "queries": entries}))
    replies = iter([Step(body={"answer": PLANTED}), Step(500, body=PLANTED)])
    with ScriptedApi(lambda _query, _nth: next(replies)) as api:
        return run(path, "--api-url", api.url)


def turns(folder: Path, run: Run) -> str:
    """Turns with a proposed summary."""
    shape = {"arc": PLANTED, "active": [PLANTED], "parked": [], "decisions": [], "next": []}
    turn = {
        "threadId": "t",
        "role": "user",
        "ts": "2026-03-02T09:00:40Z",
        "message": PLANTED,
        "modelShape": shape,
    }
    path = write_turns(folder / "turns.jsonl", [{**turn, "messageId": f"m{at}"} for at in range(3)])
    return run(path)


@pytest.fixture
def run(cli: Cli, redis_url: str) -> Run:
    """Runs a file with workers of its own."""

    def to_its_end(*arguments: str | Path) -> str:
        done = cli("run", *arguments, "--json", env={"PROCTOR_REDIS_URL": redis_url})
        run_id: str = json.loads(done.out)["run_id"]
        return run_id

    return to_its_end


def figures(printed: Callable[..., str], run: str) -> list[Any]:
    """What is kept of each row: outcome, figures, and how the case ended."""
    rows = map(json.loads, printed("results", run, "--format", "jsonl").splitlines())
    return [
        (row["outcome"], row["latency_ms"], row["cost_usd"], (row["result"] or {}).get("status"))
        for row in rows
    ]


def test_a_forgotten_run_has_its_figures_and_no_text(
    redis_client: "redis.Redis",
    run: Run,
    printed: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Reports and comparisons go on; what needs texts is refused; the retention does the same."""
    runs = [make(tmp_path, run) for make in (cases, queries, turns)]
    before = {name: figures(printed, name) for name in runs}
    store = RunStore(redis_client)
    assert PLANTED.encode() in unpacked(store, runs[0])
    assert [key for key, value in values(redis_client) if PLANTED.encode() in value]

    printed("runs", "forget", runs[0], "--yes")
    assert forget_old_texts(redis_client, store, kept_s=3_600, now_ms=0) == 0
    redis_client.delete(FORGETTING_KEY)
    assert forget_old_texts(redis_client, store, kept_s=1, now_ms=now_ms() + 5_000) == 2

    assert [key for key, value in values(redis_client) if PLANTED.encode() in value] == []
    assert PLANTED.encode() not in unpacked(store, runs[0])
    assert {name: figures(printed, name) for name in runs} == before
    for name in runs:
        assert PLANTED not in printed("results", name, "--format", "jsonl")
        assert "forgotten" in printed("report", name, "--format", "md")
        assert PLANTED not in printed("report", name, "--format", "html")
        assert json.loads(printed("runs", "show", name, "--json"))["texts_forgotten_at"].startswith("20")
        assert int(redis_client.ttl(results_key(name))) > 0
    for refused in (["retry", runs[1]], ["rescore", runs[0]]):
        assert command_line(refused) == 2
        assert "were forgotten" in capsys.readouterr().err
