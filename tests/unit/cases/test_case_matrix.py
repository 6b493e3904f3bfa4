"""What the rows, heads and panels of a page of cases show, and what they leave out."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, CaseRun, Template, encode_case
from shared.runs import RunInfo
from shared.upstream.model_target import ModelTarget
from tests.support.case_pages import EXPECTED, GOOD, WRONG, item_row, run_info, write_page
from worker.executors.case_results import case_document, case_line
from worker.validation.pipeline import validate

MODELS: Final = ("acme/quick", "acme/careful")
TEMPLATES: Final = {
    "terse": Template("One word.", [{"role": "user", "content": "Capital of {{ country }}?"}]),
    "polite": Template(None, [{"role": "user", "content": "Please name it."}]),
}
COUNTRIES: Final = ("France", "Spain", "Peru")


def prompted(*prompts: str, models: tuple[str, ...] = MODELS, **settings: Any) -> RunInfo:
    """A run with prompts."""
    info = run_info(models, 3)
    run = msgspec.structs.replace(
        CaseRun.from_snapshot(info.snapshot),
        prompts=list(prompts),
        templates={name: TEMPLATES[name] for name in prompts},
        models={model: ModelTarget(model, f"http://me:secret@models.test/{model}") for model in models},
        **settings,
    )
    snapshot = {
        **info.snapshot,
        "cases": msgspec.to_builtins(run),
        "git": {"commit_hash": "ab12" * 10, "branch": "main"},
    }
    return replace(info, snapshot=snapshot, total=3 * len(models) * len(prompts))


def answers(info: RunInfo, output: str = "Paris") -> list[ItemRow]:
    """An answer of each model to each prompt about each country."""
    run = CaseRun.from_snapshot(info.snapshot)
    asked = [(model, prompt) for prompt in run.prompts for model in run.models]
    return [
        item_row(
            at * len(COUNTRIES) + case,
            CasePayload(
                case,
                model,
                f"Capital of {country}?",
                id=country.lower(),
                prompt_id=prompt,
                vars={"language": "English", "country": country},
            ),
            output,
            ms=100 + case,
            cost=0.001,
        )
        for at, (model, prompt) in enumerate(asked)
        for case, country in enumerate(COUNTRIES)
    ]


def judged(item: CasePayload, criteria: dict[str, Any], output: str, *, code: str = "") -> ItemRow:
    """The answer to a case as the pipeline judges it."""
    result = validate(criteria, output)
    line = case_line(case_document(item, result))
    return ItemRow(0, ("p" if result.passed else "f") + code, line, 1, 2, 1, 5, 0.0, encode_case(item))


def page(tmp_path: Path, rows: list[ItemRow], info: RunInfo) -> str:
    """A report as text."""
    return write_page(tmp_path / "report.html", info, rows).read_text(encoding="utf-8")


def row_of(text: str, number: int = 1) -> str:
    """One row of a report."""
    found: str = re.findall(rf'<article [^>]*id="c{number}".*?</article>', text, re.DOTALL)[0]
    return found


def summary_of(text: str) -> str:
    """What the first cell of a report shows while it is closed."""
    found: str = re.findall(r'<summary><span class="head.*?</summary>', row_of(text))[0]
    return found


def test_a_pass_stands_in_one_line(tmp_path: Path) -> None:
    """Mark, answer and latency of a short pass share a line, and so do id and variables of its case."""
    row = row_of(page(tmp_path, answers(prompted("terse")), prompted("terse")))
    assert row.startswith('<article class="row short"')
    assert re.search(
        r'<span class="head line"><span class="mark p".*?<span class="out" dir="auto">Paris</span>'
        r'<span class="num">0.10s</span></span></summary>',
        row,
    )
    assert '<p class="case"><b dir="auto">france</b> <span dir="auto">country: France</span></p>' in row
    long = row_of(page(tmp_path, answers(prompted("terse"), "Paris " * 40), prompted("terse")))
    assert long.startswith('<article class="row"')


def test_a_row_shows_what_tells_its_case_from_others(tmp_path: Path) -> None:
    """A variable that all cases share is left out, and so is the number of a case with an id."""
    text = page(tmp_path, answers(prompted("terse")), prompted("terse"))
    assert "country: Spain" in row_of(text, 2)
    assert "language" not in row_of(text, 2)
    assert "case 2" not in row_of(text, 2)
    one = page(tmp_path, answers(prompted("terse"))[:1], prompted("terse"))
    assert "language: English · country: France" in row_of(one)


def test_models_stand_above_their_prompts(tmp_path: Path) -> None:
    """With several prompts each model is named once, above them; the id of a single prompt is left out."""
    text = page(tmp_path, answers(prompted("terse", "polite")), prompted("terse", "polite"))
    spans = re.findall(r'class="headspan (c\d)"><b dir="auto"><button[^>]*>(.*?)<', text)
    assert sorted(spans) == [("c2", "acme/careful"), ("c2", "acme/quick")]
    names = re.findall(r'class="name".*?<button[^>]*popovertarget="(prompt-\d)"[^>]*>(.*?)<', text)
    assert names == [("prompt-0", "terse"), ("prompt-1", "polite")] * 2
    one = page(tmp_path, answers(prompted("terse")), prompted("terse"))
    assert "headspan c" not in one.split("</style>")[1]
    assert 'data-name="acme/quick"' in one
    assert ">terse<" not in one.split("data-rows")[1].split("popover")[0]


def test_settings_open_from_the_head_and_stand_under_about(tmp_path: Path) -> None:
    """Templates, parameters, endpoints without passwords, judge, commit and version are on the page."""
    calls = {model: {"terse": {"params": {"max_tokens": 50}}, "polite": {}} for model in MODELS}
    info = prompted("terse", "polite", calls=calls)
    text = page(tmp_path, answers(info), info)
    popover = text.split('id="prompt-0"')[1].split("</div>")[0]
    assert '<dd dir="auto">Capital of {{ country }}?</dd>' in popover
    assert "One word." in popover
    assert "max_tokens 50" in popover
    about = text.split('id="about"')[1]
    for wanted in ("Capital of {{ country }}?", "max_tokens 50", "models.test/acme/quick", "abab"[:2]):
        assert wanted in about
    assert f"<dd>{('ab12' * 10)[:12]} on main</dd>" in about
    assert "<dt>judge</dt>" in about
    assert "Proctor " in about
    assert "secret" not in text


def test_an_answer_stands_once_in_its_cell(tmp_path: Path) -> None:
    """A reason that quotes the answer loses the quotation, since the answer stands below it."""
    item = CasePayload(0, MODELS[0], "Capital?", criteria={"regex_pattern": "Paris"})
    text = page(tmp_path, [judged(item, {"regex_pattern": "Paris"}, "It is Rome.")], run_info(MODELS[:1], 1))
    summary = summary_of(text)
    assert summary.count("It is Rome.") == 1
    assert "which begins" not in summary
    assert "is nowhere in the output</b>" in summary


def test_an_error_stands_once_in_its_cell(tmp_path: Path) -> None:
    """Where there is no answer, the message of the error is not repeated in its place."""
    rows = [item_row(0, CasePayload(0, MODELS[0], "Capital?"), None, ms=5, cost=None)]
    summary = summary_of(page(tmp_path, rows, run_info(MODELS[:1], 1)))
    assert summary.count("no answer within 120 s") == 1


def test_code_keeps_its_lines_and_loses_its_fence(tmp_path: Path) -> None:
    """A block of code is shown line by line; an object in a fence is one line."""
    output = "```python\ndef area(a, b):\n    return a * b\n```\nIt multiplies."
    rows = [item_row(0, CasePayload(0, MODELS[0], "Write it."), output, ms=5, cost=None)]
    row = row_of(page(tmp_path, rows, run_info(MODELS[:1], 1)))
    assert 'class="out code" dir="auto">def area(a, b):\n    return a * b\nIt multiplies.</span>' in row
    rows = [
        item_row(0, CasePayload(0, MODELS[0], "Write it."), '```json\n{\n  "a": 1\n}\n```', ms=5, cost=None)
    ]
    row = row_of(page(tmp_path, rows, run_info(MODELS[:1], 1)))
    assert 'class="out code" dir="auto">{ &#34;a&#34;: 1 }</span>' in row


def test_the_panel_goes_from_the_reason_to_the_command(tmp_path: Path) -> None:
    """Reason, difference, question and answer, checks, other answers, command; what repeats it is folded."""
    item = CasePayload(0, MODELS[0], "Where?", criteria={"expected": EXPECTED})
    text = page(tmp_path, [item_row(0, item, WRONG, ms=5, cost=None)], run_info(MODELS[:1], 1))
    body = row_of(text).split('<div class="body">')[1]
    titles = re.findall(r"<h3>([\w ,]+)", body)
    assert titles == [
        "Difference",
        "Question and answer",
        "Checks",
        "Expected answer",
        "Same case, other answers",
        "Ask only this again",
    ]
    assert "<details><summary>By path</summary>" in body
    assert "<details><summary>Expected</summary>" in body


def test_stages_that_a_case_has_nothing_for_are_left_out(tmp_path: Path) -> None:
    """Only a stage that was configured and not reached is named as skipped."""
    item = CasePayload(0, MODELS[0], "Where?", criteria={"expected": EXPECTED})
    passed = row_of(page(tmp_path, [item_row(0, item, GOOD, ms=5, cost=None)], run_info(MODELS[:1], 1)))
    assert "1 skipped: judge" in passed
    free = CasePayload(0, MODELS[0], "Where?", criteria={"regex_pattern": "a"})
    row = row_of(page(tmp_path, [judged(free, {"regex_pattern": "a"}, "a")], run_info(MODELS[:1], 1)))
    assert "skipped" not in row


def test_all_passed_stands_slowest_first(tmp_path: Path) -> None:
    """Without a failure the slowest case is at the top, and the page says so."""
    info = prompted("terse")
    text = page(tmp_path, answers(info), info)
    assert re.findall(r'<article [^>]*id="(c\d)"', text) == ["c3", "c2", "c1"]
    assert '<span class="small dim">slowest first</span>' in text
    assert '<option value="">slowest first</option>' in text
    assert "failures first" not in text


def test_tables_repeat_nothing(tmp_path: Path) -> None:
    """Columns without a figure are left out, and so are tables that the head of the matrix has."""
    info = prompted("terse", "polite")
    text = page(tmp_path, answers(info), info)
    assert "<h2>Prompts</h2>" in text
    assert "Prompts by model" not in text
    assert "Scores by model" not in text
    cached = [row._replace(code=f"{row.code}c") for row in answers(info)]
    text = page(tmp_path, cached, info)
    heads = re.findall(r"<th[^>]*>([^<]+)</th>", text.split('id="models"')[1].split("</thead>")[0])
    assert not {"P50", "Timed", "Tokens/s"} & set(heads)
    assert "12 answers from the cache: the latency beside one is that of its first call" in text


@pytest.mark.parametrize("code", ["p", "pc"])
def test_a_freeform_page_draws_speed_against_price_from_one_model_on(tmp_path: Path, code: str) -> None:
    """The chart has a point for a single model, also when all its answers came from the cache."""
    row = item_row(0, CasePayload(0, MODELS[0], "Say."), "Hm.", ms=410, cost=0.001)
    text = page(tmp_path, [row._replace(code=code)], run_info(MODELS[:1], 1, mode="freeform"))
    chart = text.split("<h2>Speed vs. Price</h2>")[1].split("</figure>")[0]
    assert chart.count("<circle") == 1
    assert ("All answers cached, times of their first calls: acme/quick." in chart) == (code == "pc")
    assert (">0.41s, cached<" in row_of(text)) == (code == "pc")
    assert 'class="mark n" aria-hidden="true">\u2013</span>' in text  # neither passed nor failed
    assert "✓" not in text.split("<main")[1].split("</h1>")[0]


def test_an_unanswered_model_has_no_interval(tmp_path: Path) -> None:
    """A model that only ended in errors has no rate, and no bar around one."""
    rows = [item_row(at, CasePayload(at, MODELS[0], "Say."), None, ms=5, cost=None) for at in range(3)]
    text = page(tmp_path, rows, run_info(MODELS[:1], 3))
    assert 'class="iv"' not in text.split("</style>")[1].split("<script")[0]
    assert "3 errors:" in text
