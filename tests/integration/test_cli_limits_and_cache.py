"""`proctor limits`, `proctor cache` and the cap of `proctor resume`, on a real server."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from producer.cli.main import run
from shared import keys
from shared.ledger.ledger import Ledger
from shared.upstream.costs import CostBook
from tests.support.ledger_runs import submit_cases

if TYPE_CHECKING:
    import redis

Proctor = Callable[..., tuple[int, str, str]]


@pytest.fixture
def proctor(
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Proctor:
    """Runs one command line here: exit code, stdout, stderr."""
    monkeypatch.setenv("PROCTOR_REDIS_URL", redis_url)
    monkeypatch.setenv("PROCTOR_DATA_DIR", str(tmp_path))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def document(proctor: Proctor, *arguments: str) -> dict[str, Any]:
    """Runs a command with `--json`, which has to print one document and nothing else."""
    code, out, err = proctor(*arguments, "--json")
    found: dict[str, Any] = json.loads(out)
    assert (found["schema_version"], found["exit"], err) == (2, code, "")
    return found


def use(client: "redis.Redis", name: str, fields: Mapping[str, float], calls: int) -> None:
    """Writes what the scripts keep of a scope that is in use."""
    client.zadd(keys.SCOPES_KEY, {name: 1})
    client.hset(keys.scope_key(name), mapping={field: str(value) for field, value in fields.items()})
    for call in range(calls):
        client.zadd(keys.permits_key(name), {f"call {call}": 9e15})


def test_limits_are_set_shown_and_removed(proctor: Proctor) -> None:
    """Limits that are not named again stay, a URL has one name, and what is removed is gone."""
    assert proctor("limits", "show")[2].startswith("no limit is set")
    assert proctor("limits", "set", "openai/gpt-4o", "--rpm", "500")[0] == 0
    shown = document(proctor, "limits", "set", "openai/gpt-4o", "--concurrency", "8")
    assert (shown["key"], shown["set"]) == ("openai/gpt-4o", {"rpm": 500, "concurrency": 8})
    proctor("limits", "set", "HTTP://LocalHost:80/", "--tpm", "90000", "--pace", "0.5")
    rows = document(proctor, "limits", "show")["limits"]
    assert [row["key"] for row in rows] == ["http://localhost", "openai/gpt-4o"]
    assert (rows[1]["free"], rows[1]["in_flight"], rows[1]["breaker"]) == (8, 0, "closed")
    code, out, _ = proctor("limits", "show")
    assert code == 0
    assert "90,000" in out.splitlines()[1]
    assert document(proctor, "limits", "unset", "http://localhost/")["unset"] == ["http://localhost"]
    assert proctor("limits", "unset", "http://localhost")[0] == 2
    assert len(document(proctor, "limits", "show", "openai/gpt-4o")["limits"]) == 1
    assert proctor("limits", "show", "nobody")[0] == 2


@pytest.mark.parametrize(
    "words", [["openai"], ["openai", "--rpm", "0"], ["openai", "--tpm", "nan"], ["two words", "--rpm", "1"]]
)
def test_what_is_no_limit_is_refused(proctor: Proctor, words: list[str]) -> None:
    """Nothing to set, no positive number, no name: exit 2 with a hint, and nothing is set."""
    code, out, err = proctor("limits", "set", *words)
    assert (code, out) == (2, "")
    assert "hint:" in err
    assert document(proctor, "limits", "show")["limits"] == []


def test_headroom_pauses_and_breakers_are_shown_and_reset(
    proctor: Proctor, redis_client: "redis.Redis"
) -> None:
    """Room for calls is the lower of what was set and what the upstream bears; a reset forgets troubles."""
    use(redis_client, "openai/gpt-4o abc", {"cwnd": 5.7, "rtt": 900, "at": 1}, calls=3)
    use(redis_client, "acme", {"open": 9e15, "at": 1}, calls=0)
    use(redis_client, "http://api", {"pause": 9e15, "at": 1}, calls=0)
    use(redis_client, "http://strict", {"pace": 40, "served": 1, "rtt": 9, "at": 1}, calls=0)
    use(redis_client, "http://away", {"b0": 2, "b1": 1, "g1": 1, "at": 1}, calls=0)
    use(redis_client, "run:r1", {"at": 1}, calls=1)
    proctor("limits", "set", "openai/gpt-4o", "--concurrency", "10")
    rows = {row["key"]: row for row in document(proctor, "limits", "show")["limits"]}
    assert list(rows)[-1] == "run:r1"
    model = rows["openai/gpt-4o"]
    assert (model["account"], model["in_flight"], model["free"], model["adaptive"]) == ("abc", 3, 2, 5.7)
    assert (rows["run:r1"]["free"], rows["run:r1"]["next_ms"]) == (None, 0)
    assert (rows["acme"]["breaker"], rows["http://api"]["next_ms"] > 1e12) == ("open", True)
    _, out, _ = proctor("limits", "show")
    assert "ok, adaptive limit 5" in out
    assert "ok, adaptive limit 1,500 rpm" in out
    assert rows["http://strict"]["adaptive_rpm"] == 1_500
    assert "circuit open" in out
    assert "paused by the upstream" in out
    assert "failing, 3 of 4 calls" in out
    assert "run:r1" not in out, "limits of single runs are only shown when they are asked for"
    assert "run:r1" in proctor("limits", "show", "run:r1")[1]
    assert document(proctor, "limits", "reset", "acme", "http://api")["reset"] == 2
    left = {row["key"] for row in document(proctor, "limits", "show")["limits"]}
    assert left == {"openai/gpt-4o", "http://away", "http://strict", "run:r1"}


def test_every_key_that_is_shown_is_accepted(proctor: Proctor, redis_client: "redis.Redis") -> None:
    """The first cell of each line can be given to `set` and `reset`, also where a model has an endpoint."""
    use(redis_client, "j @http://127.0.0.1:18080/v1 abc", {"rtt": 900, "at": 1}, calls=0)
    use(redis_client, "http://api", {"rtt": 900, "at": 1}, calls=0)
    heading, *lines = proctor("limits", "show")[1].splitlines()
    assert heading.split()[:2] == ["KEY", "ENDPOINT"]
    keys_shown = [line.split()[0] for line in lines]
    assert keys_shown == ["http://api", "j"]
    assert "http://127.0.0.1:18080/v1" in lines[1]
    for key in keys_shown:
        assert proctor("limits", "set", key, "--rpm", "60")[0] == 0
        assert document(proctor, "limits", "reset", key)["reset"] == 1


def test_cache_tells_what_it_holds_and_forgets(proctor: Proctor, redis_client: "redis.Redis") -> None:
    """Answers, size and hits are counted; clearing needs a yes and leaves everything else."""
    for number in range(3):
        redis_client.set(keys.answer_key(f"d{number}"), b"x" * 1_000)
    redis_client.set(keys.flight_key("d4"), "somebody 1")
    redis_client.hset(keys.CACHE_HITS_KEY, mapping={"hits": 3, "misses": 1})
    info = document(proctor, "cache", "info")["cache"]
    assert info == {
        "answers": 3,
        "bytes": 3_000,
        "hits": 3,
        "misses": 1,
        "hit_rate": 0.75,
        "ttl_s": 30 * 24 * 3600,
    }
    code, out, _ = proctor("cache", "info")
    assert (code, out.splitlines()) == (
        0,
        ["answers   3, 3.0 kB", "hits      3 of 4 (75%)", "kept for  30 days"],
    )
    code, _, err = proctor("cache", "clear")
    assert (code, "--yes" in err) == (2, True)
    assert document(proctor, "cache", "clear", "-f")["cleared"] == 3
    assert proctor("cache", "clear", "--yes")[1] == "0 answers forgotten\n"
    assert document(proctor, "cache", "info")["cache"]["hits"] == 0
    assert redis_client.exists(keys.flight_key("d4")) == 1


def test_resume_gives_a_run_another_cap(proctor: Proctor, redis_client: "redis.Redis") -> None:
    """`resume --max-cost` sets the cap before the run goes on; a run that nobody knows gets none."""
    ledger = Ledger(redis_client)
    submit_cases(ledger, "r1", [["0"]])
    ledger.control("r1", "pause")
    assert proctor("resume", "r1", "--max-cost", "2.5", "--detach")[0] == 0
    assert CostBook(ledger.caller).read("r1").cap_usd == 2.5
    assert proctor("resume", "r1", "--max-cost", "-1", "--detach")[0] == 2
    assert proctor("resume", "nobody", "--max-cost", "1", "--detach")[0] == 2
    assert redis_client.exists(keys.cost_key("nobody")) == 0
