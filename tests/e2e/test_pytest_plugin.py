"""Benches under pytest, as projects of users run them: one test for each answer, one run for all."""

import json
import sys
from pathlib import Path
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
        env = {**self.cli.processes.env, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        named = [part for plugin in ("proctor.pytest_plugin", *plugins) for part in ("-p", plugin)]
        command = [sys.executable, "-m", "pytest", *named, "-q", "--color=no", *arguments]
        process = self.cli.processes.start(*command, cwd=self.folder, env=env, new_session=True)
        code = process.wait(40)
        self.output = process.output + process.errors
        return code

    def totals(self) -> list[int]:
        """How many items each run has, the newest run first."""
        listed = json.loads(self.cli("runs", "--json").out)["runs"]
        return [run["total"] for run in listed]


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
    assert project.totals() == [4, 6]


@pytest.mark.parametrize(
    ("arguments", "passed", "items"),
    [(("-m", "polite", "-k", "quiet"), 1, 2), (("--collect-only",), 0, None)],
)
def test_only_what_is_selected_is_run(
    project: Project, arguments: tuple[str, ...], passed: int, items: int | None
) -> None:
    """`-k` and the markers of tags choose the cases that are sent; collecting sends nothing."""
    assert project.pytest(*arguments) == 0
    assert (f"{passed} passed" in project.output) is (passed > 0)
    assert project.totals() == ([] if items is None else [items])


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


def test_other_files_and_functions_are_run_too(project: Project) -> None:
    """`--proctor` collects a file of any name; the fixture runs a function as the application."""
    (project.folder / "greetings.bench.yaml").rename(project.folder / "any.yaml")
    project.write(
        "test_app.py",
        "from proctor import Bench, Case, check\n"
        "def test_app(proctor_run):\n"
        "    bench = Bench('b', cases=[Case('hi', checks=[check.contains('ho')])])\n"
        "    proctor_run(bench, app=lambda text: 'ho').assert_gate('pass_rate>=1')\n",
    )
    assert project.pytest("--proctor", "any.yaml", "-k", "second") == 0
    assert "2 passed" in project.output
    assert project.pytest() == 0
    assert "1 passed" in project.output
