"""The pipeline of the validation specification, from top to bottom: an output in, one of eight statuses out.

Stages run in order: 0 regex, 0.5 custom validator, 1 JSON, 2 schema, 3 equality, 4 judge. Each passes,
fails or is skipped, and says why; the first failure ends it, except that a judge may forgive stage 3.

Workers call the steps apart, because judges and checks that call a model are asked on the event loop:

    before_judge(case, output)      stages 0 to 3, and the checks that call no model
    with_judge(result, score)       stage 4, where `awaits_judge`: what a judge or a panel says
    with_checks(result, at_least)   the verdict of the checks, after all else

A stage is a check with a place of its own: each criterion of a case is compiled to a `Check`, evaluated as
those are that a case lists, and its score is shown as one of `stages`. `validate(case, output, judge=…)` is
all of it in one call, for tests and notebooks; its judge is a function, a panel of one.

The engine is pure. What is not is passed in: the judge, and the sandbox that runs patterns and validators
where they can be stopped. Without a sandbox, patterns are searched in this process, which is for callers
who trust theirs, such as tests and notebooks: a hostile one would never return. Validators are not run
without one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from shared.contracts.case_vocabulary import STAGE_TABLE, CaseStatus, Stage
from shared.contracts.cases import AT_RUN_TIME, Case
from shared.contracts.checks import Check, Transform
from worker.validation.case_verdict import (
    FREEFORM,
    NO_CHECK,
    CheckedOutput,
    Judge,
    JudgeReply,
    StageOutcome,
    StageResult,
    UntrustedRunner,
    ValidationResult,
)
from worker.validation.check_verdict import with_checks
from worker.validation.checks import Answer, Score, Subject, parse_checks
from worker.validation.checks.equivalent import EQUIVALENT
from worker.validation.checks.json_values import object_equals, object_found, object_schema
from worker.validation.checks.kind import NOTHING_RECORDED, PASSED, Run
from worker.validation.checks.python import validator
from worker.validation.checks.regex import regex
from worker.validation.panel import Vote, vote_of
from worker.validation.rouge import rouge_l
from worker.validation.scoring import Question, run_deterministic
from worker.validation.transforming import TransformError, failed, transformed

__all__ = ["CRITERIA", "before_judge", "judge_question", "validate", "with_checks", "with_judge"]


class Criterion(NamedTuple):
    """A documented criterion of a case: a check with a place among the stages."""

    stage: Stage
    """Its place."""
    run: Run
    """Evaluates it."""
    argument: Callable[[Case], Any]
    """What the case requires; None: nothing."""
    absent: StageResult
    """The stage of a case that requires nothing."""


def _criterion(stage: Stage, run: Run, argument: Callable[[Case], Any], absent: str) -> Criterion:
    """A criterion, with the reason why it is skipped in a case that requires nothing."""
    return Criterion(stage, run, argument, StageResult(stage, StageOutcome.SKIPPED, absent))


CRITERIA: Final = (
    _criterion(Stage.REGEX, regex, attrgetter("regex_pattern"), "no regex_pattern"),
    _criterion(Stage.CUSTOM, validator, attrgetter("validator"), "no validator"),
    _criterion(
        Stage.JSON, object_found, lambda case: case.needs_json or None, "neither expected nor a schema"
    ),
    _criterion(Stage.SCHEMA, object_schema, attrgetter("json_schema"), "no schema"),
    _criterion(Stage.EQUALITY, object_equals, attrgetter("expected"), "no expected"),
)
"""The criteria that need no judge, in the order of their stages; equality is the last.

A new one goes before equality: a judge may overrule a failure of equality, and nothing that comes after it.
"""
_OBJECT: Final = [each.stage for each in CRITERIA].index(Stage.JSON)
"""Position of the criterion that looks for an object."""


def validate(
    case: Case | Mapping[str, Any],
    raw_output: str,
    *,
    judge: Judge | None = None,
    sandbox: UntrustedRunner | None = None,
) -> ValidationResult:
    """Judges one output.

    Args:
        case: what a good answer looks like; a mapping has the keys of a test case; `input` may be absent.
        raw_output: the answer of the model.
        judge: asks a second model about two objects and returns its reply; None: strict equality only.
        sandbox: runs patterns and validators; None: patterns in this process, validators not at all.

    Raises:
        pydantic.ValidationError: the mapping is no test case.
        SchemaError: the case's schema cannot be used.
        CheckUnusableError: the case's pattern or validator cannot be run, whatever the output.

    >>> result = validate({"expected": {"capital": "Paris"}}, '{"capital": "Rome"}')
    >>> result.status, result.decided_by
    (<CaseStatus.FAILED_EQUALITY: 'failed_equality'>, <Stage.EQUALITY: 'equality'>)
    >>> result.message
    '1 difference: /capital: expected "Paris", found "Rome"'
    """
    case = _case(case)
    result = before_judge(case, raw_output, sandbox=sandbox)
    return with_checks(_judged(case, result, judge), case.at_least)


def _judged(case: Case, result: ValidationResult, judge: Judge | None) -> ValidationResult:
    """Stage 4, if there is a judge."""
    if judge is None or not result.awaits_judge:
        return result
    question = judge_question(case.expected, result)
    try:
        reply = judge(case.expected, result.parsed_output)
    except Exception as error:  # noqa: BLE001 - whatever keeps the judge from answering, the verdict stands
        vote = Vote("", unreachable=str(error) or type(error).__name__)
    else:
        given = JudgeReply(reply) if isinstance(reply, str) else reply
        vote = vote_of("", given, EQUIVALENT.read(question.check, given.text))
    return with_judge(result, EQUIVALENT.score(question.check, [vote]))


def before_judge(
    case: Case | Mapping[str, Any],
    raw_output: str,
    *,
    sandbox: UntrustedRunner | None = None,
    checks: Sequence[Check] | None = None,
    answer: Answer = NOTHING_RECORDED,
    transforms: Sequence[Transform] = (),
    is_json: bool = False,
) -> ValidationResult:
    """Judges one output as far as it goes without calling a model: stages 0 to 3, and checks.

    Whether checks pass is not part of the verdict yet: `with_checks` applies it, after a judge.

    Args:
        case: what a good answer looks like.
        raw_output: the answer of the model.
        sandbox: runs patterns and validators; None: patterns in this process, validators not at all.
        checks: those of the case, as they travel; None: they are read from the case.
        answer: what is known of the answer beside its text.
        transforms: those of its model; that of the case comes after them.
        is_json: whether the output is an object or a list, as JSON.

    Raises:
        pydantic.ValidationError: the mapping is no test case.
        SchemaError: the case's schema cannot be used.
        CheckUnusableError: the case's pattern or validator cannot be run, whatever the output.
    """
    case = _case(case)
    if checks is None:
        checks = parse_checks(case.checks) if case.checks else ()
    subject = Subject(
        raw_output,
        answer,
        case.input,
        case.vars,
        case.metadata,
        case.expected,
        sandbox,
        is_lenient=case.json_extraction == "lenient",
        is_value=is_json,
    )
    if case.transform is not None:
        transforms = (*transforms, case.transform.stored)
    if not transforms:
        return _result(case, subject, checks)
    try:
        for each in transforms:
            subject = replace(transformed(each, subject), whole=None)
    except TransformError as error:
        return _untransformed(raw_output, error)
    result = _result(case, subject, checks)
    return replace(result, raw_output=raw_output, checked=CheckedOutput(subject.text, subject.is_value))


def _untransformed(raw_output: str, error: TransformError) -> ValidationResult:
    """The verdict on an output that could not be changed: the row of one check, which fails it."""
    why = "the answer could not be transformed"
    return ValidationResult(
        status=CaseStatus.PASSED,  # of the stages, until `with_checks`
        passed=True,
        decided_by=NO_CHECK,
        message="",
        stages=tuple(StageResult(stage, StageOutcome.SKIPPED, why) for stage in STAGE_TABLE),
        raw_output=raw_output,
        checks=(failed(error),),
    )


def judge_question(expected: Any, result: ValidationResult) -> Question:
    """What the judges of stage 4 are asked about a result that awaits them."""
    subject = Subject.of_object(result.parsed_output)
    return Question(Check(Stage.FUZZY, expected), EQUIVALENT, subject, b"")


def with_judge(result: ValidationResult, judged: Score) -> ValidationResult:
    """Stage 4: judges decide about an object that is not the expected one, or could not be asked.

    Args:
        result: as it stands after stage 3; one that awaits no judge is returned as it is.
        judged: what the panel says, by `EQUIVALENT`.
    """
    if not result.awaits_judge:
        return result
    stages = (*result.stages[:-1], _shown(Stage.FUZZY, judged))
    if judged.value is None:
        message = f"{result.message}; {judged.unavailable}"
        return replace(result, message=message, stages=stages, awaits_judge=False)
    if judged.value != PASSED:
        message, status = f"{result.message}; {judged.reason}", CaseStatus.FAILED_FUZZY
    else:
        message, status = f"passed by fuzzy match: {judged.reason}; {result.message}", CaseStatus.PASSED
    is_passed = status is CaseStatus.PASSED
    return replace(
        result,
        status=status,
        passed=is_passed,
        decided_by=Stage.FUZZY,
        message=message,
        stages=stages,
        used_fuzzy_match=is_passed,
        awaits_judge=False,
    )


def _case(case: Case | Mapping[str, Any]) -> Case:
    """The case as a model."""
    if isinstance(case, Case):
        return case
    return Case.model_validate({"input": "", **case}, context=AT_RUN_TIME)


def _result(case: Case, subject: Subject, checks: Sequence[Check]) -> ValidationResult:
    """The verdict that follows from the stages; whether checks pass is no part of it yet."""
    stages, stage, last = _evaluated(case, subject)
    failed = last if last is not None and last.value != PASSED else None
    differences = failed.detail if failed is not None and stage is Stage.EQUALITY else None
    is_freeform = stage is None and not checks and case.reference is None
    if stage is None and not checks:
        why = "freeform: no criteria" if is_freeform else "only a reference, which never decides"
        stages = [StageResult(each.stage, StageOutcome.SKIPPED, why) for each in CRITERIA]
    else:
        why = "" if failed is None else f"{stage} failed"
        stages += [StageResult(each.stage, StageOutcome.SKIPPED, why) for each in CRITERIA[len(stages) :]]
    if stage is Stage.EQUALITY:
        why = "equality passed" if failed is None else "no judge was asked"
    stages.append(StageResult(Stage.FUZZY, StageOutcome.SKIPPED, why or "no expected"))
    has_object = stages[_OBJECT].outcome is StageOutcome.PASS
    return ValidationResult(
        status=CaseStatus.PASSED if failed is None or stage is None else STAGE_TABLE[stage].failure,
        passed=failed is None,
        decided_by=stage or (FREEFORM if is_freeform else NO_CHECK),
        message="" if failed is None else failed.reason,
        stages=tuple(stages),
        raw_output=subject.text,
        parsed_output=subject.object.value if has_object else None,
        differences=differences,
        metrics=_metrics(case, subject.text),
        freeform=is_freeform,
        awaits_judge=differences is not None,
        # Whatever the stages found, so that every failure is shown.
        checks=tuple(run_deterministic(checks, subject)) if checks else (),
    )


def _evaluated(case: Case, subject: Subject) -> tuple[list[StageResult], Stage | None, Score | None]:
    """Evaluates the criteria of a case, in order, up to the first that fails.

    Returns:
        The stages so far, the last that a criterion was for, and its score.
    """
    stages, last, score = list[StageResult](), None, None
    for stage, run, argument_of, absent in CRITERIA:
        argument = argument_of(case)
        if argument is None:
            stages.append(absent)
            continue
        last, score = stage, run(Check(stage, argument), subject)
        stages.append(_shown(stage, score))
        if score.value != PASSED:
            break
    return stages, last, score


def _shown(stage: Stage, score: Score) -> StageResult:
    """Shows a score as a stage; the differences of equality are shown apart."""
    if score.value is None:
        return StageResult(stage, StageOutcome.SKIPPED, score.unavailable, score.detail)
    outcome = StageOutcome.PASS if score.value == PASSED else StageOutcome.FAIL
    return StageResult(stage, outcome, score.reason, {} if stage is Stage.EQUALITY else score.detail)


def _metrics(case: Case, output: str) -> dict[str, Any]:
    """How close the output is to the reference; it decides nothing."""
    if case.reference is None:
        return {}
    score = rouge_l(output, case.reference)
    cut_note = {"rouge_l_is_cut": True} if score.is_cut else {}
    return {"rouge_l": score.fmeasure, "rouge_l_tokenizer": score.tokenizer, **cut_note}
