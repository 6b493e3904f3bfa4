"""The error of a call that brought no answer: small, picklable, the same for every client.

Clients translate what their library raises at their own border, so that nothing of a library travels through
queues, processes or logs. The reasons, and what follows from each, are in `shared.upstream.failure_reasons`.
"""

from collections.abc import Mapping

from shared.errors import ProctorError
from shared.scrubbing import kept
from shared.upstream.failure_reasons import FailureReason, Health


class UpstreamError(ProctorError):
    """A call brought no answer.

    Args:
        reason: why.
        message: for people; what an upstream wrote goes through `kept_error` before it is kept.
        status: HTTP status; 0 when no reply came.
        wait_s: what the upstream asked us to wait, see `worker.upstream.retry_after`.
        is_proxy: whether it was the proxy that could not be reached, or did not connect.
    """

    exit_code = 3

    def __init__(
        self,
        reason: FailureReason,
        message: str,
        *,
        status: int = 0,
        wait_s: float | None = None,
        is_proxy: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status
        self.wait_s = wait_s
        self.is_proxy = is_proxy
        self.latency_ms = 0
        """Milliseconds from sending until it was known, where the client measures them."""

    @property
    def code(self) -> str:  # type: ignore[override]  # depends on the reason
        """Stable word for programs."""
        return self.reason.model_code

    @property
    def retryable(self) -> bool:  # type: ignore[override]  # as above
        """Whether the same call may succeed later."""
        return self.reason.is_retried

    @property
    def health(self) -> Health:
        """Health of the endpoint after this error."""
        return self.reason.health

    @property
    def ends_run(self) -> bool:
        """Whether every other call of the run would fail too."""
        return self.reason.ends_models

    def because(self, reason: FailureReason) -> "UpstreamError":
        """Returns the same error with another reason."""
        return UpstreamError(
            reason, self.message, status=self.status, wait_s=self.wait_s, is_proxy=self.is_proxy
        )

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
    return UpstreamError(
        error.reason, text, status=error.status, wait_s=error.wait_s, is_proxy=error.is_proxy
    )
