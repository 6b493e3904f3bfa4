"""Writes the results file of an evaluation run: run id, time, settings, metrics and every result."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


def run_config(*, delay_s: float, api_url: str, start_from: str, version: str) -> dict[str, Any]:
    """Returns the settings of a run under the document's four keys.

    >>> list(run_config(delay_s=30, api_url="http://localhost:3000", start_from="Q-01", version="1.0"))
    ['delay', 'api_url', 'start_from', 'version']
    """
    return {"delay": delay_s, "api_url": api_url, "start_from": start_from, "version": version}


def results_json(
    results: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    run_id: str,
    began_ms: int,
) -> bytes:
    """Returns the file's content: UTF-8, indented by two, characters as they are.

    Args:
        results: results of queries.
        metrics: see `calculate_metrics`.
        config: settings, see `run_config`.
        run_id: the run.
        began_ms: when it began, epoch milliseconds; written as ISO 8601 in UTC.

    Raises:
        ValueError: a number is not finite; JSON has no such thing.

    >>> import json
    >>> list(json.loads(results_json([], {}, {}, run_id="eval-1", began_ms=0)))
    ['run_id', 'timestamp', 'config', 'metrics', 'results']
    """
    document = {
        "run_id": run_id,
        "timestamp": datetime.fromtimestamp(began_ms // 1000, UTC).isoformat(),
        "config": dict(config),
        "metrics": dict(metrics),
        "results": [dict(result) for result in results],
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace") + b"\n"  # half a surrogate pair becomes its JSON escape
