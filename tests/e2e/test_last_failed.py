"""`--last-failed` runs again what failed in the newest run of the same file, and `--delay` takes decimals."""

import json
from pathlib import Path

from tests.support.case_runs import WORKERS, bench, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say
from tests.support.query_desk import numbered
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.tree import ROOT


def test_failed_cases_are_run_again(cli: Cli, tmp_path: Path) -> None:
    """Only failed combinations of case, model and prompt, errors included; all of it if nothing failed."""
    mended = set[str]()

    def script(prompt: str, _nth: int) -> Say:
        """Answers wrongly to what is not mended yet; two cannot be answered at all."""
        if prompt in mended:
            return Say('{"n": 1}')
        return Say("no", 400) if prompt == "short a" else Say('{"n": 2}')

    cases = [{"id": name, "input": name, "expected": {"n": 1}} for name in ("a", "b")]
    cases.append({"input": "c", "expected": {"n": 1}})
    prompts = [{"id": "long", "user": "long {{ input }}"}, {"id": "short", "user": "short {{ input }}"}]
    with ModelServer(script) as server:
        path = bench(tmp_path, server, cases, prompts=prompts, config={"judge_model": None})
        again = ("run", path, "--last-failed", "--no-cache", *WORKERS)
        mended |= {"long a", "long b", "short b", "long c"}
        first = cli(*again)
        assert first.code == 1
        found = document(first)
        assert (found["counts"]["total"], found["counts"]["failed"], found["counts"]["error"]) == (12, 2, 2)
        counted = json.loads(cli("run", path, "--last-failed", "--dry-run", "--json").out)
        assert (counted["counts"]["total"], counted["estimate"]["calls"]) == (4, 4)
        asked = len(server.requests)
        mended.add("short c")
        done = cli("run", path, "--last-failed", "--no-cache", "--processes", "1", "--json")
        second = document(done)
        assert f"--last-failed: 4 of the 12 cases of {found['run_id']}\n" in done.err
        assert "4 calls (a part of 2 cases × 2 models × 2 prompts × 1 repeat)" in done.err  # noqa: RUF001 - a product
        assert (
            sorted(request.prompt for request in server.requests[asked:]) == ["short a"] * 2 + ["short c"] * 2
        )
        assert (second["counts"]["total"], second["counts"]["passed"], second["counts"]["error"]) == (4, 2, 2)
        rows = [row["result"] for row in rows_of(cli, second["run_id"])]
        assert [(row["model"], row["case_id"], row["prompt_id"]) for row in rows] == [
            (model, case, "short") for model in ("alpha", "beta") for case in ("a", None)
        ]
        mended.add("short a")
        assert document(cli(*again))["counts"]["total"] == 2
        done = cli("run", path, "--last-failed", "--processes", "1", "--json")
        assert "none of the 2 cases" in done.err
        assert document(done)["counts"]["total"] == 12


def test_failed_queries_are_sent_again(cli: Cli, tmp_path: Path) -> None:
    """Those of the newest run of this file, not of another with its name; the report says what was chosen."""
    path, other = tmp_path / "few.jsonl", tmp_path / "other" / "few.jsonl"
    other.parent.mkdir()
    for file in (path, other):
        file.write_text("".join(json.dumps(query) + "\n" for query in numbered(6)))
    with ScriptedApi(lambda query, _nth: Step(500 if query in {"query 2", "query 5"} else 200)) as api:
        options = ("--api-url", api.url, "--json", "--processes", "1")
        assert document(cli("run", path, *options))["counts"]["error"] == 2
        done = cli("run", other, "--last-failed", *options)
        assert f"there is no earlier run of {other}; all of it is run" in done.err
        api.requests.clear()
        report = tmp_path / "report.md"
        done = cli("run", path, "--last-failed", "--delay", "0.6", "-o", report, *options)
        assert json.loads(done.out)["counts"]["total"] == 2
        assert [request.query for request in api.requests] == ["query 2", "query 5"]
        # The API sees when requests arrive: the first one opens the connection, and is the later for it.
        assert api.requests[1].at_s - api.requests[0].at_s >= 0.3
    assert "2 of 6 queries, chosen with --last-failed" in report.read_text()
    shown = json.loads(cli("runs", "show", json.loads(done.out)["run_id"], "--json").out)
    assert shown["summary"]["delay_s"] == 0.6


def test_last_failed_needs_items_that_stand_alone(cli: Cli) -> None:
    """Turns depend on those before them, and a stream has no earlier run."""
    turns = ROOT / "examples" / "turns.jsonl"
    done = cli("run", turns, "--last-failed")
    assert (done.code, "--last-failed is for queries and cases" in done.err) == (2, True), done
    done = cli(
        "run", "-", "--last-failed", stdin=ROOT / "examples" / "copilot/data/evaluation_baselines.json"
    )
    assert (done.code, "--last-failed needs a file" in done.err) == (2, True), done


def test_delays_are_numbers_of_seconds(cli: Cli) -> None:
    """A delay may be a fraction, and is finite, not negative, and at most a day."""
    queries = ROOT / "examples" / "copilot/data/evaluation_baselines.json"
    for value in ("nan", "-1", "inf", "90000", "soon"):
        done = cli("run", queries, "--dry-run", f"--delay={value}")
        assert (done.code, "--delay" in done.err) == (2, True), done
    assert cli("run", queries, "--dry-run", "--delay", "0.25").code == 0


def test_only_what_a_list_names_is_run(cli: Cli, tmp_path: Path) -> None:
    """The lines of `--dry-run --list` choose answers by case and model, with all repetitions."""
    path = tmp_path / "bench.yaml"
    outputs = {"a": "yes", "b": "no"}
    cases = [
        {"id": name, "input": name, "checks": [{"equals": "yes"}], "outputs": outputs} for name in ("x", "y")
    ]
    made = {"name": "b", "system_prompt": "s", "models": ["a", "b"], "test_cases": cases}
    path.write_text(json.dumps(made))
    listed = cli("run", path, "--repeat", "2", "--dry-run", "--list").out.splitlines()
    assert listed == [f"{case} · {model}{again}" for model in "ab" for case in "xy" for again in ("", " #2")]
    names = tmp_path / "names"
    names.write_text("\n".join(name for name in listed if name.endswith("· b #2")))
    done = cli("run", path, "--repeat", "2", "--only", "-", "--json", "--processes", "1", stdin=names)
    assert document(done)["counts"] | {"failed": 4, "total": 4} == document(done)["counts"]
    names.write_text("z · b\n")
    wrong = cli("run", path, "--only", names)
    assert wrong.code == 2
    assert f"{path} has no item 'z · b'" in wrong.err
