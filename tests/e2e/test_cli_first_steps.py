"""The first minutes with Proctor: demo, init, and the example files themselves."""

import json
import re
import signal
import socket
from pathlib import Path
from typing import Final

import pytest

from proctor import Producer
from producer.load.source import Source
from producer.sample_api.server import in_background
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say
from tests.support.processes import marked_processes
from tests.support.tree import ROOT
from tests.support.turn_files import read_turns

EXAMPLES: Final = ROOT / "examples"
VERDICTS: Final = [["cases", "✗"], ["queries", "✗"], ["turns", "✓"]]
"""How the lines of `demo` begin."""


def test_demo_prints_its_verdicts(cli: Cli) -> None:
    """Without `-v`, `demo` prints a line for each workload and no tables."""
    done = cli("demo")
    assert done.code == 0, done
    assert [line.split()[:2] for line in done.out.splitlines() if line] == VERDICTS
    assert "next: `proctor demo -v`" in done.err


def test_demo_decides_and_cleans_up(cli: Cli, tmp_path: Path) -> None:
    """`demo -v` shows all workloads, one decision of each rule, and leaves neither folder nor process."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    reports, before = tmp_path / "reports", set(marked_processes())
    done = cli("demo", "-v", "-o", reports, env={"TMPDIR": str(folder)})
    assert done.code == 0, done
    assert "finished: 61 turns of 8 threads" in done.out
    assert "finished: 50 queries" in done.out
    assert "finished: 5 cases by 2 models" in done.out
    assert '/country is "The land of cheese", expected "France"' in done.out
    assert "Freeform Mode" in done.out
    assert "next: proctor results" not in done.out, "its runs are gone"
    verdicts = done.out.rstrip().splitlines()[-3:]
    assert [line.split()[:2] for line in verdicts] == VERDICTS
    pages = {path.name: path.read_text(encoding="utf-8") for path in reports.iterdir()}
    assert sorted(pages) == ["bench.html", "evaluation_baselines.html", "freeform.html", "turns.html"]
    assert all("</html>" in page for page in pages.values())
    table = done.out.split("DECISION")[1].split("\n\n")[0]
    rules = [line.split()[1] for line in table.splitlines()[1:]]
    assert rules == ["1", "2", "3", "4", "5", "6", "6"]
    assert [path.name for path in folder.iterdir() if path.name.startswith("proctor-demo")] == []
    cli.eventually(lambda: set(marked_processes()) <= before)


def test_demo_json(cli: Cli) -> None:
    """`demo --json` prints the run's document and nothing else; a Redis in the environment is left alone."""
    done = cli("demo", "--json", "-q", env={"PROCTOR_REDIS_URL": "redis://127.0.0.1:1"})
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["counts"]["decided"] == 61


def test_demo_leaves_nothing_where_reports_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    """A folder for reports that cannot be made is exit code 2 before anything else is made."""
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    done = cli("demo", "-o", tmp_path / "file" / "reports", env={"TMPDIR": str(tmp_path / "temporary")})
    assert done.code == 2, done
    assert list((tmp_path / "temporary").iterdir()) == []


def test_init_writes_a_file_that_runs(cli: Cli, tmp_path: Path) -> None:
    """`init DIR` writes an example that is decided as its notes say, and overwrites only with `--force`."""
    folder = tmp_path / "mine"
    done = cli("init", "--kind", "turns", folder)
    assert done.code == 0, done
    assert done.out.splitlines() == [str(folder / "turns.jsonl")]
    assert f"proctor run {folder / 'turns.jsonl'}" in done.err
    report = tmp_path / "out.jsonl"
    assert cli("run", folder / "turns.jsonl", "-q", "-o", report).code == 0
    turns = [json.loads(line) for line in (folder / "turns.jsonl").read_bytes().splitlines()]
    results = [json.loads(line)["result"] for line in report.read_bytes().splitlines()]
    for turn, result in zip(turns, results, strict=True):
        note = turn["meta"]["note"]
        assert f"`{result['decision']}`, rule {result['rule']}" in note, result
        assert ("frozen" in note) is result["peakGuardrailActive"], result
    assert cli("init", "--kind", "turns", folder).code == 2
    assert cli("init", "--kind", "turns", folder, "--force").code == 0


def test_what_init_writes_of_other_kinds_runs_with_the_sample_api(cli: Cli, tmp_path: Path) -> None:
    """The starting questions all pass; the bench runs without a key, and its hasty model fails twice."""
    with in_background() as url:
        assert cli("init", "--kind", "queries", tmp_path).code == 0
        done = cli("run", tmp_path / "baselines.json", "--api-url", url, "--no-progress")
        assert done.code == 0, done
        assert "passed 5 · failed 0" in done.out
        assert cli("init", "--kind", "cases", tmp_path).code == 0
        done = cli("run", tmp_path / "bench.config.yaml", "--api-base", f"{url}/v1", "--no-progress")
        assert done.code == 1, done
        assert "passed 8 · failed 2 · errors 0" in done.out
        assert cli("init", "--kind", "freeform", tmp_path).code == 0
        streamed = cli(
            "run", tmp_path / "freeform.yaml", "--api-base", f"{url}/v1", "--stream", "--no-progress"
        )
        assert streamed.code == 0, streamed
        assert "17 + 25 = 42" in streamed.out
        assert cli("init", "--kind", "prompts", tmp_path).code == 0
        prompts = tmp_path / "prompts.yaml"
        prompts.write_text(prompts.read_text(encoding="utf-8").replace("http://localhost:3000", url))
        done = cli("run", prompts, "--no-progress")
        assert done.code == 1, done
        assert "passed 12 · failed 4 · errors 0" in done.out
        assert cli("init", "--kind", "table", tmp_path).code == 0
        done = cli("run", tmp_path / "table.yaml", "--api-base", f"{url}/v1", "--no-progress")
        assert done.code == 1, done
        assert "5 of 6 cases passed" in done.out


@pytest.mark.parametrize("name", ["turns.jsonl", "starter/turns.jsonl"])
def test_examples_keep_the_contract(name: str) -> None:
    """Every packaged example passes the strict contract and shows several threads."""
    turns = read_turns(Source(EXAMPLES / name))
    assert len({turn.thread for turn in turns}) >= 3


def test_up_starts_everything_and_ends_in_order(cli: Cli) -> None:
    """`up` shows its URLs, works what is submitted elsewhere, and one Ctrl-C ends all of it with code 130."""
    before = set(marked_processes())
    up = cli.start("up", "--processes", "1", "--no-flower", "--metrics-port", "0")
    up.wait_for("ready", within_s=20)
    assert "Redis    unix://" in up.errors
    run = cli("submit", EXAMPLES / "turns.jsonl").out.strip()
    assert cli("watch", run).code == 0
    up.send(signal.SIGINT)
    assert up.wait(15) == 130
    assert "workers |" in up.errors
    assert '"event"' not in up.errors, "logs are for people, like all of the output"
    cli.eventually(lambda: set(marked_processes()) <= before)


def test_up_serves_a_model_and_obeys_sigterm(cli: Cli, tmp_path: Path) -> None:
    """`up --serve` has the options of `serve`; a service manager's SIGTERM ends it with code 0."""
    alone = cli("up", "--model", "parrot")
    assert (alone.code, alone.err.splitlines()[0]) == (2, "error: --model is for turns over HTTP")
    for command in (("up", "--serve", "--serve-port", "0", "--no-flower"), ("serve", "--port", "0")):
        keyless = cli(*command, "--model", "openai/gpt-4o-mini", "--processes", "1")
        assert (keyless.code, "OPENAI_API_KEY" in keyless.err) == (2, True)
    tokens = tmp_path / "tokens"
    tokens.write_text("0123456789abcdef shop\n")
    tokens.chmod(0o600)
    answer = json.dumps({"response": "Plan B.", "affect_signal": None, "shape": None})
    with ModelServer(lambda _prompt, _nth: Say(answer)) as model:
        asked = ("--model", "parrot", "--api-base", model.api_base, "--tokens", tokens)
        ports = ("--no-flower", "--no-metrics", "--serve", "--serve-port", "0")
        up = cli.start("up", "--json", "--processes", "1", *ports, *asked)
        up.wait_for("serve    http", within_s=30)
        [url] = re.findall(r"serve +(http\S+)", up.errors)
        assert json.loads(up.output) == {"url": url, "token": None}
        with Producer(url, "0123456789abcdef") as turns:
            decided = turns.send({"threadId": "t", "message": "Which plan?"}).result(30)
        assert (decided.decision, decided.response) == ("should", "Plan B.")
        up.terminate()
        assert up.wait(15) == 0


PORTS: Final = (
    ["up", "--flower-port"],
    ["up", "--no-flower", "--metrics-port"],
    ["flower", "--port"],
    ["metrics", "--port"],
)
"""Commands that listen, with the option that names the port."""


@pytest.mark.parametrize("command", PORTS, ids=" ".join)
def test_taken_port_is_one_line(cli: Cli, command: list[str]) -> None:
    """A port that is in use is one line and exit code 2, before anything is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = cli(*command, str(port))
    assert done.code == 2
    assert done.err.startswith(f"error: cannot listen on 127.0.0.1:{port}: ")
    assert f"choose another {command[-1]}" in done.err
