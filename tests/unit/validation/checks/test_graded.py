"""The graded checks: what a judge is asked, and what its reply is worth."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from shared.codecs.parked_items import ParkedState, WaitReason
from shared.contracts.case_run import CaseRun
from shared.upstream.model_target import ModelTarget
from tests.support.sandbox_box import CheckBox
from worker.executors.check_calls import Desk, ask_checks
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply
from worker.validation.case_verdict import CheckResult
from worker.validation.check_verdict import Rules
from worker.validation.checks import CHECK_KINDS, AsksJudges, Score, Subject, parse_checks
from worker.validation.checks.kind import Rival
from worker.validation.checks.walks import calls_functions, needs_sandbox
from worker.validation.panel import Vote
from worker.validation.scoring import Evaluation, Question, run_deterministic

PARTS = {"relevant": "statement", "supported": "statement", "attributed": "statement", "useful": "passage"}


def asked(raw: Any, reply: Any, subject: Subject | None = None) -> tuple[CheckResult, list[ModelRequest]]:
    """Takes an output through a check; judges reply with this, or with steps where these are asked for."""
    [check] = parse_checks([raw])
    check = replace(check, options={"model": "judge", **check.options})
    subject, requests = subject or Subject("It is Paris.", input="Capital of France?"), list[ModelRequest]()

    async def ask(request: ModelRequest, _: CallsMade) -> ModelReply:
        requests.append(request)
        is_first = request.form is not None and "steps" in request.form["properties"]
        return ModelReply(json.dumps({"steps": ["Read.", "Decide."]} if is_first else reply), 5, cost_usd=0.5)

    async def evaluate(check: Any, answers: Mapping[bytes, Score]) -> tuple[Score, list[Question]]:
        evaluation = Evaluation(answers)
        return evaluation.outcome(check, subject), list(evaluation.questions.values())

    async def embed(*_: object) -> EmbeddingReply:
        raise AssertionError

    run = CaseRun("bench", "Answer.", check_models={model: ModelTarget(model) for model in check.models})
    desk = Desk(run, Rules(), evaluate, ask, embed, ParkedState(WaitReason.UNKNOWN), may_park=True)
    ended = asyncio.run(ask_checks([check], run_deterministic([check], subject), desk))
    return ended.rows[0], requests


def verdicts(key: str, letters: str) -> dict[str, Any]:
    """A reply that lists parts with verdicts: y and n."""
    name = PARTS[key]
    places = [at if name == "passage" else f"S{at}" for at in range(1, len(letters) + 1)]
    return {"parts": [{name: at, key: each == "y"} for at, each in zip(places, letters, strict=True)]}


@pytest.mark.parametrize(
    ("raw", "reply", "score", "reason"),
    [
        ({"factuality": "Paris."}, {"reason": "More.", "choice": "superset"}, 1.0, "superset: More."),
        ({"factuality": "Paris.", "scores": {"superset": 0.6}}, {"choice": "Superset "}, 0.6, "superset"),
        ({"factuality": "Lyon."}, {"choice": "disagree"}, 0.0, "disagree"),
        ({"closed_qa": "One city."}, {"choice": "yes", "reason": "It is."}, 1.0, "yes: It is."),
        (
            {"closed_qa": "One city."},
            {"choice": "maybe"},
            0.0,
            'the judge: the choice "maybe" is not one of yes, no',
        ),
        ({"rubric": "Tone", "choices": {"good": 1, "fair": 0.5}}, {"choice": "fair"}, 0.5, "fair"),
        ({"g_eval": "Clear."}, {"score": 7, "reason": "Mostly."}, 0.7, "Mostly."),
        ({"g_eval": "Clear."}, {"score": 11}, 0.0, "the judge: the score 11 is not from 0 to 10"),
        ("answer_relevance", verdicts("relevant", "yyny"), 0.75, "3 of 4 relevant; not: S3"),
        ("answer_relevance", {"parts": []}, 0.0, "there is nothing to judge"),
        ({"context_faithfulness": "Paris."}, verdicts("supported", "y"), 1.0, "1 of 1 supported"),
        ({"context_faithfulness": "Paris."}, {"parts": []}, 1.0, "there is nothing to judge"),
        (
            {"context_recall": {"context": "A", "expected": "B"}},
            verdicts("attributed", "n"),
            0.0,
            "0 of 1 attributed; not: S1",
        ),
        (
            {"context_recall": {"context": "A", "expected": "B"}},
            {"parts": []},
            0.0,
            "the judge: the reply has no verdicts",
        ),
        ({"context_precision": ["A", "B"]}, verdicts("useful", "ny"), 0.5, "useful: 2 of 2"),
        (
            {"context_precision": ["A", "B"]},
            {"parts": [{"useful": True}]},
            0.0,
            "the judge: the reply has no verdicts",
        ),
    ],
)
def test_a_reply_has_its_score(raw: Any, reply: Any, score: float, reason: str) -> None:
    row, requests = asked(raw, reply)
    assert row.score == pytest.approx(score)
    assert row.reason == reason
    assert requests[-1].form is not None
    assert row.passed is (score >= 0.7)


def test_steps_are_written_first_and_then_followed() -> None:
    """The first judge of a panel writes them, asked the same for all outputs, and all follow them."""
    raw = {"g_eval": "Clear.", "models": ["a", "b"]}
    row, requests = asked(raw, {"score": 10, "reason": ""})
    [other, *_] = asked(raw, {"score": 10}, Subject("Rome."))[1]
    assert [request.model for request in requests] == ["a", "a", "b"]
    assert requests[0] == other
    assert 'Criteria: "Clear."\nSteps: ["Read.", "Decide."]\nInput' in requests[1].user
    assert row.cost_usd == 1.5
    assert len(asked({"g_eval": {"steps": ["Read."]}}, {"score": 10})[1]) == 1


def test_a_judge_without_steps_decides_nothing() -> None:
    [check] = parse_checks([{"g_eval": "Clear.", "model": "j"}])
    asks = CHECK_KINDS["g_eval"].asks
    assert isinstance(asks, AsksJudges)
    assert asks.before is not None
    steps = asks.before.asks
    said = steps.score(check, [Vote("j", steps.read(check, "No."), "No.")])
    assert (said.value, said.error) == (0.0, "unreadable")
    assert steps.score(check, [Vote("j", unreachable="late")]).unavailable == "j: late"


@pytest.mark.parametrize(
    ("context", "line"),
    [
        ('["One.", "Two."]', 'Context: ["One.", "Two."]'),
        (["One.\n\nTwo."], 'Context: ["One.\\n\\nTwo."]'),
        ({"json_path": "$.docs"}, 'Context: ["One.", "{\\"id\\": 2}"]'),
    ],
)
def test_a_context_has_passages(context: Any, line: str) -> None:
    """Of a text, a list, or what an application returned beside the answer that is checked."""
    output = Subject('{"answer": "Paris", "docs": ["One.", {"id": 2}]}')
    raw = {"context_faithfulness": context, "json_path": "$.answer"}
    _, [request] = asked(raw, verdicts("supported", "y"), output)
    assert request.user.splitlines() == [line, 'Output: "Paris"']


@pytest.mark.parametrize("context", ["", " \n\n", {"json_path": "$.none"}])
def test_nobody_is_asked_about_no_context(context: Any) -> None:
    row, requests = asked({"context_precision": context}, {}, Subject("{}"))
    assert (row.score, row.passed, row.reason, requests) == (0.0, False, "there is no context", [])


def test_the_question_is_the_input_or_given() -> None:
    _, [own] = asked({"answer_relevance": "Which?"}, verdicts("relevant", "y"))
    _, [bare] = asked("answer_relevance", verdicts("relevant", "y"))
    assert own.user.splitlines()[0] == 'Question: "Which?"'
    assert bare.user.splitlines()[0] == 'Question: "Capital of France?"'
    raw = {"context_precision": {"context": "A", "question": "Why?", "expected": "So."}}
    _, [precise] = asked(raw, verdicts("useful", "y"))
    assert precise.user.splitlines()[1:] == ['Question: "Why?"', 'Expected answer: "So."']


@pytest.mark.parametrize(
    ("choice", "passed", "reason"),
    [
        ("Paris", True, "Short."),
        ("Lyon", False, "better is b and d: Short."),
        (3, False, "the judge: the choice 3 is not from 1 to 2"),
        ("none", False, 'the judge: the choice "none" is not from 1 to 2'),
    ],
)
def test_the_best_answer_is_chosen_whatever_the_order(choice: Any, passed: bool, reason: str) -> None:  # noqa: FBT001 - a verdict
    """Equal answers are shown once; all answers of a case have the same question."""
    rivals = [Rival("a", "Paris"), Rival("b", "Lyon"), Rival("c", "Paris"), Rival("d", "Lyon")]
    raw, prompts = {"select_best": "Is short."}, set[str]()
    for own in range(len(rivals)):
        subject = Subject(
            rivals[own].text, rivals=[rivals[own], *rivals[:own], *rivals[own + 1 :]], asked="City?"
        )
        dry = Evaluation()
        dry.score(parse_checks([raw])[0], subject)
        [question] = dry.questions.values()
        assert isinstance(question.asks, AsksJudges)
        prompts.add(question.asks.prompt(question.check, subject).user)
        answers = question.check.argument["answers"]
        reply = {"reason": "Short.", "choice": answers.index(choice) + 1 if choice in answers else choice}
        if own == 0:
            row, [request] = asked(raw, reply, subject)
            assert (row.passed, row.reason) == (passed, reason)
            assert request.form is not None
    assert len(prompts) == 1


@pytest.mark.parametrize(
    ("others", "passed"), [([], None), (["Paris", "Paris"], True)], ids=["alone", "all the same"]
)
def test_no_judge_chooses_where_there_is_no_choice(others: list[str], passed: bool | None) -> None:  # noqa: FBT001 - same
    subject = Subject("Paris", rivals=[Rival(str(at), text) for at, text in enumerate(["Paris", *others])])
    row, requests = asked({"select_best": "Is short."}, {}, subject)
    assert (row.passed, requests) == (passed, [])


@pytest.mark.parametrize(
    ("context", "passages"),
    [
        ({"template": "{{ json.docs | join('\\n\\n') }}"}, ["One.", "Two."]),
        ({"json_pointer": "/docs/0"}, ["One."]),
        ({"json_path": "$.docs[*]"}, ["One.", "Two."]),
        ({"javascript": "output.docs"}, ["One.", {"text": "Two."}]),
        ({"python": "documents"}, "One."),
    ],
)
def test_a_context_is_made_of_the_answer_as_the_model_gave_it(context: Any, passages: Any) -> None:
    """The output that is judged may be a part of it; what cannot be made is no verdict on the output."""
    whole = Subject('{"answer": "A.", "docs": ["One.", "Two."]}', is_value=True)
    sandbox = CheckBox(returned=passages)
    subject = Subject("A.", whole=whole, sandbox=sandbox)
    raw = {"context_faithfulness": context}
    _, [request] = asked(raw, verdicts("supported", "y"), subject)
    shown = [each if isinstance(each, str) else json.dumps(each) for each in passages]
    expected = ["One."] if passages == "One." else shown
    assert request.user.splitlines() == [f"Context: {json.dumps(expected)}", 'Output: "A."']
    [check] = parse_checks([{"not": raw}])
    assert needs_sandbox([check]) is bool({"javascript", "python"} & context.keys())
    assert calls_functions([check]) is ("python" in context)


def test_a_context_that_cannot_be_made_has_a_reason() -> None:
    row, requests = asked({"context_recall": {"context": {"json_pointer": "/docs"}, "expected": "A"}}, {})
    assert (row.passed, requests) == (False, [])
    assert "no JSON in the output" in row.reason
