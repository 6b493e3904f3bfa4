"""What the command line must not load for an answer; `make bench-guard` measures how fast it is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from producer.cli.main import COMMANDS
from tests.support.tree import ROOT
from tests.support.turn_files import turn_lines

HEAVY: Final = re.compile(
    r"^(redis|celery|kombu|pydantic|pydantic_core|rich|litellm|flower|aiohttp|deepdiff|msgspec|structlog|opentelemetry)(\.|$)"
)

NETWORK: Final = re.compile(r"^(redis|celery|kombu|asyncio|ssl|aiohttp|worker|rich)(\.|$)")
"""What checking a file of cases does without."""


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which byte code is kept, as on any machine where the program is installed."""
    cache = tmp_path_factory.mktemp("bytecode")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    folders = {"PYTHONPYCACHEPREFIX": str(cache), "PROCTOR_DATA_DIR": str(cache / "data")}
    return {**kept, **folders, "PYTHONPATH": str(ROOT)}


def proctor(env: dict[str, str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs one command line to its end."""
    command = [sys.executable, "-P", "-m", "producer", *arguments]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=20, check=True)


LOADER: Final = """
import atexit, json, os, sys
from producer.__main__ import main

def report(arguments):
    print(json.dumps([arguments, sorted(sys.modules)]), file=sys.__stdout__, flush=True)

for arguments in json.loads(sys.argv[1]):
    if os.fork() == 0:
        sys.argv[1:] = arguments
        sys.stdout = sys.stderr = open(os.devnull, "w")
        atexit.register(report, arguments)
        main()
    os.wait()
"""
"""Runs each command line in a child that has loaded no more than the program itself, and lists modules."""
HELP: Final = [["--help"], *([name, "--help"] for name in COMMANDS), ["health", "worker", "--help"]]
LIGHT: Final = [["decide", "ok"], ["completion", "bash"]]


def test_light_commands_load_nothing_heavy(env: dict[str, str], tmp_path: Path) -> None:
    """No help page and no command without Redis loads a client, a queue, a validator or a drawing library."""
    command = [sys.executable, "-P", "-c", LOADER, json.dumps(HELP + LIGHT)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = [json.loads(line) for line in done.stdout.splitlines()]
    assert [arguments for arguments, _ in loaded] == HELP + LIGHT
    for arguments, names in loaded:
        assert "click" in names
        assert [name for name in names if HEAVY.match(name)] == [], arguments


def test_completion_offers_commands_and_options(env: dict[str, str], tmp_path: Path) -> None:
    """The completion script asks the program, and the program knows commands, sub-commands and options."""
    for words, wanted in (
        ("proctor wa", "watch"),
        ("proctor runs sh", "show"),
        ("proctor decide --si", "--signal"),
    ):
        asked = {
            **env,
            "_PROCTOR_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        assert wanted in proctor(asked, cwd=tmp_path).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_names_our_variable(shell: str, env: dict[str, str], tmp_path: Path) -> None:
    """Each shell gets a script that calls us back."""
    assert "_PROCTOR_COMPLETE" in proctor(env, "completion", shell, cwd=tmp_path).stdout


@pytest.mark.parametrize("closed", ["2>&-", "2>&- <&-", "0<&- 1>&- 2>&-"])
def test_closed_streams_are_no_failure(env: dict[str, str], tmp_path: Path, closed: str) -> None:
    """With stderr, and stdin or stdout, closed by the shell a command works and exits with 0."""
    line = f'exec "$0" -P -m producer config show {closed}'
    command = ["/bin/sh", "-c", line, sys.executable]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0
    assert ("PROCTOR_REDIS_URL" in done.stdout) == ("1>&-" not in closed)


def bench(folder: Path, **case: object) -> list[str]:
    """Writes a bench of one case with its recorded answer; returns the arguments that run it."""
    bench = {"name": "b", "system_prompt": "Answer.", "models": ["m"], "test_cases": [case]}
    (folder / "bench.yaml").write_text(json.dumps({**bench, "config": {"judge_model": None}}))
    (folder / "outputs.jsonl").write_text('{"case": 0, "model": "m", "output": "{}"}')
    return ["run", "bench.yaml", "--outputs", "outputs.jsonl"]


def test_a_broken_file_is_refused_before_anything_is_started(env: dict[str, str], tmp_path: Path) -> None:
    """A case that breaks its contract costs no server, no worker, and no import of what they need."""
    data = tmp_path / "data"
    command = [sys.executable, "-P", "-c", LOADER, json.dumps([bench(tmp_path, inptu="Hi")])]
    done = subprocess.run(
        command,
        env={**env, "PROCTOR_DATA_DIR": str(data)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    ((_, names),) = map(json.loads, done.stdout.splitlines())
    assert "producer.cases.bench_config" in names
    assert [name for name in names if NETWORK.match(name)] == []
    assert not data.exists()


def test_a_run_of_one_case_starts_one_worker(env: dict[str, str], tmp_path: Path) -> None:
    """Workers beyond the number of items would only start and stop."""
    command = [sys.executable, "-P", "-m", "producer", *bench(tmp_path, input="Hi"), "-v"]
    more = {"PROCTOR_DATA_DIR": str(tmp_path / "data"), "PROCTOR_EMBEDDED_IDLE_S": "0.5"}
    more |= {"PROCTOR_PROCESSES": "3"}
    done = subprocess.run(
        command, env={**env, **more}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "started 1 worker here" in done.stderr


def test_a_run_of_turns_loads_no_contract_of_cases(env: dict[str, str], tmp_path: Path) -> None:
    """What only cases need would cost each run of turns 4 MB and a tenth of its start."""
    (tmp_path / "turns.jsonl").write_text("\n".join(map(json.dumps, turn_lines(1, 1))))
    arguments = ["run", "turns.jsonl", "--processes", "0", "--timeout", "0.1"]
    command = [sys.executable, "-P", "-c", LOADER, json.dumps([arguments])]
    more = {"PROCTOR_DATA_DIR": str(tmp_path / "data"), "PROCTOR_EMBEDDED_IDLE_S": "0.5"}
    done = subprocess.run(
        command, env={**env, **more}, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    ((_, names),) = map(json.loads, done.stdout.splitlines())
    assert "producer.cli.work" in names
    assert {"pydantic", "producer.cases.load"}.isdisjoint(names)
