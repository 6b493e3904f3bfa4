"""The engine of cases: sends test cases to models and validates the answers, as the document defines it.

the loop                                             threads for validation
answer: cache, budget, limits, call, retry     ──►   stages 0 to 3, free checks
stage 4, where a judge may still accept        ◄──
checks that call a model, while they matter

An answer is paid for, so it is kept until its verdict is complete: judges that cannot be asked soon park the
item only when its answer is in the cache. Judges that cannot be reached leave `failed_equality`; a check that
cannot be asked makes the item an error, which keeps the answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from shared.clock import now_ms
from shared.codecs.item_rows import CACHED, UNJUDGED, ItemReader, ItemRow
from shared.codecs.parked_items import History, ParkedState, decode_parked
from shared.contracts.case_run import CasePayload, CaseRun, decode_case
from shared.contracts.cases import CRITERIA, NEEDS_SANDBOX
from shared.contracts.checks import Check
from shared.errors import CheckUnusableError, ProctorError, ValidatorSecurityError
from shared.names import Outcome, RunState
from shared.observability import tracing
from shared.runs import RunStore
from shared.upstream.failure_reasons import FailureReason
from worker.executors.case_judges import (
    JudgesDeferred,
    JudgeVotes,
    ask_judges,
    judge_requests,
)
from worker.executors.case_requests import ImageMissingError, ImageUrls, model_request
from worker.executors.case_results import (
    CallDetails,
    answer_of,
    case_document,
    case_line,
    is_untimed,
    recorded_reply,
    stored_checks,
    stored_reply,
)
from worker.executors.check_calls import CheckDesk, ChecksAsked, ChecksDeferred, ask_checks
from worker.executors.items import EndRun, Item, ItemResult, ItemsExecutor, ParkedItem
from worker.process import WorkerProcess
from worker.sandbox import Sandbox, Sandboxes
from worker.upstream.budget import OverBudget
from worker.upstream.cache import is_kept
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_caller import (
    Answered,
    CallContext,
    CallDeferred,
    CallFailed,
    CallOutcome,
    EmbeddingOutcome,
)
from worker.upstream.retry import ModelRetryPolicy
from worker.validation.case_verdict import ValidationResult
from worker.validation.check_verdict import with_checks
from worker.validation.checks.kind import NOTHING_RECORDED, Score, Subject
from worker.validation.paid_checks import FAILED_BEFORE, Rules, is_open, skip_open
from worker.validation.panel import tally_of
from worker.validation.pipeline import before_judge, with_votes
from worker.validation.schema import SchemaError
from worker.validation.scoring import CheckResult, Evaluation, Question, needs_sandbox, python_names

VALIDATION_THREADS: Final = 2
"""Threads of a process that judge: it is processor work, the second covers waits for the sandbox."""
NO_RECORDED_OUTPUT: Final = "no_recorded_output"
SCHEMA_REFUSED: Final = "schema"
CHECK_UNAVAILABLE: Final = "check_unavailable"
NO_DECISION: Final = {"status": None, "passed": False, "decided_by": None, "message": "", "score": None}
"""What is stored of the verdict where a check could not be asked; the answer and what is known of it stay."""
IMAGE_MISSING: Final = "image_missing"
_OF_CASES: Final = tuple(name for name in CRITERIA if name != "checks")
MAX_OUTPUT_BYTES: Final = 1 << 20
"""A longer output is not judged."""
RUNS: Final = 256
"""Runs whose settings a process remembers."""


T = TypeVar("T")


class Validated(NamedTuple):
    """A case with its answer and the verdict on it."""

    reply: ModelReply
    """The answer."""
    result: ValidationResult
    """The verdict."""
    judged: Sequence[ModelReply | EmbeddingReply] = ()
    """The replies of judges and for checks, as far as some were needed and came."""
    is_unjudged: bool = False
    """Whether judges or checks were needed and too few of them could be reached."""
    unavailable: str = ""
    """Which check could not be asked, and why; empty when all could."""
    kept_usd: float = 0.0
    """What checks had cost that were asked for an earlier result."""
    payload: CasePayload | None = None
    """The case, if it was decoded before."""


class Failed(NamedTuple):
    """A case without a verdict."""

    code: str
    """For programs."""
    message: str
    """For people."""
    ends_run: str = ""
    """How its run is to end; empty when it goes on."""


class CasesEngine:
    """Evaluates the cases of one run.

    Args:
        name: the run's id.
        run: its settings.
        process: whose upstreams are used.
        sandboxes: run patterns and validators.
        validating: threads for the stages.
        earlier: the results of the run so far, for items that are retried.
        images: the images of its cases.
    """

    def __init__(
        self,
        name: str,
        run: CaseRun,
        process: WorkerProcess,
        sandboxes: Sandboxes,
        validating: ThreadPoolExecutor,
        *,
        earlier: ItemReader,
        images: ImageUrls,
    ) -> None:
        self.max_in_flight = run.together
        self._name, self._run, self._process = name, run, process
        self._sandboxes, self._validating, self._earlier = sandboxes, validating, earlier
        self._images = images

    async def answer(self, item: Item) -> Validated | Failed | ParkedItem | EndRun:
        """Gets the answer of a case, and the verdict on it."""
        payload, before = decode_case(item.payload), await self._rows_before(item)
        answer = await self._answer(item, payload, before)
        if not isinstance(answer, ModelReply):
            return answer
        if len(answer.text.encode(errors="replace")) > MAX_OUTPUT_BYTES:
            what = f"the output has {len(answer.text):,} characters, more than {MAX_OUTPUT_BYTES:,} bytes"
            return Failed(FailureReason.TOO_LARGE.model_code, what)
        try:
            with tracing.span("validate"):
                result = await self._in_thread(self._validate, payload, answer)
        except (ValidatorSecurityError, CheckUnusableError, SchemaError) as error:
            return _unjudged(error)
        judged: Validated | ParkedItem | EndRun = Validated(answer, result, payload=payload)
        if result.awaits_judge and self._run.judges:
            judged = await self._with_judge(item, payload, answer, result)
        if not isinstance(judged, Validated):
            return judged
        return await self._with_checks(item, payload, judged, before)

    def evaluate(self, item: Item, answer: Validated | Failed) -> ItemResult:
        """Writes down how a case ended."""
        if isinstance(answer, Failed):
            judged = self.error_result(item, answer.code, answer.message)
            return judged._replace(ends_run=answer.ends_run or self._after_failure)
        payload = answer.payload or decode_case(item.payload)
        reply, result, replies = answer.reply, answer.result, answer.judged
        costs = [answer.kept_usd, reply.cost_usd, *(each.cost_usd for each in replies)]
        # An answer that brought no attempt was recorded, or paid for with an earlier result.
        asked = [reply, *replies] if item.attempts > item.claimed.attempts else replies
        details = CallDetails.of(reply)
        flags = (CACHED if reply.is_cached else "") + (UNJUDGED if answer.is_unjudged else "")
        outcome = Outcome.PASSED if result.passed else Outcome.FAILED
        line = case_line(case_document(payload, result, details))
        if answer.unavailable:
            outcome = Outcome.ERROR
            document = case_document(payload, result, details) | NO_DECISION
            line = case_line(document, CHECK_UNAVAILABLE, answer.unavailable)
        return ItemResult(
            outcome,
            line,
            latency_ms=None if is_untimed(payload) else reply.latency_ms,
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            paid_usd=sum(each.cost_usd or 0.0 for each in asked if not each.is_cached),
            flags=flags,
            ends_run="" if outcome is Outcome.PASSED else self._after_failure,
            code=CHECK_UNAVAILABLE if answer.unavailable else "",
        )

    def error_result(self, item: Item, code: str, message: str) -> ItemResult:
        """Makes the result of a case without a verdict."""
        document = case_document(decode_case(item.payload), None)
        return ItemResult(Outcome.ERROR, case_line(document, code, message), code=str(code))

    @property
    def _after_failure(self) -> str:
        """How the run goes on after a case that did not pass."""
        return RunState.INCOMPLETE if self._run.fail_fast else ""

    async def _answer(
        self, item: Item, payload: CasePayload, before: Sequence[ItemRow]
    ) -> ModelReply | Failed | ParkedItem | EndRun:
        """Gets what the model says: what is known of that, or by asking it."""
        known = recorded_reply(payload)
        if known is None:
            known = next((stored_reply(row, are_votes_kept=self._run.cache) for row in before), None)
        if known is not None:
            return known
        if self._run.recorded:
            return Failed(NO_RECORDED_OUTPUT, f"no output of {payload.model} was recorded for this case")
        try:
            return await self._call(item, payload)
        except ImageMissingError as error:
            return Failed(IMAGE_MISSING, f"the image {error} of this case is not stored with the run")

    async def _call(self, item: Item, payload: CasePayload) -> ModelReply | Failed | ParkedItem | EndRun:
        """Asks the model.

        Raises:
            ImageMissingError: an image of the case is not there.
        """
        history = decode_parked(item.claimed.parked_state).history._replace(attempts=item.claimed.attempts)
        urls = [await self._in_thread(self._images.url, name) for name in payload.images]
        asked = await self._ask(item, model_request(self._run, payload, urls), history)
        match asked:
            case Answered(reply, history):
                item.attempts = history.attempts
                return reply
            case CallFailed(error, history):
                item.attempts = history.attempts
                return Failed(error.code, error.message, _end_after(error))
            case OverBudget():
                return EndRun(RunState.INCOMPLETE)
            case CallDeferred():
                return _parked(asked)

    async def _with_judge(
        self, item: Item, payload: CasePayload, answer: ModelReply, result: ValidationResult
    ) -> Validated | ParkedItem | EndRun:
        """Asks the judges whether an output means what was expected."""
        parked = decode_parked(item.claimed.parked_state)
        asked = await ask_judges(
            judge_requests(self._run, payload, result),
            lambda request, history: self._ask(item, request, history),
            () if parked.check else parked.judges,
            # The answer is in the cache, and will be found there.
            may_park=self._may_park(payload, answer),
        )
        match asked:
            case OverBudget():
                return EndRun(RunState.INCOMPLETE)
            case JudgesDeferred(due_ms, state):
                return ParkedItem(item.attempts, _wait_s(due_ms), state)
            case JudgeVotes(votes, replies):
                judged = with_votes(result, votes)
                is_unjudged = tally_of(votes).verdict is None
                return Validated(answer, judged, replies, is_unjudged=is_unjudged, payload=payload)

    async def _with_checks(
        self, item: Item, payload: CasePayload, judged: Validated, before: Sequence[ItemRow]
    ) -> Validated | Failed | ParkedItem | EndRun:
        """Asks the checks that call a model, and lets all checks decide."""
        rules, result = rules_of(payload), judged.result
        rows: Sequence[CheckResult] = result.checks
        if not result.passed and not rules.is_always:
            rows = skip_open(rows, FAILED_BEFORE)
        if not any(map(is_open, rows)):
            return judged._replace(result=with_checks(result, rules.at_least, rows))
        rows, kept_usd = with_earlier_checks(before, rows)
        try:
            asked = await ask_checks(checks_of(payload), rows, self._desk(item, payload, judged.reply))
        except (ValidatorSecurityError, CheckUnusableError) as error:
            return _unjudged(error)
        match asked:
            case OverBudget():
                return EndRun(RunState.INCOMPLETE)
            case ChecksDeferred(due_ms, state):
                return ParkedItem(item.attempts, _wait_s(due_ms), state)
            case ChecksAsked(all_rows, replies, unavailable):
                return judged._replace(
                    result=with_checks(result, rules.at_least, all_rows),
                    judged=[*judged.judged, *replies],
                    is_unjudged=judged.is_unjudged or bool(unavailable),
                    unavailable=unavailable,
                    kept_usd=kept_usd,
                )

    def _desk(self, item: Item, payload: CasePayload, reply: ModelReply) -> CheckDesk:
        """How the checks of a case are evaluated and asked."""
        return CheckDesk(
            self._run,
            rules_of(payload),
            partial(self._in_thread, self._evaluate, payload, reply),
            partial(self._ask, item),
            partial(self._embed, item),
            decode_parked(item.claimed.parked_state),
            may_park=self._may_park(payload, reply),
        )

    async def _rows_before(self, item: Item) -> Sequence[ItemRow]:
        """Reads the earlier result of an item that is retried; nothing of any other item."""
        if not item.claimed.generation:
            return ()
        return await self._in_thread(self._earlier.rows, [int(item.claimed.index)])

    def _may_park(self, payload: CasePayload, answer: ModelReply) -> bool:
        """Whether an answer is in the cache, and will be found there after a wait."""
        return self._run.cache and payload.recorded is None and is_kept(answer)

    async def _ask(self, item: Item, request: ModelRequest, history: History) -> CallOutcome:
        """Asks a model on behalf of the run."""
        models = self._process.upstream.models
        return await models.call(request, self._context(item), history, on_send=item.calling)

    async def _embed(self, item: Item, request: EmbeddingRequest, history: History) -> EmbeddingOutcome:
        """Embeds texts on behalf of the run."""
        models = self._process.upstream.models
        return await models.embed(request, self._context(item), history, on_send=item.calling)

    def _context(self, item: Item) -> CallContext:
        """On whose behalf models are called, and within which bounds."""
        run = self._run
        return CallContext(
            run=self._name,
            owner=item.lease.token,
            use_cache=run.cache,
            max_cost=run.max_cost,
            prices=run.prices,
            retry=ModelRetryPolicy(),
            concurrency=run.concurrency,
        )

    def _in_thread(self, function: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        """Calls a function in a thread for validation."""
        return asyncio.get_running_loop().run_in_executor(self._validating, function, *arguments)

    def _validate(self, payload: CasePayload, reply: ModelReply) -> ValidationResult:
        """Takes an answer through stages 0 to 3 and free checks; in a thread for validation."""
        case, checks = case_of(self._run, payload), checks_of(payload)
        answer = answer_of(payload, reply) if checks else NOTHING_RECORDED
        if not NEEDS_SANDBOX & payload.criteria.keys() and not needs_sandbox(checks):
            return before_judge(case, reply.text, checks=checks, answer=answer)
        has_functions = "validator" in payload.criteria or bool(python_names(checks))
        with self._sandbox(has_functions=has_functions) as sandbox:
            return before_judge(case, reply.text, sandbox=sandbox, checks=checks, answer=answer)

    def _evaluate(
        self, payload: CasePayload, reply: ModelReply, check: Check, answers: Mapping[bytes, Score]
    ) -> tuple[Score, Sequence[Question]]:
        """Evaluates a check that calls a model, with what is known so far; in a thread for validation."""
        evaluation, has_functions = Evaluation(answers), bool(python_names([check]))
        with (
            self._sandbox(has_functions=has_functions) if needs_sandbox([check]) else nullcontext() as sandbox
        ):
            score = evaluation.outcome(check, subject_of(self._run, payload, reply, sandbox))
        return score, list(evaluation.questions.values())

    def _sandbox(self, *, has_functions: bool) -> AbstractContextManager[Sandbox]:
        """Opens a sandbox for what runs patterns, and functions of the validators file."""
        validators = self._run.validators if has_functions else None
        return self._sandboxes.batch(validators.source if validators else None)


def case_of(run: CaseRun, payload: CasePayload) -> dict[str, Any]:
    """Puts together what the pipeline needs of a case, but for its checks."""
    criteria = {name: payload.criteria[name] for name in _OF_CASES if name in payload.criteria}
    of_run = {"schema": run.schema, "json_extraction": run.json_extraction}
    return {"input": payload.input, "vars": payload.vars, **criteria, **of_run}


def checks_of(payload: CasePayload) -> tuple[Check, ...]:
    """The checks of a case as the pipeline takes them."""
    raw = payload.criteria.get("checks")
    return msgspec.convert(raw, tuple[Check, ...]) if raw else ()


def rules_of(payload: CasePayload) -> Rules:
    """What a case says about its checks as a whole."""
    criteria = payload.criteria
    return Rules(criteria.get("at_least"), is_always=criteria.get("paid_checks") == "always")


def subject_of(run: CaseRun, payload: CasePayload, reply: ModelReply, sandbox: Sandbox | None) -> Subject:
    """What checks look at."""
    return Subject(
        reply.text,
        answer_of(payload, reply),
        payload.input,
        payload.vars,
        payload.expected,
        sandbox,
        is_lenient=run.json_extraction == "lenient",
    )


def with_earlier_checks(
    before: Sequence[ItemRow], rows: Sequence[CheckResult]
) -> tuple[Sequence[CheckResult], float]:
    """Takes over the checks that were asked for a result that lacks others; also what they cost.

    One that was not asked to the end stays open, with the votes that it has.
    """
    earlier = [each for row in before for each in stored_checks(row)]
    if len(earlier) != len(rows):
        return rows, 0.0
    kept = [with_earlier(old, new) for old, new in zip(earlier, rows, strict=True)]
    return kept, sum(row.cost_usd or 0.0 for row, new in zip(kept, rows, strict=True) if row is not new)


def with_earlier(earlier: CheckResult, row: CheckResult) -> CheckResult:
    """Takes over what an earlier result has of a check that is open."""
    if not is_open(row) or (earlier.name, earlier.check) != (row.name, row.check):
        return row
    if earlier.score is None:
        return row._replace(detail=earlier.detail, cost_usd=earlier.cost_usd)
    return earlier._replace(weight=row.weight)


def _unjudged(error: ProctorError) -> Failed:
    """What is written down where no output could have been judged: the fault is not the model's."""
    code = SCHEMA_REFUSED if isinstance(error, SchemaError) else error.code
    return Failed(code, f"{error.message} ({error.hint})" if error.hint else error.message)


def _end_after(error: UpstreamError) -> str:
    """How a run is to end after a call that was given up."""
    return RunState.ABORTED if error.ends_run else ""


def _parked(parked: CallDeferred) -> ParkedItem:
    """Parks an item until its model can be asked."""
    state = ParkedState(parked.reason, parked.history)
    return ParkedItem(parked.history.attempts, _wait_s(parked.due_ms), state)


def _wait_s(due_ms: int) -> float:
    """Seconds from now."""
    return max(0.0, (due_ms - now_ms()) / 1000)


def make_executor(process: WorkerProcess, store: RunStore) -> ItemsExecutor:
    """Makes the executor of a process."""
    process.loop.prepare()
    sandboxes = Sandboxes()
    validating = ThreadPoolExecutor(VALIDATION_THREADS, "validation")

    @lru_cache(RUNS)
    def engine_of(run: str) -> CasesEngine:
        settings = CaseRun.from_snapshot(store.info(run).snapshot)
        earlier = store.item_reader(run, with_open=False)
        images = ImageUrls(partial(store.file, run))
        return CasesEngine(run, settings, process, sandboxes, validating, earlier=earlier, images=images)

    return ItemsExecutor(process, engine_of)
