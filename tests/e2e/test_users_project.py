"""A project of a user, with packages called as ours, under pytest in an environment with the wheel."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.cli import Cli
from tests.support.wheels import built_wheel, unpacked

FILES = {
    "pyproject.toml": """
        [project]
        name = "travel"
        version = "1"
        [tool.pytest.ini_options]
        pythonpath = ["src"]
        testpaths = ["specs", "benches"]
        markers = ["slow: takes long"]
        addopts = "--strict-markers"
    """,
    "src/shared/__init__.py": """
        CAPITALS = {"France": "Paris", "Peru": "Lima"}
    """,
    "src/worker/__init__.py": """
        from shared import CAPITALS

        def answer(question):
            for country, capital in CAPITALS.items():
                if country in question:
                    yield "It is "
                    yield capital
    """,
    "specs/test_answers.py": """
        import pytest
        import shared
        from worker import answer
        from proctor import Bench, Case, check

        def case(country, capital):
            return Case(f"The capital of {country}?", id=country, checks=[check.contains(capital)])

        def test_packages_are_ours():
            assert "src" in shared.__file__

        def test_capitals(proctor_run):
            bench = Bench("capitals", cases=[case("France", "Paris"), case("Peru", "Lima")])
            run = proctor_run(bench, app=answer, stream=True)
            run.assert_gate("pass_rate>=1", "cost_usd<0.01")
            assert [row.output for row in run.rows] == ["It is Paris", "It is Lima"]

        @pytest.mark.slow
        def test_a_gate_fails(proctor_run):
            bench = Bench("capitals", cases=[case("France", "Lyon")])
            proctor_run(bench, app=answer).assert_gate("pass_rate>=1")
    """,
    "benches/greetings.bench.yaml": """
        name: greetings
        system_prompt: Be polite.
        models: [careful]
        default_checks: [{contains: hello}]
        test_cases:
          - {id: ann, input: Greet Ann., outputs: {careful: hello Ann}}
          - {id: bob, input: Greet Bob., tags: [slow], outputs: {careful: hey Bob}}
    """,
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages, which is before the project on the path."""
    return unpacked(
        built_wheel(tmp_path_factory.mktemp("dist")), tmp_path_factory.mktemp("site") / "site-packages"
    )


def test_a_project_with_packages_of_our_names(installed: Path, cli: Cli, tmp_path: Path) -> None:
    """Its tests and benches run with the plugin of the entry point, and its imports find its own packages."""
    for name, text in FILES.items():
        file = tmp_path / "travel" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip())

    def run(*arguments: str) -> tuple[int, str]:
        env = {**cli.processes.env, "PYTHONPATH": str(installed), "PROCTOR_PROCESSES": "1"}
        env.pop("PYTEST_ADDOPTS", None)
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:randomly", "--color=no", *arguments]
        process = cli.processes.start(*command, cwd=tmp_path / "travel", env=env, new_session=True)
        return process.wait(60), process.output + process.errors

    code, output = run("-m", "not slow")
    assert (code, "3 passed, 2 deselected" in output) == (0, True), output
    code, output = run("-x", "-m", "slow")
    assert (code, "1 failed, 3 deselected" in output) == (1, True), output
    assert "GateError" in output
