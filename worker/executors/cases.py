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
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from shared.clock import now_ms
from shared.codecs.item_rows import CACHED, UNJUDGED
from shared.codecs.parked_items import History, ParkedState, decode_parked
from shared.contracts.case_run import CasePayload, CaseRun, decode_case
from shared.contracts.cases import CRITERIA, NEEDS_SANDBOX
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
from worker.executors.case_results import (
    CallDetails,
    case_document,
    case_line,
    is_untimed,
    recorded_reply,
    stored_reply,
    usage_of,
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
from worker.validation.panel import tally_of
from worker.validation.pipeline import before_judge, with_votes
from worker.validation.schema import SchemaError

VALIDATION_THREADS: Final = 2
"""Threads of a process that judge: it is processor work, the second covers waits for the sandbox."""
NO_RECORDED_OUTPUT: Final = "no_recorded_output"
SCHEMA_REFUSED: Final = "schema"
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
    ) -> None:
        self.max_in_flight = run.together
        self._name, self._run, self._process = name, run, process
        self._sandboxes, self._validating, self._earlier = sandboxes, validating, earlier

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
                result = await self._in_thread(self._validate, payload, answer.text)
        except (ValidatorSecurityError, CheckUnusableError, SchemaError) as error:
            return _unjudged(error)
        if not result.awaits_judge or not self._run.judges:
            return Validated(answer, result, (), is_unjudged=False)
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
        details = CallDetails(usage_of(reply), reply.first_token_ms, reply.reasoning)
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
        history = decode_parked(item.claimed.error).history._replace(attempts=item.claimed.attempts)
        asked = await self._ask(item, model_request(self._run, payload), history)
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
                judged = with_votes(result, votes)
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

    def _validate(self, payload: CasePayload, output: str) -> ValidationResult:
        """Takes an output through stages 0 to 3; in a thread for validation."""
        case = case_of(self._run, payload)
        if not NEEDS_SANDBOX & payload.criteria.keys():
            return before_judge(case, output)
        has_validator = "validator" in payload.criteria
        source = self._run.validators.source if self._run.validators and has_validator else None
        with self._sandboxes.batch(source) as sandbox:
            return before_judge(case, output, sandbox=sandbox)


def model_request(run: CaseRun, payload: CasePayload) -> ModelRequest:
    """Makes the request to the model under test."""
    place = run.models[payload.model]
    return ModelRequest(
        payload.model,
        run.system_prompt,
        payload.input,
        temperature=run.temperature,
        api_base=place.api_base,
        api_key_env=place.api_key_env,
        is_streamed=run.stream,
        timeout_s=run.timeout_s,
        repeat=payload.repeat,
    )


def case_of(run: CaseRun, payload: CasePayload) -> dict[str, Any]:
    """Puts together what the pipeline needs of a case."""
    criteria = {name: payload.criteria[name] for name in CRITERIA if name in payload.criteria}
    of_run = {"schema": run.schema, "json_extraction": run.json_extraction}
    return {"input": payload.input, **criteria, **of_run}


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
        return CasesEngine(run, settings, process, sandboxes, validating, earlier=earlier)

    return ItemsExecutor(process, engine_of)
