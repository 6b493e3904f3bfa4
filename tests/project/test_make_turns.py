"""Holds the benchmark's turns: valid, as many as asked for, and the same for the same seed."""

import json

from shared.contracts.turns import Turn
from tests.benchmarks.make_turns import interleaved, made_turns, repeated


def test_made_turns_keep_the_contract() -> None:
    """Every made turn passes the strict contract of a turns file."""
    lines = b"".join(repeated(made_turns(seed=7), 3_000)).splitlines()
    assert {Turn.model_validate_json(line).role for line in lines} == {"user", "assistant"}


def test_as_many_as_asked_for_and_no_thread_twice() -> None:
    """The count is exact, and a new round has threads of its own."""
    turns = [json.loads(line) for line in b"".join(repeated(made_turns(seed=1), 10_001)).splitlines()]
    assert len(turns) == 10_001
    message_ids = [(turn["threadId"], turn["messageId"]) for turn in turns]
    assert len(set(message_ids)) == len(message_ids)


def test_the_same_seed_makes_the_same_turns() -> None:
    """A benchmark can be repeated."""
    assert list(made_turns(seed=3)) == list(made_turns(seed=3))
    assert list(made_turns(seed=3)) != list(made_turns(seed=4))


def test_interleaving_keeps_the_order_of_each_thread() -> None:
    """Threads take turns, and each keeps its own order."""
    turns = list(made_turns(seed=1))
    mixed = interleaved(turns)
    assert len({turn["threadId"] for turn in mixed[:100]}) == 100
    assert sorted(mixed, key=lambda turn: str(turn["threadId"])) == turns
