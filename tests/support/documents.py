"""Documents of runs as they are printed, for tests that read them as other programs do."""

import json
from typing import Any

import msgspec

from producer.documents import AnyRun, as_json


def printed(document: msgspec.Struct) -> Any:
    """What `--json` prints."""
    return json.loads(as_json(document))


def with_summary(document: AnyRun, **changes: Any) -> AnyRun:
    """The document with another summary."""
    return msgspec.structs.replace(document, summary=msgspec.structs.replace(document.summary, **changes))
