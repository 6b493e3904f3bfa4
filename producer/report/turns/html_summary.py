"""What the HTML report of a turns run says above its threads: verdict, figures, rules and model calls."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from producer.aggregate.gates import gate_line
from producer.aggregate.turns import DECISIONS, ranked, share
from producer.report.cells import plain
from producer.report.html.charts import Series, stacked
from producer.report.html.page import Tile, begin, fill, markup
from producer.report.turns.html_strips import MARKS, mark
from producer.report.turns.wording import RULES, call_remarks, headline, remarks, verdict_line
from producer.text import plural
from shared import __version__
from shared.codecs.turn_batches import DECISION_OF_CODE
from shared.names import FINAL_STATES
from shared.runs import RunInfo, TurnRow

TEMPLATE: Final = "turns/page.html.j2"
COLUMNS: Final = 40
"""Of the chart of the whole run."""
TONES: Final[Mapping[str, str]] = {
    "must": "t1",
    "should": "t0",
    "skip": "t5",
    "error": "bad",
    "skipped": "warn",
}
"""Colours of decisions, the same wherever they are drawn."""
_IN_TILES: Final = frozenset({"peak freezes", "summaries updated", "errors", "skipped"})


class Course:
    """Counts decisions along the input, in memory that does not grow.

    Args:
        total: turns of the run.

    >>> course = Course(80)
    >>> course.add([TurnRow(3, "m2", b"", 0, 0, 1), TurnRow(79, "", b"", 0, 0, 0)])
    >>> "3 · must: 1" in course.drawn(), "<svg" in Course(1).drawn()
    (True, False)
    """

    def __init__(self, total: int) -> None:
        self._width = max(1, -(-total // COLUMNS))
        self._total, self._seen = total, Counter[tuple[int, str]]()

    def add(self, rows: Sequence[TurnRow]) -> None:
        """Counts some rows."""
        width = self._width
        self._seen.update([(row.index // width, row.code[:1]) for row in rows])

    def drawn(self) -> str:
        """Returns the chart; nothing where there is not enough to see."""
        if self._total <= 1 or not self._seen:
            return ""
        columns = range(-(-self._total // self._width))
        layers = [
            Series(word, [self._seen[at, code] for at in columns], TONES[word])
            for code, word in (*_WORDS.items(), ("", "skipped"))
        ]
        labels = [f"{at * self._width + 1:,}" for at in columns]
        shown = [layer for layer in layers if any(layer.values)]
        return stacked(shown, labels, title="Decisions over the run, in input order", y_label="turns")


_WORDS: Final = {code: decision or "error" for code, decision in DECISION_OF_CODE.items()}


def opening(document: Mapping[str, Any], info: RunInfo) -> bytes:
    """Writes the first screen."""
    left = [f"{word} {number}" for word, number in remarks(document) if word not in _IN_TILES]
    return begin(
        plain(info.source) or info.run,
        _verdict(document),
        is_good=not document["exit"] if document["state"] in FINAL_STATES else None,
        remarks=[*left, *(gate_line(gate) for gate in document.get("gates", ()))],
        tiles=list(_tiles(document)),
        about=f"{headline(document)} · run {info.run}",
    )


def summary_of(document: Mapping[str, Any], course: Course) -> bytes:
    """Writes decisions, rules and model calls."""
    summary, decided = document["summary"], document["counts"]["decided"]
    decisions = [
        (name, summary["decisions"][name], _share(summary["decisions"][name], decided), mark(name))
        for name in DECISIONS
    ]
    rules = [
        (rule, words, summary["rules"][rule], _share(summary["rules"][rule], decided))
        for rule, words in RULES.items()
    ]
    return fill(TEMPLATE, "summary", decisions, rules, markup(course.drawn()), _calls(document))


def errors_of(document: Mapping[str, Any], shown: int) -> bytes:
    """Writes the head of the list of errors."""
    number = document["counts"]["error"]
    note = f"The first {shown:,} are listed." if shown < number else ""
    return fill(TEMPLATE, "errors", number, ranked(document["summary"]["errors"]), note)


def marks() -> list[tuple[str, Any]]:
    """Explains what is drawn of a thread."""
    return [(name, mark(name)) for name in MARKS]


def facts_of(document: Mapping[str, Any], info: RunInfo) -> list[tuple[str, str]]:
    """Says what was run, for those who want to run it again or doubt it."""
    summary = document["summary"]
    created = datetime.fromtimestamp(info.created_ms / 1000, UTC)
    facts = [
        ("run", f"{info.run} ({info.state.value})"),
        ("input", info.source),
        ("submitted", f"{created:%Y-%m-%d %H:%M:%S} UTC"),
        ("threads belong to", "this run alone" if info.namespace == info.run else info.namespace),
        ("summary policy", summary["summary_policy"]),
        ("model", summary.get("model", "")),
        ("asked for", summary.get("live", "")),
        ("written by", f"Proctor {__version__}, document version {document['schema_version']}"),
    ]
    return [(name, value) for name, value in facts if value]


def _verdict(document: Mapping[str, Any]) -> str:
    """Says in one line what counts."""
    counts, decisions = document["counts"], document["summary"]["decisions"]
    told = [f"{counts['decided']:,} of {plural(counts['total'], 'turn')} decided"]
    told += [f"{number:,} {name}" for name, number in decisions.items() if number]
    return verdict_line(document, told)


def _tiles(document: Mapping[str, Any]) -> Iterator[Tile]:
    """Yields the figures of the first screen."""
    counts, summary = document["counts"], document["summary"]
    for name in DECISIONS:
        number = summary["decisions"][name]
        yield Tile(name, f"{number:,}", _share(number, counts["decided"]), link=f"#decision={name}")
    is_bad = bool(counts["error"])
    yield Tile("errors", f"{counts['error']:,}", tone="bad" * is_bad, link="#errors" * is_bad)
    if counts["skipped"]:
        yield Tile("skipped", f"{counts['skipped']:,}", tone="warn")
    yield Tile("peak freezes", f"{summary['freezes']:,}", "summaries kept", link="#freeze=frozen")
    yield Tile("summaries updated", f"{summary['summaries_updated']:,}")
    yield Tile("threads", f"{summary['threads']:,}", link="#threads")
    if calls := summary.get("calls"):
        may = calls["avoided"] + calls["made"] + calls["from_cache"] + calls["given_up"]
        yield Tile("model calls avoided", f"{calls['avoided']:,}", f"of {may:,} possible")
        cost = "unknown" if calls["cost_usd"] is None else f"${calls['cost_usd']:.4f}"
        note = plural(calls["made"], "call")
        note += f", {calls['cost_unknown']:,} of unknown price" * bool(calls["cost_unknown"])
        yield Tile("cost", cost if calls["made"] else "$0", note)


def _calls(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Tells of the model calls of a live run; nothing of other runs."""
    told, summary = call_remarks(document), document["summary"]
    if not told:
        return []
    times = summary["calls"].get("latency_ms") or {}
    asked = [("model", str(summary.get("model", ""))), ("asked for", str(summary.get("live", "")))]
    timed = ", ".join(f"{name} {time:,} ms" for name, time in times.items())
    number = summary["calls"].get("latency_n", 0)
    return [*asked, *told, *([("latency", f"{timed} (n = {number:,})")] if timed else [])]


def _share(part: int, whole: int) -> str:
    """Writes a share in percent."""
    return f"{share(part, whole):.1f} %"
