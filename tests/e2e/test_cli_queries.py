"""`proctor` with a baselines file: metrics against targets, exit codes, report files, resume, options."""

import csv
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from producer.sample_api.behaviour import parse_behaviour
from producer.sample_api.server import in_background
from tests.support.cli import Cli
from tests.support.junit import read_junit
from tests.support.ports import free_port
from tests.support.query_desk import numbered
from tests.support.schemas import hold
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.tree import ROOT

BASELINES: Final = ROOT / "examples" / "copilot" / "data" / "evaluation_baselines.json"


@pytest.fixture
def api() -> Iterator[str]:
    """The sample API on a free port."""
    with in_background() as url:
        yield url


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """A file of six queries, one on each line."""
    path = tmp_path / "few.jsonl"
    path.write_text("".join(json.dumps(query) + "\n" for query in numbered(6)))
    return path


def test_run_reports_metrics_targets_and_every_format(cli: Cli, api: str, tmp_path: Path) -> None:
    """One document with metrics and targets, and files in the document's forms, each query in order."""
    names = [tmp_path / f"out.{suffix}" for suffix in ("jsonl", "csv", "md", "json", "xml")]
    files = [part for name in names for part in ("-o", name)]
    done = cli("run", BASELINES, "--api-url", api, "--concurrency", "8", "--json", "-q", *files)
    assert (done.code, done.err) == (1, ""), done
    document = hold("run", done.out)
    assert (document["kind"], document["state"], document["exit"]) == ("queries", "finished", 1), (
        "queries failed"
    )
    assert document["run_id"].startswith("eval-2")
    counts, summary = document["counts"], document["summary"]
    assert counts["total"] == counts["passed"] + counts["failed"] == 50
    assert summary["metrics"]["total_queries"] == 50
    assert [target["status"] for target in summary["targets"]] == ["PASS"] * 5
    lines = [hold("line-queries", line) for line in names[0].read_bytes().splitlines()]
    assert [line["result"]["id"] for line in lines] == [f"Q-{number:02}" for number in range(1, 51)]
    assert [line["index"] for line in lines] == list(range(50))
    assert {line["outcome"] for line in lines} == {"passed", "failed"}
    with names[1].open(encoding="utf-8", newline="") as table:
        assert len(list(csv.DictReader(table))) == 50
    assert names[2].read_text().startswith("# Evaluation Report")
    assert int(read_junit(names[4].read_bytes()).attrib["failures"]) == counts["failed"]
    written = hold("report-queries", names[3].read_text())
    assert list(written) == ["run_id", "timestamp", "config", "metrics", "results"]
    assert list(written["config"]) == ["delay", "api_url", "start_from", "version"]
    assert written["metrics"] == summary["metrics"]
    shown = json.loads(cli("runs", "show", document["run_id"], "--json").out)
    assert shown["summary"]["metrics"] == summary["metrics"]


def test_missed_targets_are_exit_1(cli: Cli) -> None:
    """An API that answers everything wrongly misses its targets: exit 1, and the summary says which."""
    with in_background(parse_behaviour("wrong")) as url:
        done = cli("run", BASELINES, "--api-url", url, "-j", "8")
    assert done.code == 1, done
    assert "FAIL" in done.out
    assert "finished: 50 queries" in done.out
    assert '    Q-01 lacks "' in done.out
    assert "40 more: `proctor results eval-" in done.out


def test_an_unreachable_api_is_exit_3_and_resumed_later(cli: Cli, few: Path) -> None:
    """Exit 3 with partial results; `resume` sends the rest once the API is back, and nothing twice."""
    port = free_port()
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.2), port=port) as scripted:
        process = cli.start("run", few, "--api-url", scripted.url, "--json")
        cli.eventually(lambda: len(scripted.requests) == 3, 30)
    assert process.wait(30) == 3, process.output_text()
    document = json.loads(process.output)
    assert document["state"] == "aborted"
    assert document["counts"]["passed"] >= 2
    assert document["counts"]["skipped"] >= 1
    run = document["run_id"]
    results = cli("results", run, "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["outcome"] for line in results][-1] == "skipped"
    assert json.loads(results[-1])["result"] is None
    again = cli("resume", run, "--json")
    assert again.code == 3, again
    assert json.loads(again.out)["counts"]["passed"] == document["counts"]["passed"]
    with ScriptedApi(port=port) as back:
        ended = json.loads(cli("resume", run, "--json").out)
    assert ended["state"] == "finished"
    assert ended["counts"]["skipped"] == 0
    assert "query 1" not in back.asked()


@pytest.mark.parametrize("options", [(), ("-q",)])
def test_an_aborted_run_says_why_and_how_to_go_on(cli: Cli, few: Path, options: tuple[str, ...]) -> None:
    """Exit 3 comes with the whole address that was refused and the command that continues."""
    url = "http://127.0.0.1:1"
    done = cli("run", few, "--api-url", url, "--no-progress", *options)
    assert done.code == 3, done
    assert f"was aborted: Connection refused - backend not running on {url}\n" in done.err
    assert "`proctor retry eval-" in done.err


def test_errors_are_dead_items_and_retried(cli: Cli, few: Path) -> None:
    """A 500 is an error with exit 1 and stands among the dead; `retry` asks again and the run is whole."""
    with ScriptedApi(lambda q, nth: Step(500, "boom") if (q, nth) == ("query 2", 1) else Step()) as scripted:
        done = cli("run", few, "--api-url", scripted.url, "--json")
        assert done.code == 1, done
        run = json.loads(done.out)["run_id"]
        [dead] = json.loads(cli("dead", "list", "--json").out)["dead"]
        assert (dead["item_id"], dead["error"]) == (
            "query-1",
            {"code": "api_server_error", "message": "boom", "status": 500},
        )
        assert dead["name"] == "Q-002"
        shown = json.loads(cli("dead", "show", run, "Q-002").out)
        assert shown["result"]["result"]["error"] == "boom"
        assert (shown["item_id"], shown["payload"]["id"]) == ("query-1", "Q-002")
        listed = cli("results", run, "--errors", "--item", "Q-002", "--item", "Q-003", "--format", "jsonl")
        assert [json.loads(line)["item_id"] for line in listed.out.splitlines()] == ["query-1"]
        wrong = cli("retry", run, "--item", "Q-0002")
        assert wrong.code == 2
        assert "did you mean Q-002" in wrong.err
        retried = cli("retry", run, "--item", "Q-002", "--json")
    assert retried.code == 0, retried
    assert json.loads(retried.out)["counts"]["passed"] == 6
    assert scripted.asked()["query 2"] == 2
    assert json.loads(cli("dead", "list", "--json").out)["dead"] == []


def test_a_wrong_path_says_where_the_reason_stands(cli: Cli, api: str, few: Path) -> None:
    """Equal errors are one line with their number, and the dead items have each of them."""
    done = cli("run", few, "--api-url", f"{api}/wrong", "--no-progress")
    assert done.code == 1, done
    run, url = done.out.split()[0], f"{api}/wrong/api/query"
    assert re.search(
        rf"^✗ 6 queries: api_refused \(HTTP 404 from {url}; check --path and --api-url\): .*$",
        done.out.replace("\n      ", " "),
        re.MULTILINE,
    ), done
    assert "\n    Q-001, Q-002, Q-003 and 3 more\n" in done.out
    assert "HTTP 404: 404: Not Found" in cli("dead", "list", run).out


def test_ctrl_c_keeps_the_run_and_resume_continues_it(cli: Cli, few: Path) -> None:
    """Ctrl-C is exit 130; the command it names sends what is left, and nothing twice."""
    with ScriptedApi(lambda _query, _nth: Step(after_s=0.4)) as scripted:
        process = cli.start("run", few, "--api-url", scripted.url)
        cli.eventually(lambda: len(scripted.requests) >= 2, 30)
        process.send(signal.SIGINT)
        assert process.wait(30) == 130
        so_far = re.search(
            r"^interrupted: 6 queries to \S+, (\d) of 6 done \((\d+)%\)$", process.output, re.MULTILINE
        )
        assert so_far, process.output_text()
        assert f"passed {so_far[1]} · failed 0" in process.output
        assert f"  interrupted {so_far[2]}%  " in cli("runs", "list").out
        command = process.errors.split("hint: `proctor ")[1].split("`")[0].split()
        done = cli(*command, "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["counts"]["passed"] == 6
    assert sum(scripted.asked().values()) == 6


def test_ctrl_c_ends_a_run_whose_api_hangs_and_writes_its_reports(
    cli: Cli, few: Path, tmp_path: Path
) -> None:
    """Hanging calls are given back soon, reports have what is done, the named command does the rest."""
    reports = [tmp_path / "so-far.jsonl", tmp_path / "so-far.md"]
    files = [word for path in reports for word in ("-o", str(path))]
    hangs = {"query 2"}
    with ScriptedApi(lambda query, nth: Step(after_s=600.0 if query in hangs and nth == 1 else 0.0)) as api:
        process = cli.start("run", few, "--api-url", api.url, "--jsonl", *files)
        process.wait_for('"in_flight": 1', 30)
        cli.eventually(lambda: api.in_flight == 1, 30)
        process.send(signal.SIGINT)
        assert process.wait(15) == 130, process.output_text()
        ended = json.loads(process.output.splitlines()[-1])
        [done] = [json.loads(line) for line in reports[0].read_text().splitlines()]
        assert (done["result"]["id"], done["outcome"]) == ("Q-001", "passed")
        assert "Partial: 1 of 6 queries" in reports[1].read_text()
        assert "interrupted by Ctrl-C; " in ended["error"]["message"]
        assert ended["error"]["message"].endswith(" is kept with 1 of 6 items done")
        command = ended["error"]["hint"].removeprefix("`proctor ").partition("`")[0].split()
        assert command[-4:] == files
        assert cli(*command).code == 0
    assert len(reports[0].read_text().splitlines()) == 6
    assert api.asked() == {f"query {number}": 2 if number == 2 else 1 for number in range(1, 7)}


def test_table_and_failed_show_what_went_wrong(cli: Cli) -> None:
    """`results --failed` shows answers of failed queries and nothing else; `--errors` none of those."""
    with in_background(parse_behaviour("wrong")) as url:
        run = json.loads(cli("run", BASELINES, "--api-url", url, "-j", "8", "--json").out)["run_id"]
    table = cli("results", run, "--failed").out
    assert "→ " in table, "a pipe gets the answers too"
    assert "✓" not in table
    assert cli("results", run, "--errors").out == ""
    assert cli("results", run, "--traces").code == 2
    report = cli("report", run).out
    assert report.startswith("# Evaluation Report: ✗ ")
    assert report.index("| Q-01: ") < report.index("## Aggregate Metrics"), "failed queries are named first"


def test_some_queries_are_asked_with_a_limit_of_time(cli: Cli, tmp_path: Path) -> None:
    """`--category`, `-k` and `--first` choose, `--timeout-s` ends a request, and reports say so."""
    path, report = tmp_path / "own.jsonl", tmp_path / "report.md"
    queries = [query | {"category": "returns" if at % 2 else "sla"} for at, query in enumerate(numbered(6))]
    path.write_text("".join(json.dumps(query) + "\n" for query in queries))
    chosen = ("--category", "returns", "-k", "QUERY", "--first", "2")
    with ScriptedApi(lambda query, _nth: Step(after_s=20.0 if query == "query 4" else 0)) as scripted:
        url = scripted.url
        done = cli("run", path, "--api-url", url, *chosen, "--timeout-s", "0.5", "-o", report, "--json")
    assert done.code == 1, done
    assert set(scripted.asked()) == {"query 2", "query 4"}
    document = json.loads(done.out)
    assert (document["counts"]["passed"], document["counts"]["error"]) == (1, 1)
    assert list(document["summary"]["metrics"]["by_category"])[-2:] == ["edge_case", "returns"]
    text = report.read_text()
    assert "Partial: 2 of 6 queries, chosen with --category returns -k QUERY --first 2" in text
    assert "ERROR: Timeout after 0.5s" in text


def test_repeat_asks_each_query_so_often(cli: Cli, few: Path) -> None:
    """`--repeat 3` makes three items of each query, in order."""
    with ScriptedApi() as scripted:
        done = cli("run", few, "--api-url", scripted.url, "--repeat", "3", "-j", "5", "--json")
    assert json.loads(done.out)["counts"]["passed"] == 18
    assert set(scripted.asked().values()) == {3}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--start-from", "Q-0O1"], "did you mean 'Q-001'"),
        (["--api-url", "localhost:3000"], "no address of an API"),
        (["--field", "anwser=/x"], "unknown name 'anwser'"),
        (["--field", "answer=x"], "no JSON pointer"),
        (["--header", "Authorization=Bearer abc"], "would be stored with the run"),
        (["--header", "X-Auth=Bearer sk-live-0123456789"], "would be stored with the run"),
        (["--path", "api"], "does not begin with a slash"),
    ],
)
def test_wrong_options_are_exit_2(cli: Cli, few: Path, arguments: list[str], words: str) -> None:
    """Each is one sentence, and nothing was sent or stored."""
    done = cli("run", few, *arguments)
    assert done.code == 2, done
    assert words in done.err
    assert "Traceback" not in done.err
    assert json.loads(cli("runs", "--json").out)["runs"] == []


def test_options_of_queries_are_refused_for_turns(cli: Cli) -> None:
    """A turns file takes no `--delay`, and says so instead of ignoring it."""
    done = cli("run", ROOT / "examples" / "turns.jsonl", "--delay", "3")
    assert done.code == 2
    assert "--delay is for queries, and" in done.err
    done = cli("run", ROOT / "examples" / "turns.jsonl", "--repeat", "2")
    assert done.code == 2
    assert "--repeat is for queries and cases, and" in done.err


def test_validate_and_dry_run_count_queries(cli: Cli) -> None:
    """Both need no API and send nothing."""
    for done in (cli("validate", BASELINES, "--json"), cli("run", BASELINES, "--dry-run", "--json")):
        assert json.loads(done.out)["counts"] == {"total": 50, "chunks": 50}
    assert "50 queries" in cli("validate", BASELINES).out


def test_sample_api_serves_until_it_is_stopped(cli: Cli, few: Path) -> None:
    """`sample-api --port 0` tells its URL, answers, and ends with exit 0; a taken port is exit 3."""
    server = cli.start("sample-api", "--port", "0")
    server.wait_for("sample API at ", 20)
    url = server.output.split("sample API at ")[1].split(";")[0]
    assert cli("run", few, "--api-url", url, "-q").code in {0, 1}
    taken = cli("sample-api", "--port", url.rsplit(":", 1)[1])
    assert taken.code == 3
    assert "cannot listen" in taken.err
    assert server.stop() == 0
