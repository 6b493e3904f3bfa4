"""Recognises the kind of a file from its first bytes.

The content decides; the suffix is used only if the content has no known key, and then the loader of the kind
reports the precise error.
"""

import json
import re
from pathlib import PurePath
from typing import Any

from producer import kinds
from producer.load.source import Source
from shared.errors import InputError
from shared.kinds import Kind, all_kinds

_JSON_KEY = re.compile(rb'"(\w+)"\s*:')
_YAML_KEY = re.compile(rb"^(\w+)\s*:", re.MULTILINE)


def detect_kind(source: Source) -> Kind:
    """Recognises the kind of a source without using it up.

    Raises:
        InputError: the source cannot be read, is empty, or looks like none of the kinds.
    """
    head = source.head()
    if not head.strip():
        likely = _kind_of_suffix(source.name)
        chosen = f" --kind {likely}" if likely else ""
        raise InputError(f"{source.name}: is empty", hint=f"`proctor init{chosen}` writes an example")
    kind = kind_of(head) or _kind_of_suffix(source.name)
    if kind is None:
        raise InputError(
            f"{source.name}: cannot tell what this file describes",
            hint=f"say so: --kind {'|'.join(map(str, all_kinds()))}",
        )
    return kind


def kind_of(head: bytes) -> Kind | None:
    r"""Recognises the kind from the first bytes of the content.

    >>> kind_of(b'{"threadId": "t", "message": "ok"}\n')
    Kind(name='turns')
    >>> kind_of(b'[{"id": "Q-01", "query": "How?"}]')
    Kind(name='queries')
    >>> kind_of(b'bench:\n  name: x\n')
    Kind(name='cases')
    >>> kind_of(b"hello") is None
    True
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    keys = _first_keys(text)
    scores = {each.kind: len(keys & each.traits.keys) for each in kinds.declared()}
    best = max(scores, key=lambda kind: scores[kind])
    return best if scores[best] else None


def _kind_of_suffix(name: str) -> Kind | None:
    """Returns the kind whose files usually have such a name."""
    suffix = PurePath(name).suffix.lower()
    return next((each.kind for each in kinds.declared() if suffix in each.traits.suffixes), None)


def _first_keys(text: bytes) -> set[str]:
    """Lists the keys of the first JSON object, or of a YAML document's first level."""
    first_line = text.partition(b"\n")[0]
    document = _json_or_none(first_line)
    if isinstance(document, list) and document:
        document = document[0]
    if isinstance(document, dict):
        return set(document)
    pattern = _JSON_KEY if text.startswith((b"{", b"[")) else _YAML_KEY
    return {match.decode() for match in pattern.findall(text[:4096])}


def _json_or_none(line: bytes) -> Any:
    """The line as JSON; None when it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
