"""Makes the row of one query for the HTML report: answer, sources, marks of the checks, and all details."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from producer.queries.report.check_reasons import (
    FAILED,
    NO_CHECK,
    NOT_APPLICABLE,
    PASSED,
    REASON_OF_CHECK,
    FoundByCheck,
    found_by_checks,
)
from producer.queries.report.opened_rows import OpenedQuery, opened
from producer.queries.report.shown_queries import TAG_KEYS, wanted_of
from producer.queries.report.sources import FoundSource, sources_of
from producer.queries.results import AskedQuery
from producer.report.cells import Size, plain
from producer.report.html.rendering import Text, cut, fill
from producer.report.html.viewer import Letter
from producer.text import duration, latency, plural
from shared.clock import iso_utc
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import CHECKS, confidence_of, json_object
from shared.names import Outcome
from shared.runs import RunInfo
from shared.runs.info import PATH_KEY

DEFAULT_RUN: Final = QueryRun()
MOST_CITED: Final = 3
"""Sources in a row."""
MOST_LISTED: Final = 20
"""Sources in a panel."""

NEVER_SENT: Final = "never sent"
NO_ANSWER: Final = "no answer"
OUT_OF_SCOPE: Final = "out of scope"
NO_CITATION: Final = "nothing to cite"
NO_KEYWORD: Final = "no keyword required"
RETRIED: Final = "sent again"
WORDS: Final[Mapping[Letter, str]] = {
    Letter.PASSED: "passed",
    Letter.FAILED: "failed",
    Letter.ERROR: NO_ANSWER,
    Letter.NONE: NEVER_SENT,
}
_MARKS: Final[Mapping[str, str]] = {PASSED: "p", FAILED: "f", NOT_APPLICABLE: "n"}


BRIEF: Final[Mapping[str, Any]] = {
    "checks": (),
    "idle": (),
    "retrieved": (),
    "wanted": (),
    "times": (),
    "command": "",
}
"""What the panel leaves out of a query that is shown briefly."""


class ShownQuery(NamedTuple):
    """What the page shows of a query."""

    filled: Mapping[str, Any]
    """For the template."""
    letter: Letter
    """Its outcome: passed, failed, error, or `n` when it was never sent."""
    facets: Mapping[str, Sequence[str]]
    """What it is filtered by."""
    latency: int | None
    """By the client's clock, in milliseconds."""


def html_of_queries(info: RunInfo) -> Callable[[ItemRow], bytes]:
    """Returns what writes everything about a query, given its row with its input."""
    run = QueryRun.from_snapshot(info.snapshot)

    def html(row: ItemRow) -> bytes:
        [query] = opened([row])
        return fill("queries/report/page.html.j2", "body", shown_query(query, info, run, Size.WHOLE).filled)

    return html


def shown_query(query: OpenedQuery, info: RunInfo, run: QueryRun, limit: int) -> ShownQuery:
    """Returns what the page shows of a query.

    Args:
        query: as it was stored.
        info: the run.
        run: its settings.
        limit: characters of each long text.
    """
    row, result = query.row, query.result
    baseline = _input(query)
    shown = result or AskedQuery(baseline)
    letter = Letter.of(row.outcome)
    found = found_by_checks(shown) if letter in "pf" else []
    sources = sources_of(shown.response)
    cited = [source for source in sources if source.is_cited]
    tags = _tags(query, baseline)
    name = plain(shown.id, Size.NAME) + (f" #{row.index % run.repeat + 1}" if run.repeat > 1 else "")
    client_ms = None if result is None else result.client_ms
    filled = {
        "id": element_id(row.index),
        "name": name,
        "letter": letter,
        "word": WORDS[letter],
        "gist": plain(shown.query, Size.REASON),
        "category": plain(shown.category, Size.NAME),
        "tags": tags,
        "why": _why(query, found),
        "figures": list(_figures(query, shown, client_ms)),
        "answer": plain(_answer(shown), Size.REASON),
        "cited": [plain(source.short, Size.NAME) for source in cited[:MOST_CITED]],
        "sourcenote": _source_note(cited, len(sources) - len(cited), letter),
        "marks": "".join(_MARKS[check.word] for check in found) or "n" * len(CHECKS),
        "marks_text": _marks_text(found),
        **_details(query, baseline, found, limit),
        "sources": [_source(source, limit) for source in cited[:MOST_LISTED]],
        "retrieved": [_source(source, limit) for source in sources if not source.is_cited][:MOST_LISTED],
        "command": command_of(info, run, str(shown.id)),
    }
    facets = {
        "reason": _reasons(query, found),
        "category": [plain(shown.category, Size.NAME)],
        "tag": tags,
    }
    return ShownQuery(filled, letter, facets, client_ms)


def briefly(shown: ShownQuery) -> ShownQuery:
    """Returns a query without what its row and a command have too, for runs of very many."""
    sources = [{**source, "text": None, "url": ""} for source in shown.filled["sources"]]
    return shown._replace(filled={**shown.filled, **BRIEF, "sources": sources})


def element_id(index: int) -> str:
    """Names a query on the page.

    >>> element_id(0)
    'i1'
    """
    return f"i{index + 1}"


def _input(query: OpenedQuery) -> dict[str, Any]:
    """Reads the baseline of a query, as far as it is known."""
    line = query.row.payload or (query.row.line if query.result is None else b"")
    return json_object(msgspec.json.decode(line)) if line else {}


def _tags(query: OpenedQuery, baseline: Mapping[str, Any]) -> list[str]:
    """Returns the tags by which queries are filtered, beside their category."""
    result = query.result
    tags = [OUT_OF_SCOPE] if (result or AskedQuery(baseline)).is_oos else []
    for key in TAG_KEYS:
        value = baseline.get(key)
        tags += [plain(tag, Size.NAME) for tag in (value if isinstance(value, list) else [value])]
    if result is not None and not query.code:
        tags += [] if result.is_citation_applicable else [NO_CITATION]
        tags += [NO_KEYWORD] if result.is_vacuous else []
    if query.row.attempts > 1:
        tags.append(RETRIED)
    return list(dict.fromkeys(filter(None, tags)))


def _why(query: OpenedQuery, found: Sequence[FoundByCheck]) -> str:
    """Writes why there is no pass; empty for a pass."""
    if query.result is None:
        return "the run ended before it was sent"
    if query.code:
        return plain(query.shown.error, Size.REASON)
    failed = [check.reason for check in found if check.word == FAILED]
    if not failed and query.row.outcome is Outcome.FAILED:
        return NO_CHECK
    return plain("; ".join(failed), Size.REASON)


def _reasons(query: OpenedQuery, found: Sequence[FoundByCheck]) -> list[str]:
    """Returns the kinds of reasons by which queries without a pass are grouped."""
    if query.result is None:
        return [NEVER_SENT]
    if query.code:
        return [plain(query.shown.error, Size.LINE) or query.code]
    failed = [REASON_OF_CHECK[check.name] for check in found if check.word == FAILED]
    if not failed and query.row.outcome is Outcome.FAILED:
        return [NO_CHECK]
    return failed


def _figures(query: OpenedQuery, shown: AskedQuery, measured_ms: int | None) -> Iterator[str]:
    """Yields what stands at the end of the first line: the time of the request, and what the server says."""
    if query.row.attempts > 1:
        yield f"sent {query.row.attempts:,} times"
    if measured_ms is not None:
        yield latency(measured_ms)
    if shown.own_ms is not None:
        yield f"server {latency(shown.own_ms)}"


def _answer(shown: AskedQuery) -> str:
    """Returns the answer as text; empty without one."""
    answer = shown.answer
    return "" if answer is None else answer if isinstance(answer, str) else _json(answer)


def _source_note(cited: Sequence[FoundSource], others: int, letter: Letter) -> str:
    """Writes what the names of sources in a row leave out.

    >>> _source_note([], 2, "p"), _source_note([], 0, "f"), _source_note([], 0, "e")
    ('none cited, 2 retrieved', 'no sources', '')
    """
    if letter not in "pf":
        return ""
    if not cited:
        return f"none cited, {others:,} retrieved" if others else "no sources"
    more = len(cited) - MOST_CITED
    return f"and {more:,} more" if more > 0 else ""


def _marks_text(found: Sequence[FoundByCheck]) -> str:
    """Writes the marks for those who hear them."""
    if not found:
        return "not checked"
    failed = [check.name for check in found if check.word == FAILED]
    passed = sum(check.word == PASSED for check in found)
    return f"{plural(passed, 'check')} passed" + (f", failed: {', '.join(failed)}" if failed else "")


def _details(
    query: OpenedQuery,
    baseline: Mapping[str, Any],
    found: Sequence[FoundByCheck],
    limit: int,
) -> dict[str, Any]:
    """Returns what only the panel shows."""
    shown = query.result or AskedQuery(baseline)
    ordered = sorted(found, key=lambda check: check.word == PASSED)
    confidence = " - ".join(filter(None, (plain(part, limit) for part in confidence_of(shown.response))))
    return {
        "checks": [
            (_MARKS[check.word], check.name, "", [check.reason])
            for check in ordered
            if check.word != NOT_APPLICABLE
        ],
        "idle": [(check.name, check.reason) for check in found if check.word == NOT_APPLICABLE],
        "query": cut(str(shown.query or ""), limit),
        "reply": cut(_answer(shown), limit) if shown.answer is not None else None,
        "error": cut(query.error, limit) if query.code else None,
        "confidence": Text(confidence) if confidence else None,
        "wanted": list(wanted_of(baseline, shown)),
        "times": list(_times(query)),
    }


def _times(query: OpenedQuery) -> Iterator[tuple[str, str]]:
    """Yields how long it took, how often it was sent, and what the reply says of itself."""
    row, result = query.row, query.result
    if result is None:
        return
    yield "whole request", latency(result.client_ms or 0)
    if result.own_ms is not None:
        yield "server", latency(result.own_ms)
    if row.attempts > 1:
        yield "sent", f"{row.attempts:,} times, within {duration((row.finished_ms - row.started_ms) / 1000)}"
    if row.started_ms:
        yield "began", iso_utc(row.started_ms)
    for key, value in result.metadata.items():
        if key not in {"latencyMs", "query"} and value not in (None, "", []):
            yield plain(key, Size.NAME), plain(value if isinstance(value, str) else _json(value), Size.REASON)


def _source(source: FoundSource, limit: int) -> dict[str, Any]:
    """Returns what the panel shows of a source."""
    facts = [
        source.section if source.section != source.name else "",
        source.id if source.id != source.name else "",
    ]
    if source.score:
        facts.append(f"score {source.score}")
    facts += [f"{key} {value}" for key, value in source.more.items()]
    return {
        "name": source.name,
        "facts": list(filter(None, facts)),
        "text": cut(source.text, limit) if source.text else None,
        "url": source.url if source.url != source.name else "",
    }


def command_of(info: RunInfo, run: QueryRun, identifier: str) -> str:
    """Writes the command that sends this query alone, as the run sent it."""
    source = str(info.snapshot.get(PATH_KEY) or info.source)
    words = ["proctor", "run", source if source not in ("", "-", "stdin") else "FILE"]
    words += ["--start-from", identifier, "--first", "1", *_options(run)]
    return " ".join(map(shlex.quote, words))


def _options(run: QueryRun) -> Iterator[str]:
    """Yields the options by which a run sends queries as it does, where they are not the default."""
    yield from ("--api-url", run.api_url)
    if run.http is not None:
        run = msgspec.structs.replace(run, method=DEFAULT_RUN.method, path=DEFAULT_RUN.path)
    places = {} if run.query_at == DEFAULT_RUN.query_at else {"query": run.query_at}
    for name, pointer in {**places, **run.places}.items():
        yield from ("--field", f"{name}={pointer}")
    for name, value in run.headers.items():
        yield from ("--header", f"{name}={value}")
    for option, given, default in (
        ("--path", run.path, DEFAULT_RUN.path),
        ("--method", run.method, DEFAULT_RUN.method),
        ("--bearer-env", run.bearer_env, DEFAULT_RUN.bearer_env),
        ("--timeout-s", f"{run.timeout_s:g}", f"{DEFAULT_RUN.timeout_s:g}"),
        ("--retry-errors", str(run.retry_errors), str(DEFAULT_RUN.retry_errors)),
    ):
        if given != default:
            yield from (option, given)
    if run.fold_apostrophes:
        yield "--fold-apostrophes"


def _json(value: Any) -> str:
    """Writes a value as JSON."""
    return json.dumps(value, ensure_ascii=False)
