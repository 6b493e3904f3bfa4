"""What a terminal sees: a view that redraws itself there, and plain lines wherever nobody looks."""

import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from time import monotonic
from typing import Final

import pytest

from tests.support.cli import PROCTOR
from tests.support.processes import MARK_NAME
from tests.support.tree import ROOT

EXAMPLE: Final = ROOT / "examples" / "turns.jsonl"
UNWORKED: Final = ["run", str(EXAMPLE), "--processes", "0", "--timeout", "0.5"]
"""A run that nobody works on and that ends by itself: the view is the same, and no worker has to start."""
STYLE: Final = re.compile(r"\x1b\[[\d;]*m")
"""A change of colours, of boldness, or of both."""
HIDE_CURSOR: Final = "\x1b[?25l"
SHOW_CURSOR: Final = "\x1b[?25h"
WITHIN_S: Final = 100.0
"""For a whole `demo`, also on a machine that does other things."""


@contextmanager
def terminal(columns: int) -> Iterator[tuple[int, int]]:
    """Opens a terminal of a size: our end and the program's."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def screen(arguments: list[str], env: Mapping[str, str], cwd: Path, *, columns: int = 80) -> tuple[int, str]:
    """Runs a command on a terminal and returns its exit code with everything that was drawn."""
    with terminal(columns) as (ours, theirs):
        process = subprocess.Popen(
            [*PROCTOR, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env={**env, MARK_NAME: os.environ[MARK_NAME]},
            start_new_session=True,
        )  # fmt: skip - one call, few lines
        drawn, deadline = b"", monotonic() + WITHIN_S
        while process.poll() is None or select.select([ours], [], [], 0)[0]:
            if monotonic() > deadline:
                process.kill()
                process.wait()  # or its end is a warning in whatever test comes next
                raise AssertionError(f"still running after {WITHIN_S} s\n{drawn.decode()}")
            if select.select([ours], [], [], 0.05)[0]:
                drawn += os.read(ours, 65536)
        return process.wait(), drawn.decode()


@pytest.fixture
def env(bare_env: dict[str, str]) -> dict[str, str]:
    """The environment of somebody at a terminal that can do colours."""
    plain = {name: value for name, value in bare_env.items() if name not in {"CI", "NO_COLOR", "FORCE_COLOR"}}
    return {**plain, "TERM": "xterm-256color"}


def test_run_draws_a_live_view(env: dict[str, str], tmp_path: Path) -> None:
    """On a terminal progress is drawn in place, the cursor comes back, and the verdict is what stands out."""
    code, drawn = screen(["run", str(EXAMPLE)], env, tmp_path)
    assert code == 0, drawn
    assert HIDE_CURSOR in drawn
    assert drawn.rindex(SHOW_CURSOR) > drawn.rindex(HIDE_CURSOR)
    assert "━" in drawn
    assert "\x1b[2mfinished: 61 turns" in drawn
    assert "\x1b[1;32m✓ All 61 turns decided" in drawn


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [({"NO_COLOR": "1"}, []), ({}, ["--color", "never"])],
    ids=["NO_COLOR", "never"],
)
def test_no_color_removes_colour_and_nothing_else(
    variables: dict[str, str], arguments: list[str], env: dict[str, str], tmp_path: Path
) -> None:
    """Without colours the view redraws itself as ever, and nothing is painted, neither in it nor below it."""
    code, drawn = screen([*UNWORKED, *arguments], {**env, **variables}, tmp_path)
    assert code == 4, drawn
    assert HIDE_CURSOR in drawn
    assert drawn.rindex(SHOW_CURSOR) > drawn.rindex(HIDE_CURSOR)
    assert "\x1b[1A" in drawn, "the view is drawn over"
    assert "━" in drawn
    assert not STYLE.search(drawn)
    assert "waiting  no worker is alive" in drawn


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [
        ({"CI": "true"}, []),
        ({"CI": "true", "FORCE_COLOR": "1"}, ["--color", "never"]),
        ({"TERM": "dumb"}, []),
        ({"TERM": "dumb", "NO_COLOR": "1"}, []),
    ],
    ids=["CI", "CI never", "dumb", "dumb NO_COLOR"],
)
def test_plain_lines_where_nobody_redraws(
    variables: dict[str, str], arguments: list[str], env: dict[str, str], tmp_path: Path
) -> None:
    """`CI` and a dumb terminal each give lines without an escape code: a log keeps what was drawn over."""
    code, drawn = screen([*UNWORKED, *arguments], {**env, **variables}, tmp_path)
    assert code == 4, drawn
    assert "\x1b" not in drawn
    assert "waiting: no worker is alive" in drawn


def test_no_progress_shows_the_summary_only(env: dict[str, str], tmp_path: Path) -> None:
    """`--no-progress` draws nothing before the summary."""
    code, drawn = screen([*UNWORKED, "--no-progress"], env, tmp_path)
    assert code == 4, drawn
    assert HIDE_CURSOR not in drawn
    assert drawn.lstrip("\x1b[1m").startswith("run-")


def test_tables_fit_a_narrow_terminal(env: dict[str, str], tmp_path: Path) -> None:
    """At 80 columns no line of `demo -v` but the log of its progress is wider, and its table is whole."""
    code, drawn = screen(["demo", "-v"], {**env, "CI": "true"}, tmp_path)
    assert code == 0, drawn
    lines = drawn.replace("\r", "").split("\n")
    wide = [line for line in lines if len(line) > 80 and " elapsed " not in line]
    assert not wide
    table = lines[next(number for number, line in enumerate(lines) if line.startswith("DECISION")) :]
    assert [line.split()[:2] for line in table[1:7]] == [
        ["must", "1"],
        ["must", "2"],
        ["should", "3"],
        ["should", "4"],
        ["skip", "5"],
        ["should", "6"],
    ]  # fmt: skip - the six rules in a row
