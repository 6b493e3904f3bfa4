"""Scores of checks and what follows from them for a case, pure.

run_deterministic(checks, subject)     a row for each check; paid ones are not asked yet
verdict(rows, at_least)                whether the case passes, and its score
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import msgspec

from shared.contracts.checks import Check
from shared.thresholds import reaches
from worker.validation.case_verdict import CheckResult
from worker.validation.checks.kind import PASSED, Score, Subject, no, passes, skipped, undecided
from worker.validation.checks.rubric import AT_LEAST
from worker.validation.checks.table import CHECK_KINDS
from worker.validation.display import escape_surrogates, show
from worker.validation.json_path import JsonPathError, select

MAX_NODES: Final = 1_000
"""Nodes of a `json_path` that a check looks at."""
MAX_CALLED_NODES: Final = 20
"""The same of a check that calls a function, which may take seconds."""
MAX_PAID_NODES: Final = 5
"""The same of a check that calls a model."""
RUBRIC: Final = "rubric"
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
        check.label,
        check.check,
        None,
        None,
        NOT_ASKED,
        weight=check.weight,
        at_least=check.at_least,
        is_open=True,
    )


def unknown_kinds(checks: Sequence[Check]) -> list[str]:
    """Lists the kinds of checks that this version lacks, inner checks included.

    >>> unknown_kinds([Check("contains", "a"), Check("not", checks=(Check("max_words", 5),))])
    ['max_words']
    """
    inner = {name for check in checks for name in unknown_kinds(check.checks)}
    return sorted(inner | {check.check for check in checks} - CHECK_KINDS.keys())


def is_paid(check: Check) -> bool:
    """Whether a check calls a model, itself or by an inner check."""
    return CHECK_KINDS[check.check].is_paid or (bool(check.checks) and any(map(is_paid, check.checks)))


def needs_sandbox(checks: Sequence[Check]) -> bool:
    """Whether any check runs what people wrote: patterns or functions."""
    for check in checks:
        if CHECK_KINDS[check.check].needs_sandbox or (check.checks and needs_sandbox(check.checks)):
            return True
    return False


def python_names(checks: Sequence[Check]) -> list[str]:
    """The functions of the validators file that checks call.

    >>> python_names([Check("not", checks=(Check("python", "is_short"),)), Check("contains", "a")])
    ['is_short']
    """
    names = list[str]()
    for check in checks:
        if check.check == "python":
            names.append(check.argument)
        if check.checks:
            names += python_names(check.checks)
    return names


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What a paid check asks about a text."""

    check: Check
    """The check, an inner one perhaps."""
    subject: Subject
    """What it looks at: the output, or the part of it that a `json_path` selects."""
    key: bytes
    """Identifies it among those of a case: a question that comes twice is asked once."""


def question_of(check: Check, subject: Subject) -> Question:
    """Makes the question of a check."""
    unnamed = msgspec.structs.replace(check, name="", written="", at_least=None, weight=1.0, json_path="")
    text = msgspec.json.encode((unnamed, escape_surrogates(subject.text)))
    return Question(check, subject, blake2b(text, digest_size=16).digest())


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
        if check.check == RUBRIC and len(judged) <= 1 and score.value is not None:
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
        if len(scores) > 1 and (open_score := undecided(of_nodes, is_settled=best.value == PASSED)):
            return open_score
        several = f" (the best of {len(nodes)} nodes)" if len(nodes) > 1 else ""
        return best._replace(reason=f"{check.json_path}{several}: {best.reason}")

    def _score(self, check: Check, subject: Subject) -> Score:
        """The score of a check of one text."""
        kind = CHECK_KINDS[check.check]
        if kind.run is not None:
            return kind.run(check, subject)
        if kind.run_nested is not None:
            return kind.run_nested(check, subject, self)
        question = question_of(check, subject)
        answer = self._answers.get(question.key)
        if answer is None:
            self.questions[question.key] = question
            return skipped(NOT_ASKED)
        self._answered[question.key] = (check, answer)
        return answer

    def _with_verdict(self, check: Check, score: Score) -> Score:
        """The score with whether the check passes."""
        return score._replace(passed=passes(check, score))


def _judged(key: bytes, check: Check, answer: Score, negated: Sequence[Check]) -> dict[str, Any]:
    """The verdicts of judges on one rubric, as the row of the check has it that the rubric is inside of.

    An answer without a value has the votes of a panel that could not decide.
    """
    threshold = AT_LEAST if check.at_least is None else check.at_least
    return {
        "name": check.label,
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
        yield from _negated(check.checks, is_negated=is_negated != (check.check == "not"))


def result_of(check: Check, score: Score, cost_usd: float | None = None) -> CheckResult:
    """Makes the row of a check."""
    return CheckResult(
        check.label,
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
    if not check.written or inner.argument is None or not reason:
        return reason
    rendered = show(inner.argument)
    return reason if rendered in reason else f"{rendered}: {reason}"


def verdict(rows: Sequence[CheckResult], at_least: float | None = None) -> tuple[bool, float | None]:
    """Whether a case passes, and the weighted mean of the scores.

    Args:
        rows: its checks; those without a score do not count.
        at_least: the mean from which the case passes, if each check could be evaluated; None: every check
            must pass.

    >>> rows = [CheckResult("a", "contains", 1.0, True, ""), CheckResult("b", "contains", 0.0, False, "")]
    >>> verdict(rows), verdict(rows, 0.5), verdict([])
    ((False, 0.5), (True, 0.5), (True, None))
    """
    counted = [row for row in rows if row.score is not None and row.weight > 0]
    mean = mean_score(counted)
    if at_least is None or mean is None:
        return all(row.passed for row in counted), mean
    return reaches(mean, at_least) and not any(map(is_broken, counted)), mean


def is_broken(row: CheckResult) -> bool:
    """Whether a check that decides could not be evaluated."""
    return "error" in row.detail and row.weight > 0


def mean_score(rows: Sequence[CheckResult]) -> float | None:
    """The weighted mean of scores; None without any."""
    scored = [(row.score, row.weight) for row in rows if row.score is not None and row.weight > 0]
    total = sum(weight for _, weight in scored)
    return sum(score * weight for score, weight in scored) / total if scored else None


def _most_nodes(check: Check) -> int:
    """How many selected nodes a check looks at."""
    if is_paid(check):
        return MAX_PAID_NODES
    return MAX_CALLED_NODES if python_names([check]) else MAX_NODES


def _rank(score: Score) -> tuple[bool, float]:
    """Orders scores: those that pass first, then by value."""
    return bool(score.passed), -1.0 if score.value is None else score.value
