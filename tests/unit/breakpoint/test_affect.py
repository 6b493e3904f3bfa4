"""The emotional arc: phases, buckets, the window, and what counts as a point."""

from itertools import pairwise

import pytest

from shared.clock import iso_utc
from tests.support.conversations import SUBMITTED_MS, decide, felt, memento, turn
from worker.breakpoint.affect import MAX_POINTS, WINDOW_MS, rollup, signal_of_reply


@pytest.mark.parametrize(
    ("intensities", "phase", "bucket"),
    [
        ([], "settled", "low"),
        ([0.1], "settled", "low"),
        ([0.34], "settled", "med"),
        ([0.69], "settled", "med"),
        ([0.7], "peak", "high"),
        ([0.8, 0.8], "peak", "high"),
        ([0.75, 0.8], "peak", "high"),
        ([0.9, 0.85], "peak", "high"),
        ([0.8, 0.9], "rising", "high"),
        ([0.7, 0.8], "rising", "high"),
        ([0.1, 0.2], "rising", "low"),
        ([0.9, 0.8], "downshift", "high"),
        ([0.8, 0.7], "downshift", "high"),
        ([0.3, 0.1], "downshift", "low"),
        ([0.5, 0.55], "settled", "med"),
        ([0.7, 0.75], "settled", "high"),
        ([0.9, 0.2, 0.2], "settled", "low"),
        ([0, 1], "rising", "high"),
    ],
)
def test_rollup(intensities: list[float], phase: str, bucket: str) -> None:
    """Phase and bucket follow the last two intensities, whatever binary floats make of them."""
    rolled = rollup(intensities)
    assert (rolled.phase, rolled.intensity_bucket) == (phase, bucket)


def test_every_tenth_up_is_rising_and_every_tenth_down_is_downshift() -> None:
    """A step of a tenth is a slope at every height."""
    steps = [tenth / 10 for tenth in range(11)]
    assert {rollup(list(pair)).phase for pair in pairwise(steps)} == {"rising"}
    assert {rollup(list(pair)).phase for pair in pairwise(reversed(steps))} == {"downshift"}


def test_a_point_is_anchored_to_the_users_message() -> None:
    """A user turn's signal becomes a point with the turn's message id."""
    row = decide(turn(affectSignal=felt(0.8), messageId="m7")).rows[0]
    assert row["memento"]["affect"] == {
        "points": [
            {
                "endMessageId": "m7",
                "label": "overwhelm",
                "intensity": 0.8,
                "confidence": "high",
                "source": "model",
            }
        ],
        "rollup": {"phase": "peak", "intensityBucket": "high", "updatedAt": "2026-01-01T00:00:00.000Z"},
    }


def test_assistants_make_no_points() -> None:
    """The emotion of an assistant turn changes nothing about the thread's emotional state."""
    rows = decide(turn(affectSignal=felt(0.5)), turn(affectSignal=felt(0.9), role="assistant")).rows
    assert rows[1]["memento"]["affect"] == rows[0]["memento"]["affect"]


def test_turns_without_emotion_keep_the_state() -> None:
    """Without a signal points and rollup stay, also when the window has passed."""
    late = iso_utc(SUBMITTED_MS + 10 * WINDOW_MS)
    rows = decide(turn(affectSignal=felt(0.9)), turn(ts=late)).rows
    assert rows[1]["memento"]["affect"] == rows[0]["memento"]["affect"]
    assert rows[1]["memento"]["updatedAt"] == late


def test_five_points_are_kept() -> None:
    """The sixth point pushes out the first."""
    turns = [turn(affectSignal=felt(at / 10), messageId=f"m{at}") for at in range(7)]
    points = decide(*turns).rows[-1]["memento"]["affect"]["points"]
    assert [point["endMessageId"] for point in points] == ["m2", "m3", "m4", "m5", "m6"]
    assert len(points) == MAX_POINTS


@pytest.mark.parametrize(("age_ms", "phase"), [(WINDOW_MS, "peak"), (WINDOW_MS + 1, "peak"), (1, "peak")])
def test_points_leave_the_window_after_thirty_minutes(age_ms: int, phase: str) -> None:
    """A point of exactly 30 minutes counts, an older one is dropped."""
    later = iso_utc(SUBMITTED_MS + age_ms)
    affect = decide(turn(affectSignal=felt(0.85)), turn(affectSignal=felt(0.85), ts=later)).rows[1][
        "memento"
    ]["affect"]
    assert len(affect["points"]) == (1 if age_ms > WINDOW_MS else 2)
    assert affect["rollup"] == {"phase": phase, "intensityBucket": "high", "updatedAt": later}


def test_the_window_counts_from_the_turns_own_time() -> None:
    """Windows come out the same whenever the thread is visited: the private times survive a visit."""
    first = decide(turn(affectSignal=felt(0.2), ts="2026-01-01T10:00:00Z"))
    second = decide(turn(affectSignal=felt(0.9), ts="2026-01-01T10:40:00Z"), state=first.outcome.state)
    [point] = second.rows[0]["memento"]["affect"]["points"]
    assert point["intensity"] == 0.9


def test_a_clients_points_count_from_its_rollup() -> None:
    """Points of a request memento have the time of its rollup, and leave the window together."""
    client = memento()
    client["affect"]["points"] = [
        {
            "endMessageId": f"m{at}",
            "label": "insight",
            "intensity": 0.9,
            "confidence": "low",
            "source": "server",
        }
        for at in range(3)
    ]
    near, far = "2025-12-31T23:30:00Z", "2025-12-31T23:30:01Z"
    points = [
        decide(turn(context={"thread_memento": client}, affectSignal=felt(0.1), ts=time)).rows[0]["memento"][
            "affect"
        ]["points"]
        for time in (near, far)
    ]
    assert [len(kept) for kept in points] == [4, 1]


@pytest.mark.parametrize(
    ("confidence", "word"),
    [("low", "low"), ("med", "med"), (0.7, "high"), (0.34, "med"), (0.33, "low"), (1, "high"), (0, "low")],
)
def test_confidence_is_a_word_or_a_number(confidence: object, word: str) -> None:
    """A number falls into one of three buckets."""
    row = decide(turn(affectSignal=felt(0.5, confidence=confidence))).rows[0]
    assert row["memento"]["affect"]["points"][0]["confidence"] == word


def test_missing_confidence_is_low_and_unknown_labels_are_neutral() -> None:
    """A point's label is one of six words."""
    row = decide(turn(affectSignal={"label": "bliss", "intensity": 0.5})).rows[0]
    [point] = row["memento"]["affect"]["points"]
    assert (point["label"], point["confidence"]) == ("neutral", "low")


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ({"label": "insight", "intensity": 0.4, "confidence": "med"}, ("insight", 0.4, "med")),
        ({"label": "INSIGHT", "intensity": "0.4"}, ("neutral", 0.4, "low")),
        ({"label": 7, "intensity": -3, "confidence": 0.9}, ("neutral", 0.0, "high")),
        ({"intensity": 7, "confidence": "sure"}, ("neutral", 1.0, "low")),
        ({"intensity": float("nan"), "confidence": float("nan")}, ("neutral", 0.0, "low")),
        ({"intensity": "much", "confidence": True}, ("neutral", 0.0, "low")),
        ({"intensity": None, "confidence": [1]}, ("neutral", 0.0, "low")),
        ({"intensity": 10**400, "confidence": 10**400}, ("neutral", 0.0, "high")),
    ],
)
def test_replies_may_say_anything(reply: object, read: tuple[str, float, str]) -> None:
    """The affect signal of a model's reply is coerced, clamped and bucketed, never an error."""
    signal = signal_of_reply(reply)
    assert signal is not None
    assert (signal.label, signal.intensity, signal.confidence) == read


@pytest.mark.parametrize("reply", [None, {}, [], "calm", 0.5, [{"label": "insight"}]])
def test_replies_without_an_object_have_no_signal(reply: object) -> None:
    """What is no object, or an empty one, is no signal."""
    assert signal_of_reply(reply) is None
