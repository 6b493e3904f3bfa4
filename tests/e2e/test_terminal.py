"""What stands on the screen of a real terminal (tmux): nothing wraps, and the verdict is on the last one."""

import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.support.benches import HEAD, write
from tests.support.cli import PROCTOR
from tests.support.eventually import eventually
from tests.support.tmux import Pane
from tests.support.tree import ROOT

EXAMPLE: Final = ROOT / "examples" / "turns.jsonl"
END: Final = "that was all"


@pytest.fixture
def env(bare_env: dict[str, str]) -> dict[str, str]:
    """The environment of somebody at a terminal that can do colours."""
    return {name: value for name, value in bare_env.items() if name not in {"CI", "NO_COLOR", "FORCE_COLOR"}}


def line_of(*commands: str) -> str:
    """Commands of ours as one line of shell, with a last word."""
    program = shlex.join(PROCTOR)
    script = "; ".join(f"{program} {command}" for command in commands)
    return f"{script}; echo {END} $?"


@pytest.mark.parametrize("columns", [80, 140])
def test_a_run_leaves_its_verdict(columns: int, env: dict[str, str], tmp_path: Path) -> None:
    """After `run` the view is gone, the verdict is there in colour, and no line was wider than the pane."""
    line = line_of(f"run {EXAMPLE} --processes 1")
    with Pane(line, columns=columns, rows=24, cwd=tmp_path, env=env) as pane:
        lines = pane.wait_for(f"{END} 0")
        colored = "\n".join(pane.screen(escapes=True))
    assert max(map(len, lines)) <= columns
    assert sum("finished: 61 turns" in line for line in lines) == 1
    assert not [line for line in lines if "━" in line]
    assert "\x1b[32m" in colored


@pytest.mark.parametrize(("columns", "plain"), [(80, True), (140, False)])
def test_looking_fits(columns: int, plain: bool, env: dict[str, str], tmp_path: Path) -> None:  # noqa: FBT001 - a column of the table
    """Tables and sentences of the commands that look are no wider than the pane, coloured or not."""
    limits = [
        f"limits set {key} --rpm 90000 --tpm 9000000 --concurrency 500 --pace 0.25 -q"
        for key in ("https://models.example.com/a/very/long/path/v1", "openai/gpt-4o")
    ]
    looks = ["status", "limits show", "doctor", "runs"]
    where = {**env, "NO_COLOR": "1"} if plain else env
    line = line_of(f"submit {EXAMPLE} -q 2>/dev/null", *limits, *looks)
    with Pane(line, columns=columns, rows=60, cwd=tmp_path, env=where) as pane:
        lines = pane.wait_for(END)
        painted = "\n".join(pane.screen(escapes=True))
    assert max(map(len, lines)) <= columns
    assert ("\x1b[3" in painted) is not plain
    assert [line for line in lines if line.startswith("openai/gpt-4o")]
    assert [line for line in lines if line.endswith("blank: no limit")], "the headings are explained"
    assert [line for line in lines if "waits: no worker is alive" in line]


def test_the_fleet_stays_in_its_place(env: dict[str, str], tmp_path: Path) -> None:
    """`status --watch` redraws itself, shows what a run waits for, and Ctrl-C ends it with exit code 0."""
    line = line_of(f"submit {EXAMPLE} -q 2>/dev/null", "status --watch")
    with Pane(line, columns=80, rows=30, cwd=tmp_path, env=env) as pane:
        pane.wait_for("0.0/s")  # a rate needs two looks
        lines = pane.screen()
        pane.press("C-c")
        pane.wait_for(f"{END} 0")
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if line.startswith("QUEUE ")]) == 1
    assert [line for line in lines if "no worker is alive" in line]


@pytest.mark.parametrize("command", ["watch last", "status --watch"])
def test_a_narrower_terminal_keeps_one_view(command: str, env: dict[str, str], tmp_path: Path) -> None:
    """After the terminal has become narrower, nothing of the wider view is left above the new one."""
    line = line_of(f"submit {EXAMPLE} -q 2>/dev/null", command)
    with Pane(line, columns=140, rows=30, cwd=tmp_path, env=env) as pane:
        pane.wait_for("no worker is alive")
        pane.resize(columns=60)

        def one_view_is_left() -> None:
            """No line stands there twice, and the run and its state once."""
            lines = [line for line in pane.screen() if line]
            assert len(set(lines)) == len(lines), lines
            assert max(map(len, lines)) <= 60, lines
            assert sum("running " in f"{line} " for line in lines) == 1, lines
            assert sum("no worker is alive" in line for line in lines) == 1, lines

        eventually(one_view_is_left, 20)


def test_a_large_run_asks_first(env: dict[str, str], tmp_path: Path) -> None:
    """On a terminal a run above the bound asks, with calls and cost; no sends nothing, `--yes` answers."""
    bench = write(tmp_path, f"{HEAD}config: {{repeat: 3}}\ntest_cases: [{{input: Hi}}]\n")
    asked = f"run {bench} --price 1/1 --api-base http://127.0.0.1:1/v1 --processes 1"
    where = {**env, "PROCTOR_CONFIRM_CALLS": "3"}
    with Pane(line_of(asked, "runs"), columns=140, rows=24, cwd=tmp_path, env=where) as pane:
        question = pane.wait_for("Send them? [y/N]")
        pane.press("n")
        pane.press("Enter")
        lines = pane.wait_for(f"{END} 0")
    asked_for = (
        "3 calls (1 case × 1 model × 3 repeats), at most about $0.0008, assuming 256 tokens an answer. "  # noqa: RUF001 - a product
    )
    assert asked_for + "Send them?" in "".join(question)
    assert "error: nothing was sent" in lines
    assert any("PROCTOR_CONFIRM_CALLS is the bound, now 3" in line for line in lines)
    assert any(line.startswith("no runs here yet") for line in lines)
    with Pane(line_of(f"{asked} --yes"), columns=140, rows=40, cwd=tmp_path, env=where) as pane:
        lines = pane.wait_for(f"{END} 3")  # nothing listens there
    assert any("3 calls (" in line for line in lines)
    assert not any("Send them?" in line for line in lines)
