"""A collector of traces for tests: takes OTLP over HTTP, decodes it, and gives spans as values.

with Collector() as collector:
    ... OTEL_EXPORTER_OTLP_ENDPOINT=collector.url ...
    [trace] = collector.traces()
"""

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1 import trace_pb2

PROTOBUF: Final = "application/x-protobuf"


@dataclass(frozen=True, slots=True)
class Seen:
    """One span, as it arrived."""

    trace: str
    id: str
    parent: str
    """Empty for the first of a trace."""
    name: str
    kind: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    is_error: bool
    instance: str
    """The process that made it."""
    resource: dict[str, Any]


@dataclass
class Collector:
    """A server in a thread, on a free port of the loopback."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    """What was sent, uncompressed."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of those requests, by name in small letters."""
    spans: list[Seen] = field(default_factory=list)

    def __enter__(self) -> Self:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            """Takes one request."""

            def do_POST(self) -> None:
                """Answers as collectors do."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                is_ours = self.path == "/v1/traces" and self.headers["Content-Type"] == PROTOBUF
                if is_ours:
                    collector.take(body, {name.lower(): value for name, value in self.headers.items()})
                self.send_response(200 if is_ours else 404)
                self.send_header("Content-Type", PROTOBUF)
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="collector")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        """Keeps one request."""
        self.bodies.append(body)
        self.headers.append(headers)
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _values(resource_spans.resource.attributes)
            for scope_spans in resource_spans.scope_spans:
                self.spans += [_seen(span, resource) for span in scope_spans.spans]

    def traces(self) -> list[list[Seen]]:
        """Groups the spans by trace."""
        names = dict.fromkeys(span.trace for span in self.spans)
        return [[span for span in self.spans if span.trace == name] for name in names]


def _seen(span: trace_pb2.Span, resource: dict[str, Any]) -> Seen:
    return Seen(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        _values(span.attributes),
        [(event.name, _values(event.attributes)) for event in span.events],
        span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        resource["service.instance.id"],
        resource,
    )


def _values(attributes: Any) -> dict[str, Any]:
    """Reads attributes; all of ours are text, numbers or truth values."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
