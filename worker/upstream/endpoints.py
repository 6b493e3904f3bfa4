"""What a call goes to, as limits and breaker see it: an endpoint with the scopes whose limits hold for it.

openai/gpt-4o    of the model where it is called (`api_base`) and of the provider or that endpoint, both for
                 the account that pays; of the run (-j)
an API's URL     of the URL; of the run (--delay, --concurrency)
"""

from dataclasses import dataclass
from typing import Final

from shared.upstream.failure_reasons import FailureReason
from shared.upstream.limits import Limits, Scope, limit_key, model_scope, upstream_key
from shared.upstream.model_target import ModelTarget

UNLIMITED: Final = Limits()
GRACE_S: Final = 5.0
"""The client's own time limit, whose error says more, ends a call so much before the gate's."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A place that calls go to."""

    scopes: tuple[Scope, ...]
    """Scopes whose limits hold; the first is its own, with pause, breaker and adaptive number of calls."""
    has_breaker: bool = True
    """Whether calls are held back while it fails; not for a run in which every failure is a result."""
    timeout_s: float = 60.0
    """Hard limit of one call, whatever the client does."""
    is_api: bool = False
    """Whether it is an API under test, whose failures have codes of their own."""

    def code_of(self, reason: FailureReason) -> str:
        """Returns the error code of a call that failed, as results, logs and metrics hold it."""
        return reason.api_code if self.is_api else reason.model_code


def run_scope(run: str, *, concurrency: int | None = None, pace_s: float | None = None) -> Scope:
    """Bounds a run over the whole fleet.

    >>> run_scope("r1", concurrency=4).name
    'run:r1'
    """
    return Scope(f"run:{run}", limits=Limits(concurrency=concurrency, pace_s=pace_s or None))


def api_endpoint(
    url: str, *more: Scope, limits: Limits = UNLIMITED, has_breaker: bool = True, timeout_s: float = 60.0
) -> Endpoint:
    """Names an API by its URL.

    Args:
        url: its base URL.
        more: other scopes whose limits hold, such as the run's.
        limits: those of the caller; `limits set` goes before.
        has_breaker: whether calls are held back while it fails.
        timeout_s: hard limit of one call.
    """
    return Endpoint((Scope(limit_key(url), limits=limits), *more), has_breaker, timeout_s, is_api=True)


def model_endpoint(target: ModelTarget, account: str, *more: Scope, grace_s: float = 0.0) -> Endpoint:
    """Names a model.

    Args:
        target: the model, and where it is called.
        account: `shared.upstream.limits.account_of` the key that is used.
        more: other scopes whose limits hold, such as the run's.
        grace_s: what is added to the hard limit of one call.

    >>> [scope.name for scope in model_endpoint(ModelTarget("openai/gpt-4o"), "1f2e3d4c").scopes]
    ['openai/gpt-4o 1f2e3d4c', 'openai 1f2e3d4c']
    >>> [scope.name for scope in model_endpoint(ModelTarget("mine", "http://localhost:1/v1"), "").scopes]
    ['mine @http://localhost:1/v1', 'http://localhost:1/v1']
    """
    scopes = model_scope(target, account), Scope(upstream_key(target), account)
    return Endpoint((*dict.fromkeys(scopes), *more), timeout_s=target.timeout_s + grace_s)
