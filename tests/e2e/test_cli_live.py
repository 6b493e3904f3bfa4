"""`proctor run` with a model: turns are answered live, and calls made and avoided are counted."""

import json
from pathlib import Path

from tests.support.cli import Cli
from tests.support.live_desk import LiveModel, talks
from tests.support.turn_files import write_turns

KEY = "a-secret-that-nobody-stores"


def test_run_answers_turns_and_tells_what_it_cost(cli: Cli, tmp_path: Path) -> None:
    """One document with calls, cost and tokens; results with answers; all traces; the cache pays."""
    file = write_turns(tmp_path / "talks.jsonl", talks(6, 2, skips=2))
    with LiveModel() as model:
        where = ("--model", "test/parrot", "--api-base", model.api_base, "--api-key-env", "PARROT_API_KEY")
        how = ("--price", "100/200", "-j", "4", "--processes", "2", "-q", "--json")
        done = cli("run", file, *where, *how, env={"PARROT_API_KEY": KEY})
        assert (done.code, done.err) == (0, ""), done
        first = json.loads(done.out)
        again = json.loads(cli("run", file, *where, *how, env={"PARROT_API_KEY": KEY}).out)
    assert {each.headers["Authorization"] for each in model.asked} == {f"Bearer {KEY}"}
    assert len(model.asked) == 12
    assert model.most_in_flight <= 4
    calls = first["summary"]["calls"]
    assert (calls["made"], calls["avoided"], calls["given_up"]) == (12, 12, 0)
    assert (calls["prompt_tokens"], calls["completion_tokens"], calls["cost_usd"]) == (120, 60, 0.024)
    assert (first["summary"]["model"], first["summary"]["live"]) == ("test/parrot", "should")
    assert again["summary"]["calls"]["made"] == 0
    assert again["summary"]["calls"]["from_cache"] == 12
    assert again["summary"]["calls"]["cost_usd"] is None
    run = first["run_id"]
    rows = [json.loads(line) for line in cli("results", run, "--format", "jsonl").out.splitlines()]
    assert [row["result"]["response"] for row in rows[:3]] == ["re: question 0.0", "re: question 0.1", None]
    assert rows[0]["cost_usd"] == 0.002
    traces = cli("results", run, "--traces", "--all-phases").out.splitlines()
    assert len(traces) == 24 + 12 * 3
    assert len(cli("results", run, "--traces").out.splitlines()) == 24
    assert "calls avoided" in cli("report", run).out
    assert KEY not in "".join([*traces, *map(json.dumps, rows), cli("runs", "show", run, "--json").out])


def test_what_would_be_sent_is_shown_before(cli: Cli, tmp_path: Path) -> None:
    """A dry run counts the calls and sends nothing; options that do not fit are exit code 2."""
    file = write_turns(tmp_path / "talks.jsonl", talks(2, 3, skips=1))
    plan = json.loads(cli("run", file, "--model", "openai/m", "--live", "all", "--dry-run", "--json").out)
    assert plan["counts"]["calls"] == 8
    assert "about 6 calls of the model" in cli("run", file, "--model", "openai/m", "--dry-run").out
    refused = cli("run", file, "--live", "must", "--dry-run")
    assert (refused.code, refused.out) == (2, "")
    assert "--live needs a model" in refused.err
