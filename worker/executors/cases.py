"""The engine of cases: sends test cases to models and validates the answers, as the document defines it.

the loop                                             threads for validation
answer: cache, budget, limits, call, retry     ──►   stages 0 to 3
stage 4, where a judge may still accept        ◄──

An answer is paid for, so it is kept until its verdict is complete: judges that cannot be asked soon park the
item only when its answer is in the cache. Judges that cannot be reached leave `failed_equality`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from shared.clock import now_ms
from shared.codecs.item_rows import CACHED, UNJUDGED
from shared.codecs.parked_items import History, ParkedState, decode_parked
from shared.contracts.case_run import CasePayload, CaseRun, decode_case
from shared.contracts.cases import CRITERIA, NEEDS_SANDBOX
from shared.contracts.checks import Check
from shared.errors import CheckUnusableError, ProctorError, ValidatorSecurityError
from shared.names import Outcome, RunState
from shared.observability import tracing
from shared.runs import RunStore
from shared.runs.item_pages import ItemReader
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
    stored_reply,
)
from worker.executors.items import EndRun, Item, ItemResult, ItemsExecutor, ParkedItem
from worker.process import WorkerProcess
from worker.sandbox import Sandboxes
from worker.upstream.budget import OverBudget
from worker.upstream.cache import is_kept
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_caller import Answered, CallContext, CallDeferred, CallFailed, CallOutcome
from worker.upstream.retry import ModelRetryPolicy
from worker.validation.case_verdict import ValidationResult
from worker.validation.check_verdict import with_checks
from worker.validation.checks.kind import NOTHING_RECORDED
from worker.validation.panel import tally_of
from worker.validation.pipeline import before_judge, with_votes
from worker.validation.schema import SchemaError
from worker.validation.scoring import needs_sandbox, python_names

VALIDATION_THREADS: Final = 2
"""Threads of a process that judge: it is processor work, the second covers waits for the sandbox."""
NO_RECORDED_OUTPUT: Final = "no_recorded_output"
SCHEMA_REFUSED: Final = "schema"
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
    judged: Sequence[ModelReply]
    """The judges' replies, as far as some were needed and came."""
    is_unjudged: bool
    """Whether judges were needed and too few of them could be reached."""


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
        payload = decode_case(item.payload)
        answer = await self._answer(item, payload)
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
        if not result.awaits_judge or not self._run.judges:
            return Validated(answer, decided(payload, result), (), is_unjudged=False)
        return await self._with_judge(item, payload, answer, result)

    def evaluate(self, item: Item, answer: Validated | Failed) -> ItemResult:
        """Writes down how a case ended."""
        payload = decode_case(item.payload)
        if isinstance(answer, Failed):
            judged = self.error_result(item, answer.code, answer.message)
            return judged._replace(ends_run=answer.ends_run or self._after_failure)
        reply, result, replies, is_unjudged = answer
        costs = [reply.cost_usd, *(each.cost_usd for each in replies)]
        # An answer that brought no attempt was recorded, or paid for with an earlier result.
        asked = [reply, *replies] if item.attempts > item.claimed.attempts else replies
        details = CallDetails.of(reply)
        flags = (CACHED if reply.is_cached else "") + (UNJUDGED if is_unjudged else "")
        return ItemResult(
            Outcome.PASSED if result.passed else Outcome.FAILED,
            case_line(case_document(payload, result, details)),
            latency_ms=None if is_untimed(payload) else reply.latency_ms,
            cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
            paid_usd=sum(each.cost_usd or 0.0 for each in asked if not each.is_cached),
            flags=flags,
            ends_run="" if result.passed else self._after_failure,
        )

    def error_result(self, item: Item, code: str, message: str) -> ItemResult:
        """Makes the result of a case without a verdict."""
        document = case_document(decode_case(item.payload), None)
        return ItemResult(Outcome.ERROR, case_line(document, code, message), code=str(code))

    @property
    def _after_failure(self) -> str:
        """How the run goes on after a case that did not pass."""
        return RunState.INCOMPLETE if self._run.fail_fast else ""

    async def _answer(self, item: Item, payload: CasePayload) -> ModelReply | Failed | ParkedItem | EndRun:
        """Gets what the model says: what is known of that, or by asking it."""
        known = await self._known(item, payload)
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
        history = decode_parked(item.claimed.error).history._replace(attempts=item.claimed.attempts)
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
        asked = await ask_judges(
            judge_requests(self._run, payload, result),
            lambda request, history: self._ask(item, request, history),
            decode_parked(item.claimed.error).judges,
            # The answer is in the cache, and will be found there.
            may_park=self._run.cache and payload.recorded is None and is_kept(answer),
        )
        match asked:
            case OverBudget():
                return EndRun(RunState.INCOMPLETE)
            case JudgesDeferred(due_ms, state):
                return ParkedItem(item.attempts, _wait_s(due_ms), state)
            case JudgeVotes(votes, replies):
                judged = decided(payload, with_votes(result, votes))
                return Validated(answer, judged, replies, is_unjudged=tally_of(votes).verdict is None)

    async def _ask(self, item: Item, request: ModelRequest, history: History) -> CallOutcome:
        """Asks a model on behalf of the run."""
        run = self._run
        scope = CallContext(
            run=self._name,
            owner=item.lease.token,
            use_cache=run.cache,
            max_cost=run.max_cost,
            prices=run.prices,
            retry=ModelRetryPolicy(),
            concurrency=run.concurrency,
        )
        return await self._process.upstream.models.call(request, scope, history, on_send=item.calling)

    async def _known(self, item: Item, payload: CasePayload) -> ModelReply | None:
        """Finds an answer that needs no call: a recorded one, or that of a result that lacks its judge."""
        if payload.recorded is not None or not item.claimed.generation:
            return recorded_reply(payload)
        rows = await self._in_thread(self._earlier.rows, [int(item.claimed.index)])
        return next((stored_reply(row, are_votes_kept=self._run.cache) for row in rows), None)

    def _in_thread(self, function: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        """Calls a function in a thread for validation."""
        return asyncio.get_running_loop().run_in_executor(self._validating, function, *arguments)

    def _validate(self, payload: CasePayload, reply: ModelReply) -> ValidationResult:
        """Takes an answer through stages 0 to 3 and free checks; in a thread for validation."""
        case, checks = case_of(self._run, payload), checks_of(payload)
        answer = answer_of(payload, reply) if checks else NOTHING_RECORDED
        if not NEEDS_SANDBOX & payload.criteria.keys() and not needs_sandbox(checks):
            return before_judge(case, reply.text, checks=checks, answer=answer)
        has_functions = "validator" in payload.criteria or python_names(checks)
        source = self._run.validators.source if self._run.validators and has_functions else None
        with self._sandboxes.batch(source) as sandbox:
            return before_judge(case, reply.text, sandbox=sandbox, checks=checks, answer=answer)


def case_of(run: CaseRun, payload: CasePayload) -> dict[str, Any]:
    """Puts together what the pipeline needs of a case, but for its checks."""
    criteria = {name: payload.criteria[name] for name in _OF_CASES if name in payload.criteria}
    of_run = {"schema": run.schema, "json_extraction": run.json_extraction}
    return {"input": payload.input, "vars": payload.vars, **criteria, **of_run}


def checks_of(payload: CasePayload) -> tuple[Check, ...]:
    """The checks of a case as the pipeline takes them."""
    raw = payload.criteria.get("checks")
    return msgspec.convert(raw, tuple[Check, ...]) if raw else ()


def decided(payload: CasePayload, result: ValidationResult) -> ValidationResult:
    """The verdict of stages and judges with that of the checks."""
    return with_checks(result, payload.criteria.get("at_least"))


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
