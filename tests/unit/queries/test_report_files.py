"""Holds the three output files against the harness document."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from producer.aggregate.queries import calculate_metrics, metrics_of
from producer.queries.report.files import (
    OutputPaths,
    write_report_md,
    write_results_csv,
    write_results_json,
)
from producer.queries.report.to_csv import COLUMNS, results_csv
from producer.queries.report.to_json import results_json
from producer.queries.report.to_markdown import report_markdown
from producer.queries.results import AskedQuery
from shared.errors import ConfigError
from tests.support.query_results import HOSTILE, answered, one_of_each

RUN = "eval-2026-02-10T14-30-00"
BEGAN_MS = 1_770_733_800_123


def report(results: list[dict[str, Any]]) -> str:
    """The Markdown report of some results."""
    return report_markdown(list(map(AskedQuery, results)), metrics_of(results), RUN)


def section(text: str, title: str) -> list[str]:
    """The lines under one heading."""
    _, _, rest = text.partition(f"\n## {title}\n")
    return [line for line in rest.partition("\n## ")[0].splitlines() if line]


def rows(results: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The CSV file as a spreadsheet reads it."""
    return list(csv.DictReader(io.StringIO(results_csv(results).decode(), newline="")))


def test_the_json_file_has_the_documents_structure() -> None:
    """Five keys in order, time in UTC with zone, text as it is, no NaN."""
    results = one_of_each()
    content = results_json(results, calculate_metrics(results), {"delay": 30}, run_id=RUN, began_ms=BEGAN_MS)
    document = json.loads(content)
    assert list(document) == ["run_id", "timestamp", "config", "metrics", "results"]
    assert (document["run_id"], document["timestamp"]) == (RUN, "2026-02-10T14:30:00+00:00")
    assert document["results"] == results
    assert "citation N/A" in content.decode()
    assert "—" in content.decode()
    with pytest.raises(ValueError, match="Out of range float"):
        results_json([{"x": float("nan")}], {}, {}, run_id=RUN, began_ms=0)


def test_half_a_surrogate_pair_does_not_break_the_json_file() -> None:
    """It is written as its escape, which is what JSON has for it."""
    content = results_json([{"answer": "\ud800"}], {}, {}, run_id=RUN, began_ms=0)
    assert json.loads(content)["results"] == [{"answer": "\ud800"}]


def test_the_csv_file_has_sixteen_columns() -> None:
    """Each kind of result, cell by cell."""
    table = rows(one_of_each())
    assert tuple(table[0]) == COLUMNS
    assert len(COLUMNS) == 16
    assert list(table[0].values()) == [
        *("Q-01", "booking", "What about Q-01?", "False", "High", "True", "1", "1", "True", "True"),
        *("True", "True", "True", "1200", "True", ""),
    ]
    failed = table[7]
    assert (failed["error"], failed["confidence"], failed["latency_ms"]) == ("Timeout after 30s", "", "30004")
    assert (failed["citation_present"], failed["citation_applicable"]) == ("False", "True")
    assert table[5]["citation_applicable"] == "False"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\n=1", "＝1"])  # noqa: RUF001 - the full-width form is what is tested
def test_a_spreadsheet_never_runs_a_cell(text: str) -> None:
    """Text that begins like a formula gets an apostrophe in front."""
    assert rows([answered("Q-1", query=text)])[0]["query"] == f"'{text}"


def test_hostile_text_stays_in_its_csv_cell() -> None:
    """Quotes, commas and line ends come back as they went in; what a terminal would obey is written out."""
    (row,) = rows([answered("Q-1", query=HOSTILE)])
    assert row["query"] == HOSTILE.replace("\x1b", "\\x1b")
    assert len(row) == 16


def test_the_report_has_the_documents_nine_sections() -> None:
    """A title and eight headings, in order, also for a run without results."""
    for results in (one_of_each(), []):
        headings = [line for line in report(results).splitlines() if line.startswith("#")]
        assert headings == [
            "# Evaluation Report",
            "## Aggregate Metrics",
            "## Per-Category Breakdown",
            "## must_contain Failures",
            "## Hallucination Detections",
            "## OOS Handling Failures",
            "## Citation N/A",
            "## Citation Missing",
            "## Raw Query Results",
        ]


def test_the_header_names_date_run_and_counts() -> None:
    """What was run, when, and how much of it has an answer; notes follow."""
    results = one_of_each()
    text = report_markdown(
        list(map(AskedQuery, results)), metrics_of(results), RUN, notes=["partial: from Q-01 | on"]
    )
    assert text.splitlines()[:7] == [
        "# Evaluation Report",
        "",
        "- **Date:** 2026-02-10 14:30:00 UTC",
        "- **Run ID:** eval-2026-02-10T14-30-00",
        "- **Queries:** 9",
        "- **Successful:** 8/9",
        "- **Note:** partial: from Q-01 \\| on",
    ]


def test_metrics_stand_beside_their_targets() -> None:
    """Result, target and status; the raw citation share only when something could not be cited."""
    lines = section(report(one_of_each()), "Aggregate Metrics")
    assert lines == [
        "| Metric | Result | Target | Status |",
        "| --- | --- | --- | --- |",
        "| Deflection Rate | 83.3% | >= 40% | PASS |",
        "| Citation Accuracy | 80.0% | >= 80% | PASS |",
        "| Citation (raw) | 66.7% | - | 1 N/A |",
        "| Hallucination Rate | 12.5% | < 15% | PASS |",
        "| OOS Handling | 50.0% | >= 90% | FAIL |",
        "| Avg Latency | 1200ms | < 5000ms | PASS |",
        "| Latency < 5s | 100.0% | - | - |",
    ]
    assert "Citation (raw)" not in report([answered("Q-01")])


def test_categories_without_queries_are_not_applicable() -> None:
    """All five stand there."""
    lines = section(report(one_of_each()), "Per-Category Breakdown")
    assert "| customs | 0 | N/A | N/A | N/A | N/A |" in lines
    assert "| edge_case | 1 | N/A | N/A | 0.0% | 1200ms |" in lines


@pytest.mark.parametrize(
    ("title", "row"),
    [
        ("must_contain Failures", "| Q-02: What about Q-02? | yes |"),
        ("Hallucination Detections", "| Q-03: What about Q-03? | guess |"),
        ("OOS Handling Failures", "| Q-05: What about Q-05? | Sure: 42 |"),
        ("Citation Missing", "| Q-07: What about Q-07? | High |"),
    ],
)
def test_each_failure_stands_in_its_section_alone(title: str, row: str) -> None:
    """One query failed each of these checks; failed queries are in none of them."""
    assert [line for line in section(report(one_of_each()), title) if "Q-" in line] == [row]


def test_queries_without_chunks_are_distinguished_from_missing_citations() -> None:
    """The section lists both scopes and says how many left the denominator."""
    lines = section(report(one_of_each()), "Citation N/A")
    assert lines[0] == "In scope, and so left out of citation accuracy: 1 of 2."
    assert [line for line in lines if "Q-" in line] == [
        "| Q-04: What about Q-04? (OOS) | High | found |",
        "| Q-06: What about Q-06? | High | found |",
    ]


def test_answers_that_needed_no_keyword_are_counted() -> None:
    """A vacuous pass is marked."""
    lines = section(report(one_of_each()), "must_contain Failures")
    assert lines[0] == "In-scope queries that require no keyword, and so count as deflected: 1."


def test_sections_without_rows_say_none() -> None:
    """Nothing found differs from not looked at."""
    text = report([answered("Q-01")])
    for title in ("must_contain Failures", "Hallucination Detections", "OOS Handling Failures"):
        assert section(text, title) == ["None"]


def test_the_last_table_has_every_query() -> None:
    """Verdicts, N/A, a dash where a check does not apply, and failed queries with their error."""
    lines = section(report(one_of_each()), "Raw Query Results")
    assert len(lines) == 2 + 9
    assert "| Q-01 | booking | High | PASS | PASS | PASS | - | 1200ms | PASS |" in lines
    assert "| Q-04 | booking | High | - | N/A | PASS | PASS | 1200ms | PASS |" in lines
    assert "| Q-08 | booking | - | - | - | - | - | 30004ms | ERROR: Timeout after 30s |" in lines


def test_the_three_functions_write_to_the_documents_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Called as in the document they write under the current folder and return the run's id."""
    monkeypatch.chdir(tmp_path)
    results = one_of_each()
    metrics = calculate_metrics(results)
    config = {"delay": 30, "api_url": "u", "start_from": "Q-01", "version": "1.0"}
    run = write_results_json(results, metrics, config)
    write_results_csv(results)
    write_report_md(results, metrics, run)
    assert run.startswith("eval-20")
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert written == [
        "data/evaluation_results.csv",
        "data/evaluation_results.json",
        "reports/evaluation_report.md",
    ]
    document = json.loads(Path("data/evaluation_results.json").read_text(encoding="utf-8"))
    assert (document["run_id"], document["config"]) == (run, config)


def test_a_run_keeps_its_id_and_its_folder(tmp_path: Path) -> None:
    """Id, moment and place may be given."""
    paths = OutputPaths.under(tmp_path / "out")
    assert write_results_json([], {}, {}, run_id="eval-x-2", began_ms=0, path=paths.json) == "eval-x-2"
    assert json.loads(paths.json.read_bytes())["timestamp"] == "1970-01-01T00:00:00+00:00"


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    """The error names the path, and nothing half-written stays behind."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_results_csv([], path=tmp_path / "file" / "report.md")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        write_results_csv([], path=tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
