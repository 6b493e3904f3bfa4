"""Scores, checks, prompts and tags of a cases run stand in every report, in gates and in comparisons."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any, Final

import msgspec
import pytest
import yaml

from producer.aggregate.compared_items import COMPARED_CASES, CaseLine, Items, items_of
from producer.aggregate.comparison import ComparedNames, ComparedSide, compare
from producer.aggregate.gates import judge_gates, parse_gate
from producer.aggregate.statistics import clustered_mean
from producer.cases.case_groups import ScoreMean
from producer.cases.recorded import OutputRow, _recorded
from producer.cases.report.details import CaseFailures, VerboseDetails
from producer.cases.report.opened_rows import opened
from producer.cases.rescore import written_checks, written_output
from producer.document import report_of
from producer.report.comparison.wording import score_table
from producer.report.to_terminal import FailureText
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, CaseRun, encode_case
from shared.errors import UsageError
from shared.kinds import CASES
from shared.runs import RunInfo
from shared.upstream.model_target import ModelTarget
from tests.support.case_pages import document, written
from tests.support.documents import more_text, printed, summary_text
from tests.support.run_infos import info as turns_info
from worker.executors.case_results import CallDetails, case_document, case_line, recorded_reply
from worker.validation.checks import parse_checks
from worker.validation.checks.table import CHECK_KINDS

MODELS: Final = ("alpha", "beta")
PROMPTS: Final = ("terse", "long")
HOSTILE: Final = "<b>|Paris\x1b[2J"


def run_info(prompts: Sequence[str] = PROMPTS, models: Sequence[str] = MODELS) -> RunInfo:
    """A run with two models and two prompts, or others."""
    run = CaseRun("Bench", "Answer.", {name: ModelTarget(name) for name in models}, prompts=prompts, cases=2)
    snapshot = {"v": 1, "source": "bench.yaml", "cases": msgspec.to_builtins(run)}
    return replace(turns_info(total=8), kind=CASES, snapshot=snapshot)


def check(name: str, score: float | None, **more: Any) -> dict[str, Any]:
    """A check as a result has it; it passes from 0.5."""
    passed = None if score is None else score >= 0.5
    row = {"name": name, "check": "contains", "score": score, "passed": passed, "reason": f"{name} looked"}
    return {**row, "cost_usd": None, "detail": {}, **more}


def row(at: int, item: CasePayload, *checks: dict[str, Any], output: str = "Paris") -> ItemRow:
    """A result as the store reads it: it passes when all its checks do."""
    scores = [each["score"] for each in checks if each["score"] is not None]
    passed = all(each["passed"] is not False for each in checks)
    verdict = {
        "status": "passed" if passed else "failed_checks",
        "passed": passed,
        "message": "" if passed else "a check failed",
        "decided_by": "checks",
        "raw_output": output,
        "score": sum(scores) / len(scores) if scores else None,
        "checks": list(checks),
        "prompt_id": item.prompt_id,
        "tags": item.tags,
    }
    line = case_line({**case_document(item, None), **verdict})
    return ItemRow(at, "p" if passed else "f", line, 1_000, 2_000, 1, 400, 0.001, encode_case(item))


def all_rows() -> list[ItemRow]:
    """Models x prompts x cases; `long` fails the second check of the case with the tag `hard`."""

    def rows() -> Iterator[ItemRow]:
        at = 0
        for model in MODELS:
            for prompt in PROMPTS:
                for case, tags in enumerate((["easy", "eu"], ["hard", "eu"])):
                    item = CasePayload(case, model, "Where?", id=f"c{case}", prompt_id=prompt, tags=tags)
                    score = 0.25 if prompt == "long" and case == 1 else 1.0
                    yield row(
                        at, item, check(f"has {HOSTILE}", 1.0), check("short", score), check("brief", score)
                    )
                    at += 1

    return list(rows())


def test_summary_has_figures_by_prompt_tag_and_check() -> None:
    """Each group has its outcomes, its pass rate and its mean score as fractions with intervals."""
    summary = printed(document(all_rows(), run_info()))["summary"]
    assert [(each["prompt"], each["passed"], each["failed"]) for each in summary["prompts"]] == [
        ("terse", 4, 0),
        ("long", 2, 2),
    ]
    assert [(each["model"], each["prompt"], each["passed"]) for each in summary["prompts_by_model"]] == [
        ("alpha", "terse", 2),
        ("alpha", "long", 1),
        ("beta", "terse", 2),
        ("beta", "long", 1),
    ]
    assert {each["tag"]: (each["total"], each["pass_rate"]["value"]) for each in summary["tags"]} == {
        "easy": (4, 1.0),
        "eu": (8, 0.75),
        "hard": (4, 0.5),
    }
    found = {each["name"]: each for each in summary["checks"]}
    assert (found["short"]["passed"], found["short"]["failed"]) == (6, 2)
    assert found["short"]["score"]["value"] == pytest.approx((6 + 2 * 0.25) / 8, abs=1e-4)
    assert summary["models"][0]["score"]["value"] == pytest.approx((3 + 0.5) / 4, abs=1e-4)
    assert list(summary["statuses"])[-1] == "failed_checks"
    assert summary["statuses"]["failed_checks"] == 2
    assert summary["models"][0]["repeats"] is None, "two prompts are no repeats"


def test_a_run_without_prompts_tags_and_checks_has_none_of_their_keys() -> None:
    """Documented runs have the summary that they always had."""
    item = CasePayload(0, "alpha", "Where?", criteria={"expected": {"n": 1}})
    summary = printed(document([row(0, item)], run_info(())))["summary"]
    assert not {"prompts", "prompts_by_model", "prompts_asked", "tags", "checks"} & summary.keys()
    assert "score" not in summary["models"][0]


def test_the_interval_of_a_mean_score_takes_the_answers_to_a_case_as_related() -> None:
    """It is that of the clustered mean; weights move the mean, and one case has no bounds."""
    values = [[1.0, 0.5], [0.0, 0.25], [0.75, 0.75]]
    mean = ScoreMean()
    for case, scores in enumerate(values):
        for score in scores:
            mean.add(case, score)
    found, expected = mean.summary(), clustered_mean(values)
    assert found is not None
    assert found.value == pytest.approx(expected.value, abs=1e-4)
    assert found.standard_error == pytest.approx(expected.standard_error)
    weighted, single = ScoreMean(), ScoreMean()
    weighted.add(0, 1.0, 3.0)
    weighted.add(1, 0.0)
    single.add(7, 0.5)
    single.add(7, 1.0)
    assert getattr(weighted.summary(), "value", None) == 0.75
    assert getattr(single.summary(), "low", 0.0) is None
    assert ScoreMean().summary() is None


def test_terminal_and_markdown_have_the_tables() -> None:
    """The terminal has models, prompts and tags, and with `-v` all other groups; names are only text."""
    rows, info = all_rows(), run_info()
    brief, page = summary_text(document(rows, info)), written("md", rows, info)
    text = more_text(document(rows, info))
    for title in ("Prompts", "Tags"):
        assert f"\n{title}\n" in brief
        assert f"## {title}\n" in page
    for title in ("Scores by model", "Prompts by model", "Checks"):
        assert f"\n{title}\n" not in brief
        assert f"\n{title}\n" in f"\n{text}"
        assert f"## {title}\n" in page
    assert "\nScore interval: 95% interval of the mean score" in text
    assert "\nJudged: " not in text, "no check here was judged"
    assert "2 cases by 2 models and 2 prompts" in report_of(document(rows, info)).headline
    assert "\x1b" not in text + page
    assert "| long | 50.0% |" in page
    assert "c1 | alpha · long | failed\\_checks" in page or "alpha · long | failed_checks" in page
    assert "✗ short (0.25): short looked" in page


def test_failures_name_prompt_and_failed_checks() -> None:
    """Below a failure stand the checks that failed; with --verbose, all of them."""
    brief, verbose = FailureText(CaseFailures()), VerboseDetails()
    for details in (brief, verbose):
        details.page(all_rows()[2:4])
    assert "✗ c1 · alpha · long\n    short (0.25): short looked" in brief.text()
    assert "failed_checks" not in brief.text() + verbose.text()
    assert "    ✓ has" not in brief.text()
    assert "    ✓ has" in verbose.text()


def test_csv_has_its_new_columns_last() -> None:
    """Prompt, score, failed checks and tags come after the columns that were there, tokens after them."""
    lines = list(csv.reader(StringIO(written("csv", all_rows(), run_info()))))
    assert lines[0][-6:-2] == ["prompt_id", "score", "failed_checks", "tags"]
    assert lines[0][-2:] == ["cached_input_tokens", "reasoning_tokens"]
    assert lines[1][-6:-2] == ["terse", "1.0", "", "easy; eu"]
    assert lines[4][-6:-2] == ["long", "0.5", "short; brief", "hard; eu"]


@pytest.mark.parametrize("name", ["md", "github"])
def test_a_reason_in_the_message_is_not_repeated(name: str) -> None:
    """The checks that the message names stand once; one that it leaves out stands beside them."""
    found = row(0, CasePayload(0, "alpha", "Where?"), *(check(each, 0.0) for each in ("near", "far", "rest")))
    line = json.loads(found.line)
    line["message"] = "3 of 3 checks failed: near: near looked; far: far looked; and 1 more"
    text = written(name, [found._replace(line=json.dumps(line).encode())], run_info((), ("alpha",)))
    failures = text[text.index("## Failures\n" if name == "md" else "### Failed") :]
    assert [failures.count(f"{each} looked") for each in ("near", "far", "rest")] == [1, 1, 1]


def test_junit_tells_prompts_apart_and_lists_failed_checks() -> None:
    """A test has the prompt in its name, so that no two have the same."""
    text = written("junit", all_rows(), run_info())
    assert 'name="c1 · long"' in text
    assert 'type="failed_checks"' in text
    assert "✗ short (0.25): short looked" in text


def test_page_shows_checks_prompts_and_tags() -> None:
    """The page has the tables, a column for each prompt, tags to filter by, and each check of a case."""
    text = written("html", all_rows(), run_info())
    for id_ in ("prompts", "tags", "checks"):
        assert f'id="{id_}"' in text
    assert ">Mean score</th>" in text.split('id="models"')[1].split("</thead>")[0]
    assert "<h3>Checks" in text
    assert "<b>|Paris" not in text
    assert "· long" in text
    for tag in ("easy", "eu", "hard"):
        assert f'data-facet="tag" data-value="{tag}"' in text
        assert f'<span class="tag" dir="auto">{tag}</span>' in text


def judged_row(at: int, verdicts: Sequence[str | None], *, label: str | None = None) -> ItemRow:
    """A case whose rubric was answered by a panel."""
    passed = verdicts.count("pass") > len(verdicts) / 2
    votes = [{"model": f"j{n}", "verdict": word, "cost_usd": 0.01} for n, word in enumerate(verdicts)]
    checked = check("polite", 1.0 if passed else 0.0, check="rubric", cost_usd=0.03, detail={"votes": votes})
    item = CasePayload(at, "alpha", "Hi", criteria={"label": label} if label else {})
    return row(at, item, checked)


def test_rates_of_rubrics_have_the_trust_in_their_judges_beside_them() -> None:
    """Votes are counted like those about equality: unanimity, agreement with labels, costs."""
    rows = [
        judged_row(0, ["pass", "pass", "pass"], label="pass"),
        judged_row(1, ["pass", "pass", "fail"], label="fail"),
    ]
    info = run_info((), ["alpha"])
    [found] = printed(document(rows, info))["summary"]["checks"]
    assert found["judge"]["judged"] == 2
    assert found["judge"]["agreement"]["unanimous"]["value"] == 0.5
    assert found["judge"]["calibration"]["accuracy"]["value"] == 0.5
    text = more_text(document(rows, info))
    assert "\nAgrees with labels: answers with a label" in text
    assert "50.0% of 2" in text


def test_rubrics_inside_of_other_checks_have_the_same_figures() -> None:
    """Each question counts; people's labels do not speak of a rubric that a good answer does not meet."""
    votes = [{"model": "j", "verdict": "fail", "cost_usd": 0.01}]
    polite = {"name": "polite", "question": "5f", "passed": False, "negated": False, "votes": votes}
    rude = {**polite, "name": "rude", "question": "60", "negated": True}
    item = CasePayload(0, "alpha", "Hi", criteria={"label": "fail"})
    checked = check("both", 0.0, check="all", cost_usd=0.02, detail={"judged": [polite, rude]})
    [found] = printed(document([row(0, item, checked)], run_info((), ["alpha"])))["summary"]["checks"]
    judge = found["judge"]
    assert (judge["judged"], judge["calls"], judge["labelled"]) == (2, 2, 1)
    assert judge["calibration"]["true_failed"] == 1
    assert judge["consistency"] is None


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("score_mean<0.8", 0.875, True),
        ("score_mean<0.95", 0.875, False),
        ("check:short.pass_rate<0.9", 0.75, False),
        ("check:short.score_mean < 80%", 0.8125, True),
        (f"check:has {HOSTILE}.pass_rate<1", 1.0, True),
        ("prompt:long.pass_rate<0.6", 0.5, False),
        ("tag:easy.pass_rate<1", 1.0, True),
        ("check:other.pass_rate<0.5", None, False),
    ],
)
def test_gates_ask_for_scores_checks_prompts_and_tags(text: str, value: float | None, *, met: bool) -> None:
    """The score is the worst model's; a check that the run does not have fails its gate."""
    [found] = judge_gates([parse_gate(text)], document(all_rows(), run_info()))
    assert found.value == (None if value is None else pytest.approx(value, abs=1e-4))
    assert found.met is met


@pytest.mark.parametrize("text", ["check:short.colour<1", "chekc:short.pass_rate<1", "check:.pass_rate<1"])
def test_gates_with_unknown_parts_are_refused(text: str) -> None:
    """A typo costs no run."""
    with pytest.raises(UsageError):
        parse_gate(text)


SIDES: Final = (ComparedSide("a", ""), ComparedSide("b", ""))


def items(tag: str | None = None) -> Items:
    """The items of a run, from the lines that `proctor results --format jsonl` prints."""
    lines = written("jsonl", all_rows(), run_info()).splitlines()
    return items_of(
        COMPARED_CASES, ((msgspec.json.decode(line, type=CaseLine), None) for line in lines), tag=tag
    )


def test_prompts_of_one_run_are_compared_case_by_case() -> None:
    """The cases of two prompts are pairs; McNemar's test counts cases, not answers."""
    terse, long = items().parts("prompt").values()
    found = compare(CASES, terse, long)
    assert (found.counts.pairs, found.counts.broken) == (4, 2)
    assert (found.test.units, found.test.worse) == (2, 1)
    assert found.scores["score"].difference == pytest.approx(-0.5 / 2)
    assert found.scores["check:short"].b == pytest.approx(0.625)
    assert found.pairs.broken[0].after.label == "c1 · alpha"
    assert ["check:short", "1.000", "0.625"] in [row[:3] for row in score_table(found).rows]


def test_models_of_one_run_are_compared_prompt_by_prompt() -> None:
    """The prompt stays in the identity of a case."""
    alpha, beta = items().parts("model").values()
    found = compare(CASES, alpha, beta)
    assert (found.counts.pairs, found.counts.only_a) == (4, 0)


def test_only_cases_with_a_tag_are_compared() -> None:
    """Others are not in the comparison at all."""
    assert [item.unit for item in items(tag="hard").items] == ["c1"] * 4


def test_a_changed_prompt_is_compared_like_a_changed_model() -> None:
    """Runs with one prompt each are paired in spite of its name, and the names are in the document."""
    side = items()
    one, other = (
        side._replace(items=[item for item in side.items if item.key[2] == name]) for name in PROMPTS
    )
    found = compare(CASES, one, other)
    assert found.as_document(*SIDES).prompts == ComparedNames("terse", "long")
    assert found.counts.pairs == 4


def test_checks_that_travelled_are_written_as_a_bench_has_them() -> None:
    """What the loader reads of it is what travelled, for each check of the table."""
    examples = [yaml.safe_load(f"[{kind.example}]") for kind in CHECK_KINDS.values() if not kind.is_paid]
    for example in examples:
        if kind_of(example) == "json_schema":
            continue
        travelled = parse_checks(example)
        again = parse_checks(unescaped(written_checks([msgspec.to_builtins(each) for each in travelled])))
        assert again == travelled, example


def kind_of(example: list[Any]) -> str:
    """The kind of the only check."""
    return str(example[0] if isinstance(example[0], str) else next(iter(example[0])))


def unescaped(value: Any) -> Any:
    """Renders what was escaped."""
    if isinstance(value, str):
        return value.replace("{{ '{' }}", "{")
    if isinstance(value, list):
        return [unescaped(each) for each in value]
    return {key: unescaped(each) for key, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize(("flags", "is_cached"), [("p", False), ("pc", True)])
def test_a_rescored_copy_is_still_a_copy(flags: str, is_cached: bool) -> None:  # noqa: FBT001 - parametrized
    """An answer from the cache keeps its mark in a rescored run, where its latency is not counted either."""
    item = CasePayload(0, "alpha", "Hi")
    line = case_line(case_document(item, None, CallDetails(is_json=is_cached)) | {"raw_output": "[1]"})
    [case] = opened([ItemRow(0, flags, line, latency_ms=250, payload=encode_case(item))])
    output = written_output(case, 0)
    assert output is not None
    recorded = OutputRow(**output)
    kept = _recorded(recorded)
    reply = recorded_reply(CasePayload(0, "alpha", "Hi", recorded=kept))
    assert reply is not None
    assert (reply.latency_ms, reply.is_cached, reply.is_json) == (250, is_cached, is_cached)


def test_results_of_other_releases_are_read() -> None:
    """One before prompts and checks lacks their keys, a later one may have more, at any depth."""
    item = CasePayload(0, "alpha", "Where?")
    stored = json.loads(row(0, item, check("short", 0.25)).line)
    for key in ("prompt_id", "vars", "tags", "metadata", "score", "tool_calls", "refusal", "finish_reason"):
        del stored[key]
    newer = stored | {"news": 1, "checks": [stored["checks"][0] | {"news": {}}]}
    older = {key: value for key, value in stored.items() if key not in {"checks", "reasoning"}}
    rows = [
        ItemRow(at, "f", case_line(each), payload=encode_case(item)) for at, each in enumerate((newer, older))
    ]
    found = [case.answer for case in opened(rows)]
    assert [len(each.failed_checks) for each in found] == [1, 0]
    assert [(each.tags, each.score, each.text) for each in found] == [([], None, "Paris")] * 2
