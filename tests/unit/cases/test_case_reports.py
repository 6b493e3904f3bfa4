"""What people read of a cases run: figures, order, failures first, and hostile text that does nothing."""

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any, Final

import msgspec
import pytest

from producer.cases.report.details import CaseFailures, FreeformDetails, VerboseDetails
from producer.cases.report.terminal import table_rows
from producer.document import document_of, totals_of
from producer.report.html.charts import Point, scatter
from producer.report.to_terminal import FailureText
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, CaseRun, encode_case
from shared.contracts.unjudged_case import REASONING_CHARS
from shared.kinds import CASES
from shared.runs import RunInfo
from shared.upstream.model_target import ModelTarget
from tests.support.case_pages import document, written
from tests.support.documents import printed, summary_text
from tests.support.run_infos import info as turns_info
from tests.support.schemas import hold
from worker.executors.case_results import CallDetails, case_document, case_line
from worker.validation.pipeline import validate

HOSTILE: Final = "<img src=x onerror=alert(1)></script><script>alert(1)</script>\u2028\"'`|=1+1"
USAGE: Final[dict[str, int | None]] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def run_info(mode: str = "standard", models: Sequence[str] = ("slow", "good")) -> RunInfo:
    """A cases run as the store reads it."""
    run = CaseRun("Bench", "Answer.", {name: ModelTarget(name) for name in models}, mode=mode, cases=2)  # type: ignore[arg-type]  # words of a test
    snapshot: dict[str, Any] = {"v": 1, "source": "bench.yaml", "cases": msgspec.to_builtins(run)}
    return replace(turns_info(total=4), kind=CASES, snapshot=snapshot)


def row(
    at: int,
    item: CasePayload,
    output: str,
    *,
    ms: int = 400,
    cost: float | None = 0.0002,
    reasoning: str = "",
    **judge: Any,
) -> ItemRow:
    """A result as the store reads it."""
    result = validate(item.criteria, output, **judge)
    line = case_line(case_document(item, result, CallDetails(USAGE, reasoning=reasoning)))
    code = "p" if result.passed else "f"
    return ItemRow(at, code, line, 1_000, 2_000, 1, ms, cost, encode_case(item))


def standard() -> list[ItemRow]:
    """Two models, two cases: one model passes both, the other fails one and gives no second answer."""
    criteria = {"expected": {"n": 1}}
    error = case_line(case_document(CasePayload(1, "slow", "two"), None), "upstream_timeout", "late")
    return [
        row(0, CasePayload(0, "slow", "one", id="first", criteria=criteria), '{"n": 2}', ms=2_000, cost=None),
        ItemRow(1, "x", error, 1_000, 2_000, 3, payload=encode_case(CasePayload(1, "slow", "two"))),
        row(2, CasePayload(0, "good", "one", id="first", criteria=criteria), '{"n": 1}'),
        row(3, CasePayload(1, "good", "two", criteria=criteria), '{"n": 1.0}', judge=lambda *_: "PASS"),
    ]


def test_models_stand_by_pass_rate() -> None:
    """The best model stands first; a cost that is not known is no zero; an error stays in the denominator."""
    text = summary_text(document(standard(), run_info()))
    names = re.findall(r"^(good|slow) +([\d.]+%)", text, re.MULTILINE)
    assert names == [("good", "100.0%"), ("slow", "0.0%")]
    assert re.search(r"^slow .* unknown$", text, re.MULTILINE)
    assert "passed 2 · failed 1 · errors 1 · cost $0.0004 and 1 call of unknown price · tokens 45" in text
    assert "errors by code: upstream_timeout 1" in text


def test_a_cached_answer_has_its_first_cost_and_latency() -> None:
    """Lists mark its latency, percentiles leave it out, and the totals say so."""
    fresh = row(0, CasePayload(0, "good", "one"), "x", ms=450)
    cached = row(1, CasePayload(1, "good", "two"), "x", ms=450)._replace(code="pc")
    text = summary_text(document([fresh, cached], run_info()))
    assert (
        "cost $0.0004 · tokens 30 · 1 from cache (cost and tokens of the original calls, latencies excluded)"
        in text
    )
    assert [cells[4:6] for cells in table_rows([fresh, cached])] == [
        ["0.45s", "$0.0002"],
        ["0.45s, cached", "$0.0002"],
    ]
    [model] = printed(document([fresh, cached], run_info()))["summary"]["models"]
    assert (model["latency_n"], model["cost_usd"]) == (1, 0.0004)
    assert model["cached_latency_ms"]["p50"] == 450


def test_rates_are_fractions_of_all_and_of_what_was_answered() -> None:
    """An error is no answer: it lowers the rate of all, and without any answer there is no rate."""
    summary = printed(document(standard(), run_info()))["summary"]
    good, slow = sorted(summary["models"], key=lambda model: str(model["model"]))
    assert (good["pass_rate"], slow["pass_rate"]) == (1.0, 0.0)
    assert [slow["rates"][name]["n"] for name in ("pass_rate", "pass_rate_of_answered")] == [2, 1]
    assert summary["rates"]["pass_rate"]["value"] == summary["pass_rate"] == 0.5
    assert summary["rates"]["pass_rate_of_answered"]["value"] == pytest.approx(2 / 3, abs=1e-4)
    unanswered = printed(document(standard()[1:2], run_info()))["summary"]
    assert unanswered["pass_rate"] is None
    assert unanswered["models"][0]["pass_rate"] is None


def test_failures_are_reported_with_their_reason() -> None:
    """Each failure has the reason, the input and the answer, and no code; verbose adds the stages of all."""
    short, long = FailureText(CaseFailures()), VerboseDetails()
    for details in (short, long):
        details.page(standard())
    assert short.text().splitlines()[:4] == [
        "✗ first · slow",
        "    /n is 2, expected 1",
        "    input:  one",
        '    answer: {"n": 2}',
    ]
    assert "failed_equality" not in short.text()
    assert "good" not in short.text()
    assert "✓ fuzzy: the judge finds the two objects equivalent" in long.text()
    assert "reply: PASS" in long.text()


def test_equal_failures_are_one_line_with_their_number() -> None:
    """Values that differ make no reason of its own; of many failures the first three are named."""
    item = [CasePayload(at, "slow", "one", criteria={"expected": {"n": 1}}) for at in range(5)]
    details = FailureText(CaseFailures())
    details.page([row(at, each, f'{{"n": "{at}"}}') for at, each in enumerate(item)])
    lines = details.text().splitlines()
    assert lines[0] == '✗ 5 answers: e.g. /n is "0", expected 1'
    named = (f'    case {at + 1} · slow  → {{"n": "{at}"}}' for at in range(3))
    assert lines[1:] == [*named, "    and 2 more"]


@pytest.mark.parametrize(
    ("outputs", "line"),
    [
        (["a b c", "a b c"], "✗ 2 answers: short: the output has 3 words, expected at most 2"),
        (["a b c", "a b c d"], "✗ 2 answers: short, e.g. the output has 3 words, expected at most 2"),
    ],
)
def test_a_reason_that_does_not_hold_for_all_is_an_example(outputs: Sequence[str], line: str) -> None:
    """The figures of the first failure stand for all only where all have them."""
    criteria = {"checks": [{"length": 2, "unit": "words", "name": "short"}]}
    details = FailureText(CaseFailures())
    details.page(
        [
            row(at, CasePayload(at, "slow", "one", criteria=criteria), output)
            for at, output in enumerate(outputs)
        ]
    )
    assert details.text().splitlines()[0] == line


def test_reasons_of_each_model_are_bounded() -> None:
    """Memory does not grow with the failures: of a model five reasons are kept, the rest has a command."""
    details = FailureText(CaseFailures())
    for at in range(40):
        item = CasePayload(at, f"m{at % 2}", "one")
        error = {"error": {"code": "upstream_refused", "message": f"no {chr(97 + at)}"}, "result": None}
        line = json.dumps(error).encode()
        details.page([ItemRow(at, "x", line, 1_000, 2_000, 3, payload=encode_case(item))])
    details.end(document_of(replace(run_info(), run="run-1"), totals_of(CASES)))
    assert details.text().count("✗") == 10
    assert details.text().endswith("\n30 more: `proctor results run-1 --failed`")


def test_outputs_stand_prompt_by_prompt() -> None:
    """A freeform run shows the document's panel and, for each prompt, the output of each model."""
    rows = [
        row(at * 2 + case, CasePayload(case, model, f"prompt {case}"), f"{model} says {case}", ms=450)
        for at, model in enumerate(("slow", "good"))
        for case in (0, 1)
    ]
    details = FreeformDetails()
    details.page(rows)
    text = details.text()
    assert "│ Freeform Mode - Showing raw model outputs for manual inspection │" in text
    assert text.index("Prompt 1: prompt 0") < text.index("Prompt 2: prompt 1")
    first = text[text.index("Prompt 1") : text.index("Prompt 2")]
    assert re.findall(r"│ (\w+) +│ (.*?) +│ +([\d.]+s) │ (\$[\d.]+) │", first) == [
        ("slow", "slow says 0", "0.45s", "$0.0002"),
        ("good", "good says 0", "0.45s", "$0.0002"),
    ]
    page = written("html", rows, run_info("freeform"))
    assert all(words in page for words in ("Freeform Mode", "Model Outputs by Prompt", "Speed vs. Price"))


def test_the_table_has_the_documented_columns() -> None:
    """CSV begins with the documented tool's seventeen columns; formulas of an output do not run."""
    rows = [row(0, CasePayload(0, "=m", "+ask", criteria={"expected": {"n": 1}}), "=1+1", cost=None)]
    info = run_info(models=("=m",))
    head, line = csv.reader(StringIO(written("csv", rows, info)))
    found = dict(zip(head, line, strict=True))
    assert (found["git_commit"], found["git_branch"]) == ("", "")
    git = {"commit_hash": "c0ffee", "branch": "trunk"}
    line = list(
        csv.reader(StringIO(written("csv", rows, replace(info, snapshot=info.snapshot | {"git": git}))))
    )[1]
    assert line[15:17] == ["c0ffee", "trunk"]
    assert head[:6] == ["model_name", "test_index", "passed", "status", "latency_total", "latency_ttft"]
    assert head[13:17] == ["error_message", "run_timestamp", "git_commit", "git_branch"]
    assert (found["test_index"], found["passed"], found["status"]) == ("1", "False", "failed_json_parse")
    assert (found["model_name"], found["input"], found["raw_output"]) == ("'=m", "'+ask", "'=1+1")
    assert (found["expected"], found["cost_usd"], found["total_tokens"]) == ('{"n": 1}', "", "15")


def test_json_has_every_result() -> None:
    """The JSON file is the document with all results, which are the lines of JSON Lines."""
    found = json.loads(written("json", standard(), run_info()))
    lines = [json.loads(line) for line in written("jsonl", standard(), run_info()).splitlines()]
    assert found["results"] == lines
    assert [line["outcome"] for line in lines] == ["failed", "error", "passed", "passed"]
    assert set(lines[0]["result"]) == {
        *("model", "case_index", "case_id", "repeat_index", "status", "passed", "stages", "decided_by"),
        *("message", "differences", "raw_output", "parsed_output", "metrics", "used_fuzzy_match"),
        *("token_usage", "freeform", "reasoning"),
        *(
            "prompt_id",
            "vars",
            "tags",
            "metadata",
            "score",
            "checks",
            "tool_calls",
            "refusal",
            "finish_reason",
        ),
    }
    assert lines[1]["error"] == {"code": "upstream_timeout", "message": "late"}


@pytest.mark.parametrize("mode", ["standard", "freeform"])
def test_reasoning_is_shown_beside_the_output(mode: str) -> None:
    """Every format that has outputs has the reasoning of an answer, bounded, and no verdict looks at it."""
    thought = "2 and 2 are <b>4</b>. " * 2_000
    item = CasePayload(0, "m", "2+2?", criteria={} if mode == "freeform" else {"regex_pattern": "<b>"})
    rows, info = [row(0, item, "4", reasoning=thought)], run_info(mode, models=("m",))
    [line] = [json.loads(line) for line in written("jsonl", rows, info).splitlines()]
    assert line["result"]["reasoning"] == thought[:REASONING_CHARS]
    assert line["result"]["passed"] is (mode == "freeform")
    hold("line-cases", json.dumps(line))
    head, cells = csv.reader(StringIO(written("csv", rows, info)))
    assert dict(zip(head, cells, strict=True))["reasoning"] == thought[:REASONING_CHARS]
    page = written("html", rows, info)
    assert ">reasoning</" in page
    assert "2 and 2 are &lt;b&gt;4&lt;/b&gt;." in page
    assert ">reasoning</" not in written("html", [row(0, item, "4")], info)


@pytest.mark.parametrize("mode", ["standard", "freeform"])
def test_hostile_text_is_only_text(mode: str) -> None:
    """Markup of models, prompts and outputs is shown and not obeyed, in HTML and in Markdown."""
    item = CasePayload(
        0, HOSTILE, HOSTILE, id=HOSTILE, criteria={} if mode == "freeform" else {"regex_pattern": "never"}
    )
    info = run_info(mode, models=(HOSTILE,))
    page = written("html", [row(0, item, HOSTILE)], info)
    assert "<img" not in page
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script") == 3  # the index of rows, and two of the page
    assert "default-src 'none'" in page
    assert "<img" not in written("md", [row(0, item, HOSTILE)], info)


def test_cells_name_what_was_never_asked() -> None:
    """An item that the run ended without has a row of its own."""
    rows = [ItemRow(0, "", b"", payload=encode_case(CasePayload(0, "m", "Hi")))]
    assert table_rows(rows)[0][:3] == ["case 1", "m", "skipped"]
    assert document(rows, run_info()).counts.skipped == 1


def test_points_stay_inside_their_chart() -> None:
    """Every model is drawn inside the axes, also those at zero."""
    drawn = scatter([Point("a", 0.0, 0.0), Point("b", 12.3, 0.004)], x_label="s", y_label="$")
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    assert all(52 <= x <= 544 and 30 <= y <= 246 for x, y in places)
    assert len(places) == 2
