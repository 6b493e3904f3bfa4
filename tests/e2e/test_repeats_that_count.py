"""Cases that pass when enough of their answers do: what is asked, what is saved, and what counts."""

from pathlib import Path
from typing import Any, Final

from shared.contracts.case_run import CasePayload, Quorum
from tests.support.browser import Browser
from tests.support.case_pages import EXPECTED, GOOD, WRONG, item_row, run_info, write_page
from tests.support.case_runs import WORKERS, bench, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say

EIGHT_OF_TEN: Final[dict[str, Any]] = {"judge_model": None, "repeat": {"times": 10, "pass": 8}}
CASES: Final = [{"id": name, "input": name, "regex_pattern": "^yes"} for name in ("steady", "wrong", "flaky")]


def flaky(prompt: str, nth: int) -> Say:
    """Answers `steady` rightly, `wrong` wrongly, and `flaky` rightly but for its third and sixth time."""
    return Say("no" if prompt == "wrong" or (prompt == "flaky" and nth in {3, 6}) else "yes")


def test_a_case_is_asked_until_its_verdict_is_certain(cli: Cli, tmp_path: Path) -> None:
    """Of ten answers eight must pass: eight good ones or three bad ones are enough."""
    junit = tmp_path / "junit.xml"
    gates = ("--fail-on", "case:pass_rate<0.6", "--fail-on", "flaky>1")
    with ModelServer(flaky) as server:
        path = bench(tmp_path, server, CASES, models=["alpha"], panel=(), config=EIGHT_OF_TEN)
        done = cli("run", path, *WORKERS, "-o", junit, *gates)
        asked = [request.prompt for request in server.requests]
        every = cli("run", path, *WORKERS, "--all-repeats", "--fail-on", "case:pass_rate<0.7")
    found = document(done)
    run, verdicts = found["run_id"], found["summary"]["case_verdicts"]
    assert [asked.count(name) for name in ("steady", "wrong", "flaky")] == [8, 3, 10]
    assert (done.code, found["counts"]["failed"], found["counts"]["skipped"]) == (0, 5, 9)
    assert (verdicts["counts"]["passed"], verdicts["counts"]["failed"], verdicts["not_needed"]) == (2, 1, 9)
    assert [gate["value"] for gate in found["gates"]] == [2 / 3, 1]
    assert (junit.read_text().count("<testcase"), junit.read_text().count("<failure")) == (3, 1)
    text = cli("report", run)
    assert "2 of 3 cases passed" in text.out, text
    skipped = [row for row in rows_of(cli, run) if row["outcome"] == "skipped"]
    assert skipped[0]["reason"] == "verdict certain: 8 of 8 passed, 8 needed"
    assert (every.code, document(every)["counts"]["skipped"]) == (1, 0)
    assert cli("retry", run).code == 2
    assert ["66.7%" in line for line in cli("runs", "list").out.splitlines()[1:]] == [True, True]


def test_lists_count_cases_as_the_verdict_does(cli: Cli, tmp_path: Path) -> None:
    """Answers that failed do not make a run fail whose cases passed: exit code, mark and rate agree."""
    with ModelServer(flaky) as server:
        path = bench(tmp_path, server, [CASES[0], CASES[2]], models=["alpha"], panel=(), config=EIGHT_OF_TEN)
        done = cli("run", path, *WORKERS)
    assert (done.code, document(done)["counts"]["failed"]) == (0, 2)
    [line] = cli("runs", "list").out.splitlines()[1:]
    assert (line.startswith("✓"), "100.0%" in line) == (True, True)


def test_what_was_not_needed_is_asked_where_a_retry_needs_it(cli: Cli, tmp_path: Path) -> None:
    """An answer that failed passes when it is asked again: then the others are asked until it is certain."""
    times, is_up = {"judge_model": None, "repeat": {"times": 3, "pass": 3}}, False

    def script(_prompt: str, _nth: int) -> Say:
        return Say("yes" if is_up else "no")

    with ModelServer(script) as server:
        path = bench(tmp_path, server, CASES[:1], models=["alpha"], panel=(), config=times)
        first = document(cli("run", path, *WORKERS))
        is_up = True
        again = cli("retry", first["run_id"], "--item", "case-0", *WORKERS)
        asked = len(server.requests)
    assert (first["exit"], first["summary"]["case_verdicts"]["not_needed"], asked) == (1, 2, 4)
    rows = rows_of(cli, first["run_id"])
    assert (again.code, [row["outcome"] for row in rows]) == (0, ["passed"] * 3), again


def test_a_dot_opens_its_answer(browser: Browser, tmp_path: Path) -> None:
    """Each of several answers is a dot in their cell, which opens the panel with this answer."""
    run, quorum = run_info(["m"], 1, repeat=3), Quorum(2, 3)
    items = [
        CasePayload(0, "m", "one", at, criteria={"expected": EXPECTED}, quorum=quorum) for at in range(3)
    ]
    rows = [
        item_row(at, item, output, ms=5, cost=0.01)
        for at, (item, output) in enumerate(zip(items, (GOOD, WRONG, GOOD), strict=True))
    ]
    browser.open(write_page(tmp_path / "page.html", run, rows).as_uri())
    assert browser.evaluate("document.querySelectorAll('.row .dot').length") == 3
    shown = "[...document.querySelectorAll('.panel [data-repeat][open]')].map((each) => each.dataset.repeat)"
    for dot in ("3", "1", "2"):
        browser.click(f".row [data-dot='{dot}']")
        assert browser.evaluate(shown) == [dot]
    assert not browser.complaints()
