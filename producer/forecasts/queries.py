"""Counts what a run of queries is going to send."""

import os

from producer.forecasts import Forecast, request_warnings
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.text import count, plural


def forecast(source: Source, options: SubmitOptions) -> Forecast | None:
    """Returns what a run of queries is going to send; None for a stream.

    Raises:
        InputError: the file breaks its contract.
    """
    if not source.repeatable:
        return None
    from producer.load.baselines import read_baselines  # noqa: PLC0415 - pydantic
    from producer.queries.load import asked_by, choose, start_at  # noqa: PLC0415 - same

    baselines = read_baselines(source)
    run = asked_by(baselines.api, options.queries)
    following = start_at(baselines.queries, run.start_from or None)
    chosen = choose(following, options.query_choice)
    repeats = f" × {plural(run.repeat, 'repeat')}" if run.repeat > 1 else ""  # noqa: RUF001 - a product
    marked = [query.id for query in chosen if "{{" in query.query and "}}" in query.query]
    warnings = request_warnings(run.headers, run.bearer_env, os.environ)
    if marked:
        others = f" (and {count(len(marked) - 1)} more)" if len(marked) > 1 else ""
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
