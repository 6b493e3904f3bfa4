"""Tests the pipeline stage by stage: order, statuses, reasons, and what judge and sandbox may do."""

import json
from time import process_time
from typing import Any

import pytest
from pydantic import ValidationError

from shared.contracts.case_vocabulary import CaseStatus, Stage
from shared.contracts.cases import Case
from tests.support.checking import judged_by
from tests.support.sandbox_box import Box
from worker.validation.case_verdict import JudgeReply, StageOutcome, ValidationResult
from worker.validation.checks.equivalent import judge_prompt
from worker.validation.pipeline import before_judge, validate
from worker.validation.schema import SchemaError

PARIS = {"country": "France", "capital": "Paris"}
SCHEMA = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}


def outcomes(result: ValidationResult) -> str:
    """The six outcomes as one word: P, F, - for skipped."""
    return "".join({"pass": "P", "fail": "F", "skipped": "-"}[stage.outcome] for stage in result.stages)


def test_all_stages_run_in_their_order() -> None:
    """A case with everything passes five stages, and equality has the last word."""
    case = {
        "regex_pattern": "Par",
        "validator": "v",
        "expected": PARIS,
        "schema": SCHEMA,
        "reference": "Paris, France",
    }
    box = Box("Par", returned=True)
    result = validate(case, json.dumps(PARIS), sandbox=box)
    assert [stage.number for stage in result.stages] == ["0", "0.5", "1", "2", "3", "4"]
    assert outcomes(result) == "PPPPP-"
    assert (result.status, result.passed, result.decided_by) == ("passed", True, "equality")
    assert (result.parsed_output, result.message) == (PARIS, "")
    assert [word for word, *_ in box.asked] == ["search", "call"]
    assert all(stage.reason for stage in result.stages)


@pytest.mark.parametrize(
    ("output", "box", "status", "shape"),
    [
        ("Rome", Box(), CaseStatus.FAILED_REGEX, "F-----"),
        ("Par", Box("Par", returned=False), CaseStatus.FAILED_CUSTOM, "PF----"),
        ("Par", Box("Par", returned=True), CaseStatus.FAILED_JSON_PARSE, "PPF---"),
        ('{"Par": 1}', Box("Par", returned=True), CaseStatus.FAILED_SCHEMA, "PPPF--"),
        ('{"capital": "Par"}', Box("Par", returned=True), CaseStatus.FAILED_EQUALITY, "PPPPF-"),
    ],
)
def test_the_first_failure_ends_it(output: str, box: Box, status: CaseStatus, shape: str) -> None:
    """Each stage has its status; later ones are skipped and say which stage failed."""
    case = {"regex_pattern": "Par", "validator": "v", "expected": PARIS, "schema": SCHEMA}
    result = validate(case, output, sandbox=box)
    assert (result.status, outcomes(result), result.passed) == (status, shape, False)
    assert result.decided_by == result.stages[shape.index("F")].stage
    assert result.message == result.stages[shape.index("F")].reason
    later = {stage.reason for stage in result.stages[shape.index("F") + 1 :]}
    assert later <= {f"{result.decided_by} failed", "no judge was asked"}


@pytest.mark.parametrize(
    ("case", "output", "decided_by"),
    [
        ({"regex_pattern": "def add\\("}, "def add(a, b):", "regex"),
        ({"schema": SCHEMA}, '{"capital": "x"}', "schema"),
        ({"expected": {}}, "```json\n{}\n```", "equality"),
        ({"schema": True}, "{}", "schema"),
    ],
)
def test_what_is_configured_decides(case: dict[str, Any], output: str, decided_by: str) -> None:
    """With a single criterion its stage passes the case, and JSON is parsed only where it is needed."""
    result = validate(case, output)
    assert (result.status, result.decided_by) == ("passed", decided_by)


def test_a_freeform_case_passes_whatever_the_output() -> None:
    """Nothing is parsed, no stage runs, and the result says so."""
    result = validate({"input": "Tell me a joke."}, '{"a": 1}')
    assert (result.status, result.freeform, result.decided_by) == ("passed", True, "freeform")
    assert outcomes(result) == "------"
    assert (result.parsed_output, result.metrics) == (None, {})


def test_a_reference_alone_measures_and_decides_nothing() -> None:
    """The score is there, the case passes, and it is not freeform."""
    result = validate({"reference": "the cat sat"}, "the dog sat")
    assert (result.status, result.freeform, result.decided_by) == ("passed", False, "no_check")
    assert result.metrics == {"rouge_l": 2 / 3, "rouge_l_tokenizer": "rouge-score"}


def test_failed_cases_are_measured_too() -> None:
    """Whatever fails, an output with a reference has a score."""
    result = validate({"reference": "the cat", "expected": PARIS}, "the cat")
    assert (result.status, result.metrics["rouge_l"]) == ("failed_json_parse", 1.0)


def test_lines_count_in_patterns() -> None:
    """`^` and `$` match at every line, as with MULTILINE, and the place is named."""
    result = validate({"regex_pattern": "^b$"}, "a\nb\nc")
    assert result.stages[0].detail == {"match": "b", "span": [2, 3]}


def test_schema_errors_are_named_with_their_places() -> None:
    """The message is for people, the detail for programs."""
    result = validate({"schema": SCHEMA}, '{"capital": 3}')
    assert result.message == 'breaks the schema: /capital: 3 is not of type "string"'
    assert result.stages[3].detail["errors"][0]["pointer"] == "/capital"


def test_an_unusable_schema_is_no_verdict() -> None:
    """It is raised: no output can be blamed for it."""
    with pytest.raises(SchemaError):
        validate({"schema": {"type": "nope"}}, "{}")


def test_extraction_is_lenient_only_when_asked() -> None:
    """Prose around a bare object fails by default."""
    case = {"expected": {"a": 1}}
    assert validate(case, 'It is {"a": 1}.').status == "failed_json_parse"
    assert validate({**case, "json_extraction": "lenient"}, 'It is {"a": 1}.').status == "passed"


def test_differences_are_explained_to_people_and_programs() -> None:
    """Changed, missing and unexpected values stand in the message and, with their places, in the result."""
    result = validate({"expected": PARIS}, '{"capital": "Rome", "people": 2}')
    assert result.message == (
        '3 differences: /capital: expected "Paris", found "Rome"; '
        '/country: missing, expected "France"; /people: unexpected, found 2'
    )
    assert result.differences is not None
    assert result.differences["changed"] == [
        {"path": "/capital", "expected": "Paris", "actual": "Rome", "type_changed": False}
    ]
    assert result.differences["missing"] == [{"path": "/country", "expected": "France"}]
    assert result.differences["unexpected"] == [{"path": "/people", "actual": 2}]


def test_a_judge_is_asked_only_when_equality_fails() -> None:
    """Neither a right answer nor an earlier failure costs a call."""
    asked = []

    def judge(expected: Any, actual: Any) -> str:
        asked.append((expected, actual))
        return "PASS"

    validate({"expected": PARIS}, json.dumps(PARIS), judge=judge)
    validate({"expected": PARIS}, "Paris", judge=judge)
    validate({"input": "x"}, "Paris", judge=judge)
    assert asked == []
    validate({"expected": PARIS}, '{"capital": "paris"}', judge=judge)
    assert asked == [(PARIS, {"capital": "paris"})]


def test_a_judge_can_let_it_pass() -> None:
    """PASS passes, is flagged and noted, and the differences are still listed."""
    result = validate({"expected": PARIS}, '{"capital": "Paris"}', judge=lambda *_: "PASS")
    assert (result.status, result.used_fuzzy_match, result.decided_by) == ("passed", True, "fuzzy")
    assert outcomes(result) == "--P-FP"
    assert "fuzzy match" in result.message
    assert "/country" in result.message
    assert result.differences


@pytest.mark.parametrize("reply", ["FAIL", "I cannot PASS this", "Passed.", "", "PASS/FAIL", "not PASS"])
def test_nothing_but_pass_passes(reply: str) -> None:
    """Any other first word is `failed_fuzzy`, with the reply kept and the differences listed."""
    result = validate({"expected": PARIS}, '{"capital": "Rome"}', judge=lambda *_: reply)
    assert (result.status, result.used_fuzzy_match, result.decided_by) == ("failed_fuzzy", False, "fuzzy")
    assert result.stages[5].detail["reply"] == reply
    assert result.message.startswith("2 differences")


def test_what_is_known_of_the_call_stays_beside_the_verdict() -> None:
    """Model, tokens and cost of the judge go into the stage's detail."""
    reply = JudgeReply("**PASS**", {"model": "m", "cost_usd": 0.1})
    result = validate({"expected": PARIS}, "{}", judge=lambda *_: reply)
    assert result.stages[5].detail == {"model": "m", "cost_usd": 0.1, "reply": "**PASS**", "verdict": "pass"}


def test_a_judge_that_cannot_be_asked_leaves_the_strict_verdict() -> None:
    """The status is `failed_equality`, with a note."""

    def judge(*_: Any) -> str:
        raise ConnectionError("no route to host")

    result = validate({"expected": PARIS}, "{}", judge=judge)
    assert (result.status, result.decided_by) == ("failed_equality", "equality")
    assert "the judge could not be asked: no route to host" in result.message
    assert result.stages[5].outcome is StageOutcome.SKIPPED
    assert result.stages[5].detail == {"unreachable": True}


def test_the_judge_can_be_asked_in_ones_own_time() -> None:
    """The parts give what the whole gives, and a settled result stays as it is."""
    case = Case(input="x", expected=PARIS)
    waiting = before_judge(case, "{}")
    assert (waiting.awaits_judge, waiting.status) == (True, "failed_equality")
    assert judge_prompt(case.expected, waiting.parsed_output).user.count("\n") == 5
    settled = judged_by(waiting, "PASS")
    assert settled == validate(case, "{}", judge=lambda *_: "PASS")
    assert judged_by(settled, "FAIL") is settled
    assert judged_by(settled, None) is settled
    assert not before_judge(case, json.dumps(PARIS)).awaits_judge


def test_a_result_can_be_stored_whatever_is_in_it() -> None:
    """The document is JSON, also with halves of surrogate pairs, control characters and huge integers."""
    case = {"expected": {"a": 2**70}, "regex_pattern": "."}
    result = validate(case, f'\ud800\x00```json\n{{"a": {2**90}}}\n```')
    text = json.dumps(result.as_document(), ensure_ascii=False)
    text.encode()
    assert json.loads(text)["status"] == "failed_equality"
    assert "\x00" not in result.message


def test_a_result_has_the_keys_that_are_printed() -> None:
    """Stages have four keys each, and everything is there also when empty."""
    document = validate({"input": "x"}, "y").as_document()
    assert set(document) == {
        "status", "passed", "stages", "decided_by", "message", "differences", "raw_output", "parsed_output",
        "metrics", "used_fuzzy_match", "freeform", "score", "checks",
    }  # fmt: skip
    assert [stage["stage"] for stage in document["stages"]] == [str(stage) for stage in Stage]
    assert all(set(stage) == {"stage", "outcome", "reason", "detail"} for stage in document["stages"])


def test_unknown_keys_are_refused() -> None:
    """A misspelt criterion must not turn a case into freeform."""
    with pytest.raises(ValidationError, match="expcted"):
        validate({"expcted": {}}, "{}")


def test_a_long_list_that_is_half_right_gets_its_verdict_quickly() -> None:
    """Five thousand items, half of them different and all in another order, cost less than two seconds."""
    items: list[dict[str, Any]] = [
        {"id": index, "tags": [str(index), "a"], "price": index * 1.5} for index in range(5_000)
    ]
    answer = [{**item, "price": 0.5} if item["id"] % 2 else item for item in reversed(items)]
    before = process_time()
    result = validate({"expected": {"items": items}}, json.dumps({"items": answer}))
    assert process_time() - before < 2
    assert result.status == "failed_equality"
    assert result.differences is not None
    assert result.differences["omitted"] == 5_000 - 50


@pytest.mark.parametrize("asked", ["", " \n", "x" * 1_000_001])
@pytest.mark.parametrize("criteria", [{}, {"checks": [{"contains": "Paris"}]}, {"regex_pattern": "Paris"}])
def test_an_answer_is_judged_whatever_was_asked(asked: str, criteria: dict[str, Any]) -> None:
    """An image alone, a tool that returned nothing, an empty variable: the answer is paid for."""
    result = validate({"input": asked, **criteria}, "Paris")
    assert (result.passed, result.raw_output) == (True, "Paris")
