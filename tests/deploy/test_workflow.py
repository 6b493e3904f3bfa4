"""Runs the steps of the GitHub workflow as its runner does: `bash -e`, with files for summary and outputs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from producer.cli.report_files import FORMATS
from tests.support.cli import Cli
from tests.support.deployment import DEPLOY
from tests.support.tools import require_tool

pytestmark = pytest.mark.slow

CASES: Final = 12
PINNED_ACTION: Final = re.compile(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def steps() -> dict[str, dict[str, Any]]:
    """The workflow's steps that have a name."""
    found = yaml.safe_load((DEPLOY / "github" / "proctor.yml").read_text(encoding="utf-8"))
    return {step["name"]: step for step in found["jobs"]["bench"]["steps"] if "name" in step}


class Runner:
    """A job on a runner: a checkout with a bench, and the files that steps write to."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.summary, self.outputs = folder, folder / "summary.md", folder / "outputs"
        self.env = {
            **env,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "BENCH": "bench.config.yaml",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.outputs),
        }
        (folder / "out").mkdir()
        (folder / "base").mkdir()

    def write_bench(self, *, broken: int) -> Path:
        """Writes a bench with recorded answers, of which some are wrong."""
        cases = [
            {"id": f"c{number}", "input": "?", "regex_pattern": "^yes$", "outputs": {"m": answer}}
            for number in range(CASES)
            for answer in ["no" if number < broken else "yes"]
        ]
        bench = {"name": "gate", "system_prompt": "Answer.", "models": ["m"], "test_cases": cases}
        path = self.folder / "bench.config.yaml"
        path.write_text(json.dumps(bench))
        return path

    def run(self, step: str) -> subprocess.CompletedProcess[str]:
        """Runs a step of the workflow."""
        bash = require_tool("bash")
        return subprocess.run(
            [bash, "-e", "-c", steps()[step]["run"]],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def runner(tmp_path: Path, bare_env: dict[str, str]) -> Runner:
    """A runner with a data folder of its own, and so a Redis of its own."""
    folder = tmp_path / "job"
    folder.mkdir()
    return Runner(folder, bare_env)


def test_the_bench_runs_and_is_shown(runner: Runner) -> None:
    """The step writes report, results and the job's summary; failed cases do not fail it."""
    if "github" not in FORMATS:
        pytest.skip("needs the report format github")
    runner.write_bench(broken=2)
    done = runner.run("Run the bench")
    assert done.returncode == 0, done.stderr
    assert runner.outputs.read_text() == "code=1\n"
    assert runner.summary.read_text().strip()
    assert "<html" in (runner.folder / "out" / "report.html").read_text()
    assert json.loads((runner.folder / "out" / "run.json").read_text())


@pytest.mark.parametrize(("broken", "code"), [(0, 0), (1, 0), (CASES, 1)])
def test_a_significant_regression_fails_the_job(runner: Runner, cli: Cli, broken: int, code: int) -> None:
    """Compared with a base of which all passed: one broken case is no regression, all of them are."""
    for name, wrong in (("base", 0), ("out", broken)):
        bench = runner.write_bench(broken=wrong)
        cli("run", bench, "-q", "-o", runner.folder / name / "run.json", within_s=100)
    done = runner.run("Compare with the base branch")
    assert done.returncode == code, done.stdout + done.stderr
    assert runner.summary.read_text().startswith("#")


def test_a_first_run_has_nothing_to_be_compared_with(runner: Runner) -> None:
    """Without a run of the base branch the step says so and passes."""
    done = runner.run("Compare with the base branch")
    assert done.returncode == 0
    assert "::notice::" in done.stdout


def test_actions_are_pinned() -> None:
    """Each action is named by its commit, with the version beside it, and the job may only read."""
    text = (DEPLOY / "github" / "proctor.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)$", text, re.MULTILINE)
    assert used
    assert all(PINNED_ACTION.fullmatch(each) for each in used)
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
