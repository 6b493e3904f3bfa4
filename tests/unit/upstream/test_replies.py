"""Numbers of thousands of digits, which Python refuses to read, spoil neither a reply nor a parked item."""

import pytest

from shared.codecs.parked_items import History, decode_parked
from shared.upstream.failure_reasons import FailureReason
from worker.upstream.completion import read_completion
from worker.upstream.failures import UpstreamError

ENDLESS = "1" * 5_000


def test_an_error_with_an_endless_code_is_one_of_the_upstream() -> None:
    """Its words are kept; the code says nothing."""
    with pytest.raises(UpstreamError, match="no luck") as caught:
        read_completion({"error": {"message": "no luck", "code": ENDLESS}})
    assert (caught.value.reason, caught.value.status) == (FailureReason.SERVER_ERROR, 0)


def test_an_endless_number_in_a_note_is_none() -> None:
    """What a parked item has been through is read as far as it can be."""
    assert decode_parked(f"upstream_timeout {ENDLESS} 1").history.throttled == 0
    assert decode_parked(f"judge {ENDLESS} upstream_timeout 0 350").judges == (History(),)
