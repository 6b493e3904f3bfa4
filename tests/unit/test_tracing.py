"""Warnings when traces are configured and cannot be sent."""

import sys

import pytest

from shared.observability import tracing


def test_without_the_packages_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint is named, the extra is not installed: the warning names it, nothing is traced."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.delitem(sys.modules, "shared.observability.otel", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    problems: list[str] = []
    tracing.start(instance="here", on_problem=problems.append)
    [sentence] = problems
    assert "OpenTelemetry is not installed; `pip install 'proctor[otel]'`" in sentence
    assert not tracing.is_on()


def test_a_protocol_that_is_not_supported_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra brings HTTP only; whoever asks for gRPC learns why no traces come."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    problems: list[str] = []
    tracing.start(instance="here", on_problem=problems.append)
    assert problems == ["no traces: OTEL_EXPORTER_OTLP_PROTOCOL=grpc, and only http/protobuf is supported"]
