"""The error of a call that brought no answer: small, picklable, the same for every client.

Clients translate what their library raises at their own border, so that nothing of a library travels through
queues, processes or logs. The reasons, and what follows from each, are in `shared.upstream.failure_reasons`.
"""

import ssl
from collections.abc import Mapping
from typing import Final

from shared.errors import ProctorError
from shared.scrubbing import kept
from shared.upstream.failure_reasons import ENDS_MODEL_RUN, RETRYABLE, FailureReason, Health

_TRUST_HINT: Final = (
    "to trust it, add it or its authority to the file that SSL_CERT_FILE names where the workers run"
)
_CERTIFICATE_HINTS: Final = {
    10: "renew it",
    62: "call it by a name that the certificate has",
    64: "call it by a name that the certificate has",
}
"""What helps, by OpenSSL's number of the problem (X509_V_ERR_…): expired, other host, other address."""


class UpstreamError(ProctorError):
    """A call brought no answer.

    Args:
        reason: why.
        message: for people; what an upstream wrote goes through `kept_error` before it is kept.
        status: HTTP status; 0 when no reply came.
        wait_s: what the upstream asked us to wait, see `worker.upstream.retry_after`.
    """

    exit_code = 3

    def __init__(
        self, reason: FailureReason, message: str, *, status: int = 0, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status
        self.wait_s = wait_s

    @property
    def code(self) -> str:  # type: ignore[override]  # depends on the reason
        """Stable word for programs."""
        return self.reason.model_code

    @property
    def retryable(self) -> bool:  # type: ignore[override]  # as above
        """Whether the same call may succeed later."""
        return self.reason in RETRYABLE

    @property
    def health(self) -> Health:
        """Health of the endpoint after this error."""
        return self.reason.health

    @property
    def ends_run(self) -> bool:
        """Whether every other call of the run would fail too."""
        return self.reason in ENDS_MODEL_RUN

    def because(self, reason: FailureReason) -> "UpstreamError":
        """Returns the same error with another reason."""
        return UpstreamError(reason, self.message, status=self.status, wait_s=self.wait_s)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles by value: an exception's own way loses keyword arguments."""
        return _rebuild, (self.reason, self.message, self.status, self.wait_s)


def _rebuild(reason: FailureReason, message: str, status: int, wait_s: float | None) -> UpstreamError:
    return UpstreamError(reason, message, status=status, wait_s=wait_s)


def kept_error(error: UpstreamError, environment: Mapping[str, str]) -> UpstreamError:
    """Makes of an error one that may be kept and shown: without secrets, and then cut.

    >>> kept_error(UpstreamError(FailureReason.REFUSED, "no: abcdefgh"), {"MY_KEY": "abcdefgh"}).message
    'no: ***'
    """
    text = kept(error.message, environment)
    return UpstreamError(error.reason, text, status=error.status, wait_s=error.wait_s)


def tls_problem(error: BaseException, place: str) -> str:
    """Explains why there is no secure connection, and what helps; empty where that is not what went wrong.

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
