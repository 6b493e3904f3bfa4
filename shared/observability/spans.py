"""What tracing and OpenTelemetry agree on: spans, their attributes, and what makes them."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Literal, Protocol, Self

SNAPSHOT_KEY: Final = "traceparent"
"""Key in a run's snapshot of the context of its trace (W3C Trace Context)."""
Kind = Literal["internal", "client", "producer", "consumer"]
Value = str | bool | int | float
Attributes = Mapping[str, Value | None]
"""Attributes that are None are left out."""


class Span(Protocol):
    """Something that takes time; as a context manager it is current within its block and ends with it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None: ...

    def set(self, attributes: Attributes) -> None:
        """Adds attributes."""

    def fail(self, code: str) -> None:
        """Marks it as failed, with an error code of ours."""

    def end(self) -> None:
        """Ends it; a second time has no effect."""

    def current(self) -> AbstractContextManager[object]:
        """Makes it current within a block that it outlives."""


class SpanMaker(Protocol):
    """What makes spans: `shared.observability.otel` has the one there is."""

    def span(self, name: str, kind: Kind, parent: str, attributes: Attributes) -> Span:
        """Begins a span below `parent` (a `traceparent`), or below the current one when that is empty."""

    def event(self, name: str, attributes: Attributes) -> None:
        """Adds an event to the current span."""

    def traceparent(self) -> str:
        """Writes the context of the current span."""

    def identity(self) -> dict[str, str]:
        """Returns ids of the current trace and span."""

    def close(self) -> None:
        """Sends what is left; takes a bounded time."""
