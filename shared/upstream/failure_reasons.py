"""Why a call to a model or an API has no answer: one row for each reason, with all that follows from it.

"Retried" is what model calls do. A query is sent again only after a 429, unless `--retry-errors` is given;
there every status but 429 and 500 and above is REFUSED. Both policies are in `worker.upstream.retry`.
"""

import re
from enum import Enum, Flag, StrEnum, auto, unique
from typing import Final

OK: Final = 200
NOT_FOUND: Final = 404
REQUEST_TIMEOUT: Final = 408
TOO_MANY_REQUESTS: Final = 429
NO_ROOM: Final = 498
UNAUTHORISED: Final = frozenset({401, 403})
FIRST_SERVER_ERROR: Final = 500
_UNAVAILABLE: Final = re.compile(r"resource[ _]unavailable", re.IGNORECASE)


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


class Follows(Flag):
    """What follows from a failure."""

    NOTHING = 0
    """The item ends in an error, and nothing else."""
    RETRIED = auto()
    """Transient: the same model call may succeed later."""
    BILLED = auto()
    """The upstream has perhaps answered, and so charges for the call."""
    SILENT = auto()
    """The endpoint has not replied; one that is too slow is there."""
    ENDS_MODELS = auto()
    """Every other model call of the run would fail too."""
    ENDS_QUERIES = auto()
    """Every other query of the run would fail too; none of them has reached the API."""


@unique
class FailureReason(Enum):
    """Why there is no answer: the error codes of items, the endpoint's health after it, what follows.

    The codes are what results, logs and metrics hold. No `StrEnum`, so that a type checker refuses a reason
    where a code belongs. Queries come to no UNREACHED, ABSENT, UNAUTHORISED or UNPRICED; they have codes too,
    so that no look-up can fail.
    """

    RATE_LIMITED = "upstream_rate_limited", "api_rate_limited", Health.BUSY, Follows.RETRIED
    """Too many requests (429): the upstream works, but rejects our calls for now."""
    NO_CAPACITY = "upstream_no_capacity", "api_rate_limited", Health.BUSY, Follows.RETRIED
    """The service tier that was asked for has no room now (429 `resource_unavailable`; 498 of Groq)."""
    TIMEOUT = "upstream_timeout", "api_timeout", Health.SLOW, Follows.RETRIED | Follows.BILLED
    """Nothing, or not everything, within the time limit; connecting is part of it. Also 408."""
    UNREACHABLE = (
        "upstream_connection",
        "api_unreachable",
        Health.UNHEALTHY,
        Follows.RETRIED | Follows.SILENT | Follows.ENDS_QUERIES,
    )
    """No connection could be made: refused, no such host, a proxy that does not connect."""
    UNREACHED = (
        "upstream_connection",
        "api_unreachable",
        Health.UNREACHED,
        Follows.RETRIED | Follows.ENDS_QUERIES,
    )
    """No connection could be made, or its URL was not found, and it has answered no call of the run."""
    ABSENT = "upstream_connection", "api_unreachable", Health.UNREACHED, Follows.ENDS_QUERIES
    """The same at least twice, or a 404: another attempt is pointless, see `worker.upstream.contacts`.

    It ends runs of live turns, and of cases where all models are given up.
    """
    CONNECTION_LOST = (
        "upstream_connection",
        "api_connection_lost",
        Health.UNHEALTHY,
        Follows.RETRIED | Follows.SILENT,
    )
    """The connection broke before the answer was complete: reset, half a body."""
    INSECURE = (
        "upstream_insecure",
        "api_insecure",
        Health.UNHEALTHY,
        Follows.SILENT | Follows.ENDS_MODELS | Follows.ENDS_QUERIES,
    )
    """The server shows a certificate that is not trusted, or does not speak TLS: nothing was sent."""
    SERVER_ERROR = "upstream_server_error", "api_server_error", Health.UNHEALTHY, Follows.RETRIED
    """The upstream reports an error of its own (500 and above)."""
    UNAUTHORISED = "upstream_unauthorised", "api_refused", Health.OK, Follows.ENDS_MODELS
    """The upstream does not accept our credentials (401, 403): the same for every other call of the run."""
    FORBIDDEN = (
        "upstream_forbidden",
        "api_forbidden",
        Health.OK,
        Follows.SILENT | Follows.ENDS_MODELS | Follows.ENDS_QUERIES,
    )
    """This worker may not call the place, or not send it that variable: nothing was sent."""
    REFUSED = "upstream_refused", "api_refused", Health.OK, Follows.NOTHING
    """The upstream does not accept this request: any other status than 200."""
    INVALID_REPLY = "upstream_invalid_reply", "api_invalid_body", Health.OK, Follows.BILLED
    """The upstream answered (200) with something that is no answer."""
    TOO_LARGE = "output_too_large", "output_too_large", Health.OK, Follows.BILLED
    """The answer is larger than an output may be."""
    UNPRICED = "price_unknown", "price_unknown", Health.OK, Follows.ENDS_MODELS
    """The run has a cost cap, and what a call of this model costs is not known: nothing was sent."""

    def __init__(self, model_code: str, api_code: str, health: Health, follows: Follows) -> None:
        self.model_code = model_code
        """The error code of an item whose model call failed so."""
        self.api_code = api_code
        """The error code of a query that failed so."""
        self.health = health
        """Health of the endpoint after it."""
        self.is_retried = Follows.RETRIED in follows
        self.is_billed = Follows.BILLED in follows
        self.is_silent = Follows.SILENT in follows
        self.ends_models = Follows.ENDS_MODELS in follows
        self.ends_queries = Follows.ENDS_QUERIES in follows


def reason_of_status(status: int, words: str = "") -> FailureReason:
    """Names what an HTTP status other than 200 means for a model call.

    Args:
        status: of the reply.
        words: its body, as far as it is known.

    >>> [reason_of_status(status).name for status in (429, 408, 503, 401, 404, 302)]
    ['RATE_LIMITED', 'TIMEOUT', 'SERVER_ERROR', 'UNAUTHORISED', 'REFUSED', 'REFUSED']
    >>> reason_of_status(429, '{"error": {"code": "resource_unavailable"}}').name
    'NO_CAPACITY'
    """
    if status == NO_ROOM or (status == TOO_MANY_REQUESTS and _UNAVAILABLE.search(words)):
        return FailureReason.NO_CAPACITY
    if status == TOO_MANY_REQUESTS:
        return FailureReason.RATE_LIMITED
    if status == REQUEST_TIMEOUT:
        return FailureReason.TIMEOUT
    if status in UNAUTHORISED:
        return FailureReason.UNAUTHORISED
    return FailureReason.SERVER_ERROR if status >= FIRST_SERVER_ERROR else FailureReason.REFUSED
