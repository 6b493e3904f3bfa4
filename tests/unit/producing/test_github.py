"""The report for GitHub Actions: what failed is there, folded, and no text of a model is obeyed."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from producer import kinds
from producer.document import document_of, totals_of
from producer.documents import JudgedGate
from producer.report.formats import format_of
from producer.report.github import MOST_ANNOTATIONS, MOST_FAILURES, Annotations, command, html
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.kinds import CASES, QUERIES, TURNS, Kind, all_kinds
from shared.names import RunState
from shared.runs import RunInfo, TurnRow
from tests.support.conversations import decide, turn
from tests.support.query_results import one_of_each
from tests.support.run_infos import info as turns_info
from tests.unit.cases.test_case_reports import run_info as cases_info
from tests.unit.cases.test_case_reports import standard

HOSTILE: Final = "::error::owned\n##[error]owned\n</pre><script>x()</script>\n::add-mask::a\x1b[2J"
TAGS: Final = {"details", "summary", "pre"}


class Tags(HTMLParser):
    """Collects the tags of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.found = set[str]()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Notes a tag."""
        del attrs
        self.found.add(tag)


def written(info: RunInfo, rows: Sequence[Any]) -> tuple[str, list[str]]:
    """The summary and the annotations of a run."""
    out, totals, annotations = (
        BytesIO(),
        totals_of(info.kind),
        Annotations(info, kinds.of(info.kind).tests, Path()),
    )
    report = format_of(info.kind, "github")(out, info)
    for row in rows:
        totals.add([row])
        report.page([row])
        annotations.page([row])
    document = document_of(info, totals)
    text = "gate failed: pass rate 50.0%, at least 90% needed"
    document = structs.replace(
        document, gates=(JudgedGate("pass_rate<0.9", "pass_rate", 0.5, "<", 0.9, met=False, text=text),)
    )
    report.end(document)
    annotations.end(document)
    return out.getvalue().decode(), annotations.lines


def commands_in(text: str) -> list[str]:
    """Lines that the runner obeys, as its source has it: `::` after white space, `##[` anywhere."""
    return [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]


def run_of(kind: Kind) -> tuple[RunInfo, Sequence[Any]]:
    """A run of a kind, with failures of every sort and hostile texts."""
    if kind is CASES:
        return cases_info(), standard()
    if kind is QUERIES:
        results = one_of_each()
        rows = [
            ItemRow(at, "x" if result["error"] else "f", json.dumps(_line(result)).encode())
            for at, result in enumerate(results)
        ]
        snapshot: dict[str, Any] = {"v": 1, "source": "b.json", "queries": msgspec.to_builtins(QueryRun())}
        return replace(turns_info(total=len(rows)), kind=kind, snapshot=snapshot), rows
    [block] = decide(turn("one"), turn("two")).outcome.blocks
    error = json.dumps({"error": {"code": "etag_conflict", "message": HOSTILE}}).encode()[:-1]
    lines = [block.lines[0], error + b',"result":' + block.lines[1] + b"}"]
    return turns_info(RunState.FINISHED, 2), [
        TurnRow(at, code, line, 1, 2, 1)
        for at, (code, line) in enumerate(zip((block.codes[0], "x0"), lines, strict=True))
    ]


def _line(result: dict[str, Any]) -> dict[str, Any]:
    """A stored result, whose question is hostile."""
    result = {**result, "query": HOSTILE}
    return (
        {"error": {"code": "api_timeout", "message": HOSTILE}, "result": result}
        if result["error"]
        else result
    )


@pytest.mark.parametrize("kind", all_kinds(), ids=str)
def test_each_kind_has_summary_and_annotations(kind: Kind) -> None:
    """The summary has tables and folds each failure; errors, with gates, and warnings are annotations."""
    summary, lines = written(*run_of(kind))
    assert summary.startswith("## ✗ ")
    heading, _, rest = summary.partition("\n\nProctor run ")
    assert ", 1 gate failed" in heading
    assert rest
    assert summary.count("<details") == summary.count("</details>") >= 1
    assert "\n| --- |" in summary
    assert "gate failed" in summary
    assert ("\n### Failures by reason\n" in summary) is (kind is not TURNS)
    assert lines[0] == "::error title=Proctor::gate failed: pass rate 50.0%25, at least 90%25 needed"
    assert any(line.startswith("::error ") for line in lines[1:])
    assert all(re.fullmatch(r"::(error|warning) title=[^:,\n]+::[^\n]+", line) for line in lines), lines
    assert commands_in(summary) == []
    tags = Tags()
    tags.feed(summary)
    assert tags.found == TAGS


def test_only_so_many_are_reported() -> None:
    """Of a thousand failures the first hundred are listed and ten annotated; the rest has a command."""
    info, rows = run_of(CASES)
    [failed] = [row for row in rows if row.code.startswith("f")]
    summary, lines = written(info, [replace_index(failed, at) for at in range(1000)])
    assert summary.count("<details>") == MOST_FAILURES
    assert f"900 more: `proctor results {info.run} --failed`" in summary
    assert sum(line.startswith("::warning ") for line in lines) == MOST_ANNOTATIONS
    assert len(summary) < 1_000_000


def replace_index(row: ItemRow, index: int) -> ItemRow:
    """The same row at another place."""
    return row._replace(index=index)


@given(st.text())
def test_no_text_is_a_command_or_markup(text: str) -> None:
    """Whatever a text says, it is one line of plain text, or the data of one command."""
    assert not set("<>`*_~[]|@!\\") & set(html(text))
    assert commands_in(html(text)) == []
    line = command("error", text, title=text)
    assert not set("\r\n") & set(line)
    assert line.startswith("::error title=")
    title, _, data = line.removeprefix("::error title=").partition("::")
    assert ":" not in title
    assert "," not in title
    assert unescaped(data) == text
    assert unescaped(title) == text


def unescaped(text: str) -> str:
    """Reads data as the runner does."""
    for sign, code in (("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C"), ("%", "%25")):
        text = text.replace(code, sign)
    return text
