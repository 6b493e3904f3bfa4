"""Options of queries runs: where the API is, how it is asked, how fast and how often."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from producer.cli.options.case_options import ALSO_QUERIES
from producer.cli.options.shared_options import chain
from shared.contracts.query_environment import api_url, delay_s
from shared.contracts.query_run import METHODS, QueryRun
from shared.contracts.query_vocabulary import CATEGORIES
from shared.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from producer.options import QueryChoice
    from shared.kinds import Kind

F = TypeVar("F", bound="Callable[..., Any]")

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
_SECRET_HEADERS: Final = ("authorization", "cookie", "key", "token", "secret", "password")
MOST_REPEATS: Final = 1_000
MOST_TIMEOUT_S: Final = 86_400
_DEFAULT: Final = QueryRun()
_FLAGS: Final = {
    "places": "field",
    "headers": "header",
    "categories": "category",
    "query_timeout_s": "timeout-s",
}
"""Options whose parameters have other names."""


def query_options(function: F) -> F:
    """Adds the options of queries; other kinds of files take none of them.

    Longer than 40 lines, because it is a table: one option, one entry, and no logic.
    """
    return chain(
        [
            click.option("--api-url", metavar="URL", help="Queries: the API's base URL [env EVAL_API_URL]."),
            click.option(
                "--delay",
                type=click.IntRange(0),
                metavar="S",
                help="Queries: seconds between two sends of the whole fleet [default: 0].",
            ),
            click.option("--start-from", metavar="ID", help="Queries: begin with this one."),
            click.option(
                "--category",
                "categories",
                multiple=True,
                metavar="NAME",
                help=f"Queries: only those of this category ({', '.join(CATEGORIES)}, or your own); may be "
                "repeated.",
            ),
            click.option(
                "--timeout-s",
                "query_timeout_s",
                type=click.FloatRange(0, MOST_TIMEOUT_S, min_open=True),
                metavar="S",
                help="Queries: time limit of one request, the body included [default: 30].",
            ),
            click.option(
                "--concurrency",
                type=click.IntRange(1, 100_000),
                metavar="N",
                help="Queries, cases: under way at a time in the whole fleet [default: -j].",
            ),
            click.option(
                "--retry-errors",
                type=click.IntRange(0, 100),
                metavar="N",
                help="Queries: send again up to N times after a timeout, a lost connection or a 5xx.",
            ),
            click.option(
                "--repeat",
                type=click.IntRange(1, MOST_REPEATS),
                metavar="N",
                help="Queries, cases: ask each one N times.",
            ),
            click.option("--method", type=click.Choice(METHODS), help="Queries: how to ask [default: POST]."),
            click.option(
                "--path", metavar="PATH", help="Queries: below the API's URL [default: /api/query]."
            ),
            click.option(
                "--field",
                "places",
                multiple=True,
                metavar="NAME=POINTER",
                help=f"Queries: where the API keeps a field, as a JSON pointer. NAME: {', '.join(PLACES)}.",
            ),
            click.option(
                "--header",
                "headers",
                multiple=True,
                metavar="NAME=VALUE",
                help="Queries: send this header; $NAME in it is a variable of the worker's environment.",
            ),
            click.option(
                "--bearer-env",
                metavar="VARIABLE",
                help="Queries: the variable of the worker's environment that holds the bearer token.",
            ),
        ]
    )(function)  # fmt: skip - one option, one paragraph


def read_query_options(words: dict[str, Any], *, in_flight: int | None = None) -> QueryRun:
    """Makes the settings of a queries run of what the command line says.

    Args:
        words: values of `query_options`, by parameter.
        in_flight: value of `-j`, which stands for `--concurrency` where that is not given.

    Raises:
        UsageError: a value cannot be used.
        ConfigError: neither can one of the environment.
    """
    places = dict(_pair("--field", text) for text in words["places"])
    unknown = [name for name in places if name not in PLACES]
    if unknown:
        raise UsageError(f"--field: unknown name {unknown[0]!r}", hint=f"one of {', '.join(PLACES)}")
    wrong = [pointer for pointer in places.values() if not pointer.startswith("/")]
    if wrong:
        raise UsageError(f"--field: {wrong[0]!r} is no JSON pointer", hint="write answer=/choices/0/text")
    path = words["path"] or _DEFAULT.path
    if not path.startswith("/"):
        raise UsageError(f"--path: {path!r} does not begin with a slash", hint="write --path /api/query")
    return QueryRun(
        api_url=api_url(words["api_url"], os.environ),
        delay_s=delay_s(words["delay"], os.environ, default=0),
        method=words["method"] or _DEFAULT.method,
        path=path,
        query_at=places.pop("query", _DEFAULT.query_at),
        places=places,
        headers=_headers(words["headers"]),
        bearer_env=words["bearer_env"] or "",
        concurrency=words["concurrency"] or in_flight or 1,
        retry_errors=words["retry_errors"] or 0,
        timeout_s=words["query_timeout_s"] or _DEFAULT.timeout_s,
        start_from=words["start_from"] or "",
        repeat=words["repeat"] or 1,
    )


def read_query_choice(words: Mapping[str, Any], case_words: Mapping[str, Any]) -> QueryChoice:
    """Makes what the command line says about which queries are asked.

    Args:
        words: values of `query_options`, by parameter.
        case_words: values of `case_options`, of which those in `ALSO_CASES` are for queries too.
    """
    from producer.options import QueryChoice  # noqa: PLC0415 - start-up: `--help` must not load the ledger

    return QueryChoice(
        categories=tuple(words.get("categories") or ()),
        containing=case_words.get("containing") or "",
        first=case_words.get("first"),
        sample=case_words.get("sample"),
    )


def refuse_query_options(words: dict[str, Any], kind: Kind) -> None:
    """Refuses options of queries for a file of another kind.

    Raises:
        UsageError: one was given.
    """
    given = [name for name, value in words.items() if value not in (None, ())]
    if given:
        flag = _FLAGS.get(given[0], given[0]).replace("_", "-")
        whose = "queries and cases" if given[0] in ALSO_QUERIES else "queries"
        raise UsageError(f"--{flag} is for {whose}, and this file describes {kind}", hint="leave it out")


def _headers(texts: Sequence[str]) -> dict[str, str]:
    """Reads headers, and refuses secrets: they would stand in Redis for everybody to read."""
    headers = dict(_pair("--header", text) for text in texts)
    for name, value in headers.items():
        is_secret = any(word in name.lower() for word in _SECRET_HEADERS)
        if is_secret and "$" not in value:
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
