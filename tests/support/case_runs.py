"""A bench whose models a scripted server plays, and how its runs are read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.cli import Cli, Done
from tests.support.model_server import ModelServer, Say
from tests.support.schemas import hold

WORKERS: Final = ("--processes", "1", "-q", "--json")
QUESTION: Final = "semantically equivalent"
VALIDATORS: Final = """
def is_short(output):
    return len(output) < 20, f"{len(output)} characters"

def hangs(output):
    while True:
        pass
"""


def bench(
    folder: Path, server: ModelServer, cases: list[dict[str, Any]], *, panel: Sequence[str] = (), **more: Any
) -> Path:
    """Writes a bench of two models, which the server plays, with a judge or a panel of them."""
    place = {
        "api_base": server.api_base,
        "prices": {"prompt_per_million": 100, "completion_per_million": 200},
    }
    judges = {"judge_models": list(panel)} if panel else {"judge_model": "judge"}
    config = {
        "name": "Bench",
        "system_prompt": "Answer.",
        "models": ["alpha", "beta"],
        "model_configs": dict.fromkeys(("alpha", "beta", "judge", *panel), place),
        "config": {**judges, "concurrency": 8, **more.pop("config", {})},
        "test_cases": cases,
        **more,
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    return path


def document(done: Done) -> dict[str, Any]:
    """Reads what `--json` printed, which fits its schema."""
    found: dict[str, Any] = json.loads(done.out)
    if "summary" in found:
        hold("run", found)
    return found


def rows_of(cli: Cli, run: str) -> list[dict[str, Any]]:
    """Reads the results of a run, which fit their schema."""
    return [hold("line-cases", line) for line in cli("results", run, "--format", "jsonl").out.splitlines()]


def echo(prompt: str, _nth: int) -> Say:
    """Answers as its prompt says; as a judge it passes numbers that only differ in type."""
    if QUESTION in prompt:
        return Say("PASS" if '"n": 1.0' in prompt else "I cannot PASS this")
    return Say(prompt)
