"""Holds the codes that results store for each failure reason."""

import pytest

from shared.upstream.failure_reasons import FailureReason

MODEL_CODES = {
    "RATE_LIMITED": "upstream_rate_limited",
    "NO_CAPACITY": "upstream_no_capacity",
    "TIMEOUT": "upstream_timeout",
    "UNREACHABLE": "upstream_connection",
    "UNREACHED": "upstream_connection",
    "ABSENT": "upstream_connection",
    "CONNECTION_LOST": "upstream_connection",
    "INSECURE": "upstream_insecure",
    "SERVER_ERROR": "upstream_server_error",
    "UNAUTHORISED": "upstream_unauthorised",
    "FORBIDDEN": "upstream_forbidden",
    "REFUSED": "upstream_refused",
    "INVALID_REPLY": "upstream_invalid_reply",
    "TOO_LARGE": "output_too_large",
    "UNPRICED": "price_unknown",
}
API_CODES = {
    "RATE_LIMITED": "api_rate_limited",
    "TIMEOUT": "api_timeout",
    "UNREACHABLE": "api_unreachable",
    "CONNECTION_LOST": "api_connection_lost",
    "INSECURE": "api_insecure",
    "SERVER_ERROR": "api_server_error",
    "FORBIDDEN": "api_forbidden",
    "REFUSED": "api_refused",
    "INVALID_REPLY": "api_invalid_body",
    "TOO_LARGE": "output_too_large",
}


def test_stored_codes_stay_what_they_are() -> None:
    """Results of earlier versions hold these codes, and programs compare them."""
    assert {reason.name: reason.model_code for reason in FailureReason} == MODEL_CODES
    assert {name: FailureReason[name].api_code for name in API_CODES} == API_CODES


@pytest.mark.parametrize("reason", FailureReason)
def test_every_reason_has_a_code_for_both_clients(reason: FailureReason) -> None:
    """No look-up fails while a failure is handled."""
    assert reason.model_code
    assert reason.api_code
    assert reason.health


def test_what_ends_a_run_of_queries_has_not_reached_the_api() -> None:
    """A connection that broke later, or an answer of any status, is a result."""
    assert {reason.api_code for reason in FailureReason if reason.ends_queries} == {
        "api_unreachable",
        "api_insecure",
        "api_forbidden",
    }
    assert FailureReason.CONNECTION_LOST.is_retried
