"""The pipeline of the validation specification, from top to bottom: an output in, one of eight statuses out.

Stages run in order: 0 regex, 0.5 custom validator, 1 JSON, 2 schema, 3 equality, 4 judge. Each passes,
fails or is skipped, and says why; the first failure ends it, except that a judge may forgive stage 3.

Workers call the steps apart, because judges and checks that call a model are asked on the event loop:

    before_judge(case, output)      stages 0 to 3, and the checks that call no model
    with_votes(result, votes)       stage 4, where `awaits_judge`: the votes of a judge or a panel
    with_checks(result, at_least)   the verdict of the checks, after all else

`validate(case, output, judge=…)` is all of it in one call, for tests and notebooks; its judge is a function,
whose reply `with_reply` applies as a panel of one (`without_reply`: it could not be reached).

The engine is pure. What is not is passed in: the judge, and the sandbox that runs patterns and validators
where they can be stopped. Without a sandbox, patterns are searched in this process, which is for callers
who trust theirs, such as tests and notebooks: a hostile one would never return. Validators are not run
without one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from shared.contracts.case_vocabulary import STAGE_TABLE, CaseStatus, Stage
from shared.contracts.cases import AT_RUN_TIME, Case
from shared.contracts.checks import Check
from worker.validation.case_verdict import (
    FREEFORM,
    NO_CHECK,
    CheckResult,
    Finding,
    Judge,
    StageOutcome,
    StageResult,
    UntrustedRunner,
    ValidationResult,
    failed,
    passed,
    skipped,
)
from worker.validation.check_verdict import with_checks
from worker.validation.checks import Answer, Subject, parse_checks
from worker.validation.checks.kind import NOTHING_RECORDED
from worker.validation.custom_checks import call_validator, find_pattern
from worker.validation.differences import explain
from worker.validation.equality import unordered_equal
from worker.validation.extraction import ExtractionError, extract
from worker.validation.panel import with_reply, with_votes, without_reply
from worker.validation.rouge import rouge_l
from worker.validation.schema import SchemaValidator
from worker.validation.scoring import run_deterministic

__all__ = ["STAGES", "before_judge", "validate", "with_checks", "with_reply", "with_votes", "without_reply"]

MAX_SHOWN_PROBLEMS: Final = 5
"""Schema errors that a message names."""


@dataclass(slots=True)
class _PipelineState:
    """One output on its way through the stages."""

    case: Case
    raw_output: str
    sandbox: UntrustedRunner | None
    parsed: dict[str, Any] | None = None
    differences: Mapping[str, Any] | None = None
    stages: list[StageResult] = field(default_factory=list)
    checks: Sequence[Check] = ()

    can_fail: bool = True
    """Whether any stage can fail; checks come on top."""

    @property
    def is_freeform(self) -> bool:
        """Whether nothing at all is required of the answer."""
        return not (self.can_fail or self.checks or self.case.reference is not None)


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
    try:
        reply = judge(case.expected, result.parsed_output)
    except Exception as error:  # noqa: BLE001 - whatever keeps the judge from answering, the verdict stands
        return without_reply(result, str(error) or type(error).__name__)
    return with_reply(result, reply)


def before_judge(
    case: Case | Mapping[str, Any],
    raw_output: str,
    *,
    sandbox: UntrustedRunner | None = None,
    checks: Sequence[Check] | None = None,
    answer: Answer = NOTHING_RECORDED,
) -> ValidationResult:
    """Judges one output as far as it goes without calling a model: stages 0 to 3, and checks.

    Whether checks pass is not part of the verdict yet: `with_checks` applies it, after a judge.

    Args:
        case: what a good answer looks like.
        raw_output: the answer of the model.
        sandbox: runs patterns and validators; None: patterns in this process, validators not at all.
        checks: those of the case, as they travel; None: they are read from the case.
        answer: what is known of the answer beside its text.

    Raises:
        pydantic.ValidationError: the mapping is no test case.
        SchemaError: the case's schema cannot be used.
        CheckUnusableError: the case's pattern or validator cannot be run, whatever the output.
    """
    work = _PipelineState(_case(case), raw_output, sandbox)
    work.checks = _checks(work.case) if checks is None else checks
    work.can_fail = work.case.can_fail
    ended = "" if work.can_fail or work.checks else _why_no_stage(work)
    for stage, run in STAGES:
        finding = skipped(ended) if ended else run(work)
        work.stages.append(StageResult(stage, *finding))
        if finding.outcome is StageOutcome.FAIL:
            ended = f"{stage} failed"
    work.stages.append(StageResult(Stage.FUZZY, *_why_no_judge(work, ended)))
    return _result(work, _check_results(work, answer))


def regex(work: _PipelineState) -> Finding:
    """Stage 0: is the pattern anywhere in the raw output?"""
    pattern = work.case.regex_pattern
    if pattern is None:
        return skipped("no regex_pattern")
    return find_pattern(pattern, work.raw_output, work.sandbox)


def custom(work: _PipelineState) -> Finding:
    """Stage 0.5: does the user's function accept the raw output?"""
    name = work.case.validator
    if name is None:
        return skipped("no validator")
    return call_validator(name, work.raw_output, work.sandbox)


def json_parse(work: _PipelineState) -> Finding:
    """Stage 1: does the output hold a JSON object?"""
    case = work.case
    if not case.needs_json:
        return skipped("neither expected nor a schema")
    try:
        found = extract(work.raw_output, lenient=case.json_extraction == "lenient")
    except ExtractionError as error:
        return failed(error.after("no JSON object in the output"))
    work.parsed = found.value
    of_several = f", the first of {found.blocks}" if found.blocks > 1 else ""
    return passed(f"found in the {found.source}{of_several}", source=found.source, blocks=found.blocks)


def schema(work: _PipelineState) -> Finding:
    """Stage 2: does the object keep to the schema?"""
    if work.case.json_schema is None:
        return skipped("no schema")
    problems = SchemaValidator(work.case.json_schema).errors(work.parsed)
    if not problems:
        return passed("keeps to the schema")
    named = [str(problem) for problem in problems[:MAX_SHOWN_PROBLEMS]]
    if len(problems) > len(named):
        named.append(f"and {len(problems) - len(named)} more")
    return failed(
        f"breaks the schema: {'; '.join(named)}", errors=[problem.as_document() for problem in problems]
    )


def equality(work: _PipelineState) -> Finding:
    """Stage 3: is it the expected object, whatever the order of keys and items?"""
    if work.case.expected is None:
        return skipped("no expected")
    if unordered_equal(work.case.expected, work.parsed):
        return passed("equal to the expected object")
    differences = explain(work.case.expected, work.parsed)
    work.differences = differences.as_document()
    return failed(str(differences))


STAGES: Final[tuple[tuple[Stage, Callable[[_PipelineState], Finding]], ...]] = (
    (Stage.REGEX, regex),
    (Stage.CUSTOM, custom),
    (Stage.JSON, json_parse),
    (Stage.SCHEMA, schema),
    (Stage.EQUALITY, equality),
)
"""The stages that need no judge, in their order; equality is the last.

A new stage goes before equality: a judge may overrule a failure of equality, and nothing that comes after it.
"""


def _case(case: Case | Mapping[str, Any]) -> Case:
    """The case as a model."""
    if isinstance(case, Case):
        return case
    return Case.model_validate({"input": "", **case}, context=AT_RUN_TIME)


def _checks(case: Case) -> Sequence[Check]:
    """The checks of a case as they travel."""
    return parse_checks(case.checks) if case.checks else ()


def _check_results(work: _PipelineState, answer: Answer) -> tuple[CheckResult, ...]:
    """Evaluates the checks that call no model, whatever the stages found, so that every failure is shown."""
    if not work.checks:
        return ()
    case = work.case
    subject = Subject(
        work.raw_output,
        answer,
        case.input,
        case.vars,
        case.expected,
        work.sandbox,
        is_lenient=case.json_extraction == "lenient",
    )
    return tuple(run_deterministic(work.checks, subject))


def _why_no_stage(work: _PipelineState) -> str:
    """Why nothing can fail."""
    return "freeform: no criteria" if work.is_freeform else "only a reference, which never decides"


def _why_no_judge(work: _PipelineState, ended: str) -> Finding:
    """Why stage 4 is not asked here."""
    if work.differences is not None:
        return skipped("no judge was asked")
    if ended:
        return skipped(ended)
    return skipped("no expected" if work.case.expected is None else "equality passed")


def _result(work: _PipelineState, checks: tuple[CheckResult, ...]) -> ValidationResult:
    """The verdict that follows from the stages; whether checks pass is no part of it yet."""
    spoke = [stage for stage in work.stages if stage.outcome is not StageOutcome.SKIPPED]
    last = spoke[-1] if spoke else None
    is_failure = last is not None and last.outcome is StageOutcome.FAIL
    return ValidationResult(
        status=STAGE_TABLE[last.stage].failure if last is not None and is_failure else CaseStatus.PASSED,
        passed=not is_failure,
        decided_by=last.stage if last is not None else FREEFORM if work.is_freeform else NO_CHECK,
        message=last.reason if last is not None and is_failure else "",
        stages=tuple(work.stages),
        raw_output=work.raw_output,
        parsed_output=work.parsed,
        differences=work.differences,
        metrics=_metrics(work),
        freeform=work.is_freeform,
        awaits_judge=work.differences is not None,
        checks=checks,
    )


def _metrics(work: _PipelineState) -> dict[str, Any]:
    """How close the output is to the reference; it decides nothing."""
    if work.case.reference is None:
        return {}
    score = rouge_l(work.raw_output, work.case.reference)
    cut_note = {"rouge_l_is_cut": True} if score.is_cut else {}
    return {"rouge_l": score.fmeasure, "rouge_l_tokenizer": score.tokenizer, **cut_note}
