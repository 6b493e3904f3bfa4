"""Meets every misbehaviour of the sample API over real sockets, and its refusals of bad requests."""

import json
from email.utils import parsedate_to_datetime

import aiohttp
import pytest

from producer.load.baselines import load_baselines
from shared.names import Outcome
from shared.upstream.failure_reasons import FailureReason
from tests.support.sample_api import BASELINES, Client, ask, meeting
from worker.queries.checks import outcome, query_result


@pytest.mark.parametrize(
    ("behaviour", "failure", "error"),
    [
        ("429", FailureReason.RATE_LIMITED, "Rate limited (429)"),
        ("503", FailureReason.SERVER_ERROR, '{"error": "told to answer 503"}'),
        ("401", FailureReason.REFUSED, '{"error": "told to answer 401"}'),
        ("html", FailureReason.INVALID_REPLY, "Invalid response body (not JSON)"),
        ("null", FailureReason.INVALID_REPLY, "Invalid response body (no /answer)"),
        ("empty", FailureReason.INVALID_REPLY, "Invalid response body (no /answer)"),
        ("list", FailureReason.INVALID_REPLY, "Invalid response body (no /answer)"),
        ("huge:mib=5", FailureReason.TOO_LARGE, "Response body larger than 1024 KiB"),
        ("half", FailureReason.CONNECTION_LOST, "Connection lost before the answer was complete"),
        ("reset", FailureReason.CONNECTION_LOST, "Connection lost before the answer was complete"),
        ("nulls", None, None),
        ("odd", None, None),
    ],
)
def test_each_misbehaviour_has_its_documented_end(
    behaviour: str, failure: FailureReason | None, error: str | None
) -> None:
    """Over a real connection every fault becomes its failure, and is judged without a crash."""
    baseline = load_baselines(str(BASELINES))[0]
    reply = meeting(behaviour, ask)
    assert reply.failure == failure
    assert (reply.error or "").partition(": ")[0] == (error or "") or reply.error == error
    result = query_result(baseline, reply)
    assert not result["overall_pass"]
    assert outcome(result) is (Outcome.FAILED if error is None else Outcome.ERROR)


def test_retry_after_is_sent_as_seconds_or_as_a_date() -> None:
    """Neither unless configured."""

    async def headers(at: Client) -> str | None:
        """The Retry-After header of a refusal."""
        session, url = at
        async with session.post(f"{url}/api/query", json={"query": "x"}) as response:
            assert response.status == 429
            return response.headers.get("Retry-After")

    assert meeting("429", headers) is None
    assert meeting("429:retry_after=7", headers) == "7"
    assert parsedate_to_datetime(meeting("429:retry_date=7", headers) or "").tzinfo is not None


def test_only_the_first_requests_of_each_query_are_refused() -> None:
    """With times=1 the second try of every query is answered."""

    async def tries(at: Client) -> list[int]:
        """The statuses of some requests."""
        return [(await ask(at, query)).status_code for query in ("VGM?", "VGM?", "LCL?", "LCL?")]

    assert meeting("429:times=1", tries) == [429, 200, 429, 200]


def test_every_third_request_is_refused() -> None:
    """Requests are counted over all queries."""

    async def tries(at: Client) -> list[int]:
        """The statuses of some requests."""
        return [(await ask(at, f"VGM {number}")).status_code for number in range(6)]

    assert meeting("500:every=3", tries) == [200, 200, 500, 200, 200, 500]


def test_a_request_can_choose_its_own_behaviour() -> None:
    """The header wins over the server's; nonsense in it is a bad request."""

    async def tries(at: Client) -> list[int]:
        """The statuses of some requests."""
        choices: tuple[dict[str, str], ...] = (
            {},
            {"X-Sample-Behaviour": "normal"},
            {"X-Sample-Behaviour": 'no"nsense'},
        )
        return [(await ask(at, **choice)).status_code for choice in choices]

    assert meeting("500", tries) == [500, 200, 400]


def test_a_slow_answer_says_how_long_it_took() -> None:
    """The server's own latency holds the wait."""
    reply = meeting("slow:seconds=0.2", ask)
    assert reply.response is not None
    assert 200 <= reply.response["metadata"]["latencyMs"] <= reply.latency_ms + 1


def test_a_silent_api_never_answers_and_still_stops() -> None:
    """The client's time limit ends the wait; the server does not wait for it."""

    async def give_up(at: Client) -> None:
        """Waits a little, and no longer."""
        session, url = at
        limit = aiohttp.ClientTimeout(total=0.3)
        async with session.post(f"{url}/api/query", json={"query": "x"}, timeout=limit):
            pass

    with pytest.raises(TimeoutError):
        meeting("silent", give_up)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"query": 7}', 400),
        (b'{"query": "  "}', 400),
        (json.dumps({"query": "x" * 1001}).encode(), 400),
        (b"[" * 9000, 400),
        (b"\xff", 400),
        (b'{"query": "' + b"x" * 20_000 + b'"}', 413),
    ],
)
def test_unusable_requests_are_refused(body: bytes, status: int) -> None:
    """As the API under test does: blank, too long, no JSON, too large."""

    async def post(at: Client) -> int:
        """The status of a raw body."""
        session, url = at
        async with session.post(f"{url}/api/query", data=body) as response:
            return response.status

    assert meeting("normal", post) == status
