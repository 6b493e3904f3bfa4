"""Why a parked item waits survives its way from a worker through the ledger to the screen."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.codecs.parked_items import History, ParkedState, WaitReason, decode_parked, encode_parked
from shared.ledger.wire import try_from
from shared.runs.waiting import WaitContext, describe_parked, wait_reason

TIMED_OUT: Final = History(2, 1, 350, "upstream_timeout")
DEEP: Final = '{"reason":' * 20_000
"""What no decoder follows to its end, perhaps an API's own words."""
COUNTS: Final = st.integers(0, 2**53)
HISTORIES: Final = st.builds(
    History, COUNTS, COUNTS, COUNTS, st.sampled_from(["", "upstream_timeout", "x|y z"])
)
STATES: Final = st.builds(
    ParkedState, st.sampled_from(WaitReason), HISTORIES, st.lists(HISTORIES, max_size=4).map(tuple)
)


@given(STATES, COUNTS, COUNTS)
def test_a_state_is_read_as_it_was_stored(state: ParkedState, attempts: int, due_ms: int) -> None:
    """Beside attempts and time, as the ledger stores it, whatever the state holds."""
    stored = try_from("0", f"{attempts}|{due_ms}|{encode_parked(state)}")
    assert decode_parked(stored.parked_state) == state


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("upstream_timeout 1 350 rate", ParkedState(WaitReason.RATE_LIMIT, TIMED_OUT._replace(attempts=0))),
        ("upstream_timeout 1 350", ParkedState(WaitReason.RETRY, TIMED_OUT._replace(attempts=0))),
        (
            "upstream_timeout 1 350 upstream_timeout",
            ParkedState(WaitReason.RETRY, TIMED_OUT._replace(attempts=0)),
        ),
        (" 0 0 cache", ParkedState(WaitReason.IDENTICAL_CALL)),
        ("paused", ParkedState(WaitReason.UPSTREAM_PAUSE)),
        ("Rate limited (429)", ParkedState(WaitReason.RETRY, History(code="api_rate_limited"))),
        (
            "judge 2 upstream_timeout 1 350|1  0 0",
            ParkedState(WaitReason.RETRY, judges=(TIMED_OUT, History(1))),
        ),
        ("judge 0  0 0", ParkedState(WaitReason.UNKNOWN, judges=(History(),))),
        ("Timeout after 30s", ParkedState(WaitReason.UNKNOWN, text="Timeout after 30s")),
        ('{"error": "overloaded"}', ParkedState(WaitReason.UNKNOWN, text='{"error": "overloaded"}')),
        pytest.param(DEEP, ParkedState(WaitReason.UNKNOWN, text=DEEP), id="nested too deep"),
        ("", ParkedState(WaitReason.UNKNOWN)),
    ],
)
def test_texts_of_earlier_versions_are_read(text: str, state: ParkedState) -> None:
    """What can be read of them is; a plain sentence stays one, and JSON that an API sent is no state."""
    assert decode_parked(text) == state


def test_a_reason_of_a_newer_version_loses_no_history() -> None:
    """A worker that goes on with the item goes on from its attempts."""
    found = decode_parked('{"reason":"quota","region":"eu","history":[2,1,350,"upstream_timeout"]}')
    assert found == ParkedState(WaitReason.UNKNOWN, TIMED_OUT)


@pytest.mark.parametrize("reason", sorted(set(WaitReason) - {WaitReason.UNKNOWN}))
def test_every_reason_has_a_sentence(reason: WaitReason) -> None:
    """For an item and for the judges of a case, with what the ledger says before it."""
    sentence = describe_parked([ParkedState(reason, TIMED_OUT)])
    assert sentence
    if reason is not WaitReason.RETRY:
        deferred = describe_parked([ParkedState(reason, judges=(TIMED_OUT,))])
        assert deferred == f"judges deferred: {sentence}"
    parked = WaitContext("running", 1, 0, 0, 1_000, 0)
    assert wait_reason("r", parked, parked=sentence).endswith(f"until 1970-01-01T00:00:01.000Z: {sentence}")


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("upstream_timeout", "timeout"),
        ("api_timeout", "timeout"),
        ("api_rate_limited", "rate limit response (429)"),
        ("upstream_no_capacity", "no-capacity response of the service tier"),
        ("upstream_connection", "failed connection"),
        ("api_connection_lost", "lost connection"),
        ("upstream_server_error", "server error"),
        ("quota", "failed call"),
    ],
)
def test_a_retry_names_the_failure(code: str, what: str) -> None:
    """Of a model, of an API, and of the judge that failed."""
    failed = History(1, code=code)
    retry = f"waiting to retry after a {what}"
    assert describe_parked([ParkedState(WaitReason.RETRY, failed)]) == retry
    judges = ParkedState(WaitReason.RETRY, judges=(History(1), failed))
    assert describe_parked([judges]) == f"judges deferred: {retry}"


def test_the_most_frequent_reason_is_shown() -> None:
    """Items of which nothing is known do not outvote those of which something is."""
    unknown, held = ParkedState(WaitReason.UNKNOWN), ParkedState(WaitReason.BUDGET)
    assert describe_parked([unknown, unknown, held]) == describe_parked([held])
    assert describe_parked([unknown]) == describe_parked([]) == ""


def test_a_plain_text_is_shown_without_what_could_harm_a_terminal() -> None:
    """It may be an API's own: control characters go, and it is cut."""
    shown = describe_parked([decode_parked("try \x1b[2J later" + "!" * 1_000)])
    assert shown.startswith("try ?[2J later!")
    assert len(shown) == 100
