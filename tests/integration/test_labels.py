"""What people say of answers lies beside the results of a run, on a real server."""

from typing import TYPE_CHECKING

import pytest

from producer.review.answer_labels import AnswerLabel, Judgement
from producer.review.label_store import read_labels, remove_labels, review_of, write_labels
from shared.errors import UnknownRunError
from shared.keys import labels_key, run_key
from shared.ledger.ledger import Ledger
from shared.runs import RunStore

if TYPE_CHECKING:
    import redis

PASS, FAIL = (
    AnswerLabel(position=3, reviewer="ann", verdict=verdict, note="because", tags=["x"], at_ms=5)
    for verdict in (Judgement.PASS, Judgement.FAIL)
)


@pytest.fixture
def store(redis_client: "redis.Redis") -> RunStore:
    """Reads a server with a final run `r1`."""
    redis_client.hset(run_key("r1"), mapping={"state": "finished", "kind": "cases", "ns": "r1", "v": 1})
    return RunStore(redis_client)


def test_the_last_word_of_a_reviewer_counts(redis_client: "redis.Redis", store: RunStore) -> None:
    """A second label replaces the first; other reviewers' stay."""
    other = AnswerLabel(position=1, reviewer="bob", verdict=Judgement.DEFER)
    assert write_labels(redis_client, "r1", [PASS, other]) == 2
    assert write_labels(redis_client, "r1", [FAIL]) == 1
    assert read_labels(store, "r1") == [other, FAIL]
    assert review_of(store, "r1").verdicts == {3: False}
    assert remove_labels(redis_client, "r1", "ann", [3, 4]) == 1
    assert read_labels(store, "r1") == [other]


def test_labels_end_with_their_run(redis_client: "redis.Redis", store: RunStore) -> None:
    """They expire when the run does, and are removed with it; a run that is gone takes none."""
    redis_client.pexpire(run_key("r1"), 60_000)
    write_labels(redis_client, "r1", [PASS])
    assert 0 < redis_client.pttl(labels_key("r1")) <= 60_000
    Ledger(redis_client).remove("r1")
    assert not redis_client.exists(labels_key("r1"))
    with pytest.raises(UnknownRunError):
        write_labels(redis_client, "r1", [PASS])
    assert read_labels(store, "r1") == []
