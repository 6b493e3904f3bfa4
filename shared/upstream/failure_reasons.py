"""Why a call to a model or an API has no answer: one list, with what follows from each reason.

    reason            what happened                          retried   endpoint    ends a run of
    RATE_LIMITED      429                                    yes       busy        -
    TIMEOUT           no (complete) answer in time, 408      yes       slow        -
    UNREACHABLE       refused, no such host, no proxy        yes       unhealthy   queries
    UNREACHED         the same of an endpoint that has
                      answered no call of the run yet        yes       unreached   -
    ABSENT            the same again, or a 404 of such one   no        unreached   live turns; cases where all
                                                                                   models are given up
    CONNECTION_LOST   reset, half a body                     yes       unhealthy   -
    INSECURE          certificate not trusted, no TLS        no        unhealthy   cases, live turns, queries
    SERVER_ERROR      500 and above                          yes       unhealthy   -
    UNAUTHORISED      401, 403 (of a model)                  no        ok          cases, live turns
    FORBIDDEN         not sent: this worker may not call it  no        ok          cases, live turns, queries
    REFUSED           any other status                       no        ok          -
    INVALID_REPLY     200 with something that is no answer   no        ok          -
    TOO_LARGE         200 with more than we take             no        ok          -
    UNPRICED          not sent: its price is not known       no        ok          cases, live turns

"Retried" is what model calls do. A query is sent again only after a 429, unless `--retry-errors` is given;
there every status but 429 and 500 and above is REFUSED. Both policies are in `worker.upstream.retry`.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Final

OK: Final = 200
NOT_FOUND: Final = 404
REQUEST_TIMEOUT: Final = 408
TOO_MANY_REQUESTS: Final = 429
UNAUTHORISED: Final = frozenset({401, 403})
FIRST_SERVER_ERROR: Final = 500


class Health(StrEnum):
    """Health of an endpoint after one call; limits and circuit breaker adapt to it."""

    OK = "ok"
    """It answered, possibly by refusing this request."""
    BUSY = "busy"
    """It requests fewer calls."""
    SLOW = "slow"
    """It did not answer in time: it is overloaded or broken."""
    UNHEALTHY = "unhealthy"
    """It is broken, or cannot be reached."""
    UNREACHED = "unreached"
    """It has never been reached: nothing that worked has broken, and a closed breaker stays closed."""
    UNKNOWN = "unknown"
    """The call was cancelled by us."""


class FailureReason(Enum):
    """Why there is no answer; `model_code` and `api_code` are what results, logs and metrics hold.

    No `StrEnum`, so that a type checker refuses a reason where a code belongs.
    """

    RATE_LIMITED = "rate_limited"
    """Too many requests: the upstream works, but rejects our calls for now."""
    TIMEOUT = "timeout"
    """Nothing, or not everything, within the time limit; connecting is part of it."""
    UNREACHABLE = "unreachable"
    """No connection could be made: refused, no such host, a proxy that does not connect."""
    UNREACHED = "unreached"
    """No connection could be made, or its URL was not found, and it has answered no call of the run."""
    ABSENT = "absent"
    """The same at least twice, or a 404: another attempt is pointless, see `worker.upstream.contacts`."""
    CONNECTION_LOST = "connection_lost"
    """The connection broke before the answer was complete."""
    INSECURE = "insecure"
    """The server shows a certificate that is not trusted, or does not speak TLS: nothing was sent."""
    SERVER_ERROR = "server_error"
    """The upstream reports an error of its own."""
    UNAUTHORISED = "unauthorised"
    """The upstream does not accept our credentials: the same for every other call of the run."""
    FORBIDDEN = "forbidden"
    """This worker may not call the place, or not send it that variable: nothing was sent."""
    REFUSED = "refused"
    """The upstream does not accept this request."""
    INVALID_REPLY = "invalid_reply"
    """The upstream answered with something that is no answer."""
    TOO_LARGE = "too_large"
    """The answer is larger than an output may be."""
    UNPRICED = "unpriced"
    """The run has a cost cap, and what a call of this model costs is not known: nothing was sent."""

    @property
    def model_code(self) -> str:
        """The error code of an item whose model call failed so."""
        return _MODEL_CODES[self]

    @property
    def api_code(self) -> str:
        """The error code of a query that failed so."""
        return _API_CODES[self]

    @property
    def health(self) -> Health:
        """Health of the endpoint after it."""
        return _HEALTH.get(self, Health.OK)


RETRYABLE: Final = frozenset(
    {
        FailureReason.RATE_LIMITED,
        FailureReason.TIMEOUT,
        FailureReason.UNREACHABLE,
        FailureReason.UNREACHED,
        FailureReason.CONNECTION_LOST,
        FailureReason.SERVER_ERROR,
    }
)
"""Transient: the same model call may succeed later."""
BILLED: Final = frozenset({FailureReason.TIMEOUT, FailureReason.INVALID_REPLY, FailureReason.TOO_LARGE})
"""After these the upstream has perhaps answered, and so charges for the call."""
ENDS_MODEL_RUN: Final = frozenset(
    {
        FailureReason.UNAUTHORISED,
        FailureReason.FORBIDDEN,
        FailureReason.INSECURE,
        FailureReason.UNPRICED,
    }
)
"""Every other model call of the run would fail too."""
ENDS_QUERY_RUN: Final = frozenset(
    {
        FailureReason.UNREACHABLE,
        FailureReason.UNREACHED,
        FailureReason.ABSENT,
        FailureReason.INSECURE,
        FailureReason.FORBIDDEN,
    }
)
"""Every other query of the run would fail too; none of them has reached the API."""

_HEALTH: Final[Mapping[FailureReason, Health]] = {
    FailureReason.RATE_LIMITED: Health.BUSY,
    FailureReason.TIMEOUT: Health.SLOW,
    FailureReason.UNREACHABLE: Health.UNHEALTHY,
    FailureReason.UNREACHED: Health.UNREACHED,
    FailureReason.ABSENT: Health.UNREACHED,
    FailureReason.CONNECTION_LOST: Health.UNHEALTHY,
    FailureReason.INSECURE: Health.UNHEALTHY,
    FailureReason.SERVER_ERROR: Health.UNHEALTHY,
}
_MODEL_CODES: Final[Mapping[FailureReason, str]] = {
    FailureReason.RATE_LIMITED: "upstream_rate_limited",
    FailureReason.TIMEOUT: "upstream_timeout",
    FailureReason.UNREACHABLE: "upstream_connection",
    FailureReason.UNREACHED: "upstream_connection",
    FailureReason.ABSENT: "upstream_connection",
    FailureReason.CONNECTION_LOST: "upstream_connection",
    FailureReason.INSECURE: "upstream_insecure",
    FailureReason.SERVER_ERROR: "upstream_server_error",
    FailureReason.UNAUTHORISED: "upstream_unauthorised",
    FailureReason.FORBIDDEN: "upstream_forbidden",
    FailureReason.REFUSED: "upstream_refused",
    FailureReason.INVALID_REPLY: "upstream_invalid_reply",
    FailureReason.TOO_LARGE: "output_too_large",
    FailureReason.UNPRICED: "price_unknown",
}
_API_CODES: Final[Mapping[FailureReason, str]] = {
    FailureReason.RATE_LIMITED: "api_rate_limited",
    FailureReason.TIMEOUT: "api_timeout",
    FailureReason.UNREACHABLE: "api_unreachable",
    FailureReason.UNREACHED: "api_unreachable",
    FailureReason.ABSENT: "api_unreachable",
    FailureReason.CONNECTION_LOST: "api_connection_lost",
    FailureReason.INSECURE: "api_insecure",
    FailureReason.SERVER_ERROR: "api_server_error",
    FailureReason.UNAUTHORISED: "api_refused",
    FailureReason.FORBIDDEN: "api_forbidden",
    FailureReason.REFUSED: "api_refused",
    FailureReason.INVALID_REPLY: "api_invalid_body",
    FailureReason.TOO_LARGE: "output_too_large",
    FailureReason.UNPRICED: "price_unknown",
}
"""Queries come to no UNREACHED, ABSENT, UNAUTHORISED or UNPRICED; a code for each reason, so that no look-up
can fail."""


def reason_of_status(status: int) -> FailureReason:
    """Names what an HTTP status other than 200 means for a model call.

    >>> [reason_of_status(status).name for status in (429, 408, 503, 401, 404, 302)]
    ['RATE_LIMITED', 'TIMEOUT', 'SERVER_ERROR', 'UNAUTHORISED', 'REFUSED', 'REFUSED']
    """
    if status == TOO_MANY_REQUESTS:
        return FailureReason.RATE_LIMITED
    if status == REQUEST_TIMEOUT:
        return FailureReason.TIMEOUT
    if status in UNAUTHORISED:
        return FailureReason.UNAUTHORISED
    return FailureReason.SERVER_ERROR if status >= FIRST_SERVER_ERROR else FailureReason.REFUSED
