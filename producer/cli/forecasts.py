"""Counts what runs of turns and queries are going to send; a run without calls imports nothing for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from producer.cli.preflight import Forecast, missing_keys, model_warnings, request_warnings
from producer.text import count, plural

if TYPE_CHECKING:
    from producer.load.source import Source
    from producer.options import SubmitOptions

PROMPT_TOKENS: Final = 350
"""Length of the instructions and the context of a live turn, about."""
ANSWER_TOKENS: Final = 150
"""Assumed length of an answer to a turn."""
CHARS_A_TOKEN: Final = 4


def forecast_turns(source: Source, options: SubmitOptions) -> Forecast | None:
    """Returns what a run of live turns is going to send; None for recorded ones, and for a stream.

    The file is read for this alone, and again when it is submitted: it may be larger than the memory.

    Raises:
        InputError: the file breaks its contract.
    """
    live = options.live
    if live is None or not source.repeatable:
        return None
    from producer.load.live_calls import called_messages  # noqa: PLC0415 - only live turns need the engine
    from producer.load.turns import load_turns  # noqa: PLC0415 - same
    from shared.upstream.prices import cost_of  # noqa: PLC0415 - same

    turns = calls = chars = 0
    for chunk in load_turns(source, options).chunks:
        for message in called_messages(chunk.content, live.live):
            calls += 1
            chars += len(message)
        turns += chunk.item_count
    prompts = calls * PROMPT_TOKENS + chars // CHARS_A_TOKEN
    model = live.target.model
    usd = cost_of(model, prompts, calls * ANSWER_TOKENS, live.prices)
    return Forecast(
        calls,
        f"of {plural(turns, 'turn')}",
        cost_usd=usd,
        answer_tokens=None if usd is None else ANSWER_TOKENS,
        unpriced=[model] if usd is None else [],
        warnings=model_warnings([live.target], os.environ),
        missing=missing_keys([live.target], os.environ),
    )


def forecast_queries(source: Source, options: SubmitOptions) -> Forecast | None:
    """Returns what a run of queries is going to send; None for a stream.

    Raises:
        InputError: the file breaks its contract.
    """
    if not source.repeatable:
        return None
    from producer.load.baselines import read_baselines  # noqa: PLC0415 - pydantic
    from producer.load.queries import choose, start_at  # noqa: PLC0415 - same

    run = options.queries
    baselines = read_baselines(source)
    following = start_at(baselines.queries, run.start_from or None)
    chosen = choose(following, options.query_choice)
    repeats = f" × {plural(run.repeat, 'repeat')}" * (run.repeat > 1)  # noqa: RUF001 - a product
    marked = [query["id"] for query in chosen if "{{" in query["query"] and "}}" in query["query"]]
    warnings = request_warnings(run.headers, run.bearer_env, os.environ)
    if marked:
        others = f" (and {count(len(marked) - 1)} more)" * (len(marked) > 1)
        mark = f"{source.name}: {marked[0]}{others}"
        warnings.append(f"{mark}: {{{{ }}}} is sent as it is: queries are no templates")
    return Forecast(
        len(chosen) * run.repeat,
        f"{plural(len(chosen), 'query')}{repeats} to {run.api_url}",
        noun="request",
        warnings=warnings,
        items=len(chosen) * run.repeat,
        baselines=baselines,
    )
