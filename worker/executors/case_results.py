"""The stored result of a case: written around the verdict, and read back where it lacks its judge."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from shared.codecs.item_rows import CACHED, UNJUDGED, ItemRow
from shared.contracts.case_run import CasePayload
from shared.contracts.unjudged_case import NO_VERDICT, REASONING_CHARS, identity_of
from shared.names import Outcome, RunState
from shared.upstream.usage import NO_USAGE, Usage
from worker.executors.items import ItemResult
from worker.upstream.chat import ModelReply
from worker.upstream.embeddings import EmbeddingReply
from worker.validation.case_verdict import CheckResult, ValidationResult
from worker.validation.checks.kind import Answer, Rival

CHECK_UNAVAILABLE: Final = "check_unavailable"
NO_DECISION: Final = {"status": None, "passed": False, "decided_by": None, "message": "", "score": None}
"""What is stored of the verdict where a check could not be asked; the answer and what is known of it stay."""

_encode = msgspec.json.Encoder().encode


class CallDetails(NamedTuple):
    """What a call reports beside its answer."""

    usage: Mapping[str, int | str | None] | None = None
    """Tokens, as the provider counts them."""
    first_token_ms: int | None = None
    """Time from sending to the first piece of text or reasoning, of an answer streamed at the first call."""
    reasoning: str = ""
    """What the model thought before it answered."""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    """Tools that the model called."""
    refusal: str = ""
    """Why it did not answer."""
    finish_reason: str = ""
    """Why the answer ended."""
    is_json: bool = False
    """Whether it was an object or a list, as JSON."""

    @classmethod
    def of(cls, reply: ModelReply) -> "CallDetails":
        """Those of a reply."""
        return cls(
            stored_usage(reply.usage),
            reply.first_token_ms,
            reply.reasoning,
            reply.tool_calls,
            reply.refusal,
            reply.finish_reason,
            reply.is_json,
        )


NO_DETAILS: Final = CallDetails()
"""Details of a case without a call."""


def stored_usage(usage: Usage) -> dict[str, int | str | None] | None:
    """Writes the tokens of a call: three figures always, the others where the provider says them.

    >>> stored_usage(Usage(3, 1, cached_input_tokens=2))
    {'prompt_tokens': 3, 'completion_tokens': 1, 'total_tokens': 4, 'cached_input_tokens': 2}
    >>> stored_usage(Usage()) is None
    True
    """
    known = msgspec.to_builtins(usage)
    totals = {"prompt_tokens": None, "completion_tokens": None, "total_tokens": usage.total_tokens}
    return totals | known if known else None


def judge_detail(model: str, reply: ModelReply) -> dict[str, Any]:
    """Returns what is kept of a judge's call beside its reply."""
    return {
        "model": model,
        "token_usage": stored_usage(reply.usage),
        "cost_usd": reply.cost_usd,
        "latency_ms": reply.latency_ms,
        "cached": reply.is_cached,
    }


def case_document(
    payload: CasePayload, result: ValidationResult | None, details: CallDetails = NO_DETAILS
) -> dict[str, Any]:
    """Puts together the result of a case.

    Args:
        payload: the item.
        result: the verdict; None where there is none.
        details: what the call reported beside its answer.

    >>> document = case_document(CasePayload(2, "m", "Hi"), None)
    >>> document["case_index"], document["status"], document["token_usage"]
    (2, None, None)
    """
    verdict = dict(NO_VERDICT) if result is None else result.as_document()
    if details.first_token_ms is not None:
        verdict["metrics"] = {**verdict["metrics"], "first_token_ms": details.first_token_ms}
    return {
        **identity_of(payload),
        **verdict,
        "token_usage": details.usage,
        "reasoning": details.reasoning[:REASONING_CHARS],
        "tool_calls": list(details.tool_calls),
        "refusal": details.refusal,
        "finish_reason": details.finish_reason,
        **({"is_json": True} if details.is_json else {}),
    }


def case_line(document: dict[str, Any], code: str = "", message: str = "") -> bytes:
    """Writes what is stored: of an error with its code and message before it.

    >>> case_line({"model": "m"}), case_line({"model": "m"}, "poison", "no")
    (b'{"model":"m"}', b'{"error":{"code":"poison","message":"no"},"result":{"model":"m"}}')
    """
    if not code:
        return _encode(document)
    return _encode({"error": {"code": code, "message": message}, "result": document})


class _Vote(msgspec.Struct):
    cost_usd: float | None = None


class _Check(msgspec.Struct):
    name: str
    check: str
    score: float | None
    passed: bool | None
    reason: str
    cost_usd: float | None = None
    detail: dict[str, Any] = {}
    weight: float = 1.0
    at_least: float | None = None
    is_open: bool = False


class _Detail(msgspec.Struct):
    votes: list[_Vote] = []


class _Stage(msgspec.Struct):
    detail: _Detail


class _Metrics(msgspec.Struct):
    first_token_ms: int | None = None


class _Result(msgspec.Struct):
    raw_output: str | None = None
    token_usage: Usage | None = None
    metrics: _Metrics | None = None
    stages: list[_Stage] = []
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] = []
    refusal: str = ""
    finish_reason: str = ""
    is_json: bool = False
    checks: list[_Check] = []


class _Error(msgspec.Struct):
    result: _Result


_RESULT: Final = msgspec.json.Decoder(_Result)
_ERROR: Final = msgspec.json.Decoder(_Error)


def _stored(row: ItemRow) -> _Result:
    """Reads a stored result, also one within an error."""
    return _ERROR.decode(row.line).result if row.outcome is Outcome.ERROR else _RESULT.decode(row.line)


def stored_checks(row: ItemRow) -> list[CheckResult]:
    """Reads the checks of a result that lacks some of them; none of any other result.

    >>> line = b'{"result":{"checks":[{"name":"a","check":"rubric","score":1.0,"passed":true,"reason":"r"}]}}'
    >>> [check.score for check in stored_checks(ItemRow(0, "xj", line))]
    [1.0]
    """
    if UNJUDGED not in row.code:
        return []
    return [CheckResult(*msgspec.structs.astuple(check)) for check in _stored(row).checks]


def with_earlier_checks(
    earlier: Sequence[ItemRow], rows: Sequence[CheckResult]
) -> tuple[Sequence[CheckResult], float]:
    """Takes over the checks that were asked for a result that lacks others; also what they cost.

    One that was not asked to the end stays open, with the votes that it has.
    """
    stored = [each for row in earlier for each in stored_checks(row)]
    if len(stored) != len(rows):
        return rows, 0.0
    kept = [with_earlier(old, new) for old, new in zip(stored, rows, strict=True)]
    return kept, sum(row.cost_usd or 0.0 for row, new in zip(kept, rows, strict=True) if row is not new)


def with_earlier(earlier: CheckResult, row: CheckResult) -> CheckResult:
    """Takes over what an earlier result has of a check that is open."""
    if not row.is_open or (earlier.name, earlier.check) != (row.name, row.check):
        return row
    if earlier.score is None:
        return row._replace(detail=earlier.detail, cost_usd=earlier.cost_usd)
    return earlier._replace(weight=row.weight)


def recorded_reply(payload: CasePayload) -> ModelReply | None:
    """Makes a reply of a recorded output; None without one. An unknown time is 0."""
    recorded = payload.recorded
    if recorded is None:
        return None
    latency_s = recorded.latency_seconds
    return ModelReply(
        recorded.output,
        0 if latency_s is None else round(1000 * latency_s),
        None if recorded.first_token_seconds is None else round(1000 * recorded.first_token_seconds),
        usage=Usage(
            recorded.prompt_tokens,
            recorded.completion_tokens,
            recorded.cached_input_tokens,
            reasoning_tokens=recorded.reasoning_tokens,
        ),
        cost_usd=recorded.cost_usd,
        is_cached=recorded.cached,
        reasoning=recorded.reasoning,
        tool_calls=recorded.tool_calls,
        refusal=recorded.refusal,
        is_json=recorded.is_json,
    )


def stored_reply(row: ItemRow, *, are_votes_kept: bool = False) -> ModelReply | None:
    """Makes a reply of the answer in a result that lacks judges; None of any other result.

    What the result has cost so far is taken as the price of the answer: all of it was paid.

    Args:
        row: the result.
        are_votes_kept: whether votes of a panel are found in the cache, and bring their price from there.

    >>> reply = stored_reply(ItemRow(0, "fj", b'{"raw_output":"Hi","token_usage":null}', cost_usd=0.1))
    >>> reply.text, reply.cost_usd
    ('Hi', 0.1)
    >>> stored_reply(ItemRow(0, "fj", b'{"raw_output":"Hi","metrics":{"first_token_ms":9}}')).first_token_ms
    9
    >>> stored_reply(ItemRow(0, "f", b'{"raw_output":"Hi"}')) is None
    True
    """
    if UNJUDGED not in row.code:
        return None
    result = _stored(row)
    if result.raw_output is None:
        return None
    return ModelReply(
        result.raw_output,
        row.latency_ms or 0,
        None if result.metrics is None else result.metrics.first_token_ms,
        usage=result.token_usage or NO_USAGE,
        cost_usd=_without_others(row.cost_usd, result, are_votes_kept=are_votes_kept),
        is_cached=CACHED in row.code,
        reasoning=result.reasoning,
        tool_calls=result.tool_calls,
        refusal=result.refusal,
        finish_reason=result.finish_reason,
        is_json=result.is_json,
    )


def _without_others(cost_usd: float | None, result: _Result, *, are_votes_kept: bool) -> float | None:
    """Takes off what checks have cost that could be asked, and judges whose votes are kept."""
    others = sum(check.cost_usd or 0.0 for check in result.checks)
    if are_votes_kept:
        others += sum(vote.cost_usd or 0.0 for stage in result.stages for vote in stage.detail.votes)
    return None if cost_usd is None else max(0.0, cost_usd - others)


def answer_of(payload: CasePayload, reply: ModelReply) -> Answer:
    """Returns what checks look at beside the text of an answer; a cached one has its original figures."""
    counts = [count for count in (reply.usage.input_tokens, reply.usage.output_tokens) if count is not None]
    first_ms = None if reply.is_cached else reply.first_token_ms
    return Answer(
        None if is_untimed(payload) else reply.latency_ms / 1000,
        None if first_ms is None else first_ms / 1000,
        None if first_ms is None else tokens_per_s(reply, first_ms),
        sum(counts) if counts else None,
        reply.cost_usd,
        reply.tool_calls,
        reply.refusal,
        reply.finish_reason,
        reply.reasoning,
    )


def tokens_per_s(reply: ModelReply, first_ms: int) -> float | None:
    """Returns how fast tokens came after the first: the inverse of the time per output token.

    >>> tokens_per_s(ModelReply("Hi", 1_500, usage=Usage(output_tokens=41)), 500)
    40.0
    """
    tokens, time_ms = (reply.usage.output_tokens or 0) - 1, reply.latency_ms - first_ms
    return 1000 * tokens / time_ms if tokens > 0 and time_ms > 0 else None


def is_untimed(payload: CasePayload) -> bool:
    """Returns whether it is unknown how long the answer took.

    >>> is_untimed(CasePayload(0, "m", "Hi"))
    False
    """
    return payload.recorded is not None and payload.recorded.latency_seconds is None


class JudgedCase(NamedTuple):
    """A case with its answer and what was decided about it so far."""

    payload: CasePayload
    """The case."""
    reply: ModelReply
    """The answer."""
    result: ValidationResult
    """The decision."""
    replies: Sequence[ModelReply | EmbeddingReply] = ()
    """Those of judges and for checks, as far as some were needed and came."""
    is_unjudged: bool = False
    """Whether judges or checks were needed and too few of them could be reached."""
    unavailable: str = ""
    """Which check could not be asked, and why; empty when all could."""
    kept_usd: float = 0.0
    """What checks had cost that were asked for an earlier result."""
    ends_run: RunState | None = None
    """How its run is to end; None when it goes on."""
    rivals: Sequence[Rival] = ()
    """All answers to the case, its own first; empty where no check compares them."""


def result_of_verdict(judged: JudgedCase) -> ItemResult:
    """Makes the result of a case with a verdict."""
    payload, reply = judged.payload, judged.reply
    document = case_document(payload, judged.result, CallDetails.of(reply))
    if judged.unavailable:
        outcome = Outcome.ERROR
        line = case_line(document | NO_DECISION, CHECK_UNAVAILABLE, judged.unavailable)
    else:
        outcome = Outcome.PASSED if judged.result.passed else Outcome.FAILED
        line = case_line(document)
    costs = [judged.kept_usd, reply.cost_usd, *(each.cost_usd for each in judged.replies)]
    return ItemResult(
        outcome,
        line,
        latency_ms=None if is_untimed(payload) else reply.latency_ms,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        flags=(CACHED if reply.is_cached else "") + (UNJUDGED if judged.is_unjudged else ""),
        code=CHECK_UNAVAILABLE if judged.unavailable else "",
        ends_run=judged.ends_run,
    )
