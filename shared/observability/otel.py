"""Makes spans with OpenTelemetry's SDK and sends them by OTLP over HTTP; imported only where tracing is on.

Sampling, endpoint, headers, batching and resource follow OpenTelemetry's own variables.
"""

import atexit
import logging
import os
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Self

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared import __version__
from shared.names import DISTRIBUTION
from shared.observability.spans import SNAPSHOT_KEY, Attributes, Kind, Span

CLOSE_S: Final = 3.0
"""How long the end of a process may wait for the collector."""
KINDS: Final[dict[Kind, trace.SpanKind]] = {
    "internal": trace.SpanKind.INTERNAL,
    "client": trace.SpanKind.CLIENT,
    "producer": trace.SpanKind.PRODUCER,
    "consumer": trace.SpanKind.CONSUMER,
}
_propagator: Final = TraceContextTextMapPropagator()


class Otel:
    """The spans of one process.

    Args:
        instance: names it in the fleet.
    """

    def __init__(self, *, instance: str) -> None:
        # A collector that is away must not write into a command's output; a worker's log has a handler.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        self._provider = TracerProvider(resource=_resource(instance), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(DISTRIBUTION, __version__)
        atexit.register(self.close)

    def span(self, name: str, kind: Kind, parent: str, attributes: Attributes) -> Span:
        """Begins a span."""
        under = _propagator.extract({SNAPSHOT_KEY: parent}) if parent else None
        return _Span(
            self._tracer.start_span(name, under, kind=KINDS[kind], attributes=_without_none(attributes))
        )

    def event(self, name: str, attributes: Attributes) -> None:
        """Adds an event to the current span."""
        trace.get_current_span().add_event(name, _without_none(attributes))

    def traceparent(self) -> str:
        """Writes the context of the current span."""
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get(SNAPSHOT_KEY, "")

    def identity(self) -> dict[str, str]:
        """Returns ids of the current trace and span."""
        found = trace.get_current_span().get_span_context()
        if not found.is_valid:
            return {}
        ids = trace.format_trace_id(found.trace_id), trace.format_span_id(found.span_id)
        return dict(zip(("trace_id", "span_id"), ids, strict=True))

    def close(self) -> None:
        """Sends what is left, for `CLOSE_S` at most: the SDK itself would wait half a minute."""
        atexit.unregister(self.close)
        ending = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(CLOSE_S)


class _Span:
    """One span; exceptions are not recorded, as their messages may hold content."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._block: AbstractContextManager[object] | None = None

    def __enter__(self) -> Self:
        self._block = self.current()
        self._block.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Exception):
            self.fail(kind.__qualname__)
        if self._block is not None:
            self._block.__exit__(kind, error, frames)
        self.end()

    def set(self, attributes: Attributes) -> None:
        """Adds attributes."""
        if self._span.is_recording():
            self._span.set_attributes(_without_none(attributes))

    def fail(self, code: str) -> None:
        """Marks it as failed; the first code stays."""
        if self._span.is_recording() and not self._is_failed():
            self._span.set_attribute("error.type", code)
            self._span.set_status(trace.StatusCode.ERROR, code)

    def end(self) -> None:
        """Ends it."""
        if self._span.is_recording():
            self._span.end()

    def current(self) -> AbstractContextManager[object]:
        """Makes it current within a block."""
        return trace.use_span(self._span, record_exception=False, set_status_on_exception=False)

    def _is_failed(self) -> bool:
        status = getattr(self._span, "status", None)
        return status is not None and status.status_code is trace.StatusCode.ERROR


def _resource(instance: str) -> Resource:
    """Describes this process; variables of the environment take precedence."""
    configured = f"{os.environ.get('OTEL_RESOURCE_ATTRIBUTES', '')},"
    attributes = {"service.version": __version__, "service.instance.id": instance}
    if not os.environ.get("OTEL_SERVICE_NAME") and "service.name=" not in configured:
        attributes["service.name"] = DISTRIBUTION
    return Resource.create(attributes)


def _without_none(attributes: Attributes) -> dict[str, str | bool | int | float]:
    return {name: value for name, value in attributes.items() if value is not None}
