"""Documents of runs as they are printed, for tests that read them as other programs do."""

import json
from typing import Any

import msgspec

from producer.document import report_of
from producer.documents import AnyRun, as_json
from producer.report import to_terminal


def printed(document: msgspec.Struct) -> Any:
    """What `--json` prints."""
    return json.loads(as_json(document))


def with_summary(document: AnyRun, **changes: Any) -> AnyRun:
    """The document with another summary."""
    return msgspec.structs.replace(document, summary=msgspec.structs.replace(document.summary, **changes))


def summary_text(document: AnyRun) -> str:
    """What a terminal shows of a run."""
    return to_terminal.summary_text(report_of(document))


def more_text(document: AnyRun) -> str:
    """What `-v` adds."""
    return to_terminal.more_text(report_of(document))
