"""What people's own mypy says of programs that import the package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tree import ROOT

PROGRAM = """
import proctor
from proctor import Bench, Case, check


def answer(question: str) -> str:
    return question


bench = Bench("b", cases=[Case("Hi", id="a", checks=[check.contains("Hi", ignore_case=True)])])
run = proctor.run(bench, app=answer, max_cost=2.0, model=["a", "b"], on_event=lambda event: print(event.done))
names: list[str | None] = [row.case_id for row in run.select(failed=True)]
if run.verdict == "passed":
    run.assert_gate("pass_rate>=0.9")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with this one in it."""
    site = tmp_path_factory.mktemp("installed")
    (site / "proctor").symlink_to(ROOT / "proctor")
    return site


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("", "", "Success"), ('Case("Hi"', 'Case(inputs="Hi"', 'Unexpected keyword argument "inputs"')],
)
def test_programs_of_users_are_checked(
    installed: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    """A good program passes in strict mode, and a wrong key is found."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace(old, new) if old else PROGRAM)
    assert (ROOT / "proctor" / "py.typed").is_file()  # without it, mypy takes installed packages as untyped
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, f"--cache-dir={installed / 'cache'}", str(program)],
        env={**os.environ, "MYPYPATH": str(installed)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in done.stdout, done.stdout + done.stderr
