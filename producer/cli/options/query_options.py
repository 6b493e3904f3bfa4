"""Options of queries runs: the API, its request format, rate and repetitions."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

import click

from producer.cli.options.option_groups import option
from shared.contracts.query_environment import MAX_DELAY_S, api_url, delay_s
from shared.contracts.query_run import HEADER_VARIABLE, METHODS, QueryRun
from shared.contracts.query_vocabulary import CATEGORIES
from shared.errors import UsageError
from shared.scrubbing import is_secret_header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from producer.cli.options.case_options import SelectionOptions
    from producer.options import QueryChoice

PLACES: Final = (
    "query",
    "answer",
    "sources",
    "citations",
    "related_docs",
    "doc_id",
    "confidence",
    "chunks_retrieved",
    "latency_ms",
)
"""What `--field` can place: the query in the request, everything else in the reply."""
_LATER_ELEMENT: Final = re.compile(r"/[1-9][0-9]*(?=/|$)")
"""A step of a JSON pointer to an element of an array that has others before it."""
MOST_TIMEOUT_S: Final = 86_400
_DEFAULT: Final = QueryRun()


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Where the API is, how it is called, and which queries are sent."""

    api_url: str | None = option(
        "--api-url", metavar="URL", help="Queries: base URL of the API [env EVAL_API_URL]."
    )
    delay: float | None = option(
        "--delay",
        type=click.FloatRange(0, MAX_DELAY_S),
        metavar="S",
        help="Queries: seconds between two requests, e.g. 0.1, across all workers [default: 0].",
    )
    start_from: str | None = option("--start-from", metavar="ID", help="Queries: start at this query.")
    categories: tuple[str, ...] = option(
        "--category",
        multiple=True,
        metavar="NAME",
        help=f"Queries: only those of this category ({', '.join(CATEGORIES)}, or your own); may be repeated.",
    )
    query_timeout_s: float | None = option(
        "--timeout-s",
        type=click.FloatRange(0, MOST_TIMEOUT_S, min_open=True),
        metavar="S",
        help="Queries: time limit of one request, including the body [default: 30].",
    )
    fold_apostrophes: bool = option(
        "--fold-apostrophes",
        is_flag=True,
        help="Queries: typographic and plain apostrophes are alike in keywords and answers.",
    )
    retry_errors: int | None = option(
        "--retry-errors",
        type=click.IntRange(0, 100),
        metavar="N",
        help="Queries: retry up to N times after a timeout, a lost connection or a 5xx.",
    )
    method: str | None = option(
        "--method", type=click.Choice(METHODS), help="Queries: HTTP method [default: POST]."
    )
    path: str | None = option(
        "--path", metavar="PATH", help="Queries: path below the API's URL [default: /api/query]."
    )
    places: tuple[str, ...] = option(
        "--field",
        multiple=True,
        metavar="NAME=POINTER",
        help=f"Queries: where the API keeps a field, as a JSON pointer. NAME: {', '.join(PLACES)}.",
    )
    headers: tuple[str, ...] = option(
        "--header",
        multiple=True,
        metavar="NAME=VALUE",
        help="Queries: send this header; $NAME in it is an environment variable of the workers.",
    )
    bearer_env: str | None = option(
        "--bearer-env",
        metavar="VARIABLE",
        help="Queries: environment variable of the workers that holds the bearer token.",
    )


def read_query_run(
    options: QueryOptions, selection: SelectionOptions, *, in_flight: int | None = None
) -> QueryRun:
    """Returns the settings of a run of queries.

    Args:
        options: of queries.
        selection: how often each is sent, and how many at a time.
        in_flight: value of `-j`, which stands for `--concurrency` where that is not given.

    Raises:
        UsageError: a value cannot be used.
        ConfigError: neither can one of the environment.
    """
    places = dict(_pair("--field", text) for text in options.places)
    unknown = [name for name in places if name not in PLACES]
    if unknown:
        raise UsageError(f"--field: unknown name {unknown[0]!r}", hint=f"one of {', '.join(PLACES)}")
    wrong = [pointer for pointer in places.values() if not pointer.startswith("/")]
    if wrong:
        raise UsageError(f"--field: {wrong[0]!r} is no JSON pointer", hint="write answer=/choices/0/text")
    query_at, method = places.pop("query", _DEFAULT.query_at), options.method or _DEFAULT.method
    if method != "GET" and _LATER_ELEMENT.search(query_at):
        raise UsageError(
            f"--field: {query_at!r} places the query after elements that the request does not have",
            hint="an array is sent with one element; write query=/messages/0/text",
        )
    path = options.path or _DEFAULT.path
    if not path.startswith("/"):
        raise UsageError(f"--path: {path!r} does not begin with a slash", hint="write --path /api/query")
    return QueryRun(
        api_url=api_url(options.api_url, os.environ),
        delay_s=_delay_s(options.delay),
        method=method,
        path=path,
        query_at=query_at,
        places=places,
        headers=_headers(options.headers),
        bearer_env=options.bearer_env or "",
        concurrency=selection.concurrency or in_flight or 1,
        fold_apostrophes=options.fold_apostrophes,
        retry_errors=options.retry_errors or 0,
        timeout_s=options.query_timeout_s or _DEFAULT.timeout_s,
        start_from=options.start_from or "",
        repeat=selection.repeat or 1,
    )


def _delay_s(given: float | None) -> float:
    """Reads `--delay`, else the document's variable; a whole number stays one, as its reports have it.

    Raises:
        UsageError: it is no number.
        ConfigError: the variable is no whole number.

    >>> _delay_s(0.1), _delay_s(3.0)
    (0.1, 3)
    """
    if given is None:
        return delay_s(None, os.environ, default=0)
    if not isfinite(given):
        raise UsageError("--delay: must be a finite number", hint="write --delay 0.1")
    return int(given) if given == int(given) else given


def read_query_choice(options: QueryOptions, selection: SelectionOptions) -> QueryChoice:
    """Returns which queries of a file are sent."""
    from producer.options import QueryChoice  # noqa: PLC0415 - start-up: `--help` must not load the ledger

    return QueryChoice(
        categories=options.categories,
        containing=selection.containing or "",
        first=selection.first,
        sample=selection.sample,
    )


def _headers(texts: Sequence[str]) -> dict[str, str]:
    """Reads headers, and refuses secrets, which would be stored in Redis."""
    headers = dict(_pair("--header", text) for text in texts)
    for name, value in headers.items():
        literal = HEADER_VARIABLE.sub("", value)
        if is_secret_header("" if literal != value else name, literal):
            raise UsageError(
                f"--header: the value of {name} would be stored with the run",
                hint=f"set a variable where the workers run, and write --header '{name}=$VARIABLE'",
            )
        if not (name.isascii() and value.isprintable() and name.replace("-", "").isalnum()):
            raise UsageError(f"--header: {name!r} cannot be sent", hint="write --header 'X-Tenant=blue'")
    return headers


def _pair(option: str, text: str) -> tuple[str, str]:
    """Splits `NAME=VALUE`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise UsageError(f"{option}: {text!r} is not NAME=VALUE", hint=f"see `proctor run --help`, {option}")
    return name, value
