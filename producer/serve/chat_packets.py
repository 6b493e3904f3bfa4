"""The packet of a chat server as the breakpoint document has it: read strictly, decided as a turn, answered.

REQUIREMENTS A1.1: unknown keys are refused with their names. What concerns the model's reply alone (hints for
the provider, evidence, driver blocks, notifications) is checked and has no effect on the decision.
"""
# ruff: noqa: N815 - the fields carry the document's own names

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic import JsonValue, StringConstraints, ValidationError

from producer.load.contracts import described, unknown_keys
from producer.load.problems import Place
from producer.load.strict_json import repeated_key
from producer.serve.micro_runs import ServedTurn
from producer.serve.turn_bodies import AcceptedTurn, head_of, named
from producer.turns.report.opened_rows import StoredResult
from producer.turns.report.to_traces import events
from shared.codecs.turn_batches import DUPLICATE
from shared.contracts.mementos import Contract, OptionalKey, Text
from shared.contracts.turn_vocabulary import MAX_MESSAGE_CHARS
from shared.contracts.turns import Etag, Meta, TurnContext
from shared.errors import InputError
from shared.runs import TurnRow

OFF: Final = "off"
"""The mode in which nothing of a turn is stored."""
DEBUG_EVENTS: Final = 50
"""Events in a reply at the level `debug`, the last ones."""


class TraceConfig(Contract):
    """How much of the trace is answered."""

    level: Literal["info", "debug"] = "info"
    forceEvidence: bool = False


class ProviderHints(Contract):
    """Wishes about the model, which no model of this service reads."""

    model: OptionalKey[str] = None
    tier: OptionalKey[Literal["nano", "mini", "full"]] = None


class ChatPacket(Contract):
    """What a client sends for one turn."""

    packetType: Literal["chat"] = "chat"
    threadId: Text
    clientRequestId: OptionalKey[Text] = None
    message: Annotated[str, StringConstraints(min_length=1, max_length=MAX_MESSAGE_CHARS)]
    notification_policy: OptionalKey[Literal["silent", "muted", "alert", "urgent"]] = None
    simulate: JsonValue = None
    """Decided and answered, and nothing is stored, unless this is absent, null or false."""
    traceConfig: TraceConfig = TraceConfig()
    providerHints: OptionalKey[ProviderHints] = None
    driverBlockRefs: OptionalKey[list[JsonValue]] = None
    driverBlockInline: OptionalKey[list[JsonValue]] = None
    evidence: JsonValue = None
    thread_context_mode: str = "auto"
    thread_memento_etag: OptionalKey[Etag] = None
    """As of a turn: decided only in this state of the thread."""
    context: OptionalKey[TurnContext] = None
    meta: OptionalKey[Meta] = None

    @property
    def is_stored(self) -> bool:
        """Whether the turn counts in its thread."""
        return self.thread_context_mode != OFF and not self.simulate


class AcceptedPacket(NamedTuple):
    """A packet that fits the contract, and the turn that it is."""

    packet: ChatPacket
    turn: AcceptedTurn


class ChatTrace(Struct, frozen=True, omit_defaults=True):
    """The trace of a turn: its events at the level `debug`, else how many there are of each phase."""

    traceRunId: str
    level: str
    eventCount: int
    isReplay: bool = False
    """The turn was decided by an earlier request of the same `clientRequestId`, whose trace this is."""
    events: list[Any] | UnsetType = UNSET
    phaseCounts: dict[str, int] | UnsetType = UNSET


class ChatReply(Struct, frozen=True, omit_defaults=True):
    """What a packet is answered with."""

    ok: bool
    transmissionId: str
    threadId: str
    messageId: str
    decision: str
    rule: int
    peakGuardrailActive: bool
    summaryUpdated: bool
    reason: str
    source: str
    trace: ChatTrace
    response: str | None = None
    etag: str | UnsetType = UNSET
    thread_memento: Raw | UnsetType = UNSET
    """The thread's summary after the turn; absent in the mode `off`."""
    memento: Raw | UnsetType = UNSET
    """The same."""
    affect: Raw | UnsetType = UNSET
    """The affect of that summary."""


class _Memento(Struct):
    affect: Raw


class UnknownKeysError(InputError):
    """A packet has keys that the contract does not have."""

    code = "unrecognized_keys"

    def __init__(self, keys: Sequence[str]) -> None:
        what = f"unrecognized keys: {', '.join(keys)}"
        super().__init__(what, hint="leave them out; free data belongs into meta")
        self.keys = list(keys)


_result: Final = msgspec.json.Decoder(StoredResult[Raw]).decode
_memento: Final = msgspec.json.Decoder(_Memento).decode
_encode: Final = msgspec.json.Encoder().encode


def read_packet(body: bytes) -> AcceptedPacket:
    """Reads a packet.

    Raises:
        UnknownKeysError: it has keys that the contract does not have.
        InputError: it breaks the contract otherwise.
    """
    place = Place("packet")
    head_of(body, "send a packet: {…}")
    try:
        packet = ChatPacket.model_validate_json(body)
    except ValidationError as error:
        if extra := unknown_keys(error):
            raise UnknownKeysError(extra) from None
        raise described(error, ChatPacket, body, place, " in this packet") from None
    if twice := repeated_key(body):
        raise place.at(*twice).error("the key stands twice in one object", "keep one of the two")
    return AcceptedPacket(packet, AcceptedTurn(packet.threadId, _turn_line(packet)))


def _turn_line(packet: ChatPacket) -> bytes:
    """Writes the turn that a packet is."""
    whole = packet.model_dump(mode="json", exclude_unset=True, by_alias=True)
    kept = {key: whole[key] for key in TURN_KEYS if whole.get(key) is not None}
    meta = packet.meta or {}
    message_id = meta.get("message_id") or meta.get("messageId") or packet.clientRequestId
    if isinstance(message_id, str) and message_id:
        kept["messageId"] = message_id
    return named(_encode(kept))


TURN_KEYS: Final = ("threadId", "clientRequestId", "message", "thread_memento_etag", "context", "meta")
"""Keys of a packet that a turn has as well."""


def reply_of(packet: ChatPacket, namespace: str, served: ServedTurn, row_id: str) -> bytes:
    """Writes the reply to a packet whose turn was decided.

    Args:
        packet: what was sent.
        namespace: of its thread.
        served: how its turn ended; it has no problem.
        row_id: id of the turn, `run.index`; of a request with an id, which may be repeated, that id counts.
    """
    run, _, index = row_id.rpartition(".")
    if packet.clientRequestId is not None:
        run, index = str(uuid5(NAMESPACE_URL, f"proctor:{namespace}:{packet.clientRequestId}")), "0"
    found = _result(served.result)
    row = TurnRow(int(index), served.code.replace(DUPLICATE, ""), bytes(served.result), 0, 0, 1)
    made = events(run, [row], all_phases=True)
    level = packet.traceConfig.level
    transmission = f"{run}:{index}"
    trace = ChatTrace(
        traceRunId=f"{transmission}:trace",
        level=level,
        eventCount=len(made),
        isReplay=DUPLICATE in served.code,
        events=made[-DEBUG_EVENTS:] if level == "debug" else UNSET,
        phaseCounts=UNSET if level == "debug" else dict(Counter(event["phase"] for event in made)),
    )
    is_off = packet.thread_context_mode == OFF
    return _encode(
        ChatReply(
            ok=True,
            transmissionId=transmission,
            threadId=found.thread_id,
            messageId=found.message_id,
            decision=found.decision or "",
            rule=found.rule or 0,
            peakGuardrailActive=found.peak_guardrail_active,
            summaryUpdated=found.summary_updated and not is_off,
            reason=found.reason,
            source=found.source,
            trace=trace,
            response=found.response,
            etag=UNSET if is_off else found.etag,
            thread_memento=UNSET if is_off else found.memento,
            memento=UNSET if is_off else found.memento,
            affect=UNSET if is_off else _memento(found.memento).affect,
        )
    )
