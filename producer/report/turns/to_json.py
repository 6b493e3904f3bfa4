"""Writes a turns run as one JSON document."""

from typing import BinaryIO

from producer.report.json_document import JsonDocument
from producer.report.turns.to_jsonl import TurnLines
from shared.runs import RunInfo


def json_report(out: BinaryIO, info: RunInfo) -> JsonDocument:
    """Begins the document."""
    return JsonDocument(out, TurnLines(info.run).page)
