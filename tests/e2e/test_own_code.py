"""Code of people's own, from files to results: a package of plug-ins, and files beside a bench."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import Final

import pytest

from producer.sample_api.server import in_background
from tests.support.cli import Cli
from tests.support.tree import ROOT

EXAMPLE: Final = ROOT / "examples" / "manners"
WORKER: Final = ("worker", "--processes", "1", "-Q", "cases")
WAITING: Final = """
name: waiting
system_prompt: Hi
models: [echo]
test_cases: [{input: Good morning, checks: [plugin.polite]}]
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a command where an installer has installed the example, into a folder of its own."""
    site = tmp_path_factory.mktemp("installed") / "site"
    # Where uv has made the environment, there is no pip in it.
    python = ("--python", sys.executable)
    tool = ["uv", "pip", "install", *python] if which("uv") else [sys.executable, "-m", "pip", "install"]
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "-q")
    installs = [*tool, *offline, "--target", str(site), str(EXAMPLE)]
    done = subprocess.run(installs, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {"PYTHONPATH": f"{site}:{ROOT}"}


def test_a_package_of_plugins_is_used(cli: Cli, package: Mapping[str, str], tmp_path: Path) -> None:
    """A run waits as long as no worker has them and says so; where they are installed, it is run."""
    waiting = tmp_path / "waiting.yaml"
    waiting.write_text(WAITING)
    cut = cli("run", waiting, "--timeout", "5", "--json", "--judge", "null")
    assert cut.code == 4, cut
    assert "the plug-in checks:polite is not installed here" in cut.err
    assert (
        "worker that has the plug-in checks:polite" in cut.err or "no live worker has the plug-in" in cut.err
    )
    run = json.loads(cut.out)["run_id"]
    resumed = cli("run", "--resume", run, "--json", env=package)
    assert json.loads(resumed.out)["counts"]["passed"] == 1, resumed

    with in_background() as url:
        bench = tmp_path / "manners.yaml"
        bench.write_text((EXAMPLE / "manners.yaml").read_text().replace("http://localhost:3000", url))
        rows = tmp_path / "rows.jsonl"
        done = cli("run", bench, "--json", "--judge", "null", "-o", rows, env=package)
    assert done.code == 0, done
    checks = json.loads(rows.read_text())["result"]["checks"]
    assert [check["name"] for check in checks] == ["plugin.polite", "no whatever", "contains: 4 working days"]
    listed = cli("plugins", env=package)
    assert [line.split()[:2] for line in listed.out.splitlines()[1:]] == [
        ["checks:polite", "proctor-manners"],
        ["clients:support-desk", "proctor-manners"],
        ["proctor[js]", "quickjs-ng"],
        ["prompts:please", "proctor-manners"],
    ]


def test_functions_of_code_are_checks(cli: Cli, tmp_path: Path) -> None:
    """They import what is beside them, in Python and JavaScript; one that raises is a check that failed."""
    (tmp_path / "own.py").write_text("LONGEST = 5\n")
    (tmp_path / "own.mjs").write_text("export const longest = 5;\n")
    (tmp_path / "judge.py").write_text(
        "import own\nclass Words:\n    @staticmethod\n    def few(output, context):\n"
        "        most = context['config']['most']\n"
        "        return {'pass': True, 'score': 0.5, 'reason': f'{own.LONGEST} {most}'}\n"
        "def raises(output):\n    raise ValueError(output)\n"
    )
    (tmp_path / "judge.mjs").write_text(
        "import { longest } from './own.mjs';\n"
        "export const short = (output, context) => output.length <= longest && context.vars.n === 1;\n"
    )
    bench = tmp_path / "bench.yaml"
    bench.write_text(
        "name: own\nmodels: [echo]\nprompts: [Hi]\ntest_cases: [{vars: {n: 1}}]\npaid_checks: always\n"
        "model_configs:\n  py: {python: judge.py, role: check}\n  js: {javascript: judge.mjs, role: check}\n"
        "default_checks:\n  - {verdict: Words.few, model: py, config: {most: 3}}\n"
        "  - {verdict: Words.few, model: py, config: {most: 3}, at_least: 0.6}\n"
        "  - {verdict: short, model: js}\n  - {not: {verdict: raises, model: py}}\n"
    )
    rows = tmp_path / "rows.jsonl"
    done = cli("run", bench, "--allow-code", "--max-cost", "1", "-o", rows)
    assert done.code == 1, done
    found = [(each["passed"], each["reason"]) for each in json.loads(rows.read_text())["result"]["checks"]]
    raised = "judge.py: ValueError: Hi (line 8)"
    assert found == [(True, "5 3"), (False, "5 3"), (True, "the function returned true"), (True, raised)]
    again = cli("rescore", "last", "--allow-code", "-o", rows)  # what was written for it is of this run
    assert again.code == 1, again
    checks = json.loads(rows.read_text())["result"]["checks"]
    assert [(each["passed"], each["reason"]) for each in checks] == found


def test_code_beside_a_bench_is_run(cli: Cli, tmp_path: Path) -> None:
    """By the workers of the command, with the cache and the limits of all models; not without permission."""
    (tmp_path / "app.py").write_text(
        "import os\ndef call_api(prompt, options, context):\n"
        "    return {'output': f\"{context['vars']['n']} {os.environ.get('OPENAI_API_KEY')}\", 'cost': 0.25}"
    )
    (tmp_path / "made.py").write_text("def cases(): return [{'vars': {'n': n}} for n in (1, 2)]")
    bench = tmp_path / "bench.yaml"
    bench.write_text(
        "name: own\nmodels: [{name: app, python: app.py}]\nprompts: [Hi]\n"
        'test_cases_file: {python: made.py}\ndefault_checks: [{equals: "{{ n }} None"}]\njudge_model: null\n'
    )
    refused = cli("run", bench)
    assert (refused.code, "--allow-code" in refused.err, refused.out) == (2, True, ""), refused
    done = cli("run", bench, "--allow-code", "--json", env={"OPENAI_API_KEY": "sk-0123456789"})
    assert done.code == 0, done
    summary = json.loads(done.out)["summary"]
    assert summary["models"][0]["cost_usd"] == 0.5
    again = cli("run", bench, "--json", env={"PROCTOR_ALLOW_CODE": "1"})
    assert json.loads(again.out)["summary"]["models"][0]["cached"] == 2, again
    rescored = cli("rescore", "last", "--json")  # calls no model, so that it runs no code
    assert (rescored.code, json.loads(rescored.out)["counts"]["passed"]) == (0, 2), rescored


def echoing(folder: Path, cases: int) -> Path:
    """Writes a bench whose model is code, and whose cases pass."""
    (folder / "app.py").write_text("def call_api(prompt): return prompt")
    listed = "".join(f"  - {{id: c{n}, input: Hi {n}, checks: [equals: Hi {n}]}}\n" for n in range(cases))
    bench = folder / "bench.yaml"
    bench.write_text(
        "name: own\nmodels: [{name: app, python: app.py}]\nprompts: ['{{ input }}']\n"
        f"judge_model: null\ntest_cases:\n{listed}"
    )
    return bench


def test_a_command_starts_workers_where_none_may_run_code(cli: Cli, tmp_path: Path) -> None:
    """Its own have its permission; without one it starts none, and says so at once."""
    run = cli("submit", echoing(tmp_path, 1), "--allow-code").out.strip()
    refused = cli("resume", run)
    assert (refused.code, refused.out) == (2, ""), refused
    assert f"{run} calls code that stood beside its bench, which runs only with --allow-code" in refused.err
    cli.start(*WORKER)
    cli.eventually(lambda: "no live worker may run code" in cli("show", run).err, 30)
    done = cli("resume", run, "--allow-code", "--json")
    assert (done.code, json.loads(done.out)["counts"]["passed"]) == (0, 1), done


def test_a_mixed_fleet_runs_code_on_the_workers_that_may(cli: Cli, tmp_path: Path) -> None:
    """The others leave its items to them; until there is one, every command says what the run waits for."""
    cli.start(*WORKER)
    run = cli("submit", echoing(tmp_path, 100), "--allow-code").out.strip()
    why = "no live worker may run code (--allow-code)"
    cli.eventually(lambda: f"waiting: {why}" in cli("show", run).err, 30)
    assert "waits" in cli("show", run, "c0").out
    [listed] = json.loads(cli("status", "--json").out)["runs"]
    assert (listed["state"], listed["why"], listed["title"]) == ("running", why, "own")
    assert f"waiting: {why}" in cli("runs", "show", run).err
    cli.start(*WORKER, "--allow-code")
    done = cli("watch", run, "--json")
    assert (done.code, json.loads(done.out)["counts"]["passed"]) == (0, 100), done
    assert ["--allow-code", "permission", "1", "of", "2"] in [
        line.split() for line in cli("plugins").out.splitlines()
    ]
