"""The engine of cases: sends test cases to models and validates the answers as specified.

the loop                                               threads for validation
answer     cache, budget, limits, call, retry
validate                                         ──►   stages 0 to 3, free checks
ask        judges where they may still accept, ◄──
           checks that call a model, while they matter

An answer is paid for, so it is kept until its verdict is complete: judges that cannot be asked soon park the
item only when its answer is in the cache. If judges cannot be reached, `failed_equality` remains; a check
that cannot be run makes the item an error, which keeps the answer. Reaching the cost cap has the same effect,
and ends the run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from shared.codecs.item_rows import ItemReader, ItemRow
from shared.codecs.packing import Packing
from shared.contracts.case_run import CasePayload, CaseRun, decode_case, read_shared_vars
from shared.contracts.cases import NEEDS_SANDBOX
from shared.contracts.checks import Check
from shared.errors import CheckUnusableError, ValidatorSecurityError
from shared.kinds import CASES
from shared.names import Outcome, RunState
from shared.observability import tracing
from shared.runs import RunStore
from shared.upstream.failure_reasons import FailureReason
from worker.executors.case_agenda import CaseAgenda, Outcomes
from worker.executors.case_criteria import case_of, checks_of, error_of_later_version, rules_of, transforms_of
from worker.executors.case_judges import NoReply, ask_together
from worker.executors.case_requests import ImageMissingError, ImageUrls, any_target, as_asked, model_request
from worker.executors.case_results import (
    JudgedCase,
    answer_of,
    case_document,
    case_line,
    recorded_reply,
    result_of_verdict,
    stored_reply,
)
from worker.executors.case_rivals import AnswerKey, answer_key, asked_of_all, rivals_of, shown_answer
from worker.executors.check_calls import Desk, ask_paid
from worker.executors.items import Agenda, AllAtOnce, Item, ItemResult, ItemsExecutor
from worker.executors.run_needs import RunNeeds
from worker.outcomes import EndRun
from worker.process import WorkerProcess
from worker.sandbox import Sandbox, Sandboxes
from worker.upstream.attempts import CallsMade
from worker.upstream.cache import is_kept
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.failures import UpstreamError
from worker.upstream.model_caller import CallContext
from worker.validation.case_verdict import CheckedOutput, ValidationResult
from worker.validation.checks.kind import NOTHING_RECORDED, Rival, Score, Subject
from worker.validation.checks.walks import calls_functions, needs_sandbox
from worker.validation.pipeline import before_judge
from worker.validation.schema import SchemaError
from worker.validation.scoring import Evaluation, Question

VALIDATION_THREADS: Final = 2
"""Validation threads of a process: the work is CPU-bound; the second one covers waits for the sandbox."""
NO_RECORDED_OUTPUT: Final = "no_recorded_output"
SCHEMA_REFUSED: Final = "schema"
IMAGE_MISSING: Final = "image_missing"
MAX_OUTPUT_BYTES: Final = 1 << 20
"""A longer output is not judged."""

Reply = TypeVar("Reply", ModelReply, EmbeddingReply)
T = TypeVar("T")


class OpenCase(NamedTuple):
    """A claimed case, decoded."""

    item: Item
    """The item as it was claimed."""
    payload: CasePayload
    """The case."""
    earlier: Sequence[ItemRow]
    """Its earlier result, if the item is retried and the result may be used."""


class Failed(NamedTuple):
    """A case without a verdict."""

    code: str
    """For programs."""
    message: str
    """For people."""
    ends_run: RunState | None = None
    """How its run has to end; None: it goes on."""


class NoVerdictError(Exception):
    """A case cannot have a verdict.

    Args:
        failed: the reason.
    """

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed)
        self.failed = failed


class CasesEngine:
    """Evaluates the cases of one run.

    Args:
        name: the run's id.
        run: its settings.
        process: the process whose upstreams are used.
        sandboxes: run patterns and validators.
        validating: threads for the stages.
        earlier: the results of the run so far, for items that are retried.
        images: the images of its cases.
        shared_vars: the variables of the bench, if the run stores them once.
        packing: how the texts of the run are stored.
        outcomes: reads how items of the run ended.
        needs: what it needs of this process.
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
        shared_vars: Mapping[str, Any],
        packing: Packing,
        outcomes: Outcomes,
        needs: RunNeeds,
    ) -> None:
        self.together = max(run.concurrency, run.together)
        self.packing = packing
        self._name, self._run, self._process = name, run, process
        self._sandboxes, self._validating, self._earlier = sandboxes, validating, earlier
        self._images, self._shared_vars, self._outcomes, self._needs = images, shared_vars, outcomes, needs
        self._early = set[AnswerKey]()
        """Answers that were asked for to be compared, before their own items began."""
        self._cap_reason = ""
        """Why no model is called any more, once the cost cap has been reached."""

    async def process(self, item: Item) -> JudgedCase | Failed:
        """Takes a case from its answer to its verdict.

        Raises:
            Deferred: a model cannot be asked soon, or this process lacks what the run needs.
            EndRun: there is no answer, and the run has reached its cost cap.
        """
        self._needs.check()
        try:
            case = await self._open(item)
            reply = await self._answer(case)
            judged = await self._with_rivals(case, await self._validate(case, reply))
            return await ask_paid(judged, case.earlier, self._desk(case, judged))
        except NoVerdictError as error:
            return error.failed
        except ImageMissingError as error:
            return Failed(IMAGE_MISSING, f"the image {error} of this case is not stored with the run")
        except (ValidatorSecurityError, CheckUnusableError, SchemaError) as error:
            # No output could be judged: this is not a failure of the model.
            code = SCHEMA_REFUSED if isinstance(error, SchemaError) else error.code
            return Failed(code, f"{error.message} ({error.hint})" if error.hint else error.message)

    def agenda(self, items: Sequence[Item]) -> Agenda:
        """Returns the agenda for a claim of the run."""
        run = self._run
        self._needs.look()
        if self._needs.lacking or not run.has_quorums:
            return AllAtOnce(self, items)
        return CaseAgenda(items, self._outcomes, asks_all=run.all_repeats, fail_fast=run.fail_fast)

    def result_of(self, item: Item, processed: JudgedCase | Failed) -> ItemResult:
        """Returns the result of a case as it is stored."""
        after_failure = RunState.INCOMPLETE if self._run.fail_fast else None
        if isinstance(processed, Failed):
            failed = self.error_result(item, processed.code, processed.message)
            return failed._replace(ends_run=processed.ends_run or after_failure)
        result = result_of_verdict(processed)
        is_failure = result.outcome is Outcome.ERROR or processed.payload.quorum is None
        if result.outcome is Outcome.PASSED or not is_failure:  # the agenda decides for a case with a quorum
            return result
        return result._replace(ends_run=result.ends_run or after_failure)

    def error_result(self, item: Item, code: str, message: str) -> ItemResult:
        """Returns the stored result of a case without a verdict."""
        document = case_document(decode_case(item.payload), None)
        return ItemResult(Outcome.ERROR, case_line(document, code, message), code=str(code))

    async def _open(self, item: Item) -> OpenCase:
        """Decodes a case, and reads the earlier result if the item is retried.

        Raises:
            NoVerdictError: this version lacks one of its criteria or checks: answers would pass unchecked.
        """
        payload = decode_case(item.payload)
        if lacking := error_of_later_version(payload.criteria, checks_of(payload)):
            raise NoVerdictError(Failed(*lacking))
        earlier: Sequence[ItemRow] = ()
        if item.claimed.generation and not item.is_anew:
            earlier = await self._in_thread(self._earlier.rows, [int(item.claimed.index)])
        return OpenCase(item, payload, earlier)

    async def _answer(self, case: OpenCase) -> ModelReply:
        """Returns the answer that is recorded or already paid for, or asks the model.

        Raises:
            NoVerdictError: there is no answer, or it is too long.
            ImageMissingError: an image of the case is not stored.
        """
        payload, are_votes_kept = case.payload, self._uses_cache(case.item)
        reply = recorded_reply(payload) or next(
            (stored_reply(row, are_votes_kept=are_votes_kept) for row in case.earlier), None
        )
        if reply is None:
            if self._run.recorded:
                text = f"no output of {payload.model} was recorded for this case"
                raise NoVerdictError(Failed(NO_RECORDED_OUTPUT, text))
            reply = await self._ask_model(case)
        if len(reply.text.encode(errors="replace")) > MAX_OUTPUT_BYTES:
            text = f"the output has {len(reply.text):,} characters, more than {MAX_OUTPUT_BYTES:,} bytes"
            raise NoVerdictError(Failed(FailureReason.TOO_LARGE.model_code, text))
        return reply

    async def _ask_model(self, case: OpenCase) -> ModelReply:
        """Asks the model of a case.

        Raises:
            NoVerdictError: the model did not answer.
            ImageMissingError: an image of the case is not stored.
        """
        item = case.item
        try:
            reply = await self._reply_to(item, case.payload, self._context(item), item.calls)
        except UpstreamError as error:
            is_over = error.ends_run or await self._is_every_model_absent(item, error)
            failed = Failed(error.code, error.message, RunState.ABORTED if is_over else None)
            raise NoVerdictError(failed) from None
        if (key := answer_key(case.payload)) in self._early:  # the call of a rival was made for this item
            self._early.remove(key)
            reply = msgspec.structs.replace(reply, is_cached=False)
        is_first = item.attempts <= 1 and not item.calls.history.code
        return reply if is_first else msgspec.structs.replace(reply, first_token_ms=None)

    async def _reply_to(
        self,
        item: Item,
        payload: CasePayload,
        context: CallContext,
        calls: CallsMade,
        *,
        is_answered: bool = False,
    ) -> ModelReply:
        """Asks the model of a payload on behalf of an item."""
        urls = [await self._in_thread(self._images.url, name) for name in payload.images]
        request = self._request_of(payload, urls)
        return as_asked(request, await self._call(item, request, calls, context, is_answered=is_answered))

    async def _with_rivals(self, case: OpenCase, judged: JudgedCase) -> JudgedCase:
        """Adds the answers of other models and prompts, where an open check compares them.

        Raises:
            EndRun: the run has reached its cost cap; the answer is in the cache.
        """
        if not (case.payload.rivals and any(row.is_open for row in judged.result.checks)):
            return judged
        rivals = [Rival(case.payload.asked, shown_answer(judged))]
        others = rivals_of(case.payload)
        for rival, reply in zip(others, await self._replies_to(case.item, others), strict=True):
            if reply is not None:
                checked = await self._validate(OpenCase(case.item, rival, ()), reply)
                rivals.append(Rival(rival.asked, shown_answer(checked)))
        return judged._replace(rivals=rivals)

    async def _replies_to(self, item: Item, rivals: Sequence[CasePayload]) -> Sequence[ModelReply | None]:
        """Returns the answers of others, None of those without one; a model that has none is asked now."""
        if self._run.recorded:
            return [recorded_reply(rival) for rival in rivals]
        asks = [partial(self._rival_reply, item, rival) for rival in rivals]
        asked = await ask_together(asks, (), may_park=False)
        if asked.over:
            raise EndRun(RunState.INCOMPLETE, asked.over)
        return [None if isinstance(reply, NoReply) else reply for reply in asked.ends]

    async def _rival_reply(self, item: Item, rival: CasePayload, calls: CallsMade) -> ModelReply:
        """Returns the answer of another model or prompt, whose own item then finds it in the cache."""
        context = replace(self._context(item), use_cache=True)
        reply = await self._reply_to(item, rival, context, calls, is_answered=True)
        if not reply.is_cached:
            self._early.add(answer_key(rival))
        return reply

    async def _is_every_model_absent(self, item: Item, error: UpstreamError) -> bool:
        """Returns whether the run has to be aborted because none of its models was ever reached."""
        if error.reason is not FailureReason.ABSENT:
            return False
        targets = [any_target(self._run, model) for model in self._run.models]
        return await self._process.upstream.models.are_absent(targets, self._context(item))

    async def _validate(self, case: OpenCase, reply: ModelReply) -> JudgedCase:
        """Takes an answer through stages 0 to 3 and free checks.

        Raises:
            ValidatorSecurityError, CheckUnusableError, SchemaError: no output could be judged.
        """
        with (
            case.item.working(),
            tracing.span("validate"),
        ):  # the answer was paid for: a pause waits for its verdict
            result = await self._in_thread(self._run_stages, case.payload, reply)
        return JudgedCase(case.payload, reply, result)

    def _desk(self, case: OpenCase, judged: JudgedCase) -> Desk:
        """Returns what calls the judges and checks of a case."""
        return Desk(
            self._run,
            rules_of(case.payload),
            partial(self._in_thread, self._score_check, judged),
            partial(self._call, case.item, is_answered=True),
            partial(self._embed, case.item),
            case.item.parked,
            may_park=self._may_park(case.item, judged),
        )

    def _uses_cache(self, item: Item) -> bool:
        """Whether answers of models may come from the cache, and go into it."""
        return self._run.cache and not item.is_anew

    def _may_park(self, item: Item, judged: JudgedCase) -> bool:
        """Whether the answer is in the cache, and will be found there after a wait."""
        if judged.rivals:  # the answer would come from the cache, and be no longer counted as a call
            return False
        return self._uses_cache(item) and judged.payload.recorded is None and is_kept(judged.reply)

    async def _call(
        self,
        item: Item,
        request: ModelRequest,
        calls: CallsMade,
        context: CallContext | None = None,
        *,
        is_answered: bool = False,
    ) -> ModelReply:
        """Calls a model on behalf of the run; `is_answered`: the call is about an answer of the item."""
        call = self._process.upstream.models.call
        request = replace(request, run=self._name) if request.target.http else request
        reply = call(request, context or self._context(item), calls, on_send=item.working)
        return await self._paid(item, reply, is_answered=is_answered)

    async def _embed(self, item: Item, request: EmbeddingRequest, calls: CallsMade) -> EmbeddingReply:
        """Embeds texts on behalf of the run."""
        embed = self._process.upstream.models.embed
        reply = embed(request, self._context(item), calls, on_send=item.working)
        return await self._paid(item, reply, is_answered=True)

    async def _paid(self, item: Item, call: Awaitable[Reply], *, is_answered: bool) -> Reply:
        """Adds the cost of a call to the item, and records whether the cost cap has been reached.

        An answer of the item is kept if the cap ends the run and stops the item.
        """
        try:
            reply = await call
        except EndRun as end:
            self._cap_reason = end.why
            raise
        except asyncio.CancelledError:
            if is_answered and self._cap_reason:
                raise EndRun(RunState.INCOMPLETE, self._cap_reason) from None
            raise
        if not reply.is_cached:
            self._cap_reason = ""
            item.paid_usd += reply.cost_usd or 0.0
        return reply

    def _context(self, item: Item) -> CallContext:
        """Returns the run and the chunk that models are called for, with the settings of the calls."""
        return CallContext(
            self._name,
            item.lease.token,
            self._run,
            generation=item.claimed.generation,
            use_cache=self._uses_cache(item),
        )

    def _in_thread(self, function: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        """Calls a function in a validation thread."""
        return asyncio.get_running_loop().run_in_executor(self._validating, function, *arguments)

    def _run_stages(self, payload: CasePayload, reply: ModelReply) -> ValidationResult:
        """Runs the stages and the checks that call no model; in a validation thread."""
        case, checks = case_of(self._run, payload, self._vars_of(payload)), checks_of(payload)
        transforms = transforms_of(self._run, payload)
        answer = answer_of(payload, reply) if checks or transforms else NOTHING_RECORDED
        judged = partial(
            before_judge,
            case,
            reply.text,
            checks=checks,
            answer=answer,
            transforms=transforms,
            is_json=reply.is_json,
        )
        is_code = any(each.runs_code for each in transforms) or needs_sandbox(checks)
        if not is_code and not NEEDS_SANDBOX & payload.criteria.keys():
            return judged()
        has_functions = "validator" in payload.criteria or calls_functions(checks)
        has_functions = has_functions or any(each.python is not None for each in transforms)
        with self._sandbox(has_functions=has_functions) as sandbox:
            return judged(sandbox=sandbox)

    def _score_check(
        self, judged: JudgedCase, check: Check, answers: Mapping[bytes, Score]
    ) -> tuple[Score, Sequence[Question]]:
        """Scores a check that calls a model, with the answers so far; in a validation thread."""
        evaluation, has_functions = Evaluation(answers), calls_functions([check])
        with (
            self._sandbox(has_functions=has_functions) if needs_sandbox([check]) else nullcontext() as sandbox
        ):
            score = evaluation.outcome(check, self._subject(judged, sandbox))
        return score, list(evaluation.questions.values())

    def _request_of(self, payload: CasePayload, image_urls: list[str]) -> ModelRequest:
        """Builds the request to the model of a case."""
        return model_request(self._run, payload, image_urls, self._vars_of(payload))

    def _vars_of(self, payload: CasePayload) -> dict[str, Any]:
        """Returns the variables of the bench, overridden by those of the case."""
        return {**self._shared_vars, **payload.vars}

    def _subject(self, judged: JudgedCase, sandbox: Sandbox | None) -> Subject:
        """Returns the input of checks."""
        payload, reply = judged.payload, judged.reply
        checked = judged.result.checked or CheckedOutput(reply.text, reply.is_json)
        return Subject(
            checked.text,
            answer_of(payload, reply),
            payload.input,
            self._vars_of(payload),
            payload.metadata,
            payload.expected,
            sandbox,
            is_lenient=self._run.json_extraction == "lenient",
            is_value=checked.is_value,
            whole=Subject(reply.text, is_value=reply.is_json) if judged.result.checked else None,
            rivals=judged.rivals,
            asked=asked_of_all(payload),
        )

    def _sandbox(self, *, has_functions: bool) -> AbstractContextManager[Sandbox]:
        """Opens a sandbox for patterns and, with `has_functions`, functions of the validators file."""
        validators = self._run.validators if has_functions else None
        return self._sandboxes.batch(validators.source if validators else None)


def make_executor(process: WorkerProcess, store: RunStore) -> ItemsExecutor[JudgedCase | Failed]:
    """Builds the executor of a process."""
    process.loop.prepare()
    sandboxes = Sandboxes()
    validating = ThreadPoolExecutor(VALIDATION_THREADS, "validation")

    def others() -> Collection[frozenset[str]]:
        return store.plugins(CASES).values()

    def open_engine(run: str) -> CasesEngine:
        settings = CaseRun.from_snapshot(store.info(run).snapshot)
        earlier = store.item_reader(run, with_open=False)
        return CasesEngine(
            run,
            settings,
            process,
            sandboxes,
            validating,
            earlier=earlier,
            images=ImageUrls(partial(store.file, run)),
            shared_vars=read_shared_vars(settings, partial(store.file, run)),
            packing=store.packing(run),
            outcomes=partial(store.outcomes, run),
            needs=RunNeeds(settings.plugins, allow_code=process.settings.allow_code, others=others),
        )

    return ItemsExecutor(process, open_engine, CasesEngine.agenda)
