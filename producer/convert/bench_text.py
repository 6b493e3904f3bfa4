r"""Writes a bench as people do: known order of keys, short checks on a line, long texts as blocks, comments.

>>> from shared.contracts.case_config import CaseEntry
>>> case = CaseEntry(vars={"country": "France"}, checks=[{"contains": "Paris"}])
>>> bench = BenchConfig(name="b", models=["echo"], prompts=["Of {{ country }}?"], test_cases=[case])
>>> print(bench_text(bench))
name: b
models: [echo]
prompts:
  - user: "Of {{ country }}?"
test_cases:
  - vars: {country: France}
    checks: [{contains: Paris}]
<BLANKLINE>
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from producer.load.problems import Path
from producer.load.yaml_text import parse_yaml
from shared.contracts.case_config import BenchConfig
from shared.errors import WrongInput

LINE_CHARS: Final = 100
"""Lists and mappings that fit into a line of this length are written on one."""
FIRST: Final = (
    *("name", "description", "system_prompt", "models", "model_configs", "prompts", "vars", "params"),
    *(
        "headers",
        "judge_params",
        "schema",
        "schema_path",
        "validators_file",
        "config",
        "transform",
        "default_checks",
    ),
)
"""Keys of a bench in the order of the documentation; all others follow."""
LAST: Final = ("pairwise", "test_cases_file", "columns", "test_cases")
"""Those at the end."""
CASES: Final = "test_cases"
MODELS: Final = "models"
CASE_FIRST: Final = ("id", "tags", "vars", "expand", "system_prompt", "input", "messages", "images", "only")
"""Keys of a case that say what is asked."""
CASE_LAST: Final = ("metadata", "transform", "default_checks", "checks", "at_least")
"""Those that say what answers have to be."""
_ALWAYS_OPEN: Final = frozenset({"prompts", "test_cases", "model_configs", "config", "default_checks"})
"""Keys whose members stand on lines of their own."""
_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./ -]*[A-Za-z0-9_./]|[A-Za-z_]")
_WORDS: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_UNWRITABLE: Final = re.compile(
    r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]"
)

Comments = Mapping[Path, Sequence[str]]


def bench_text(bench: BenchConfig, comments: Comments | None = None) -> str:
    """Returns the text of a bench file.

    Args:
        bench: what is set in it is written.
        comments: by the place that they stand above; the empty one is the beginning.
    """
    document = bench.model_dump(mode="json", by_alias=True, exclude_unset=True)
    ordered = _in_order(document, FIRST, LAST)
    cases = [_in_order(each, CASE_FIRST, CASE_LAST) for each in document.get(CASES, ())]
    ordered |= {CASES: cases} if cases else {}
    first = ("name", "model")
    models = ordered[MODELS]
    ordered[MODELS] = [_in_order(each, first, ()) if isinstance(each, dict) else each for each in models]
    lines = _Lines(comments or {})
    text = "\n".join([*lines.comment((), 0), *lines.mapping(ordered, (), 0)]) + "\n"
    try:
        is_same = parse_yaml(text) == ordered
    except WrongInput:
        is_same = False
    return text if is_same else json.dumps(ordered, ensure_ascii=False, indent=2) + "\n"


def _in_order(document: Mapping[str, Any], first: Sequence[str], last: Sequence[str]) -> dict[str, Any]:
    """A mapping with some keys at its beginning, and some at its end."""
    others = [key for key in document if key not in {*first, *last}]
    return {key: document[key] for key in (*first, *others, *last) if key in document}


class _Lines:
    """Makes the lines of a document."""

    def __init__(self, comments: Comments) -> None:
        self._comments = comments
        self._commented = {path[:depth] for path in comments for depth in range(len(path))}

    def comment(self, path: Path, indent: int) -> Iterator[str]:
        """The comments above a place."""
        for text in self._comments.get(path, ()):
            for line in text.splitlines() or [""]:
                yield f"{' ' * indent}# {_UNWRITABLE.sub(' ', line)}".rstrip()

    def mapping(self, value: Mapping[str, Any], path: Path, indent: int) -> Iterator[str]:
        """The lines of a mapping."""
        for key, each in value.items():
            here = (*path, key)
            yield from self.comment(here, indent)
            yield from self._member(f"{' ' * indent}{_key(key)}:", each, here, indent)

    def _member(self, head: str, value: Any, path: Path, indent: int) -> Iterator[str]:
        """The lines of a value behind the beginning of its line."""
        if not isinstance(value, dict | list) or not value:
            first, *rest = _scalar(value, indent + 2)
            yield f"{head} {first}"
            yield from rest
        elif (line := f"{head} {_inline(value)}") and self._fits(value, line, path):
            yield line
        elif isinstance(value, dict):
            yield head
            yield from self.mapping(value, path, indent + 2)
        else:
            yield head
            for at, each in enumerate(value):
                yield from self._item(each, (*path, at), indent + 2)

    def _item(self, value: Any, path: Path, indent: int) -> Iterator[str]:
        """The lines of a member of a list."""
        yield from self.comment(path, indent)
        head = f"{' ' * indent}-"
        line = f"{head} {_inline(value)}" if isinstance(value, dict | list) else ""
        if isinstance(value, dict) and value and not self._fits(value, line, path):
            first, *rest = self.mapping(value, path, indent + 2)
            while first.lstrip().startswith("#"):  # a comment above the first key stands above the item
                yield first[2:]
                first, *rest = rest
            yield f"{head} {first.lstrip()}"
            yield from rest
        else:
            yield from self._member(head, value, path, indent)

    def _fits(self, value: Any, line: str, path: Path) -> bool:
        """Whether a list or a mapping is written on one line."""
        if path in self._commented or len(line) > LINE_CHARS or "\n" in line:
            return False
        if path and path[0] in _ALWAYS_OPEN and len(path) <= (2 if path[0] != "default_checks" else 1):
            return len(path) == 2 and path[0] == "config"  # noqa: PLR2004 - a member of the block
        depth = _depth(value)
        return depth <= 3 and not _holds_lines(value)  # noqa: PLR2004 - {not: {all: […]}} is hard to read


def _depth(value: Any) -> int:
    """How deep lists and mappings stand in each other."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(_depth, inside), default=0)


def _holds_lines(value: Any) -> bool:
    """Whether a text of several lines is in a value."""
    if isinstance(value, str):
        return "\n" in value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(_holds_lines, inside))


def _inline(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _quoted(value)


def _key(key: str) -> str:
    return key if _is_plain(key) or _NUMBER.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _scalar(value: Any, indent: int) -> list[str]:
    """The lines of a value that is neither list nor mapping; empty ones are."""
    if isinstance(value, dict | list):
        return [_inline(value)]
    if isinstance(value, str) and "\n" in value and _is_block(value):
        body = value.removesuffix("\n")
        chomp = "" if value.endswith("\n") else "-"
        return [f"|{chomp}", *(f"{' ' * indent}{line}" if line else "" for line in body.split("\n"))]
    return [_quoted(value)]


def _is_block(text: str) -> bool:
    """Whether a text can be written as a literal block and read as it was."""
    lines = text.removesuffix("\n").split("\n")
    return not (
        _UNWRITABLE.search(text) or text.startswith((" ", "\t", "\n")) or not lines[-1] or "\t" in text[:1]
    )


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and text.lower() not in _WORDS and "  " not in text


def _quoted(value: Any) -> str:
    """A value on one line; a text in quotes where it needs them."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _is_plain(value):
        return value
    written = json.dumps(value, ensure_ascii=False)
    return written if not _UNWRITABLE.search(written) else json.dumps(value)
