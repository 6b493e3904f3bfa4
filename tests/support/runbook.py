"""Takes shell commands out of the runbook in docs/operations.md, so that tests do what it says."""

import re
from pathlib import Path
from typing import Final

from tests.support.processes import Process, Processes
from tests.support.tools import require_tool
from tests.support.tree import ROOT

DOCUMENT: Final = ROOT / "docs" / "operations.md"
SECTION: Final = re.compile(r"^### (.+?)\n(.*?)(?=^#{2,3} |\Z)", re.MULTILINE | re.DOTALL)
BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def entries() -> dict[str, list[str]]:
    """The runbook's entries by title, each with its shell blocks."""
    _, _, runbook = DOCUMENT.read_text(encoding="utf-8").partition("\n## Runbook\n")
    return {title: BLOCK.findall(text) for title, text in SECTION.findall(runbook)}


def follow(processes: Processes, title: str, step: int, **variables: str | Path) -> Process:
    """Runs one shell block of an entry to its end, which has to be good.

    Args:
        processes: starts the shell.
        title: of the entry.
        step: which of its blocks, from 0.
        variables: what the block needs in its environment.
    """
    script = entries()[title][step]
    env = {**processes.env, **{name: str(value) for name, value in variables.items()}}
    done = processes.start(require_tool("bash"), "-euo", "pipefail", "-c", script, env=env)
    assert done.wait(30) == 0, f"{script}\n{done.output_text()}"
    return done
