"""Every kind is written in every format that is promised, several at once, the same each time."""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from producer import kinds
from producer.cli.main import run
from producer.document import document_of, totals_of
from producer.report.formats import format_of
from producer.report_files import FORMATS, ReportFile, check_formats, plan_files
from producer.reporting import open_reports
from producer.turns.kind import TurnRuns
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.errors import UsageError
from shared.kinds import CASES, QUERIES, TURNS, Kind, all_kinds
from shared.names import RunState
from shared.runs import RunInfo, TurnRow
from tests.support.conversations import decide, turn
from tests.support.junit import read_junit
from tests.support.query_results import one_of_each
from tests.support.run_infos import info as turns_info
from tests.unit.cases.test_case_reports import run_info as cases_info
from tests.unit.cases.test_case_reports import standard

SUFFIXES: Final = {"junit": "xml"}


def sample(kind: Kind) -> tuple[RunInfo, list[Any]]:
    """A run of a kind, and its rows."""
    if kind is CASES:
        return cases_info(), standard()
    if kind is QUERIES:
        rows: list[Any] = [
            ItemRow(at, "p" if found["overall_pass"] else "f", json.dumps(found).encode(), 1, 2, 1, 9)
            for at, found in enumerate(one_of_each())
            if not found["error"]
        ]
        snapshot: dict[str, Any] = {"v": 1, "source": "b.json", "queries": msgspec.to_builtins(QueryRun())}
        return replace(turns_info(total=len(rows)), kind=kind, snapshot=snapshot), rows
    [block] = decide(turn("one"), turn("two")).outcome.blocks
    pairs = zip(block.codes, block.lines, strict=True)
    return turns_info(RunState.FINISHED, 2), [
        TurnRow(at, code, line, 1, 2, 1) for at, (code, line) in enumerate(pairs)
    ]


def write_all(kind: Kind, folder: Path) -> dict[str, bytes]:
    """Writes a run in all formats of `-o`, in one pass, and returns the files by format."""
    names = [name for name in FORMATS if name in kinds.of(kind).traits.formats]
    folder.mkdir()
    files = plan_files([folder / f"r.{SUFFIXES.get(name, name)}" for name in names if name != "github"])
    files += plan_files([folder / "summary"], ["github"])  # the one format that no suffix stands for
    info, rows = sample(kind)
    totals = totals_of(kind)
    with ExitStack() as stack:
        reports = open_reports(stack, info, files)
        for row in rows:
            totals.add([row])
            for report in reports:
                report.page([row])
        document = document_of(info, totals)
        for report in reports:
            report.end(document)
    return {file.format: file.path.read_bytes() for file in files}


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
def test_all_formats_at_once(kind: Kind, tmp_path: Path) -> None:
    """One pass writes them all, twice the same bytes, items in input order, and the version of the form."""
    files = write_all(kind, tmp_path / "a")
    assert files == write_all(kind, tmp_path / "b")
    assert files.keys() == set(FORMATS)
    _, rows = sample(kind)
    lines = [json.loads(line) for line in files["jsonl"].splitlines()]
    assert [line["index"] for line in lines] == [row.index for row in rows]
    whole = json.loads(files["json"])
    assert len(whole["results"]) == len(rows)
    if kind is not QUERIES:  # whose five keys are those of the harness document
        assert whole["schema_version"] == 2
    root = read_junit(files["junit"])
    assert int(root.attrib["tests"]) == len(rows)
    versions = root.findall(".//property[@name='schema_version']")
    assert {each.attrib["value"] for each in versions} == {"2"}


@pytest.mark.parametrize(
    ("kind", "name"), [(each.kind, name) for each in kinds.declared() for name in each.traits.formats]
)
def test_every_format_can_be_loaded(kind: Kind, name: str, tmp_path: Path) -> None:
    """What the table names is there, though it is loaded only when something is written so."""
    info, rows = sample(kind)
    totals = totals_of(kind)
    totals.add(rows)
    with (tmp_path / "out").open("wb") as out:
        report = format_of(kind, name)(out, info)
        report.page(rows)
        report.end(document_of(info, totals))


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
def test_a_format_without_a_writer_is_not_written_as_another(kind: Kind, tmp_path: Path) -> None:
    """A name that was added to the formats alone, and not to `report`, is an error of ours."""
    info, _ = sample(kind)
    with (tmp_path / "out").open("wb") as out, pytest.raises(ValueError, match="tsv"):
        kinds.of(kind).report("tsv", out, info)


def test_a_wrong_format_is_reported_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A format that the kind does not have costs no run: exit code 2, the file named, and no Redis begun."""
    monkeypatch.setenv("PROCTOR_DATA_DIR", str(tmp_path / "data"))
    traits = kinds.of(TURNS).traits
    left = [name for name in traits.formats if name != "junit"]
    monkeypatch.setattr(TurnRuns, "traits", replace(traits, formats=left))
    turns = tmp_path / "turns.jsonl"
    turns.write_text('{"threadId": "t", "message": "ok"}\n', encoding="utf-8")
    report = tmp_path / "report.xml"
    for more in ((), ("--dry-run",)):
        assert run(["run", str(turns), "-o", str(report), *more]) == 2
        printed = capsys.readouterr()
        assert printed.err.splitlines()[0] == f"error: {report}: turns cannot be written as junit"
        assert printed.err.splitlines()[1].startswith("hint: one of jsonl, json, csv, md")
        assert "traces" not in printed.err
    assert not (tmp_path / "data").exists()
    with pytest.raises(UsageError):
        check_formats([ReportFile("md", report), ReportFile("junit", report)], TURNS)


@pytest.mark.parametrize("wanted", [("-o", "report.md"), ("--export", "csv")])
def test_a_report_of_a_detached_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wanted: tuple[str, ...]
) -> None:
    """Nobody would be there to write it, so it is not promised; the hint says what writes it later."""
    turns = tmp_path / "turns.jsonl"
    turns.write_text('{"threadId": "t", "message": "ok"}\n', encoding="utf-8")
    assert run(["run", str(turns), "--detach", *wanted]) == 2
    assert "proctor report RUN -o FILE" in capsys.readouterr().err
