"""Runs every command that the documents show, and compares what they show with what comes out.

A `console` block is commands after `$` and, below each, lines of what it prints. All blocks of a document run
in order, in one shell, in a folder with the examples. Numbers, times and ids may differ; words may not.
Lines may be left out; in the documents of `MARKED`, a line `…` stands where some are.
A command may fail only if `echo $?` follows; its exit code must be exactly the one that the document shows.
A block below "Save this as `NAME`:" is a file, which is written before the commands after it.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.ports import free_port
from tests.support.processes import Processes
from tests.support.tools import require_tool
from tests.support.tree import ROOT, project_files, shown

BLOCK: Final = re.compile(
    r"(?:^Save this as `(?P<file>[\w./-]+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
DOCUMENTS: Final = [
    path for path in project_files() if path.suffix == ".md" and "```console" in path.read_text()
]
AGAIN: Final = ROOT / "docs" / "gallery.md"
"""Shows at length what the other documents show too: it takes a minute, and waits for `make test-chaos`."""
MARKED: Final = (ROOT / "README.md", ROOT / "docs" / "tutorial-cases.md")
"""Documents in which output is whole but where `…` stands; of commands without any output nothing is held."""
LEFT_OUT: Final = "…"
PASSING: Final = re.compile(r" (?:running|finished|failed) [\d,]+/[\d,]+ \(|^sample API at ")
"""Lines of progress, which a terminal draws over, and of programs in the background."""
EXAMPLE_URL: Final = "redis://db.example:6379/0"
"""Where documents say "your Redis"; the tests' own server takes its place."""
EXAMPLE_PORT: Final = 3000
"""Of the sample API in documents, which is its default; each test has a port of its own."""
SHOW_EXIT: Final = "echo $?"
"""Below a command that fails: shows its exit code, as readers would look it up."""
SEPARATOR: Final = "----- command "
BUDGET_S: Final = 280.0
"""All commands of one document: a minute on two idle cores, several where others keep them busy."""

PRELUDE: Final = f"""
set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
make() {{  # only looks whether the target exists; tests do not run tests
  command make -n -C "$CHECKOUT" "$@" >/dev/null
  if [ "$1" = demo ]; then proctor demo; fi
}}
next() {{ echo; echo "{SEPARATOR}$1"; }}
exec 2>&1
"""


class Command(NamedTuple):
    """One command of a document."""

    text: str
    """What is typed."""
    output: list[str]
    """Lines that the document shows below it."""


def commands(document: Path) -> list[Command]:
    """The commands of all console blocks of a document, in order, and those that write its files."""
    found: list[Command] = []
    for block in BLOCK.finditer(document.read_text(encoding="utf-8")):
        if block["file"]:
            found.append(Command(f"cat > {block['file']} <<'END OF FILE'\n{block['text']}END OF FILE", []))
        for line in block["text"].splitlines() if block["language"] == "console" else ():
            if line.startswith("$ "):
                found.append(Command(line[2:], []))
            elif line.strip():
                found[-1].output.append(line)
    return found


def on_port(text: str, port: int) -> str:
    """Text whose sample API listens on another port than the default, and answers quickly."""
    text = re.sub(
        r"proctor sample-api(?! --port)", f"proctor sample-api --port {port} --latency-ms 120", text
    )
    return text.replace(f"localhost:{EXAMPLE_PORT}", f"localhost:{port}")


def script_of(steps: list[Command]) -> str:
    """The shell script of a document: it ends at a command that fails, unless its exit code is shown next."""
    script = PRELUDE
    for number, (step, after) in enumerate(zip(steps, [*steps[1:], None], strict=True)):
        if step.text == SHOW_EXIT:
            text = 'echo "$exit_code"'
        elif after is not None and after.text == SHOW_EXIT:
            text = f"set +e\n{step.text}\nexit_code=$?\nset -e"
        else:
            text = step.text
        script += f"next {number}\n{text}\n"
    return script


def words(text: str) -> str:
    """A line without what differs from run to run: figures, ids, marks of significance, bars, padding."""
    text = text.replace(" *", "")
    text = re.sub(r"\b(?=\w*\d)[\w.:,-]+", "#", text)
    text = re.sub(r"[+-](?=#)", "", text)
    return " ".join(re.sub(r"[━─█▏▎▍▌▋▊▉░▒▓╸╺]+", "-", text).split())


def first_missed(shown: list[str], printed: list[str], *, is_whole: bool) -> str | None:
    """Returns the first line of a document that a command does not print where it stands; None if all are.

    Args:
        shown: lines of the document.
        printed: lines of the command.
        is_whole: whether lines are left out only where the document says so.
    """
    found = [words(line) for line in printed if line.strip() and not PASSING.search(line)]
    at, may_skip = 0, not is_whole
    for line in shown:
        if line == LEFT_OUT:
            may_skip = True
            continue
        rest = found[at:] if may_skip else found[at : at + 1]
        if words(line) not in rest:
            return line
        at += rest.index(words(line)) + 1
        may_skip = not is_whole
    return None if may_skip or not shown or at == len(found) else LEFT_OUT


@pytest.mark.parametrize(
    ("shown", "is_whole", "missed"),
    [
        ("ac", False, None),
        ("ca", False, "a"),
        ("ac", True, "c"),
        ("ab", True, LEFT_OUT),
        ("a…c", True, None),
        ("…b…", True, None),
        ("…ab…", True, None),
        ("", True, None),
    ],
)
def test_lines_that_are_left_out_are_marked(shown: str, missed: str | None, *, is_whole: bool) -> None:
    """Where a document claims to be whole, each gap has its mark; elsewhere only the order counts."""
    assert first_missed(list(shown), ["a", "b", "c"], is_whole=is_whole) == missed


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(path, id=shown(path), marks=[pytest.mark.slow] if path == AGAIN else [])
        for path in DOCUMENTS
    ],
)
def test_commands_do_what_the_document_shows(
    document: Path, processes: Processes, bare_env: dict[str, str], redis_url: str, tmp_path: Path
) -> None:
    """Every command has the exit code and prints the lines that the document shows; tutorials tidy up."""
    folder = tmp_path / "work"
    shutil.copytree(ROOT / "examples", folder / "examples")
    steps, port = commands(document), free_port()
    for bench in (folder / "examples").glob("*.yaml"):
        bench.write_text(on_port(bench.read_text(encoding="utf-8"), port), encoding="utf-8")
    script = on_port(script_of(steps), port).replace(EXAMPLE_URL, redis_url)
    path = f"{Path(sys.executable).parent}:{bare_env['PATH']}"
    env = {**bare_env, "PATH": path, "CHECKOUT": str(ROOT)}
    done = processes.start(require_tool("bash"), "-c", script, env=env, cwd=folder)
    assert done.wait(BUDGET_S) == 0, done.output_text()
    for number, printed in enumerate(done.output.split(SEPARATOR)[1:]):
        if steps[number].text == SHOW_EXIT:
            assert steps[number].output[0] in printed.splitlines()[1:], f"another exit code\n{printed}"
            continue
        missed = first_missed(steps[number].output, printed.splitlines()[1:], is_whole=document in MARKED)
        assert missed is None, f"{steps[number].text} does not print {missed!r} there\n{printed}"
    if document.name.startswith("tutorial-"):
        assert [path.name for path in folder.iterdir()] == ["examples"]
