"""Traces runs with OpenTelemetry if configured; otherwise each call costs one comparison.

    submit                     in the producer; its context stands in the run's snapshot
    └─ chunk                   one delivery of a chunk to a worker, in whatever process
       ├─ claim, commit        calls of the ledger
       └─ item                 one case or query
          ├─ chat MODEL        one call of a model; `POST` of an API
          └─ validate          stages 0 to 3

Tracing is on where `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector and the extra `proctor[otel]` is
installed. Spans hold names and figures, never what people or models have written. Turns have no spans of
their own: they cost microseconds. `shared.observability.otel` makes the spans, imported when tracing is on.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Final, Self

from shared.names import DISTRIBUTION
from shared.observability.spans import Attributes, Kind, Span, SpanMaker

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Variables that name the collector; without one of them tracing is off."""
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL: Final = "http/protobuf"
"""The one protocol that the extra brings."""


class _Off:
    """A span where tracing is off."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set(self, attributes: Attributes) -> None:
        """Does nothing."""

    def fail(self, code: str) -> None:
        """Does nothing."""

    def end(self) -> None:
        """Does nothing."""

    def current(self) -> AbstractContextManager[object]:
        """Changes nothing."""
        return nullcontext()


OFF: Final[Span] = _Off()
_backend: SpanMaker | None = None


def start(*, instance: str, on_problem: Callable[[str], object]) -> None:
    """Switches tracing on, if the environment enables it.

    Args:
        instance: names this process in the fleet.
        on_problem: called with a sentence if tracing is enabled but not available.
    """
    global _backend  # noqa: PLW0603 - one for the process, like the handlers of `logging`
    if _backend is not None or not is_wanted(os.environ):
        return
    protocol = next(filter(None, (os.environ.get(name, "") for name in PROTOCOLS)), PROTOCOL)
    if protocol != PROTOCOL:
        on_problem(f"no traces: OTEL_EXPORTER_OTLP_PROTOCOL={protocol}, and only {PROTOCOL} is supported")
        return
    try:
        otel = import_module("shared.observability.otel")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        on_problem(
            "no traces: OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed; "
            f"`pip install '{DISTRIBUTION}[otel]'`, or unset the variable"
        )
        return
    _backend = otel.Otel(instance=instance)


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Returns whether the environment enables traces, by OpenTelemetry's own variables.

    >>> is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}), is_wanted({})
    (True, False)
    >>> is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"})
    False
    """
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    is_none = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none"
    return not (is_off or is_none) and any(environment.get(name, "").strip() for name in ENDPOINTS)


def is_on() -> bool:
    """Returns whether spans are made, for callers whose attributes are expensive."""
    return _backend is not None


def span(
    name: str, attributes: Attributes | None = None, *, kind: Kind = "internal", parent: str = ""
) -> Span:
    """Begins a span.

    Args:
        name: of few different values.
        attributes: names and figures; those that are None are left out.
        kind: as OpenTelemetry has it.
        parent: a `traceparent`; empty: the current span.
    """
    return OFF if _backend is None else _backend.span(name, kind, parent, attributes or {})


def event(name: str, attributes: Attributes) -> None:
    """Adds an event to the current span."""
    if _backend is not None:
        _backend.event(name, attributes)


def traceparent() -> str:
    """Writes the context of the current span, for another process; empty where tracing is off."""
    return "" if _backend is None else _backend.traceparent()


def identity() -> dict[str, str]:
    """Returns `trace_id` and `span_id` of the current span, for logs; empty where there is none."""
    return {} if _backend is None else _backend.identity()


def close() -> None:
    """Sends what is left and switches tracing off; takes three seconds at most."""
    global _backend
    backend, _backend = _backend, None
    if backend is not None:
        backend.close()
