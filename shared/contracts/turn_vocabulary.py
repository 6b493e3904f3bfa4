"""The closed vocabularies and limits of conversation turns, in a file that does not load pydantic.

`shared.contracts.turns` checks them at load; `worker.breakpoint` compares them, as plain text or as members.
"""

from enum import StrEnum
from typing import Final

MAX_MESSAGE_CHARS: Final = 20_000
MAX_ETAG_CHARS: Final = 64
MAX_SIGNAL_ITEMS: Final = 8
MAX_CONSUMED_SIGNALS: Final = 256
"""Signals that a thread remembers as consumed, the latest: 32 times what a turn can send again."""
SIGNALS_ONCE: Final = "signals_once"
"""Key in a run's snapshot: each signal counts once in its thread."""
MAX_SIGNAL_SUMMARY_CHARS: Final = 180
MAX_SHAPE_LIST_ITEMS: Final = 6


class ThreadMementoSignalKind(StrEnum):
    """The kinds of signals about a conversation."""

    DECISION_MADE = "decision_made"
    """Somebody committed to a decision that changes the thread's direction."""
    SCOPE_CHANGED = "scope_changed"
    """The scope grew or shrank: a new topic, a new constraint."""
    PIVOT = "pivot"
    """An abrupt change of topic or direction."""
    ANSWER_PROVIDED = "answer_provided"
    """A direct, substantive answer to a question."""
    ACK_ONLY = "ack_only"
    """The message is an acknowledgment and nothing else."""
    OPEN_LOOP_CREATED = "open_loop_created"
    """A task or question was opened that somebody has to close later."""
    OPEN_LOOP_RESOLVED = "open_loop_resolved"
    """An open task or question was closed."""
    RISK_OR_CONFLICT = "risk_or_conflict"
    """A risk, conflict or tension showed."""


class Confidence(StrEnum):
    """How sure the source of a signal or point is."""

    LOW = "low"
    MED = "med"
    HIGH = "high"


class SignalSource(StrEnum):
    """Who made a signal."""

    SERVER = "server"
    MODEL = "model"


class PointSource(StrEnum):
    """Who made an affect point, in stored and returned mementos."""

    DEVICE_HINT = "device_hint"
    SERVER = "server"
    MODEL = "model"


class RequestPointSource(StrEnum):
    """Who made an affect point, in a client's memento; `sentinel` is stored as `server`."""

    SENTINEL = "sentinel"
    DEVICE_HINT = "device_hint"
    SERVER = "server"
    MODEL = "model"


class AffectPhase(StrEnum):
    """Where a thread's emotion is heading."""

    RISING = "rising"
    PEAK = "peak"
    DOWNSHIFT = "downshift"
    SETTLED = "settled"


class IntensityBucket(StrEnum):
    """How strong the latest emotion is."""

    LOW = "low"
    MED = "med"
    HIGH = "high"


class Role(StrEnum):
    """Author of a turn."""

    USER = "user"
    ASSISTANT = "assistant"


class SummaryPolicy(StrEnum):
    """What keeps a proposed summary out of the thread's memento."""

    GUARDRAIL = "guardrail"
    """Only the peak guardrail: the documented flow."""
    BREAKPOINTS = "breakpoints"
    """The guardrail, and every `skip`: summaries change at breakpoints only."""


class Live(StrEnum):
    """For which decisions the model is called."""

    MUST = "must"
    """Only `must`."""
    SHOULD = "should"
    """`must` and `should`: a `skip` makes no call."""
    ALL = "all"
    """Every user turn."""
