"""Scores of checks, and the questions of those that ask models; pure.

run_deterministic(checks, subject)     a row for each check; paid ones are not asked yet
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import msgspec

from shared.contracts.checks import Check
from shared.thresholds import reaches
from worker.validation.case_verdict import CheckResult
from worker.validation.checks.kind import (
    PASSED,
    AsksEmbeddings,
    AsksJudges,
    Score,
    Subject,
    no,
    passes,
    skipped,
    undecided,
)
from worker.validation.checks.labels import label, rendered
from worker.validation.checks.rubric import AT_LEAST
from worker.validation.checks.table import CHECK_KINDS
from worker.validation.checks.walks import calls_functions, is_paid
from worker.validation.display import escape_surrogates, show
from worker.validation.json_path import JsonPathError, select
from worker.validation.transforming import NAME, TransformError, transformed

MAX_NODES: Final = 1_000
"""Nodes of a `json_path` that a check looks at."""
MAX_CALLED_NODES: Final = 20
"""The same of a check that calls a function, which may take seconds."""
MAX_PAID_NODES: Final = 5
"""The same of a check that calls a model."""
NOT_ASKED: Final = "not asked yet"


def run_deterministic(checks: Sequence[Check], subject: Subject) -> list[CheckResult]:
    """Evaluates the checks that call no model; the rows of the others are open.

    Raises:
        CheckUnusableError: a pattern or function cannot be run, whatever the output.

    >>> rows = run_deterministic([Check("contains", "Paris"), Check("contains", "Rome")], Subject("Paris"))
    >>> [(row.name, row.score, row.passed) for row in rows]
    [('contains: Paris', 1.0, True), ('contains: Rome', 0.0, False)]
    """
    return [
        open_row(check) if is_paid(check) else result_of(check, Evaluation().score(check, subject))
        for check in checks
    ]


def open_row(check: Check) -> CheckResult:
    """The row of a paid check that was not asked yet."""
    return CheckResult(
        label(check),
        check.check,
        None,
        None,
        NOT_ASKED,
        weight=check.weight,
        at_least=check.at_least,
        is_open=True,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What a paid check asks about a text."""

    check: Check
    """The check, an inner one perhaps."""
    asks: AsksJudges | AsksEmbeddings
    """How it is asked."""
    subject: Subject
    """What it looks at: the output, or the part of it that a `json_path` selects."""
    key: bytes
    """Identifies it among those of a case: a question that comes twice is asked once."""


def question_of(check: Check, asks: AsksJudges | AsksEmbeddings, subject: Subject) -> Question:
    """Makes the question of a check."""
    at_least = check.at_least if isinstance(asks, AsksJudges) and asks.says_verdict else None
    unnamed = msgspec.structs.replace(check, name="", written="", at_least=at_least, weight=1.0, json_path="")
    text = msgspec.json.encode((unnamed, escape_surrogates(subject.text)))
    return Question(check, asks, subject, blake2b(text, digest_size=16).digest())


class Evaluation:
    """Evaluates checks, and collects the questions that have to be asked for those that call models.

    Args:
        answers: the scores of questions that were asked, by `Question.key`.
    """

    def __init__(self, answers: Mapping[bytes, Score] | None = None) -> None:
        self._answers = answers or {}
        self.questions: dict[bytes, Question] = {}
        """Questions without an answer so far; a score that stands on one is none."""
        self._answered: dict[bytes, tuple[Check, Score]] = {}

    def name(self, check: Check) -> str:
        """What a reason calls a check."""
        return rendered(check)

    def is_open(self, check: Check, subject: Subject) -> bool:
        """Whether a model has to be asked before the score of a check is known."""
        if not is_paid(check):
            return False
        dry = Evaluation(self._answers)
        dry.score(check, subject)
        return bool(dry.questions)

    def outcome(self, check: Check, subject: Subject) -> Score:
        """Finds the score of a check of the case, with the verdicts of judges on all rubrics inside of it.

        Raises:
            CheckUnusableError: a pattern or function cannot be run, whatever the output.
        """
        score = self.score(check, subject)
        judged = [each for each in self._answered.items() if "votes" in each[1][1].detail]
        if CHECK_KINDS[check.check].asks and len(judged) <= 1 and score.value is not None:
            return score
        negated = list(_negated([check]))
        detail = {key: value for key, value in score.detail.items() if key != "votes"}
        if judged:
            detail["judged"] = [_judged(key, *answered, negated) for key, answered in judged]
        return score._replace(detail=detail)

    def score(self, check: Check, subject: Subject) -> Score:
        """Finds the score of one check, and whether it passes; of several selected nodes, the best one.

        Raises:
            CheckUnusableError: a pattern or function cannot be run, whatever the output.
        """
        try:
            changed = subject if check.transform is None else transformed(check.transform, subject)
            return self._selected(check, changed)
        except TransformError as error:
            return no(f"{NAME}: {error}", error=NAME)

    def _selected(self, check: Check, subject: Subject) -> Score:
        """The score of one check of what its `json_path` selects."""
        if not check.json_path:
            return self._with_verdict(check, self._score(check, subject))
        parsed = subject.parsed
        if parsed.error:
            return no(parsed.error)
        try:
            nodes = select(check.json_path, parsed.value)
        except JsonPathError as error:
            return no(error.message, error="json_path")
        if not nodes:
            return no(f"{check.json_path} selects nothing")
        scores = list[Score]()
        for node in nodes[: _most_nodes(check)] if len(nodes) > 1 else nodes:
            scores.append(self._with_verdict(check, self._score(check, subject.at_node(node))))
            if scores[-1].value == PASSED or scores[-1].error:
                break  # what could not be run for one node would be stopped at each of the others too
        best = max(scores, key=_rank)
        of_nodes = ((check, score) for score in scores)
        if len(scores) > 1 and (open_score := undecided(of_nodes, self, is_settled=best.value == PASSED)):
            return open_score
        several = f" (the best of {len(nodes)} nodes)" if len(nodes) > 1 else ""
        return best._replace(reason=f"{check.json_path}{several}: {best.reason}")

    def _score(self, check: Check, subject: Subject) -> Score:
        """The score of a check of one text."""
        kind = CHECK_KINDS[check.check]
        if kind.run is not None:
            return kind.run(check, subject)
        if kind.nested is not None:
            return kind.nested.run(check, subject, self)
        if kind.asks is None:
            raise AssertionError(check.check)
        return self._asked(check, kind.asks, subject)

    def _asked(self, check: Check, asks: AsksJudges | AsksEmbeddings, subject: Subject) -> Score:
        """The score of a check that asks models; skipped as long as a question has no answer."""
        complete = check
        if isinstance(asks, AsksJudges):
            if asks.completed is not None:
                complete = asks.completed(check, subject)
            if asks.known is not None and (known := asks.known(complete, subject)) is not None:
                return known
            if asks.before is not None and (first := asks.before.check(check)) is not None:
                _, prepared = self._answer(question_of(first, asks.before.asks, Subject("")))
                if prepared.value is None or prepared.error:
                    return prepared
                complete = asks.before.completed(check, prepared)
        key, answer = self._answer(question_of(complete, asks, subject))
        if key in self._answers:
            self._answered[key] = (check, answer)
        return answer

    def _answer(self, question: Question) -> tuple[bytes, Score]:
        """The answer to a question with its key; one that was not asked is listed."""
        answer = self._answers.get(question.key)
        if answer is None:
            self.questions[question.key] = question
        return question.key, skipped(NOT_ASKED) if answer is None else answer

    def _with_verdict(self, check: Check, score: Score) -> Score:
        """The score with whether the check passes."""
        return score._replace(passed=passes(check, score))


def _judged(key: bytes, check: Check, answer: Score, negated: Sequence[Check]) -> dict[str, Any]:
    """The verdicts of judges on one rubric, as the row of the check has it that the rubric is inside of.

    An answer without a value has the votes of a panel that could not decide.
    """
    threshold = AT_LEAST if check.at_least is None else check.at_least
    return {
        "name": label(check),
        "question": key.hex(),
        "passed": None if answer.value is None else reaches(answer.value, threshold),
        "negated": any(check == each for each in negated),
        "votes": answer.detail["votes"],
    }


def _negated(checks: Sequence[Check], *, is_negated: bool = False) -> Iterator[Check]:
    """Yields the checks that have to fail, so that the outermost one passes."""
    for check in checks:
        if is_negated:
            yield check
        if check.checks:
            nested = CHECK_KINDS[check.check].nested
            is_turned = nested is not None and nested.is_negation
            yield from _negated(check.checks, is_negated=is_negated != is_turned)


def result_of(check: Check, score: Score, cost_usd: float | None = None) -> CheckResult:
    """Makes the row of a check."""
    return CheckResult(
        label(check),
        check.check,
        score.value,
        passes(check, score),
        _with_rendered(check, score.reason),
        cost_usd,
        score.detail,
        check.weight,
        check.at_least,
    )


def _with_rendered(check: Check, reason: str) -> str:
    """Puts what a template was rendered to before a reason that does not have it.

    >>> _with_rendered(Check("rubric", "Names Paris", written="rubric: Names {{ city }}"), "It does not.")
    '"Names Paris": It does not.'
    """
    inner = check
    while inner.argument is None and len(inner.checks) == 1:
        inner = inner.checks[0]
    if not check.written or inner.argument is None or inner.checks or not reason:
        return reason
    rendered = show(inner.argument)
    return reason if rendered in reason else f"{rendered}: {reason}"


def _most_nodes(check: Check) -> int:
    """How many selected nodes a check looks at."""
    if is_paid(check):
        return MAX_PAID_NODES
    return MAX_CALLED_NODES if calls_functions([check]) else MAX_NODES


def _rank(score: Score) -> tuple[bool, float]:
    """Orders scores: those that pass first, then by value."""
    return bool(score.passed), -1.0 if score.value is None else score.value
