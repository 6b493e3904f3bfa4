"""Benches under pytest, as projects of users run them: one test for each answer, one run for all."""

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.cli import Cli
from tests.support.tree import ROOT

BENCH = """
name: greetings
system_prompt: Be polite.
models: [quiet, loud]
default_checks: [{contains: hello}]
test_cases:
  - {id: first, input: "Greet Ann.", tags: [polite], outputs: {quiet: "hello Ann", loud: "HELLO ANN"}}
  - {id: second, input: "Greet Bob.", outputs: {quiet: "hello Bob", loud: "hello BOB"}}
  - {input: "Greet nobody.", outputs: {quiet: "bye", loud: "hello"}}
"""


ONE_WORKER = {"PROCTOR_PROCESSES": "1"}
"""A second worker would only start and stop, for runs of a few items."""


class Project:
    """A folder with tests of a user."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self.cli, self.folder = cli, folder
        self.output = ""

    def write(self, name: str, text: str) -> None:
        """Writes a file."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def pytest(self, *arguments: str, plugins: tuple[str, ...] = ()) -> int:
        """Runs pytest with the plugin; returns its exit code."""
        env = {**self.cli.processes.env, **ONE_WORKER, "PYTHONPATH": str(ROOT)}
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        named = [part for plugin in ("proctor.pytest_plugin", *plugins) for part in ("-p", plugin)]
        command = [sys.executable, "-m", "pytest", *named, "-q", "--color=no", *arguments]
        process = self.cli.processes.start(*command, cwd=self.folder, env=env, new_session=True)
        code = process.wait(40)
        self.output = process.output + process.errors
        return code

    def totals(self) -> list[int]:
        """How many items each run has, the newest run first."""
        return [run["total"] for run in self._runs()]

    def names(self) -> list[str]:
        """The names of the runs, the newest run first."""
        return [run["name"] for run in self._runs()]

    def _runs(self) -> list[dict[str, Any]]:
        return list(json.loads(self.cli("runs", "--json").out)["runs"])


@pytest.fixture
def project(cli: Cli, tmp_path: Path) -> Project:
    """A project with one bench."""
    folder = tmp_path / "project"
    folder.mkdir()
    made = Project(cli, folder)
    made.write("greetings.bench.yaml", BENCH)
    return made


def test_each_answer_is_a_test_with_its_reason(project: Project) -> None:
    """A failure shows question, answer and reason, JUnit has all tests, and `--lf` runs those that failed."""
    assert project.pytest("--junit-xml", "out.xml", "-p", "no:randomly") == 1
    assert "2 failed, 4 passed" in project.output
    for shown in (
        "system: Be polite.",
        "user: Greet Ann.",
        "answer: HELLO ANN",
        '"hello" is nowhere in the output',
    ):
        assert shown in project.output
    assert "Traceback" not in project.output
    tests = ET.parse(project.folder / "out.xml").getroot().iter("testcase")  # noqa: S314 - pytest's own file
    assert sum(1 for _ in tests) == 6
    assert project.pytest("--lf") == 1
    assert "2 failed in" in project.output
    assert project.totals() == [2, 6]
    assert project.names() == ["greetings.bench.yaml, 2 of 6", "greetings.bench.yaml"]


@pytest.mark.parametrize(
    ("arguments", "passed", "items"),
    [(("-m", "polite", "-k", "quiet"), 1, 1), (("--collect-only",), 0, None)],
)
def test_only_what_is_selected_is_run(
    project: Project, arguments: tuple[str, ...], passed: int, items: int | None
) -> None:
    """`-k` and the markers of tags choose the answers that are asked for; collecting sends nothing."""
    assert project.pytest(*arguments) == 0
    assert (f"{passed} passed" in project.output) is (passed > 0)
    assert project.totals() == ([] if items is None else [items])


def test_options_choose_what_is_collected_and_run(project: Project) -> None:
    """A model, a number of cases and repetitions of `--proctor-option` hold for tests and run alike."""
    options = (
        "--proctor-option",
        "model=loud",
        "--proctor-option",
        "first=2",
        "--proctor-option",
        "repeat=2",
    )
    assert project.pytest(*options, "-k", "first", "-p", "no:randomly") == 1
    assert "2 failed, 2 deselected" in project.output
    assert "answer: HELLO ANN" in project.output
    assert "first · loud #2" in project.output
    assert project.totals() == [2]


def test_answers_with_a_quorum_are_one_test(project: Project) -> None:
    """Two of four answers have to pass: a case is judged as the program does it."""
    outputs = "outputs: {quiet: hello, loud: HELLO}"
    project.write(
        "greetings.bench.yaml",
        f"""
name: greetings
system_prompt: Be polite.
models: [quiet, loud]
repeat: {{times: 4, pass: 2}}
default_checks: [{{contains: hello}}]
test_cases: [{{id: first, input: "Greet Ann.", {outputs}}}]
""",
    )
    assert project.pytest() == 1
    assert "1 failed, 1 passed" in project.output
    assert "0 of 4 answers passed, 2 needed" in project.output
    assert project.totals() == [8]


def test_tags_called_like_markers_of_plugins_change_nothing(project: Project) -> None:
    """The tags `skip` and `xfail` are the markers `tag_skip` and `tag_xfail`; the project's own stay."""
    project.write("greetings.bench.yaml", BENCH.replace("tags: [polite]", "tags: [skip, xfail, slow]"))
    project.write("pytest.ini", "[pytest]\nmarkers = slow: takes long\naddopts = --strict-markers\n")
    assert project.pytest("-m", "slow and tag_skip and tag_xfail") == 1
    assert "1 failed, 1 passed, 4 deselected" in project.output


def test_failures_are_safe_and_short(project: Project) -> None:
    """Control characters of answers are shown as escapes; an object differs line by line."""
    answer = {"n": 2, "b": "\u001b]0;owned\u0007"}
    case = {"id": "x", "input": "Hi", "expected": {"n": 1, "m": 1}, "outputs": {"quiet": json.dumps(answer)}}
    other = {**case, "id": "y\u202e", "outputs": {"quiet": "\u001b[31mred"}}
    bench = {"name": "b", "system_prompt": "s", "models": ["quiet"], "test_cases": [case, other]}
    project.write("greetings.bench.yaml", json.dumps({**bench, "config": {"judge_model": None}}))
    assert project.pytest() == 1
    assert "2 failed" in project.output
    assert not {"\x1b", "\x07", "\u202e"} & set(project.output)
    assert "answer: \\x1b[31mred" in project.output
    assert "\n/n: 1 → 2\n/m: 1 → missing\n/b: not expected → " in project.output


def test_processes_of_xdist_share_one_run(project: Project) -> None:
    """Two processes report six tests of one run."""
    assert project.pytest("-n", "2", plugins=("xdist",)) == 1
    assert "2 failed, 4 passed" in project.output
    assert project.totals() == [6]


def test_a_broken_bench_is_a_collection_error(project: Project) -> None:
    """The error has file, line and hint, and nothing is run."""
    project.write("greetings.bench.yaml", BENCH.replace("contains:", "contans:"))
    assert project.pytest() == 2
    assert (
        "greetings.bench.yaml:5: default_checks[0] (case 'first'): unknown check 'contans'" in project.output
    )
    assert "did you mean 'contains'?" in project.output


def test_a_refused_run_is_the_failure_of_each_test(project: Project) -> None:
    """It is tried once; every test shows why there is no run."""
    project.write(
        "greetings.bench.yaml", BENCH.replace("contains: hello", "rubric: polite, model: openai/gpt-4o")
    )
    assert project.pytest() == 1
    assert "6 failed" in project.output
    assert project.output.count("OPENAI_API_KEY") >= 6
    assert project.totals() == []


def test_other_files_and_functions_are_run_too(project: Project) -> None:
    """`--proctor` collects a file of any name; the fixture runs a function as the application."""
    (project.folder / "greetings.bench.yaml").rename(project.folder / "any.yaml")
    project.write(
        "test_app.py",
        "import pytest\n"
        "from proctor import Bench, Case, check\n"
        "@pytest.mark.parametrize('text', ['long' * 40])\n"
        "def test_app(proctor_run, text):\n"
        "    bench = Bench('b', cases=[Case('hi', checks=[check.contains('ho')])])\n"
        "    proctor_run(bench, app=lambda text: 'ho').assert_gate('pass_rate>=1')\n",
    )
    assert project.pytest("--proctor", "any.yaml", "-k", "second") == 0
    assert "2 passed" in project.output
    assert project.pytest() == 0
    assert "1 passed" in project.output
