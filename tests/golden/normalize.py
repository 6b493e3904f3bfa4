"""Replaces what differs between two runs of the same thing: ids, times, durations, places, versions."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

KEPT_LINES: Final = 200
"""Of a long document the first lines are kept as they are, the rest as a hash."""
KEPT_LINE: Final = 1_000
"""Characters of a line."""

TIMES: Final = re.compile(r"latency|_ms$|_s$|per_s|seconds|duration", re.IGNORECASE)
"""In keys and column heads whose values are times."""
Rules = tuple[tuple[re.Pattern[str], str], ...]


def _rules(*rules: tuple[str, str]) -> Rules:
    return tuple((re.compile(pattern, re.MULTILINE | re.DOTALL), into) for pattern, into in rules)


RULES: Final = _rules(
    (r"^RUN (running|cancelling) [^\n]*\n", ""),  # how many of them there are depends on time
    (r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d| UTC)?", "TIME"),
    (r"\b20\d\d-\d\d-\d\d\b", "DATE"),
    (r"127\.0\.0\.1:\d{4,5}|localhost:\d{4,5}", "HOST"),
    (r' time="[\d.]+"', ' time="N"'),
    (r'(latencyMs(?:\\*"|&quot;): ?)\d+', r"\1N"),
    (r" *\b\d[\d,]*(\.\d+)?(?= ?(?:ms|s|µs|min|turns/s|/s)\b)", " N"),
)
HTML_RULES: Final = _rules(
    (r"(<style[^>]*>)[^<]*(?=</style>)", r"\1"),
    (r"(<script>).*?(?=</script>)", r"\1"),
    (r"<svg.*?</svg>", "<svg/>"),
    (r"'sha\d{3}-[^']*'", "'sha'"),
    (r'data-value="[^"]*">(?= N (?:ms|s)\b)', 'data-value="N">'),
    (r'(\["i\d+","\w",[^\n]*?),\d+,(\d+\])(?=,$|$|\]\})', r"\1,N,\2"),
)
"""Of pages also: what they share is tested elsewhere, and charts place points by times."""


def normalized(name: str, text: str, places: Iterable[tuple[str, str]]) -> str:
    """Returns a document without what no two runs share.

    Args:
        name: of its file; the suffix says how it is read.
        text: of the document.
        places: what is replaced literally first, and by what: paths, addresses, the run's id.
    """
    for literal, into in places:
        text = text.replace(literal, into)
    text = _BY_SUFFIX.get(name.rpartition(".")[2], str)(text)
    for pattern, into in (*RULES, *(HTML_RULES if name.endswith(".html") else ())):
        text = pattern.sub(into, text)
    lines = [_short(line) for line in text.split("\n")]
    if len(lines) > KEPT_LINES:
        rest = "\n".join(lines[KEPT_LINES:])
        lines = [*lines[:KEPT_LINES], f"… {len(lines) - KEPT_LINES} lines {_hash(rest)}"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def beginning(text: str) -> str:
    r"""Returns a normalized document without the hash of what is beyond its kept lines.

    >>> beginning("a\n… 3 lines 0123456789abcdef\n")
    'a\n… more lines\n'
    """
    return re.sub(r"^… \d+ lines \w+$", "… more lines", text, flags=re.MULTILINE)


def _timeless(value: Any, key: str = "") -> Any:
    """A JSON value in which each number below a key that names a time is 0."""
    match value:
        case dict():
            if isinstance(named := value.get("metric"), str) and TIMES.search(named):
                key = named  # a figure that says by its name that it is a time
            return {
                name: _timeless(inner, key if TIMES.search(key) else name) for name, inner in value.items()
            }
        case list():
            return [_timeless(inner, key) for inner in value]
        case int() | float() if TIMES.search(key) and not isinstance(value, bool):
            return 0
        case _:
            return value


def _json(text: str) -> str:
    return json.dumps(_timeless(json.loads(text)), indent=1, ensure_ascii=False)


def _json_lines(text: str) -> str:
    return "".join(
        f"{json.dumps(_timeless(json.loads(line)), ensure_ascii=False)}\n"
        for line in text.rstrip("\n").split("\n")
    )


def _csv(text: str) -> str:
    head, *rows = csv.reader(io.StringIO(text))
    kept = ["TIME" if TIMES.search(name) else "" for name in head]
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(head)
    table.writerows([mark or cell for mark, cell in zip(kept, row, strict=True)] for row in rows)
    return out.getvalue()


_BY_SUFFIX: Final[Mapping[str, Callable[[str], str]]] = {"json": _json, "jsonl": _json_lines, "csv": _csv}


def _short(line: str) -> str:
    return line if len(line) <= KEPT_LINE else f"{line[:KEPT_LINE]}… {len(line)} characters {_hash(line)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
