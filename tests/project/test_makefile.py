"""Holds the Makefile to its promises: it explains itself, and says in one line what a machine lacks."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.tools import require_tool
from tests.support.tree import ROOT


def make(folder: Path, *args: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs make in a folder, with no other programs on PATH than those of `path`."""
    env = {**os.environ, "PATH": path or os.environ["PATH"]}
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        env.pop(name, None)  # of the `make test` that may have started us
    command = [require_tool("make"), "-C", str(folder), "--no-print-directory", *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout without an environment, and a `bin/` with a shell but no Python in it."""
    for name in ("Makefile", "pyproject.toml", "requirements-dev.lock", "requirements-otel.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "touch"):
        (programs / name).symlink_to(require_tool(name))
    return tmp_path


def stub_python(bare: Path, *, version: tuple[int, int], ensurepip: bool) -> None:
    """Puts a `python3` on PATH that knows its version and whether it can create environments."""
    (bare / "bin" / "python3").write_text(
        "#!/bin/sh\n"
        f'case "$*" in *--version*) echo Python {version[0]}.{version[1]}.0;;\n'
        f"*version_info*) exit {int(version < (3, 11))};;\n"
        f"*ensurepip*) exit {int(not ensurepip)};;\n"
        "*) echo unexpected: $* >&2; exit 9;; esac\n"
    )
    (bare / "bin" / "python3").chmod(0o755)


def test_make_alone_lists_every_command() -> None:
    """`make` prints each public target with what it does."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", text, re.MULTILINE)) - {"help"}
    listed = make(ROOT).stdout
    assert {line.split()[0] for line in listed.splitlines() if line.startswith("  ")} == targets


def test_every_command_is_phony() -> None:
    """A file that happens to be called like a command does not switch it off."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    phony = set(re.findall(r"^\.PHONY:(.*)$", text, re.MULTILINE)[0].split())
    assert phony == set(re.findall(r"^([a-z0-9-]+):", text, re.MULTILINE))


def test_an_old_python_is_named_in_one_line(bare: Path) -> None:
    """Python 3.9 alone: one line says what is needed and how to name another, and nothing is created."""
    stub_python(bare, version=(3, 9), ensurepip=True)
    done = make(bare, "install", path=str(bare / "bin"))
    assert done.returncode != 0
    line, *rest = done.stderr.strip().splitlines()
    assert "Python 3.11 or newer" in line
    assert "3.9.0" in line
    assert all(each.startswith("make: ***") for each in rest)
    assert not (bare / ".venv").exists()


def test_a_python_without_venv_says_what_to_install(bare: Path) -> None:
    """Debian's Python without its venv package: one line names that package."""
    stub_python(bare, version=(3, 12), ensurepip=False)
    done = make(bare, "install", path=str(bare / "bin"))
    assert done.returncode != 0
    line, *rest = done.stderr.strip().splitlines()
    assert "python3-venv" in line
    assert all(each.startswith("make: ***") for each in rest)
