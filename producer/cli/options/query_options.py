"""Options of queries runs: the API, its request format, rate and repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from producer.cli.options.option_groups import option
from shared.contracts.query_environment import MAX_DELAY_S
from shared.contracts.query_vocabulary import CATEGORIES, METHODS

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
MOST_TIMEOUT_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Where the API is, how it is called, and which queries are sent."""

    api_url: str | None = option(
        "--api-url", metavar="URL", topics=("queries",), help="Base URL of the API [env EVAL_API_URL]."
    )
    delay: float | None = option(
        "--delay",
        type=click.FloatRange(0, MAX_DELAY_S),
        metavar="S",
        topics=("queries",),
        help="Seconds between two requests, e.g. 0.1, across all workers [default: 0].",
    )
    start_from: str | None = option(
        "--start-from", metavar="ID", topics=("queries",), help="Start at this query."
    )
    categories: tuple[str, ...] = option(
        "--category",
        multiple=True,
        metavar="NAME",
        topics=("queries",),
        help=f"Only those of this category ({', '.join(CATEGORIES)}, or your own); may be repeated.",
    )
    query_timeout_s: float | None = option(
        "--timeout-s",
        type=click.FloatRange(0, MOST_TIMEOUT_S, min_open=True),
        metavar="S",
        topics=("queries",),
        help="Time limit of one request, including the body [default: 30].",
    )
    fold_apostrophes: bool = option(
        "--fold-apostrophes",
        is_flag=True,
        topics=("queries",),
        help="Typographic and plain apostrophes are alike in keywords and answers.",
    )
    retry_errors: int | None = option(
        "--retry-errors",
        type=click.IntRange(0, 100),
        metavar="N",
        topics=("queries",),
        help="Retry up to N times after a timeout, a lost connection or a 5xx.",
    )
    method: str | None = option(
        "--method", type=click.Choice(METHODS), topics=("queries",), help="HTTP method [default: POST]."
    )
    path: str | None = option(
        "--path", metavar="PATH", topics=("queries",), help="Path below the API's URL [default: /api/query]."
    )
    places: tuple[str, ...] = option(
        "--field",
        multiple=True,
        metavar="NAME=POINTER",
        topics=("queries",),
        help=f"Where the API keeps a field, as a JSON pointer. NAME: {', '.join(PLACES)}.",
    )
    headers: tuple[str, ...] = option(
        "--header",
        multiple=True,
        metavar="NAME=VALUE",
        topics=("queries",),
        help="Send this header; $NAME in it is an environment variable of the workers.",
    )
    bearer_env: str | None = option(
        "--bearer-env",
        metavar="VARIABLE",
        topics=("queries",),
        help="Environment variable of the workers that holds the bearer token.",
    )
