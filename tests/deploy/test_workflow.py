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
        self.folder, self.summary = folder, folder / "summary.md"
        self.env = {
            **env,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **yaml.safe_load((DEPLOY / "github" / "proctor.yml").read_text(encoding="utf-8"))["env"],
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_WORKSPACE": str(folder),
        }

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


@pytest.mark.parametrize(("broken", "code"), [(1, 0), (2, 1)])
def test_the_gate_decides_and_the_run_is_shown(runner: Runner, broken: int, code: int) -> None:
    """Of twelve cases one may fail; summary, report and annotations at the case's line come either way."""
    runner.write_bench(broken=broken)
    done = runner.run("Run the bench")
    assert done.returncode == code, done.stderr
    shown = runner.run("Show it")
    assert shown.returncode == 0, shown.stderr
    assert runner.summary.read_text().strip()
    assert shown.stderr.startswith("::warning file=bench.config.yaml,line=1,title=m%3A c")
    assert "<html" in (runner.folder / "report.html").read_text()
    assert json.loads((runner.folder / "run.json").read_text())


@pytest.mark.parametrize(("broken", "code"), [(0, 0), (1, 0), (CASES, 1)])
def test_a_significant_regression_fails_the_job(runner: Runner, cli: Cli, broken: int, code: int) -> None:
    """Compared with a base of which all passed: one broken case is no regression, all of them are."""
    for name, wrong in (("base", 0), ("run", broken)):
        bench = runner.write_bench(broken=wrong)
        cli("run", bench, "-q", "-o", runner.folder / f"{name}.json", within_s=100)
    done = runner.run("Compare with the base branch")
    assert done.returncode == code, done.stdout + done.stderr
    assert runner.summary.read_text().startswith("#")


def test_a_first_run_has_nothing_to_be_compared_with() -> None:
    """Without a run of the base branch the step is left out."""
    assert "hashFiles('base.json') != ''" in steps()["Compare with the base branch"]["if"]


def test_actions_are_pinned() -> None:
    """Each action is named by its commit, with the version beside it, and the job may only read."""
    text = (DEPLOY / "github" / "proctor.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)$", text, re.MULTILINE)
    assert used
    assert all(PINNED_ACTION.fullmatch(each) for each in used)
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
