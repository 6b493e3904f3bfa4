"""Tells from a file's first bytes what kind of run it describes, and refuses kinds this version cannot run.

The content decides; the file's suffix is asked only when the content says nothing, and then the kind's own
loader gives the precise error.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Final

from producer.load.case_load import load_cases
from producer.load.loads import Load, load_queries, load_turns
from producer.load.source import Source
from producer.options import SubmitOptions
from shared.errors import InputError, UsageError
from shared.kinds import CASES, QUERIES, TURNS, Kind, all_kinds

Loader = Callable[[Source, SubmitOptions], Load]

LOADERS: Final[Mapping[Kind, Loader]] = {
    TURNS: load_turns,
    QUERIES: load_queries,
    CASES: load_cases,
}
"""How each kind that this version runs is read."""

_KEYS: Final = {
    TURNS: frozenset({"threadId", "message", "messageId", "clientRequestId", "signals", "modelShape"}),
    QUERIES: frozenset({"queries", "query", "is_oos", "category", "expected_urls", "answer_exists"}),
    CASES: frozenset(
        {
            "test_cases",
            "test_cases_file",
            "bench",
            "models",
            "model_configs",
            "system_prompt",
            "judge_model",
            "judge_models",
        }
    ),
}
"""Keys on the first level that give a kind away."""
_SUFFIXES: Final = {
    ".jsonl": TURNS,
    ".ndjson": TURNS,
    ".yaml": CASES,
    ".yml": CASES,
    ".json": QUERIES,
}
_JSON_KEY = re.compile(rb'"(\w+)"\s*:')
_YAML_KEY = re.compile(rb"^(\w+)\s*:", re.MULTILINE)


def detect_kind(source: Source) -> Kind:
    """Recognises the kind of a source without using it up.

    Raises:
        InputError: the source cannot be read, is empty, or looks like none of the kinds.
    """
    head = source.head()
    if not head.strip():
        likely = _SUFFIXES.get(PurePath(source.name).suffix.lower())
        chosen = f" --kind {likely}" if likely else ""
        raise InputError(f"{source.name}: is empty", hint=f"`proctor init{chosen}` writes an example")
    kind = kind_of(head) or _SUFFIXES.get(PurePath(source.name).suffix.lower())
    if kind is None:
        raise InputError(
            f"{source.name}: cannot tell what this file describes",
            hint=f"say so: --kind {'|'.join(map(str, all_kinds()))}",
        )
    return kind


def loader_for(kind: Kind, name: str) -> Loader:
    """Finds the reader of a kind.

    Raises:
        UsageError: this version does not run this kind.
    """
    loader = LOADERS.get(kind)
    if loader is None:
        raise UsageError(
            f"{name}: describes {kind}, which this version of Proctor does not run",
            hint=f"this version runs: {', '.join(map(str, LOADERS))}",
        )
    return loader


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
    scores = {kind: len(keys & known) for kind, known in _KEYS.items()}
    best = max(scores, key=lambda kind: scores[kind])
    return best if scores[best] else None


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
