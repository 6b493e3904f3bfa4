"""`proctor compare` and gates with real runs: by id, by report file, and by exit code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from producer.sample_api.server import in_background
from tests.support.cli import Cli, Done
from tests.support.query_desk import numbered

QUERIES = 6


@pytest.fixture
def api() -> Iterator[str]:
    """The sample API on a free port."""
    with in_background() as url:
        yield url


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of six queries."""
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps(query) + "\n" for query in numbered(QUERIES)))
    return path


def changed(report: Path, broken: int) -> Path:
    """The same report with the first queries failed and the others passed."""
    lines = [json.loads(line) for line in report.read_bytes().splitlines()]
    for number, line in enumerate(lines):
        line["outcome"] = "failed" if number < broken else "passed"
    path = report.with_name(f"broken-{broken}.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def document(done: Done) -> dict[str, Any]:
    """What a command printed."""
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_two_runs_are_compared_and_gated(cli: Cli, api: str, file: Path, tmp_path: Path) -> None:
    """Gates decide the exit code of `run`, `watch` and `report`; a run is compared with its own reports."""
    report, harness = tmp_path / "a.jsonl", tmp_path / "a.json"
    options = ("--api-url", api, "--concurrency", "6")
    first = cli(
        "run", file, *options, "--json", "--fail-on", "error_rate>0", "-o", report, "-o", harness, "-q"
    )
    [gate] = document(first)["gates"]
    assert (gate["value"], gate["met"]) == (0, True), first
    rate = document(first)["summary"]["rates"]["pass_rate"]
    assert (rate["n"], rate["low"] <= rate["value"] <= rate["high"]) == (QUERIES, True)
    run = document(first)["run_id"]
    missed = cli("run", file, *options, "-q", "--fail-on", "total_queries>5", "--fail-on", "error_rate>1%")
    assert missed.code == 1, missed
    assert missed.err == "gate failed: total queries 6, at most 5 allowed\n"
    watched = cli("watch", run, "--fail-on", "skipped_rate<=0")
    assert (watched.code, "gate failed: skipped rate 0.0%, more than 0% needed" in watched.err) == (1, True)
    reported = cli("report", run, "-o", tmp_path / "r.md", "--fail-on", "total_queries<6")
    assert (reported.code, reported.err) == (0, "gate passed: total queries 6, at least 6 needed\n")
    for other in (report, harness):
        same = cli("compare", run, other, "--json", "--fail-on-regression")
        counts = document(same)["counts"]
        assert (same.code, counts["pairs"], counts["unchanged"]) == (0, QUERIES, QUERIES), same
    alone = cli("compare", run, "--json")
    assert (alone.code, f"there is no run of few.jsonl before {run}" in alone.out) == (2, True), alone
    newest = document(cli("compare", "last", "--json"))
    assert (newest["a"]["name"], newest["counts"]["pairs"]) == (run, QUERIES), (
        "the run before, of the same file"
    )


def test_only_more_than_chance_fails(cli: Cli, api: str, file: Path, tmp_path: Path) -> None:
    """One broken query of six is listed and exits 0, six are a regression; files get both forms."""
    report = tmp_path / "a.jsonl"
    assert cli("run", file, "--api-url", api, "--concurrency", "6", "-q", "-o", report).code in {0, 1}
    good, one, every = changed(report, 0), changed(report, 1), changed(report, QUERIES)
    lone = cli("compare", good, one, "--fail-on-regression")
    assert lone.code == 0, lone
    assert "= No significant difference: 1 of 6 queries broken, nothing fixed" in lone.out
    text = " ".join(lone.out.split())
    assert "1 of 6 queries got worse, none better, which may be chance (McNemar's mid-p test" in text
    assert "(McNemar's mid-p test: p = 0.5, level 0.05); 1 changed query is too few to decide." in text
    assert [line[:1] for line in lone.out.splitlines()[:3]] == [" ", "A", "B"], "A and B are named first"
    assert (
        lone.out.index("6 queries in both: 1 broken") < lone.out.index("SCORE") < lone.out.index("= No sig")
    )
    assert "*" not in lone.out, "a star is explained only where there is one"
    assert "  Q-001: passed → failed" in lone.out
    assert max(map(len, lone.out.splitlines())) <= 100
    files = [part for name in ("c.md", "c.json", "c.html") for part in ("-o", tmp_path / name)]
    worse = cli("compare", good, every, "--fail-on-regression", *files)
    assert (worse.code, "✗ B is worse: 6 of 6 queries broken, nothing fixed" in worse.out) == (1, True), worse
    assert "\n* more than chance, by McNemar's test.\n" in worse.out
    assert (tmp_path / "c.md").read_text().startswith("# Comparison\n")
    written = json.loads((tmp_path / "c.json").read_text())
    assert (written["exit"], [file["format"] for file in written["files"]]) == (1, ["md", "json", "html"])
    assert "<h1>" in (tmp_path / "c.html").read_text()
    assert cli("compare", good, every).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "gone.jsonl", "bad.json"), "gone.jsonl: there is no such file"),
        (("compare", "bad.json", "bad.json"), "bad.json: no `results` in it"),
        (("compare", "torn.jsonl", "torn.jsonl"), "torn.jsonl line 2: no JSON"),
        (("compare", "odd.jsonl", "odd.jsonl"), "odd.jsonl: a result is not as Proctor writes it"),
        (("compare", "turns.jsonl", "cases.jsonl"), "turns.jsonl has turns and cases.jsonl has cases"),
        (("compare", "cases.jsonl", "cases.jsonl", "-o", "x.csv"), "written as .html, .md or .json"),
        (("run", "turns.jsonl", "--fail-on", "pas_rate<1"), "no metric is called 'pas_rate'"),
        (("run", "chat.jsonl", "--fail-on", "oos_handling_rate<1"), "turns have pass_rate"),
        (("run", "chat.jsonl", "--fail-on", "pass_rate<1", "--detach"), "judges a run that has ended"),
    ],
)
def test_what_cannot_be_compared_or_judged_is_refused(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """Exit 2 with the file, the line or the number that is wrong; nothing is submitted."""
    line = {"kind": "turns", "outcome": "skipped", "result": None}
    (tmp_path / "bad.json").write_text("[1]")
    (tmp_path / "torn.jsonl").write_text(json.dumps(line) + '\n{"kind"')
    (tmp_path / "odd.jsonl").write_text(json.dumps(line | {"outcome": "decided", "result": {}}))
    (tmp_path / "turns.jsonl").write_text(json.dumps(line))
    (tmp_path / "cases.jsonl").write_text(json.dumps(line | {"kind": "cases"}))
    (tmp_path / "chat.jsonl").write_text('{"threadId": "t", "message": "hello"}\n')
    done = cli(*arguments, cwd=tmp_path)
    assert (done.code, message in done.err) == (2, True), done


def test_cases_of_files_and_runs_are_compared(cli: Cli, tmp_path: Path) -> None:
    """Benches, data files and runs; 0 for the same cases, 1 for others, 2 for what has none."""
    rows = [{"id": name, "input": name, "regex_pattern": name} for name in ("fr", "es")]
    for name, each in (("a", rows), ("b", [rows[0] | {"regex_pattern": "x"}, rows[1]])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))
        bench = {"name": "b", "system_prompt": "Hi", "models": ["m"], "test_cases_file": f"{name}.jsonl"}
        (tmp_path / f"{name}.yaml").write_text(json.dumps(bench))
    outputs = tmp_path / "o.jsonl"
    outputs.write_text(
        "".join(json.dumps({"case": c, "model": "m", "output": c}) + "\n" for c in ("fr", "es"))
    )
    runs = [
        document(cli("run", tmp_path / f"{name}.yaml", "--outputs", outputs, "--json"))["run_id"]
        for name in "ab"
    ]
    again = document(cli("rescore", runs[0], "--json"))["run_id"]
    for one, other, changed in (
        (runs[0], runs[1], ["fr"]),
        (runs[0], tmp_path / "b.jsonl", ["fr"]),
        (tmp_path / "b.yaml", runs[1], []),
        (runs[0], again, []),
    ):
        done = cli("data", "diff", one, other, "--json")
        assert (done.code, document(done).get("expectation_changed")) == (int(bool(changed)), changed), done
    compared = cli("compare", *runs)
    assert "One thing differs: expectation of case fr." in compared.out
    assert "  fr · m: passed → failed  expectation changed; " in compared.out
    wrong = cli("data", "diff", "gone.yaml", runs[0])
    assert (wrong.code, "and no file" in wrong.err) == (2, True), wrong
