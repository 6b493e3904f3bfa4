"""Completion in real shells at a real terminal: bash, zsh and fish, for `proctor` and `llm-bench`."""

import os
import re
import sys
from pathlib import Path
from subprocess import run as call
from typing import Final

import pytest

from tests.support.cli import PROCTOR, Cli
from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.tmux import Pane
from tests.support.tools import require_tool
from tests.support.tree import ROOT

SHELLS: Final = {
    "bash": "bash --norc --noprofile -i",
    "zsh": "zsh -f -i",
    "fish": "fish --no-config --private",
}
READY: Final = {
    "bash": 'eval "$(proctor completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(proctor completion zsh)"',
    "fish": "proctor completion fish | source",
}
BENCH: Final = """
models: [careful, hasty-mini]
test_cases: [{id: first-greeting, input: Hi}, {id: farewell, input: Bye}]
test_cases_file: more.csv
"""
HEAVY: Final = re.compile(
    r"^(redis|celery|kombu|pydantic|rich|litellm|aiohttp|structlog|msgspec)(\.|$)", re.MULTILINE
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with a bench, its data, and both programs on the path."""
    (tmp_path / "bin").mkdir()
    for name, module in (("proctor", "producer"), ("llm-bench", "producer.bench")):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m {module} "$@"\n')
        program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / "bench.config.yaml").write_text(BENCH)
    (work / "more.csv").write_text("id,input\nof-the-table,Ho\n")
    return work


def environment(env: dict[str, str], folder: Path) -> dict[str, str]:
    """An environment in which the shells find the programs, and write nothing into a home."""
    path = f"{folder.parent / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    return {**env, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(folder.parent), "PS1": "$ "}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell: str, cli: Cli, bare_env: dict[str, str], folder: Path) -> None:
    """Commands, files, cases, models, runs and schemas are completed at the press of Tab."""
    require_tool(shell)
    run = cli("submit", ROOT / "examples" / "turns.jsonl", "-q").out.strip()
    cli.start("status", "--watch").wait_for("workers 0")  # keeps the server running
    env = environment({**bare_env, "PROCTOR_DATA_DIR": cli.processes.env["PROCTOR_DATA_DIR"]}, folder)
    with Pane(SHELLS[shell], columns=140, rows=50, cwd=folder, env=env) as pane:
        pane.type(READY[shell])
        pane.press("Enter")
        pane.type("echo rea''dy")
        pane.press("Enter")
        pane.wait_for("\nready")
        for typed, whole in (
            ("proctor valid", "proctor validate"),
            ("proctor run bench.c", "proctor run bench.config.yaml"),
            ("proctor run bench.config.yaml --case first", "--case first-greeting"),
            ("proctor run bench.config.yaml --case of", "--case of-the-table"),
            ("proctor run -c bench.config.yaml -m hast", "-m hasty-mini"),
            (f"proctor watch {run[:6]}", f"proctor watch {run}"),
            ("proctor config schema line-c", "proctor config schema line-cases"),
            ("llm-bench val", "llm-bench validate"),
            ("llm-bench run --case fare", "--case farewell"),
        ):
            pane.type(typed)
            pane.press("Tab")
            pane.wait_for(whole)
            pane.clear_line(whole)


def completed(env: dict[str, str], folder: Path, *words: str) -> tuple[str, str]:
    """What a shell gets: stdout, and the modules that were imported for it."""
    variables = {
        "_PROCTOR_COMPLETE": "bash_complete",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [sys.executable, "-P", "-X", "importtime", *PROCTOR[2:]]
    done = call(
        command, env={**env, **variables}, cwd=folder, capture_output=True, text=True, check=True, timeout=20
    )
    lines = done.stderr.splitlines()
    assert all(line.startswith("import time:") for line in lines), lines
    return done.stdout, "\n".join(line.rpartition("|")[2].strip() for line in lines)


def test_completion_imports_nothing_heavy(cli: Cli, bare_env: dict[str, str], folder: Path) -> None:
    """Names of a bench are read without pydantic, and run ids without anything heavy but the client."""
    run = cli("submit", ROOT / "examples" / "turns.jsonl", "-q").out.strip()
    env = environment({**bare_env, "PROCTOR_DATA_DIR": cli.processes.env["PROCTOR_DATA_DIR"]}, folder)
    cli.start("status", "--watch").wait_for("workers 0")  # keeps the server running
    for words, expected, heavy in (
        (["proctor", ""], "run", set[str]()),
        (["proctor", "watch", "run-"], run, {"redis"}),
        (["proctor", "run", "bench.config.yaml", "--case", ""], "farewell", set[str]()),
    ):
        out, modules = completed(env, folder, *words)
        assert f"plain,{expected}\n" in out
        assert {name for name, _ in HEAVY.findall(modules)} == heavy


def test_completion_is_silent(
    processes: Processes, bare_env: dict[str, str], folder: Path, tmp_path: Path
) -> None:
    """Without a server, with a wrong URL, or a broken file there is just nothing to offer, and no word."""
    data = tmp_path / "nothing"
    env = environment({**bare_env, "PROCTOR_DATA_DIR": str(data)}, folder)
    (folder / "broken.yaml").write_text("test_cases: [{id: [}\n")
    (folder / ".env").write_text("sk-secret\n")
    for more in (
        {},
        {"PROCTOR_REDIS_URL": "nonsense"},
        {"PROCTOR_REDIS_URL": f"redis://127.0.0.1:{free_port()}"},
    ):
        assert completed({**env, **more}, folder, "proctor", "watch", "run-")[0].strip() == ""
    assert completed(env, folder, "proctor", "run", "broken.yaml", "--case", "")[0].strip() == ""
    assert not data.exists(), "no server was started"
    assert processes is not None
