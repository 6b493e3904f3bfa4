"""A new kind of check is a file and a row, also one that holds checks and one that asks judges.

Both are added here, and go through everything that a check of a bench goes through.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pytest

from producer.cases.checks import CheckModels, CheckReader
from producer.cases.rescore import written_checks
from producer.load.problems import Place
from shared.codecs.parked_items import ParkedState, WaitReason
from shared.contracts.case_run import CaseRun
from shared.contracts.checks import Check
from shared.upstream.model_target import ModelTarget
from worker.executors.check_calls import Desk, ask_checks
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply
from worker.validation.case_verdict import CheckResult
from worker.validation.check_verdict import Rules
from worker.validation.checks import AsksJudges, CheckKind, Score, Subject, label, parse_checks
from worker.validation.checks.kind import MANY_CHECKS, Held, Inner, Nested, no, unavailable, yes
from worker.validation.checks.similar import ModelName
from worker.validation.checks.table import BY_NAME
from worker.validation.checks.texts import PartOfText
from worker.validation.panel import JudgePrompt, Opinion, Vote, decide
from worker.validation.scoring import Evaluation, Question, run_deterministic


def at_most(check: Check, subject: Subject, inner: Inner) -> Score:
    """Whether so many of its checks pass, and no more."""
    passed = [each for each in check.checks if inner.score(each, subject).passed]
    return (yes if len(passed) <= check.argument else no)(f"{len(passed)} passed")


AT_MOST: Final = CheckKind(
    "at_most",
    "at most so many of the checks pass",
    "{at_most: {passes: 1, of: [json, refusal]}}",
    "{}",
    nested=Nested(
        at_most,
        split=lambda value: (value["passes"], [Held(("of", at), raw) for at, raw in enumerate(value["of"])]),
        join=lambda passes, checks: {"passes": passes, "of": list(checks)},
        schema={"type": "object", "properties": {"passes": {"type": "integer"}, "of": MANY_CHECKS}},
    ),
)


def said_yes(_: Check, votes: Sequence[Vote]) -> Score:
    """Whether more than half of the judges say yes."""
    decision = decide(votes)
    if not decision.is_certain:
        return unavailable("; ".join(vote.blame(100) for vote in votes if vote.unreachable))
    return Score(decision.score, f"{len(votes)} asked", {"votes": [{"model": vote.model} for vote in votes]})


IS_IT: Final = CheckKind(
    "is_it",
    "judges say yes",
    "{is_it: polite, model: openai/gpt-4o-mini}",
    "Please.",
    argument=PartOfText,
    options={"model": ModelName, "models": list[ModelName]},
    asks=AsksJudges(
        prompt=lambda check, subject: JudgePrompt(
            "Say yes or no.", f"Is this {check.argument}? {subject.text}"
        ),
        read=lambda _, reply: Opinion("pass", 1.0) if reply == "yes" else Opinion("fail", 0.0),
        score=said_yes,
        reply_tokens=1,
    ),
)
WRITTEN: Final[list[Any]] = [
    {"at_most": {"passes": 1, "of": [{"contains": "{{ word }}"}, {"not": {"is_it": "{{ word }}"}}, "json"]}}
]


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the two rows to the table."""
    for kind in (AT_MOST, IS_IT):
        monkeypatch.setitem(BY_NAME, kind.name, kind)


def read() -> tuple[Check, ...]:
    """Reads them as a bench is read, with a variable and with the judges of the bench."""
    reader = CheckReader(
        CheckModels(judges=["one", "two", "three"]), None, lambda *_: None, lambda _, written: written
    )
    return reader.read(WRITTEN, Place("bench.yaml"), {"word": "rude"})


def asked(output: str, replies: Mapping[str, str]) -> tuple[CheckResult, list[ModelRequest]]:
    """Takes an output through them, with judges that reply like this."""
    checks, subject, requests = read(), Subject(output), list[ModelRequest]()

    async def ask(request: ModelRequest, _: CallsMade) -> ModelReply:
        requests.append(request)
        return ModelReply(replies[request.model], 5, cost_usd=0.5)

    async def evaluate(check: Check, answers: Mapping[bytes, Score]) -> tuple[Score, list[Question]]:
        evaluation = Evaluation(answers)
        return evaluation.outcome(check, subject), list(evaluation.questions.values())

    async def embed(*_: object) -> EmbeddingReply:
        raise AssertionError

    run = CaseRun("bench", "Answer.", check_models={judge: ModelTarget(judge) for judge in replies})
    parked = ParkedState(WaitReason.UNKNOWN)
    desk = Desk(run, Rules(), evaluate, ask, embed, parked, may_park=True)
    ended = asyncio.run(ask_checks(checks, run_deterministic(checks, subject), desk))
    return ended.rows[0], requests


def test_they_are_read_with_their_templates_and_models() -> None:
    """The inner ones too: rendered, named by their templates, and asking the judges of the bench."""
    [check] = read()
    contains, negated, _ = check.checks
    assert (check.check, check.argument, contains.argument) == ("at_most", 1, "rude")
    assert negated.checks[0].models == ["one", "two", "three"]
    assert label(negated) == "not is_it: {{ word }}"


@pytest.mark.parametrize(("reply", "passed"), [("yes", True), ("no", False)])
def test_they_are_asked_and_evaluated(reply: str, *, passed: bool) -> None:
    """Three judges are asked once, their costs are added up, and two of three decide."""
    row, requests = asked("rude", {"one": reply, "two": reply, "three": "no"})
    assert [request.user for request in requests] == ["Is this rude? rude"] * 3
    assert (row.passed, row.cost_usd) == (passed, 1.5)
    [judged] = row.detail["judged"]
    assert (judged["negated"], judged["name"]) == (True, "is_it: {{ word }}")


def test_they_are_written_for_another_run() -> None:
    """What `rescore` writes is read as the same checks."""
    [raw] = written_checks(msgspec.to_builtins(read()), ["one", "two", "three"])
    asks = {"is_it": "rude", "name": "is_it: {{ word }}"}
    assert raw["at_most"]["of"][1:] == [{"not": asks, "name": "not is_it: {{ word }}"}, {"json": None}]
    [again] = parse_checks([raw])
    assert [each.argument for each in (again, again.checks[0])] == [1, "rude"]
    assert again.checks[1].checks[0] == Check("is_it", "rude", "is_it: {{ word }}")
