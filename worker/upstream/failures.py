"""Why a call to an upstream brought no answer, in our own words: small, picklable, the same for every client.

Clients translate what their library raises at their own border, so that nothing of a library travels through
queues, processes or logs.

    trouble         what happened                                     tried again   says about the endpoint
    rate_limited    429                                               yes           busy
    timeout         no (complete) answer in time, 408                 yes           slow
    connection      refused, reset, no such host, half a body         yes           sick
    insecure        certificate not trusted, no TLS: ends the run     no            sick
    server_error    500 and above                                     yes           sick
    unauthorised    401, 403: ends the run                            no            well
    forbidden       not asked: this worker may not call it; ends it   no            -
    refused         any other status                                  no            well
    invalid_reply   200 with something that is no answer              no            well
    too_large       200 with more than we take                        no            well
    unpriced        not asked: nobody knows what it would cost        no            -
"""

import ssl
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from shared.errors import ProctorError
from shared.scrubbing import kept

REQUEST_TIMEOUT: Final = 408
TOO_MANY_REQUESTS: Final = 429
UNAUTHORISED: Final = frozenset({401, 403})
FIRST_SERVER_ERROR: Final = 500

_TRUST_HINT: Final = (
    "to trust it, add it or its authority to the file that SSL_CERT_FILE names where the workers run"
)
_CERTIFICATE_HINTS: Final = {
    10: "renew it",
    62: "call it by a name that the certificate has",
    64: "call it by a name that the certificate has",
}
"""What helps, by OpenSSL's number of the problem (X509_V_ERR_…): expired, other host, other address."""


class Trouble(StrEnum):
    """Why there is no answer; also the item's error code."""

    RATE_LIMITED = "upstream_rate_limited"
    """Too many requests: the upstream works, only not for us now."""
    TIMEOUT = "upstream_timeout"
    """Nothing, or not everything, within the time limit."""
    CONNECTION = "upstream_connection"
    """No connection, or it broke before the answer was complete."""
    INSECURE = "upstream_insecure"
    """The server shows a certificate that is not trusted, or does not speak TLS: nothing was sent."""
    SERVER_ERROR = "upstream_server_error"
    """The upstream says that it failed."""
    UNAUTHORISED = "upstream_unauthorised"
    """The upstream does not accept our credentials: the same for every other call of the run."""
    FORBIDDEN = "upstream_forbidden"
    """This worker may not call the place, or not send it that variable: nothing was sent."""
    REFUSED = "upstream_refused"
    """The upstream does not accept this request."""
    INVALID_REPLY = "upstream_invalid_reply"
    """The upstream answered with something that is no answer."""
    TOO_LARGE = "output_too_large"
    """The answer is larger than an output may be."""
    UNPRICED = "price_unknown"
    """The run has a cost cap, and what a call of this model costs is not known: nothing was sent."""


BILLED: Final = frozenset({Trouble.TIMEOUT, Trouble.INVALID_REPLY, Trouble.TOO_LARGE})
"""After these the upstream has perhaps answered, and so asks for its money."""
RETRYABLE: Final = frozenset(
    {Trouble.RATE_LIMITED, Trouble.TIMEOUT, Trouble.CONNECTION, Trouble.SERVER_ERROR}
)
"""What may pass by itself."""


ENDS_RUN: Final = frozenset({Trouble.UNAUTHORISED, Trouble.FORBIDDEN, Trouble.INSECURE})
"""The same for every other call of the run."""


class Health(StrEnum):
    """What the end of one call says about its endpoint."""

    WELL = "well"
    """It answered, with an answer or with a refusal of this request."""
    BUSY = "busy"
    """It wants fewer calls."""
    SLOW = "slow"
    """It did not answer in time: it wants fewer calls, or is broken."""
    SICK = "sick"
    """It is broken, or cannot be reached."""
    UNKNOWN = "unknown"
    """The call was broken off by us."""


_HEALTH: Final = {
    Trouble.RATE_LIMITED: Health.BUSY,
    Trouble.TIMEOUT: Health.SLOW,
    Trouble.CONNECTION: Health.SICK,
    Trouble.INSECURE: Health.SICK,
    Trouble.SERVER_ERROR: Health.SICK,
}


class UpstreamError(ProctorError):
    """A call brought no answer.

    Args:
        trouble: why.
        message: for people; what an upstream wrote goes through `kept_error` before it is kept.
        status: HTTP status; 0 when no reply came.
        wait_s: what the upstream asked us to wait, see `worker.upstream.retry_after`.
    """

    exit_code = 3

    def __init__(
        self, trouble: Trouble, message: str, *, status: int = 0, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.status = status
        self.wait_s = wait_s

    @property
    def code(self) -> str:  # type: ignore[override]  # which word it is depends on the trouble
        """Stable word for programs."""
        return str(self.trouble)

    @property
    def retryable(self) -> bool:  # type: ignore[override]  # as above
        """Whether the same call may succeed later."""
        return self.trouble in RETRYABLE

    @property
    def health(self) -> Health:
        """What it says about the endpoint."""
        return _HEALTH.get(self.trouble, Health.WELL)

    @property
    def ends_run(self) -> bool:
        """Whether every other call of the run would fail too."""
        return self.trouble in ENDS_RUN

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles by value: an exception's own way loses keyword arguments."""
        return _rebuilt, (str(self.trouble), self.message, self.status, self.wait_s)


def _rebuilt(trouble: str, message: str, status: int, wait_s: float | None) -> UpstreamError:
    return UpstreamError(Trouble(trouble), message, status=status, wait_s=wait_s)


def kept_error(error: UpstreamError, environment: Mapping[str, str]) -> UpstreamError:
    """Makes of an error one that may be kept and shown: without secrets, and then cut.

    >>> kept_error(UpstreamError(Trouble.REFUSED, "no: abcdefgh"), {"MY_KEY": "abcdefgh"}).message
    'no: ***'
    """
    text = kept(error.message, environment)
    return UpstreamError(error.trouble, text, status=error.status, wait_s=error.wait_s)


def tls_problem(error: BaseException, place: str) -> str:
    """Says why there is no secure connection, and what helps; empty where that is not what went wrong.

    Args:
        error: as the HTTP client raised it.
        place: host and port that were called.

    >>> error = ssl.SSLCertVerificationError(1, "x")
    >>> error.verify_code, error.verify_message = 10, "certificate has expired"
    >>> tls_problem(error, "localhost:1"), tls_problem(OSError(), "localhost:1")
    ('the certificate of localhost:1 is not trusted: certificate has expired; renew it', '')
    """
    found = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    if isinstance(found, ssl.SSLCertVerificationError):
        why = getattr(found, "verify_message", "") or found.reason or "unknown reason"
        hint = _CERTIFICATE_HINTS.get(getattr(found, "verify_code", 0), _TRUST_HINT)
        return f"the certificate of {place} is not trusted: {why.rstrip('.')}; {hint}"
    if isinstance(found, ssl.SSLError):
        why = (found.reason or "unknown reason").lower().replace("_", " ")
        return f"no TLS connection to {place}: {why}; an address without TLS begins with http://"
    return ""


def trouble_of_status(status: int) -> Trouble:
    """Names what an HTTP status other than 200 means.

    >>> [trouble_of_status(status).name for status in (429, 408, 503, 401, 404, 302)]
    ['RATE_LIMITED', 'TIMEOUT', 'SERVER_ERROR', 'UNAUTHORISED', 'REFUSED', 'REFUSED']
    """
    if status == TOO_MANY_REQUESTS:
        return Trouble.RATE_LIMITED
    if status == REQUEST_TIMEOUT:
        return Trouble.TIMEOUT
    if status in UNAUTHORISED:
        return Trouble.UNAUTHORISED
    return Trouble.SERVER_ERROR if status >= FIRST_SERVER_ERROR else Trouble.REFUSED
