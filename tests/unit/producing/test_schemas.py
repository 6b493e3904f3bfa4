"""The schemas that are handed out fit what is written, printed and read, and notice what is not in them."""

import json
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest
import yaml

from producer.aggregate.gates import parse_gate
from producer.cli.main import run
from producer.document import document_of, totals_of
from producer.documents import as_json
from producer.notify import BODY_BYTES, message
from producer.schemas.catalog import names, schema_of
from shared.contracts.case_run import CasePayload
from shared.errors import UsageError
from shared.kinds import CASES, Kind, all_kinds
from tests.support.documents import printed, with_summary
from tests.support.live_rows import ROWS
from tests.support.schemas import hold
from tests.unit.cases.test_case_reports import row as case_row
from tests.unit.cases.test_case_reports import run_info as cases_info
from tests.unit.producing import test_live_reports as live
from tests.unit.producing.test_formats import sample, write_all

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
LINES: Final = ("line-turns", "line-cases", "line-queries")


@pytest.mark.parametrize("name", names())
def test_each_schema_is_one_and_stands_alone(name: str) -> None:
    """It is good against its own dialect, says what it is of, and every reference leads into it."""
    schema = schema_of(name)
    jsonschema_rs.meta.validate(schema)
    jsonschema_rs.validator_for(schema)
    assert schema["$id"] == f"urn:proctor:1:{name}"
    assert schema["title"].endswith(".")


def test_an_unknown_name_is_reported() -> None:
    """The hint says where the names are."""
    with pytest.raises(UsageError, match="there is no schema nothing"):
        schema_of("nothing")


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
def test_reports_fit_their_schemas(kind: Kind, tmp_path: Path) -> None:
    """The document of a run, the JSON report and each line of JSON Lines, of every kind."""
    files = write_all(kind, tmp_path / "all")
    hold(f"report-{kind}", files["json"])
    lines = [hold(f"line-{kind}", line) for line in files["jsonl"].splitlines()]
    assert lines
    info, rows = sample(kind)
    totals = totals_of(kind)
    empty = document_of(info, totals)
    totals.add(rows)
    for document in (empty, document_of(info, totals, gates=[parse_gate("pass_rate<0.9")])):
        hold("run", as_json(document))


def test_turns_that_a_model_answered_fit_too() -> None:
    """A live run has calls, responses and more trace events; one without results has zeros."""
    hold("report-turns", live.written("json", ROWS))
    hold("run", as_json(live.document([])))
    for name, schema in (("jsonl", "line-turns"), ("traces", "line-traces"), ("all traces", "line-traces")):
        for line in live.written(name, ROWS).splitlines():
            hold(schema, line)


def test_repeated_cases_fit_too() -> None:
    """Cases that are asked more than once have pass@k, an error of the mean, and flakiness."""
    totals = totals_of(CASES)
    for at, output in enumerate(('{"n": 1}', '{"n": 2}', "Hi", '{"n": 1}')):
        item = CasePayload(at // 2, "m", "Hi", at % 2, criteria={"expected": {"n": 1}})
        totals.add([case_row(at, item, output, judge=lambda *_: "PASS")])
    found = hold("run", as_json(document_of(cases_info(), totals)))
    assert found["summary"]["models"][0]["repeats"]["repeats"] == 2


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
def test_what_is_not_in_a_schema_is_noticed(kind: Kind) -> None:
    """A figure more, at any depth of the summary, does not fit: schemas do not drift from what is printed."""
    info, rows = sample(kind)
    totals = totals_of(kind)
    totals.add(rows)
    for place in ((), ("counts",), ("summary",), ("summary", "rates"), ("summary", "rates", "pass_rate")):
        document: dict[str, Any] = printed(document_of(info, totals))
        inner = document
        for key in place:
            inner = inner[key]
        inner["news"] = 1
        with pytest.raises(AssertionError, match="news"):
            hold("run", document)


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
@pytest.mark.parametrize(("source", "is_whole"), [("file", True), ("x" * BODY_BYTES, False)])
def test_notifications_fit_their_schema(kind: Kind, source: str, is_whole: bool) -> None:  # noqa: FBT001 - a parameter
    """What `--notify` posts of every kind, with gates, and without the summary where it is too long."""
    info, rows = sample(kind)
    totals = totals_of(kind)
    totals.add(rows)
    document = document_of(info, totals, gates=[parse_gate("pass_rate<0.9")])
    document = with_summary(document, source=source)
    posted = hold("notify", message(document))
    assert posted["gates"] == printed(document)["gates"]
    assert ("summary" in posted) is is_whole
    posted["news"] = 1
    with pytest.raises(AssertionError, match="news"):
        hold("notify", posted)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("decide", ["decide", "ok thanks", "--phase", "peak"]),
        ("error", ["decide"]),
        ("error", ["statsu"]),
        ("config", ["config"]),
        ("schemas", ["config", "schema"]),
        ("validate", ["validate", str(EXAMPLES / "turns.jsonl")]),
        (
            "validate",
            ["run", str(EXAMPLES / "turns.jsonl"), "--dry-run", "-m", "m", "--api-base", "http://x"],
        ),
        ("validate", ["validate", str(EXAMPLES / "bench.config.yaml")]),
        ("validate", ["validate", str(EXAMPLES / "freeform.yaml")]),
        ("validate", ["validate", str(EXAMPLES / "copilot/data/evaluation_baselines.json")]),
        ("validate-list", ["validate", "--list", str(EXAMPLES / "copilot/data/evaluation_baselines.json")]),
        ("validate-list", ["validate", "--list", str(EXAMPLES / "prompts.yaml")]),
    ],
)
def test_commands_without_a_server(
    name: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What they print with `--json` fits the schema of that name."""
    run([*arguments, "--json"])
    hold(name, capsys.readouterr().out)


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
def test_a_comparison_fits_its_schema(kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed and written, of two reports of each kind."""
    write_all(kind, tmp_path / "all")
    report = str(tmp_path / "all" / "r.jsonl")
    assert run(["compare", report, report, "--json", "-o", str(tmp_path / "c.json")]) == 0
    hold("compare", capsys.readouterr().out)
    hold("compare", (tmp_path / "c.json").read_text(encoding="utf-8"))


def test_the_command_prints_what_it_lists(capsys: pytest.CaptureFixture[str]) -> None:
    """`config schema` lists every name, and prints the schema of each."""
    assert run(["config", "schema"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert listed == list(names())
    assert run(["config", "schema", "run"]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of("run")


def test_the_examples_fit_the_schemas_of_inputs() -> None:
    """Files that are shipped as examples fit, and a wrong key does not."""
    turns = (EXAMPLES / "turns.jsonl").read_text(encoding="utf-8").splitlines()
    for line in turns:
        hold("input-turns", line)
    hold("input-bench", yaml.safe_load((EXAMPLES / "bench.config.yaml").read_text(encoding="utf-8")))
    baselines = json.loads((EXAMPLES / "copilot/data/evaluation_baselines.json").read_bytes())
    hold("input-baselines", baselines)
    hold("input-baselines", baselines["queries"])
    hold("input-outputs", {"case": 0, "model": "m", "output": ""})
    for name, wrong in (
        ("input-turns", {**json.loads(turns[0]), "messge": ""}),
        ("input-outputs", {"case": 0, "model": "m"}),
        ("input-baselines", {"queries": [{"id": "Q-1"}]}),
    ):
        with pytest.raises(AssertionError):
            hold(name, wrong)
