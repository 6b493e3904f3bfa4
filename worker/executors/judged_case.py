"""A case with its answer and what was decided about it, and the result that is stored of it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shared.codecs.item_rows import CACHED, UNJUDGED
from shared.contracts.case_run import CasePayload
from shared.names import Outcome
from worker.executors.case_results import CallDetails, case_document, case_line, is_untimed
from worker.executors.items import ItemResult
from worker.upstream.chat import ModelReply
from worker.upstream.embeddings import EmbeddingReply
from worker.validation.case_verdict import ValidationResult

CHECK_UNAVAILABLE: Final = "check_unavailable"
NO_DECISION: Final = {"status": None, "passed": False, "decided_by": None, "message": "", "score": None}
"""What is stored of the verdict where a check could not be asked; the answer and what is known of it stay."""


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
    ends_run: str = ""
    """How its run is to end; empty when it goes on."""


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
