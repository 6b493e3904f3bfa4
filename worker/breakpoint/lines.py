"""The JSON line of a turn: its result, or its error."""

from collections.abc import Sequence

import msgspec

from worker.breakpoint.memento import FROM_STORE
from worker.breakpoint.trace import Event, TracedCall


class ResultLine(msgspec.Struct, gc=False, rename="camel"):
    """The public `result` of a turn."""

    thread_id: str
    message_id: str
    decision: str | None
    rule: int | None
    peak_guardrail_active: bool
    summary_updated: bool
    reason: str
    source: str
    etag: str
    memento: msgspec.Raw
    response: str | None = None


class LiveLine(ResultLine, rename="camel"):
    """The `result` of a turn of a run with a model, with its call and events for other readers."""

    call: TracedCall | msgspec.UnsetType = msgspec.UNSET
    events: Sequence[Event] | msgspec.UnsetType = msgspec.UNSET


class ErrorBody(msgspec.Struct, gc=False):
    """Why a turn has no decision."""

    code: str
    message: str


class ErrorLine(msgspec.Struct, gc=False):
    """The line of a turn that was refused."""

    error: ErrorBody
    result: ResultLine


encode = msgspec.json.Encoder().encode


def error_line(
    thread_id: str, message_id: str, code: str, message: str, *, etag: str, memento: msgspec.Raw
) -> bytes:
    """Writes why a turn has no decision, with the unchanged state of the thread.

    >>> line = error_line("t", "t#0", "etag_conflict", "stale", etag="4", memento=msgspec.Raw(b"{}"))
    >>> line.startswith(b'{"error":{"code":"etag_conflict","message":"stale"},"result":{"threadId":"t",')
    True
    """
    result = ResultLine(
        thread_id,
        message_id,
        decision=None,
        rule=None,
        peak_guardrail_active=False,
        summary_updated=False,
        reason=message,
        source=FROM_STORE,
        etag=etag,
        memento=memento,
    )
    return encode(ErrorLine(ErrorBody(code, message), result))
