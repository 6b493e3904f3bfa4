"""Writes bench configurations and reads them back the way `proctor run` does."""

from pathlib import Path
from typing import Any, Final

import pytest

from producer.cases.load import PlannedRun, plan_run
from producer.load.source import Source
from producer.options import CaseChoice
from shared.contracts.case_config import ModelConfig, RunSettings
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
    """Reads a configuration, with what a command line would say; `judges` are those of `--judge`."""
    settings = {name: choice.pop(name) for name in RunSettings.model_fields.keys() & choice.keys()}
    if (judges := choice.pop("judges", None)) is not None:
        settings |= {"judge_model": None, "judge_models": list(judges) or None}
    own = {name: choice.pop(name) for name in ModelConfig.model_fields.keys() & choice.keys()}
    above = RunSettings.model_construct(**settings)
    return plan_run(Source(path), CaseChoice(above, model_config=ModelConfig.model_validate(own), **choice))


def refusal(path: Path, **choice: Any) -> str:
    """The error that a configuration is refused with, hint included, without its folder; exit code 2."""
    with pytest.raises(ProctorError) as caught:
        plan(path, **choice)
    assert caught.value.exit_code == 2
    text = f"{caught.value.message} | {caught.value.hint}"
    assert text.isprintable()
    return text.replace(f"{path.parent}/", "")
