"""Asking paid checks: in which order, with what, and what becomes of waits and failures; no process."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest

from shared.clock import now_ms
from shared.codecs.parked_items import History, ParkedState, WaitReason, decode_parked, encode_parked
from shared.contracts.case_run import CaseRun
from shared.contracts.checks import Check
from shared.names import RunState
from shared.runs.waiting import describe_parked
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import GivenPrice
from worker.executors.case_results import with_earlier
from worker.executors.check_calls import ChecksAsked, Desk, ask_checks
from worker.outcomes import Deferred, EndRun
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest, pack
from worker.upstream.failures import UpstreamError
from worker.validation.case_verdict import CheckResult
from worker.validation.check_verdict import Rules
from worker.validation.checks import Score, Subject, parse_checks
from worker.validation.scoring import Evaluation, Question, run_deterministic

RUN = CaseRun(
    "bench",
    "Answer.",
    check_models={
        "judge": ModelTarget("judge", "http://judge", headers={"X-Team": "evals"}),
        **{name: ModelTarget(name) for name in ("other", "b", "c")},
        "embedder": ModelTarget("embedder", "http://embedder"),
    },
    judge_params={"seed": 7},
    prices={name: GivenPrice(1, 1) for name in ("judge", "other", "embedder")},
)
RUBRIC: Mapping[str, Any] = {"rubric": "Is it polite?", "model": "judge"}
SIMILAR: Mapping[str, Any] = {"similar": "please help", "model": "embedder", "at_least": 0.5}

NEVER_PARKED = ParkedState(WaitReason.UNKNOWN)


Judge = Callable[[CallsMade], ModelReply]


def graded(score: float) -> Judge:
    text = json.dumps({"score": score})
    return lambda _: ModelReply(text, 5, cost_usd=0.25)


@dataclass
class Models:
    """Plays the models of a case, and remembers what they were asked."""

    answers: list[Judge] = field(default_factory=list)
    """How judges meet what they are asked, in order; the last one stays."""
    embeddings: list[Callable[[CallsMade], EmbeddingReply]] = field(default_factory=list)
    """How requests for embeddings are met; vectors of ones when there is nothing left."""
    asked: list[ModelRequest | EmbeddingRequest] = field(default_factory=list)
    histories: list[History] = field(default_factory=list)

    async def ask(self, request: ModelRequest, calls: CallsMade) -> ModelReply:
        self.asked.append(request)
        self.histories.append(calls.history)
        return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])(calls)

    async def embed(self, request: EmbeddingRequest, calls: CallsMade) -> EmbeddingReply:
        self.asked.append(request)
        self.histories.append(calls.history)
        if self.embeddings:
            return self.embeddings.pop(0)(calls)
        return EmbeddingReply([pack([1.0, 1.0]) for _ in request.texts], 5, cost_usd=0.125)

    def play(
        self,
        raw: list[Any],
        output: str = "please",
        *,
        parked: ParkedState = NEVER_PARKED,
        may_park: bool = True,
        earlier: Sequence[CheckResult] | None = None,
    ) -> ChecksAsked:
        """Takes an output through its checks."""
        checks, subject = parse_checks(raw), Subject(output)

        async def evaluate(check: Check, answers: Mapping[bytes, Score]) -> tuple[Score, list[Question]]:
            evaluation = Evaluation(answers)
            return evaluation.outcome(check, subject), list(evaluation.questions.values())

        desk = Desk(RUN, Rules(), evaluate, self.ask, self.embed, parked, may_park=may_park)
        rows = run_deterministic(checks, subject)
        if earlier is not None:
            rows = [with_earlier(*each) for each in zip(earlier, rows, strict=True)]
        return asyncio.run(ask_checks(checks, rows, desk))


def rows_of(asked: ChecksAsked) -> list[CheckResult]:
    return asked.rows


def wait(seconds: float = 60.0, attempts: int = 2) -> Callable[[CallsMade], NoReturn]:
    """A model that cannot be asked soon."""
    due_ms = now_ms() + int(1000 * seconds)

    def later(calls: CallsMade) -> NoReturn:
        calls.history = calls.history._replace(attempts=attempts)
        raise Deferred(due_ms, ParkedState(WaitReason.RATE_LIMIT))

    return later


def failing(reason: FailureReason, text: str) -> Callable[[CallsMade], NoReturn]:
    """A model that has no answer."""

    def fail(_: CallsMade) -> NoReturn:
        raise UpstreamError(reason, text)

    return fail


gone = failing(FailureReason.UNREACHABLE, "no route")


def over(_: CallsMade) -> NoReturn:
    """There is no money left."""
    raise EndRun(RunState.INCOMPLETE, "the cap is reached")


def test_a_request_has_what_the_run_says_of_its_model() -> None:
    desk = Models([graded(1)])
    [row] = rows_of(desk.play([RUBRIC]))
    [request] = desk.asked
    assert isinstance(request, ModelRequest)
    assert (request.model, request.target.api_base, request.temperature) == ("judge", "http://judge", 0.0)
    assert (dict(request.parameters), dict(request.target.headers)) == ({"seed": 7}, {"X-Team": "evals"})
    assert (row.passed, row.cost_usd) == (True, 0.25)


def test_the_texts_of_one_model_are_embedded_together_and_each_once() -> None:
    desk = Models([graded(1)])
    other = {**SIMILAR, "similar": "please do"}
    asked = desk.play([SIMILAR, RUBRIC, other, {"not": {**SIMILAR, "similar": "go away"}, "at_least": 0.0}])
    [texts, _] = desk.asked
    assert isinstance(texts, EmbeddingRequest)
    assert sorted(texts.texts) == ["go away", "please", "please do", "please help"]
    assert [row.score for row in rows_of(asked)] == pytest.approx([1, 1, 1, 0], abs=1e-6)
    assert sum(row.cost_usd or 0 for row in rows_of(asked)) == 0.375


def test_an_empty_output_is_not_embedded() -> None:
    desk = Models()
    [row] = rows_of(desk.play([SIMILAR], ""))
    assert (desk.asked, row.score, row.cost_usd) == ([], 0.0, 0.0)


def test_equal_questions_are_asked_once() -> None:
    desk = Models([graded(0.9)])
    asked = desk.play([RUBRIC, {"not": {**RUBRIC, "at_least": 0.95}}])
    assert len(desk.asked) == 1
    assert [row.passed for row in rows_of(asked)] == [True, True]


def test_inner_checks_are_asked_one_by_one() -> None:
    """The first that passes ends an `any`, whatever the others would cost."""
    desk = Models([graded(1.0)])
    rows_of(desk.play([{"any": [RUBRIC, {**RUBRIC, "rubric": "Is it brief?"}]}]))
    assert len(desk.asked) == 1


def test_of_several_nodes_each_is_asked_up_to_a_bound() -> None:
    desk = Models([graded(0.1)])
    [row] = rows_of(
        desk.play([{**RUBRIC, "json_path": "$[*]"}], json.dumps([f"text {at}" for at in range(9)]))
    )
    assert len(desk.asked) == 5
    assert row.passed is False


def test_a_wait_parks_the_case_with_what_its_calls_went_through() -> None:
    """After the wait they go on from there, and other questions begin anew."""
    desk = Models([wait()])
    with pytest.raises(Deferred) as ended:
        desk.play([RUBRIC])
    parked = decode_parked(encode_parked(ended.value.state))
    assert describe_parked([parked]) == "check deferred: waiting for a rate limit"
    again = Models([graded(1)])
    again.play([RUBRIC, {**RUBRIC, "rubric": "Is it brief?"}], parked=parked)
    assert sorted(history.attempts for history in again.histories) == [0, 2]


def test_a_case_that_must_not_be_parked_waits() -> None:
    desk = Models([wait(0.01), graded(1)])
    assert rows_of(desk.play([RUBRIC], may_park=False))[0].passed is True
    embedded = Models(embeddings=[wait(0.01, attempts=1)])
    assert rows_of(embedded.play([SIMILAR], may_park=False))[0].passed is True
    assert [history.attempts for history in embedded.histories] == [0, 1]


@pytest.mark.parametrize("check", [RUBRIC, SIMILAR])
def test_a_model_that_is_not_there_leaves_the_rest_unasked(check: dict[str, Any]) -> None:
    desk = Models([gone], [gone])
    asked = desk.play([check, {**RUBRIC, "rubric": "Is it brief, and is it polite, and is it to the point?"}])
    assert asked.unavailable.endswith(f"{check['model']}: no route")
    assert [row.passed for row in asked.rows] == [None, None]
    assert asked.rows[0].reason.startswith("could not be asked: ")
    assert asked.rows[1].reason.startswith("not asked: ")
    assert len(desk.asked) == 1


def test_a_model_that_the_reason_names_is_named_once() -> None:
    """The error of a missing key begins with the model already."""
    text = f"{SIMILAR['model']} needs the variable KEY"
    asked = Models([], [failing(FailureReason.UNAUTHORISED, text)]).play([SIMILAR])
    assert asked.rows[0].reason == f"could not be asked: {text}"


def test_a_check_without_weight_never_decides_also_when_its_model_is_away() -> None:
    """Its row says that it could not be asked; the other checks are asked and decide."""
    unweighted = [{**RUBRIC, "rubric": "Is it rude?", "weight": 0}, {**SIMILAR, "weight": 0}]
    asked = Models([graded(0.9), gone], [gone]).play([*unweighted, RUBRIC, {"contains": "please"}])
    assert asked.unavailable == ""
    assert [row.passed for row in asked.rows] == [None, None, True, True]
    assert [row.reason for row in asked.rows[:2]] == [
        "could not be asked: judge: no route",
        "could not be asked: embedder: no route",
    ]


@pytest.mark.parametrize(("second", "unavailable"), [(graded(0.9), False), (graded(0.1), True), (gone, True)])
def test_the_other_branches_of_an_any_are_asked_when_one_is_away(second: Judge, *, unavailable: bool) -> None:
    """It passes when another passes, and cannot be asked only where none does; votes that came are kept."""
    desk = Models([gone, second])
    asked = desk.play([{"any": [RUBRIC, {**RUBRIC, "rubric": "Is it brief and to the point?"}]}])
    assert len(desk.asked) == 2
    assert bool(asked.unavailable) is unavailable
    assert asked.rows[0].passed is (None if unavailable else True)
    assert len(asked.replies) == sum(bool(each["votes"]) for each in asked.rows[0].detail.get("judged", ()))


def test_a_run_without_money_leaves_the_check_unasked() -> None:
    for desk, check in ((Models([over]), RUBRIC), (Models(embeddings=[over]), SIMILAR)):
        asked = desk.play([check])
        assert asked.over == "the cap is reached"
        assert asked.unavailable.endswith(f"{check['model']}: the cap is reached")


def test_votes_that_came_before_the_money_was_spent_are_kept() -> None:
    """Of a panel one judge has answered: its vote and its cost are in the row, for the retry."""
    panel = {"rubric": "Polite?", "models": ["judge", "other"]}
    asked = Models([graded(0.9), over]).play([panel])
    assert (asked.over, asked.rows[0].cost_usd, len(asked.replies)) == ("the cap is reached", 0.25, 1)
    [vote] = [vote for each in asked.rows[0].detail["judged"] for vote in each["votes"] if vote["verdict"]]
    assert (vote["model"], vote["score"]) == ("judge", 0.9)


def test_a_check_without_weight_does_not_wait_for_money() -> None:
    asked = Models([over]).play([{**RUBRIC, "weight": 0}, {"contains": "please"}])
    assert (asked.unavailable, asked.rows[1].passed) == ("", True)


def test_a_panel_is_asked_at_once_and_may_lack_a_judge() -> None:
    desk = Models([graded(0.9), gone, graded(0.8)])
    panel = {"rubric": "Polite?", "models": ["judge", "b", "c"]}
    [row] = rows_of(desk.play([panel]))
    assert (row.passed, row.cost_usd) == (True, 0.5)
    assert [vote["verdict"] for vote in row.detail["votes"]] == ["pass", None, "pass"]


def test_rows_have_what_judges_said_of_inner_rubrics() -> None:
    """Each question stands there with its verdict and votes, also where the rubric must not be met."""
    rude = {**RUBRIC, "rubric": "Is it rude?"}
    desk = Models([graded(0.2), graded(0.9)])  # the shorter question is the cheaper one
    [row] = rows_of(desk.play([{"all": [{"contains": "please"}, RUBRIC, {"not": rude}]}]))
    assert row.passed is True
    polite, impolite = row.detail["judged"]
    assert (polite["name"], polite["passed"], polite["negated"]) == ("rubric: Is it polite?", True, False)
    assert (impolite["name"], impolite["passed"], impolite["negated"]) == ("rubric: Is it rude?", False, True)
    assert [vote["score"] for each in (polite, impolite) for vote in each["votes"]] == [0.9, 0.2]
    assert polite["question"] != impolite["question"]


def test_rows_have_what_judges_said_of_each_node() -> None:
    desk = Models([graded(0.1), graded(0.8)])
    [row] = rows_of(desk.play([{**RUBRIC, "json_path": "$[*]"}], json.dumps(["no", "please"])))
    assert [each["passed"] for each in row.detail["judged"]] == [False, True]
    [alone] = rows_of(Models([graded(0.9)]).play([RUBRIC]))
    assert "judged" not in alone.detail
    assert len(alone.detail["votes"]) == 1


def test_votes_of_an_earlier_result_are_not_asked_for_again() -> None:
    """Of an `all` with a panel that lacked a judge, only that judge is asked, and the costs are added up."""
    panel = {"rubric": "Is it polite, and brief too?", "models": ["judge", "other"]}
    checks = [{"all": [RUBRIC, panel]}]
    rows = rows_of(Models([graded(0.9), graded(0.8), gone]).play(checks))
    assert [each["passed"] for each in rows[0].detail["judged"]] == [True, None]
    assert rows[0].cost_usd == 0.5
    away = Models([gone])
    rows = rows_of(away.play(checks, earlier=rows))
    assert len(away.asked) == 1
    assert rows[0].cost_usd == 0.5
    back = Models([graded(0.75)])
    [row] = rows_of(back.play(checks, earlier=rows))
    assert [request.model for request in back.asked] == ["other"]
    assert (row.passed, row.score, row.cost_usd) == (True, 0.75, 0.75)
    scores = [[vote["score"] for vote in each["votes"]] for each in row.detail["judged"]]
    assert scores == [[0.9], [0.8, 0.75]]
