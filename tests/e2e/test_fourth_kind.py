"""A kind that one file declares goes from a file through real workers to every export format."""

import csv
import json
from pathlib import Path
from typing import Final

from producer.report_files import FORMATS
from tests.support.cli import Cli
from tests.support.junit import read_junit
from tests.support.tree import ROOT

ENVIRONMENT: Final = {"PROCTOR_KINDS": "tests.support.fourth_kind", "PYTHONPATH": str(ROOT)}
SUFFIXES: Final = {"junit": "xml", "github": "summary"}


def test_a_fourth_kind_is_run_and_written_in_every_format(cli: Cli, tmp_path: Path) -> None:
    """`run`, `results`, `report`, `compare` and `retry` work with nothing but the declaration."""
    words = tmp_path / "words.jsonl"
    words.write_text("".join(json.dumps({"word": word}) + "\n" for word in ("otto", "Ada", "level", "42")))
    files = {form: tmp_path / f"report.{SUFFIXES.get(form, form)}" for form in FORMATS}
    options = [part for form, path in files.items() if form != "github" for part in ("-o", path)]
    done = cli("run", words, "--json", "-q", *options, env=ENVIRONMENT)
    assert done.code == 1, done
    document = json.loads(done.out)
    assert (document["kind"], document["state"]) == ("words", "finished")
    assert document["counts"] | {"total": 4, "passed": 2, "failed": 1, "error": 1} == document["counts"]
    run = document["run_id"]

    report = cli("report", run, "-o", files["github"], "--format", "github", env=ENVIRONMENT)
    assert report.code == 0, report
    written = {form: path.read_text(encoding="utf-8") for form, path in files.items()}
    lines = [json.loads(line) for line in written["jsonl"].splitlines()]
    assert [line["item_id"] for line in lines] == [f"word-{at}" for at in range(4)]
    assert lines[1]["result"] == {"word": "Ada", "reversed": "adA"}
    assert lines[3]["error"] == {"code": "no_word", "message": "42 is a number"}
    assert [line["outcome"] for line in json.loads(written["json"])["results"]] == [
        line["outcome"] for line in lines
    ]
    table = list(csv.DictReader(written["csv"].splitlines()))
    assert [row["reversed"] for row in table] == ["otto", "adA", "level", ""]
    assert read_junit(written["junit"].encode()).attrib["tests"] == "4"
    for form in ("md", "html"):
        assert "adA" in written[form]
        assert "42 is a number" in written[form]
    assert "42 is a number" in written["github"]

    shown = cli("results", run, env=ENVIRONMENT)
    assert shown.code == 0, shown
    assert "no_word" in shown.out
    gate = cli("report", run, "--fail-on", "pass_rate<0.9", env=ENVIRONMENT)
    assert gate.code == 1, gate
    same = cli("compare", run, files["jsonl"], "--json", env=ENVIRONMENT)
    assert json.loads(same.out)["counts"]["pairs"] == 3, same
    again = cli("retry", run, "-q", env=ENVIRONMENT)
    assert again.code == 1, again
