"""Reads the baselines of an evaluation: one object with its queries, a bare list, or JSON Lines.

All or nothing, as every input; sorted by id in natural order; unknown keys are kept with their query.
`read_baselines` reads a file, `load_baselines` is the function of the harness document, which exits on
errors; `producer.queries.load` makes a run of them.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

from msgspec.structs import replace
from pydantic import ValidationError

from producer.load.contracts import checked, described
from producer.load.problems import InputRow, Place, Problems, json_lines
from producer.load.source import Source
from producer.load.strict_json import parse_json, why_broken
from producer.text import shown
from shared.contracts.http_config import HttpConfig
from shared.contracts.queries import Baseline
from shared.contracts.query_vocabulary import CATEGORIES, EXPECTED_QUERIES, id_order
from shared.errors import InputError
from shared.upstream.http_mapping import HttpMapping

BASELINES_PATH: Final = Path("data/evaluation_baselines.json")
"""Where the harness document has them, under the current directory."""
MAX_FILE_BYTES: Final = 64 << 20
"""Larger than any real file; the queries are held in memory to be sorted."""

_KNOWN: Final = tuple(Baseline.model_fields)
_SHAPE: Final = 'write {"version": "1.0", "queries": […]}, a bare list, or one query on each line'
_EXIT_BAD_BASELINES: Final = 1


@dataclass(frozen=True, slots=True)
class Baselines:
    """The content of one file."""

    queries: list[Baseline]
    """By id, in natural order; optional keys filled in, unknown ones kept."""
    version: str
    """Version of the file; `unknown` if it has none."""
    warnings: list[str]
    """Probable mistakes."""
    api: HttpMapping | None = None
    """How the API is asked, if the file says so."""


def load_baselines(path: str | None = None) -> list[dict[str, Any]]:
    """Loads and validates the baselines, as the harness document has it.

    Args:
        path: the file; by default `BASELINES_PATH`.

    Returns:
        The baselines, sorted by id.

    Raises:
        SystemExit: with code 1, when the file is missing or breaks the contract; stderr says how.
    """
    return [query.model_dump() for query in baselines_or_exit(path).queries]


def baselines_or_exit(path: str | Path | None = None) -> Baselines:
    """Like `load_baselines`, but returns the file's version too.

    Raises:
        SystemExit: as there.
    """
    try:
        baselines = read_baselines(Source(BASELINES_PATH if path is None else path))
    except InputError as error:
        sys.stderr.write(f"Error: {error.message}\n  {error.hint}\n" if error.hint else f"Error: {error}\n")
        raise SystemExit(_EXIT_BAD_BASELINES) from None
    count = len(baselines.queries)
    if count != EXPECTED_QUERIES:
        sys.stderr.write(f"Warning: expected {EXPECTED_QUERIES} baselines, found {count}\n")
    for warning in baselines.warnings:
        sys.stderr.write(f"Warning: {warning}\n")
    return baselines


def read_baselines(source: Source) -> Baselines:
    """Reads and validates baselines.

    Raises:
        InputError: the source cannot be read, is no JSON, or a query breaks the contract.
    """
    problems = Problems()
    version, entries, api = _entries(source.name, _text(source), problems)
    if not entries and not problems.found:
        raise InputError(f"{source.name}: no queries in it", hint=_SHAPE)
    queries, places, warnings = list[Baseline](), dict[str, Place](), list[str]()
    entries.reverse()
    while entries:  # taken out, so that a large file is not in memory twice
        entry = entries.pop()
        query = problems.attempt(partial(_validated, entry))
        if query is None:
            continue
        if query.id in places:
            what = f"{shown(query.id)} is the id of another query, at {places[query.id]}"
            problems.add(entry.place.at("id").error(what, "give each query its own id"))
        places.setdefault(query.id, entry.place)
        queries.append(query)
        warnings.extend(_warnings(entry.place, query))
    problems.raise_found()
    warnings.extend(_own_categories(queries, places))
    queries.sort(key=lambda query: id_order(query.id))
    return Baselines(queries, version, warnings, api)


def encode_baseline(query: Baseline) -> bytes:
    """Writes one baseline as it travels to the worker.

    Raises:
        ValueError: an unknown key holds what JSON in UTF-8 cannot: infinities, half surrogate pairs.
    """
    return json.dumps(query.model_dump(), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _text(source: Source) -> str:
    """Reads a bounded source as UTF-8 text."""
    parts, size = list[bytes](), 0
    for block in source.blocks():
        size += len(block)
        if size > MAX_FILE_BYTES:
            what = f"is larger than {MAX_FILE_BYTES >> 20} MiB"
            raise InputError(f"{source.name}: {what}", hint="split it into several runs")
        parts.append(block)
    try:
        return b"".join(parts).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"not UTF-8 text (byte {error.start + 1})"
        hint = "save the file as UTF-8: iconv -f FROM -t UTF-8 FILE"
        raise InputError(f"{source.name}: {what}", hint=hint) from None


def _entries(name: str, text: str, problems: Problems) -> tuple[str, list[InputRow], HttpMapping | None]:
    """Finds the queries in any of the three forms, and the file's version and mapping."""
    if not text.strip():
        raise InputError(f"{name}: is empty", hint=_SHAPE)
    try:
        document = parse_json(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one document after the other: JSON Lines
            return "unknown", list(json_lines(name, text.split("\n"), problems, _SHAPE)), None
        _refuse(Place(name, line=error.lineno), error)
    except (ValueError, RecursionError) as error:
        _refuse(Place(name), error)
    if isinstance(document, list):
        found = [InputRow(Place(f"{name}: [{i}]"), value) for i, value in enumerate(document)]
        return "unknown", found, None
    if isinstance(document, dict) and isinstance(document.get("queries"), list):
        found = document["queries"]
        version = document.get("version", "unknown")
        entries = [InputRow(Place(f"{name}: queries[{i}]"), value) for i, value in enumerate(found)]
        api = problems.attempt(partial(_api, Place(name, text).at("api"), document.get("api")))
        return str(version)[:40], entries, api
    if isinstance(document, dict) and "queries" in document:
        raise InputError(f"{name}: queries: not a list ({shown(document['queries'])})", hint=_SHAPE)
    if isinstance(document, dict) and {"id", "query"} & document.keys():
        return "unknown", [InputRow(Place(name, line=1), document)], None
    keys = list(document) if isinstance(document, dict) else []
    close = get_close_matches("queries", keys, n=1)
    hint = f"{shown(close[0])} is probably meant to be 'queries'" if close else _SHAPE
    raise InputError(f"{name}: no list of queries in it", hint=hint)


def _api(place: Place, written: Any) -> HttpMapping | None:
    """Reads the mapping `api`; None without one."""
    if written is None:
        return None
    if not isinstance(written, dict):
        raise place.error(f"not an object ({shown(written)})", "write url, body and answer")
    return checked(HttpConfig, written, place).mapping


def _refuse(place: Place, error: ValueError | RecursionError) -> NoReturn:
    """Returns a sentence on why something is no JSON."""
    raise place.error(why_broken(error), _SHAPE) from None


def _validated(entry: InputRow) -> Baseline:
    """Checks one query against the contract."""
    if not isinstance(entry.value, dict):
        raise entry.place.error(f"not an object ({shown(entry.value)})", "write it as {…}")
    try:
        query = Baseline.model_validate(entry.value)
        encode_baseline(query)
    except ValidationError as error:
        raise described(error, Baseline, b"{}", _named(entry), " in this query") from None
    except (ValueError, RecursionError) as error:
        raise _named(entry).error(f"holds what cannot be sent on: {error}", "correct it") from None
    return query


def _named(entry: InputRow) -> Place:
    """Returns the place of a query, with its id if it has one."""
    name = entry.value.get("id")
    is_named = isinstance(name, str) and name.isprintable()
    return replace(entry.place, query=name) if is_named else entry.place


def _own_categories(queries: Sequence[Baseline], places: Mapping[str, Place]) -> Iterable[str]:
    """Returns a warning for each category that is not one of the specification's, as typing mistakes are."""
    first = dict[str, Baseline]()
    for query in queries:
        first.setdefault(query.category, query)
    for category, query in first.items():
        if category in CATEGORIES:
            continue
        alike = category.lower()
        close = get_close_matches(alike, CATEGORIES, n=1, cutoff=0.8) or [
            known for known in CATEGORIES if known.startswith(alike)
        ]
        but = f", but did you mean {close[0]!r}?" if close else f"; known ones: {', '.join(CATEGORIES)}"
        place = replace(places[query.id], query=query.id)
        yield f"{place}: category {shown(category)} is one of your own{but}"


def _warnings(place: Place, query: Baseline) -> Iterable[str]:
    """Returns warnings about values that are allowed but probably wrong."""
    place = replace(place, query=query.id)
    for key in query.model_extra or ():
        alike = key.lower().replace("-", "_").replace(" ", "_")
        close = get_close_matches(alike, _KNOWN, n=1, cutoff=0.8) or [
            known for known in _KNOWN if known.replace("_", "") == alike.replace("_", "")
        ]
        if close:
            yield f"{place}: unknown key {shown(key)} is kept, but did you mean {close[0]!r}?"
    if query.is_oos and not query.oos_decline_signals:
        yield f"{place}: out of scope without oos_decline_signals: no answer can pass its OOS check"
