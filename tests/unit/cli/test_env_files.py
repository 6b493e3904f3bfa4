"""Files of environment variables: which one is read, what wins, and what a file must not set."""

import json
import os
import sys
from pathlib import Path
from subprocess import run as call

import pytest

from producer.cli.main import run
from producer.env_files import load
from shared.errors import InputError
from tests.support.benches import HEAD, write
from tests.support.tree import ROOT


def loaded(words: str, environment: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Loads for a command line: the environment after it, and the warnings."""
    warnings = list[str]()
    load(words.split(), environment, warn=warnings.append)
    return environment, warnings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of each test, below one with a file that nobody reads."""
    (tmp_path / ".env").write_text("ABOVE=1\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    return inside


def test_the_environment_goes_before_the_file(folder: Path) -> None:
    """`.env` of the working directory fills in what is missing; no other folder is searched."""
    assert loaded("run", {"A": "kept"}) == ({"A": "kept"}, [])
    (folder / ".env").write_text("A=1\nexport B='two words'\nC=$A${A} # note\n")
    assert loaded("run", {"A": "kept"}) == ({"A": "kept", "B": "two words", "C": "$A${A}"}, [])


def test_another_file_or_none(folder: Path) -> None:
    """`--env-file`, else the setting, names another file, or none; then `.env` is not read."""
    (folder / ".env").write_text("A=1\n")
    (folder / "more").write_text("B=2\n")
    assert loaded("run --env-file more x", {"B": "kept"}) == ({"B": "kept"}, [])
    assert loaded("--env-file=more run", {}) == ({"B": "2"}, [])
    assert loaded("--env-file=none run", {}) == ({}, [])
    assert loaded("run", {"PROCTOR_ENV_FILE": "none"}) == ({"PROCTOR_ENV_FILE": "none"}, [])
    assert loaded("run", {"PROCTOR_ENV_FILE": "more"})[0]["B"] == "2"
    assert loaded("run --env-file .env", {"PROCTOR_ENV_FILE": "more"})[0]["A"] == "1"
    for wrong in ("nowhere", "."):
        with pytest.raises(InputError, match="cannot be read"):
            loaded(f"run --env-file {wrong}", {})


def test_a_broken_line_is_skipped_with_its_number(folder: Path) -> None:
    """Of `.env` the good lines are used and the broken ones named, not shown; a named file is refused."""
    (folder / ".env").write_text("A=1\nsk-secret\n\nB-C=2\nD=4\n")
    assert loaded("run", {}) == ({"A": "1", "D": "4"}, [".env: lines 2, 4: not NAME=VALUE, skipped"])
    with pytest.raises(InputError, match=r"^\.env:2: not NAME=VALUE$"):
        loaded("run --env-file .env", {})
    (folder / ".env").write_bytes(b"\xff\xfe")
    assert loaded("run", {}) == ({}, [".env: cannot be read: it is not UTF-8 text; it is not used"])


def test_a_folder_cannot_lift_a_guard(folder: Path) -> None:
    """What chooses code or opens the sandbox is not taken from `.env`; a person may name the file."""
    lines = "PROCTOR_UNSAFE_VALIDATORS=1\nPROCTOR_KINDS=evil\nPYTHONPATH=.\nLD_PRELOAD=x.so\nPATH=.\nA=1\n"
    (folder / ".env").write_text(lines)
    found, warnings = loaded("run", {"PROCTOR_KINDS": "mine"})
    assert found == {"PROCTOR_KINDS": "mine", "A": "1"}
    [warning] = warnings
    assert warning.startswith(
        ".env: PROCTOR_UNSAFE_VALIDATORS is not taken from it: set it in the environment"
    )
    assert loaded("run --env-file .env", {})[0]["PROCTOR_UNSAFE_VALIDATORS"] == "1"


def test_commands_read_it(folder: Path) -> None:
    """`config show` names the file; `models` finds a key in it and shows nothing of its value."""
    (folder / ".env").write_text("PROCTOR_GRACE_S=7\nOPENAI_API_KEY=sk-kept-for-me\n")
    bench = write(folder, f"{HEAD.replace('[m]', '[openai/gpt-4o]')}test_cases: [{{input: Hi}}]\n")
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    environment = {**environment, "PYTHONPATH": str(ROOT)}

    def stdout_of(*words: str, module: str = "producer") -> str:
        """Stdout of a command in a process of its own."""
        command = [sys.executable, "-P", "-m", module, *words]
        done = call(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
        assert "kept" not in done.stdout + done.stderr
        return done.stdout

    rows = {row["name"]: row for row in json.loads(stdout_of("config", "show", "--json"))["settings"]}
    assert (rows["grace_s"]["value"], rows["grace_s"]["origin"]) == (7.0, ".env")
    rows = {
        row["name"]: row
        for row in json.loads(stdout_of("config", "--json", "--env-file", "none"))["settings"]
    }
    assert rows["grace_s"]["origin"] == "default"
    assert json.loads(stdout_of("models", str(bench), "--json"))["models"][0]["key_present"]
    assert json.loads(stdout_of("models", "--json", module="producer.bench"))["models"][0]["key_present"]


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """A named file that cannot be read ends the command before anything else, as any error of usage."""
    assert run(["config", "show", "--env-file", "nowhere"]) == 2
    assert "error: nowhere: cannot be read: No such file or directory" in capsys.readouterr().err
    assert run(["config", "show", "--env-file"]) == 2
