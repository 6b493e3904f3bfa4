"""Options of runs: the models that are called, test cases, queries, and which items of a file are run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from producer.cli.completions import complete_cases, complete_files, complete_models
from producer.cli.options.option_groups import option
from shared.contracts.query_environment import MAX_DELAY_S
from shared.contracts.query_vocabulary import CATEGORIES, METHODS
from shared.contracts.turn_vocabulary import Live


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The model, its endpoint and parameters, and the cost cap."""

    models: tuple[str, ...] = option(
        "-m",
        "--model",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_models,
        topics=("models",),
        help="Model to evaluate, e.g. openai/gpt-4o; turns are answered live by it.",
    )
    live: str | None = option(
        "--live",
        type=click.Choice([word.value for word in Live]),
        topics=("turns",),
        help="Decisions that are worth a model call [default: should, so no skip].",
    )
    api_base: str | None = option(
        "--api-base", metavar="URL", topics=("models",), help="Base URL of an OpenAI-compatible API."
    )
    api_key_env: str | None = option(
        "--api-key-env",
        metavar="VARIABLE",
        topics=("models",),
        help="Environment variable of the workers that holds the API key [default: the provider's].",
    )
    temperature: float | None = option(
        "-t",
        "--temperature",
        type=click.FloatRange(0, 2),
        metavar="T",
        topics=("models",),
        help="Sampling temperature [default: the bench's, else 0.1; for turns the provider's].",
    )
    max_cost: float | None = option(
        "--max-cost",
        type=click.FloatRange(0),
        metavar="USD",
        topics=("models",),
        help="End the run as incomplete before it costs more than this.",
    )
    price: str | None = option(
        "--price",
        metavar="IN/OUT",
        topics=("models",),
        help="USD per million prompt and completion tokens, for models without a known price.",
    )
    no_cache: bool = option("--no-cache", is_flag=True, topics=("models",), help="Ignore cached answers.")


MOST_REPEATS: Final = 1_000


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """Which cases are run, with which judges and which recorded outputs."""

    judges: tuple[str, ...] = option(
        "--judge",
        "--judge-model",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_models,
        topics=("cases",),
        help="Model that judges whether a non-identical output means the same; null: no judge; "
        "repeat it for a majority vote of several.",
    )
    validators_file: str | None = option(
        "--validators-file",
        metavar="FILE",
        shell_complete=complete_files,
        topics=("cases",),
        help="Python file with validator functions, in the folder of the configuration.",
    )
    outputs: str | None = option(
        "--outputs",
        metavar="FILE",
        shell_complete=complete_files,
        topics=("cases",),
        help="Validate recorded outputs (JSON Lines: case, model, output); call no model.",
    )
    stream: bool = option(
        "--stream", is_flag=True, topics=("cases",), help="Also record the time to the first token."
    )
    all_repeats: bool = option(
        "--all-repeats",
        is_flag=True,
        topics=("cases",),
        help="With repeat: {times, pass}, also ask what cannot change the verdict on a case any more.",
    )
    fail_fast: bool = option(
        "--fail-fast", is_flag=True, topics=("cases",), help="End the run at its first failure."
    )
    cases: tuple[str, ...] = option(
        "--case",
        multiple=True,
        metavar="ID",
        shell_complete=complete_cases,
        topics=("cases",),
        help="Only this case, by its id or its number from 1; may be repeated.",
    )
    tags: tuple[str, ...] = option(
        "--tag",
        multiple=True,
        metavar="TAG",
        topics=("cases",),
        help="Only cases with this tag; repeated, with any of them.",
    )


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Which items of a file are run, how often, and how many at a time."""

    containing: str | None = option(
        "-k",
        metavar="TEXT",
        topics=("queries", "cases"),
        help="Only those with this in their id or text; case-insensitive.",
    )
    first: int | None = option(
        "--first", type=click.IntRange(1), metavar="N", topics=("queries", "cases"), help="Only the first N."
    )
    sample: int | None = option(
        "--sample",
        type=click.IntRange(1),
        metavar="N",
        topics=("queries", "cases"),
        help="Only N at random, the same ones each time.",
    )
    last_failed: bool = option(
        "--last-failed",
        is_flag=True,
        topics=("queries", "cases"),
        help="Only what failed or ended in error in the newest run of this file; everything, if nothing did.",
    )
    only: str | None = option(
        "--only",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        metavar="NAMES",
        topics=("queries", "cases"),
        help="Only the items named in this file (`-`: stdin), one a line, as `validate --list` prints them.",
    )
    concurrency: int | None = option(
        "--concurrency",
        type=click.IntRange(1, 100_000),
        metavar="N",
        topics=("queries", "cases"),
        help="Maximum concurrent requests, across all workers [default: -j].",
    )
    repeat: int | None = option(
        "--repeat",
        type=click.IntRange(1, MOST_REPEATS),
        metavar="N",
        topics=("queries", "cases"),
        help="Run each one N times.",
    )


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
