"""A bench with prompts, tags and checks, from the file through real workers to every output."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.case_runs import WORKERS, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say

CAPITALS = {"France": "Paris", "Italy": "Rome"}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that answers with the capital, and in a sentence where it is not asked for one word."""
    with ModelServer() as server:

        def script(prompt: str, _nth: int) -> Say:
            country = next(name for name in CAPITALS if name in prompt)
            is_brief = "one word" in json.dumps(server.requests[-1].body)
            return Say(CAPITALS[country] if is_brief else f"The capital of {country} is {CAPITALS[country]}.")

        server.script = script
        yield server


def bench(folder: Path, server: ModelServer) -> Path:
    """Two prompts, two cases with tags, and checks of which `long` fails one."""
    config = {
        "name": "capitals",
        "models": ["alpha"],
        "model_configs": {"alpha": {"api_base": server.api_base}},
        "config": {"judge_model": None},
        "prompts": [
            {
                "id": "terse",
                "system": "Answer with one word.",
                "user": "What is the capital of {{ country }}?",
            },
            {"id": "long", "user": "Tell me the capital of {{ country }}."},
        ],
        "default_checks": [{"length": {"max": 8}, "name": "short"}],
        "test_cases": [
            {
                "id": country.lower(),
                "vars": {"country": country, "capital": capital},
                "tags": ["europe", country[0]],
                "checks": [{"contains": "{{ capital }}"}],
            }
            for country, capital in CAPITALS.items()
        ],
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path


def test_prompts_and_checks_reach_every_output(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    """Summary, rows, CSV, a gate on a check, a comparison within the run, and the checks evaluated again."""
    table = tmp_path / "all.csv"
    gates = ("--fail-on", "check:short.pass_rate<0.9", "--fail-on", "prompt:terse.score_mean<0.9")
    done = cli("run", bench(tmp_path, server), *WORKERS, "-o", table, *gates)
    found = document(done)
    assert done.code == 1
    assert [gate["met"] for gate in found["gates"]] == [False, True]
    prompts = {each["prompt"]: each for each in found["summary"]["prompts"]}
    assert (prompts["terse"]["passed"], prompts["long"]["failed"]) == (2, 2)
    assert found["summary"]["statuses"]["failed_checks"] == 2
    rows = [row["result"] for row in rows_of(cli, found["run_id"])]
    assert [(row["prompt_id"], row["case_id"], row["status"]) for row in rows] == [
        ("terse", "france", "passed"),
        ("terse", "italy", "passed"),
        ("long", "france", "failed_checks"),
        ("long", "italy", "failed_checks"),
    ]
    assert rows[2]["score"] == 0.5
    with table.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["failed_checks"] for line in lines] == ["", "", "short", "short"]
    assert lines[0]["tags"] == "europe; F"
    compared = document(cli("compare", found["run_id"], "--by", "prompt", "--json"))
    assert (compared["counts"]["pairs"], compared["counts"]["broken"]) == (2, 2)
    assert compared["scores"]["check:short"]["difference"] == -1
    check_rescored(cli, server, found)


def check_rescored(cli: Cli, server: ModelServer, found: dict[str, Any]) -> None:
    """Asserts that a rescored run has the same figures, and that no model was called for it."""
    asked = len(server.requests)
    again = document(cli("rescore", found["run_id"], *WORKERS, "--json"))
    assert len(server.requests) == asked, "stored answers are judged"
    assert again["summary"]["prompts"] == found["summary"]["prompts"]
    assert again["summary"]["checks"] == found["summary"]["checks"]
    same = document(cli("compare", found["run_id"], again["run_id"], "--json"))
    assert (same["counts"]["pairs"], same["counts"]["unchanged"]) == (4, 4)
