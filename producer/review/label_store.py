"""Keeps the labels of a run in Redis, beside its results: they end with the run, and commands export them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.json import Decoder, Encoder

from producer.review.answer_labels import NO_REVIEW, AnswerLabel, Review, checked, reviewed
from shared.keys import labels_key, run_key
from shared.ledger.ledger import unknown
from shared.runs import RunStore

# Clients of redis-py are `Any` here: only its few files import it.
_encode: Final = Encoder().encode
_decode: Final = Decoder(AnswerLabel).decode


def read_labels(store: RunStore, run: str) -> list[AnswerLabel]:
    """Reads the labels of a run, in the order of its items; of one item by reviewer."""
    labels = map(_decode, store.labels(run))
    return sorted(labels, key=lambda label: (label.position, label.reviewer))


def review_of(store: RunStore, run: str) -> Review:
    """Reads what the labels of a run come to.

    Labels of answers that a retry has replaced count until the item is labelled again: a person who compares
    `answer` with that of the run finds them in `labels export`.
    """
    labels = store.labels(run)
    return reviewed(map(_decode, labels)) if labels else NO_REVIEW


def write_labels(client: Any, run: str, labels: Iterable[AnswerLabel]) -> int:
    """Writes labels; a reviewer's second label of an item replaces the first. Returns how many they are.

    Raises:
        UnknownRunError: the run has expired or was removed; nothing is written.
        UsageError: a label breaks a bound.
    """
    fields: dict[Any, Any] = {
        _field(label.position, label.reviewer): _encode(checked(label)) for label in labels
    }
    if not fields:
        return 0
    key, of = labels_key(run), run_key(run)

    def write(pipeline: Any) -> None:
        is_there, expires_in_ms = pipeline.exists(of), pipeline.pttl(of)
        if not is_there:
            raise unknown(run)
        pipeline.multi()
        pipeline.hset(key, mapping=fields)
        if expires_in_ms >= 0:
            pipeline.pexpire(key, expires_in_ms)

    client.transaction(write, of)
    return len(fields)


def remove_labels(client: Any, run: str, reviewer: str, positions: Sequence[int]) -> int:
    """Takes labels of a reviewer back; returns how many there were."""
    fields = [_field(position, reviewer) for position in positions]
    return client.hdel(labels_key(run), *fields) if fields else 0


def _field(position: int, reviewer: str) -> str:
    return f"{position} {reviewer}"
