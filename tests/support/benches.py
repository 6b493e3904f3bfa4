"""Writes bench configurations and reads them back the way `proctor run` does."""

from pathlib import Path
from typing import Any, Final

import pytest

from producer.load.cases import PlannedRun, plan_run
from producer.load.source import Source
from producer.options import CaseChoice
from shared.errors import ProctorError

MINIMAL: Final[dict[str, Any]] = {"name": "bench", "system_prompt": "Answer.", "models": ["m"]}
HEAD: Final = "name: bench\nsystem_prompt: Answer.\nmodels: [m]\n"
"""The same as text, for files whose spelling matters."""
CASES: Final = "test_cases:\n  - input: Hi\n"


def write(folder: Path, text: str, name: str = "bench.config.yaml") -> Path:
    """Writes a file as it is."""
    path = folder / name
    path.write_bytes(text.encode())
    return path


def plan(path: Path, **choice: Any) -> PlannedRun:
    """Reads a configuration, with what a command line would say."""
    return plan_run(Source(path), CaseChoice(**choice))


def refusal(path: Path, **choice: Any) -> str:
    """The error that a configuration is refused with, hint included, without its folder; exit code 2."""
    with pytest.raises(ProctorError) as caught:
        plan(path, **choice)
    assert caught.value.exit_code == 2
    text = f"{caught.value.message} | {caught.value.hint}"
    assert text.isprintable()
    return text.replace(f"{path.parent}/", "")
