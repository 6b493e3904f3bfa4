"""Recorded conversations through the one command: every turn decided once, as a plain replay says."""

import json
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.support.cli import Cli
from tests.support.thread_oracle import check_document, check_run, check_traces
from tests.support.tree import ROOT

REAL: Final = ROOT.parent / "shared" / "data" / "turns_sgd_dev.jsonl"
"""3,574 turns of 256 dialogues; the Schema-Guided Dialogue dataset's licence keeps it beside the project."""
FILES: Final = [path for path in (ROOT / "examples" / "turns.jsonl", REAL) if path.is_file()]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_recorded_conversations_are_decided_as_a_replay_says(cli: Cli, tmp_path: Path, file: Path) -> None:
    """`proctor run FILE`: results, traces, document and summary agree with the file's plain replay."""
    out = tmp_path / "out.jsonl"
    done = cli("run", file, "-o", out, within_s=60)
    assert done.code == 0, done
    lines = file.read_bytes().splitlines()
    rows = [json.loads(line) for line in out.read_bytes().splitlines()]
    check_run(rows, lines)

    run = rows[0]["run_id"]
    traces = [json.loads(line) for line in cli("results", run, "--traces").out.splitlines()]
    check_traces(traces, rows)
    document = json.loads(cli("runs", "show", run, "--json").out)
    check_document(document, rows)
    summary = document["summary"]
    results = [row["result"] for row in rows]
    assert summary["threads"] == len({result["threadId"] for result in results})
    assert summary["freezes"] == sum(result["peakGuardrailActive"] for result in results)
    assert summary["summaries_updated"] == sum(result["summaryUpdated"] for result in results)
    rules = Counter(str(result["rule"]) for result in results)
    assert summary["rules"] == {rule: rules[rule] for rule in summary["rules"]}
    totals = (summary["threads"], summary["freezes"], summary["summaries_updated"])
    for number in (*totals, *summary["decisions"].values(), *rules.values()):
        assert f"{number:,}" in done.out, done
