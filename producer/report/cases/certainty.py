"""How sure the figures of a cases run are: intervals of pass rates, latencies with their number, repeats."""

from collections.abc import Mapping
from typing import Any, Final

from producer.report.cases.words import FREEFORM, NONE, by_latency, by_pass_rate, seconds

COLUMNS: Final = ("95 % interval", "P50", "n")
"""Behind the documented columns: of the pass rate, of the latency, and of how many answers that is."""
REPEATS: Final = ("Model", "k", "Mean ± SE", "pass@k", "pass^k", "Flaky")
"""Of the table of repeats; the standard error takes repeats of a case as related, so it is by case."""


def sure_cells(model: Mapping[str, Any]) -> list[str]:
    """Writes the cells of `COLUMNS` of one model of a summary.

    >>> rate = {"value": 0.75, "low": 0.3006, "high": 0.9544, "n": 4}
    >>> sure_cells({"rates": {"pass_rate": rate}, "latency_ms": {"p50": 450}, "latency_n": 4})
    ['30.1-95.4%', '0.45s', '4']
    """
    rate = model["rates"]["pass_rate"]
    interval = f"{100 * rate['low']:.1f}-{100 * rate['high']:.1f}%" if rate["n"] else NONE
    return [interval, seconds(model["latency_ms"].get("p50")), f"{model['latency_n']:,}"]


def sure_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Writes a row for each model: its name, not made safe, and the cells of `COLUMNS`."""
    return [[model["model"], *sure_cells(model)] for model in _models(document)]


def repeat_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Writes a row for each model that was asked more than once: its name, not made safe, and its figures.

    A run whose outputs nobody checked has none: there is nothing to be flaky about.
    """
    return [
        [model["model"], *_repeat_cells(model["repeats"])]
        for model in _models(document)
        if model["repeats"] and document["summary"]["mode"] != FREEFORM
    ]


def _repeat_cells(repeats: Mapping[str, Any]) -> list[str]:
    """Writes what the repeats of one model say.

    >>> _repeat_cells({"repeats": 2, "cases": 2, "complete_cases": 2, "mean": 0.75, "standard_error": 0.25,
    ...     "pass_at_k": {"1": 0.75, "2": 1.0}, "pass_hat_k": {"1": 0.75, "2": 0.5}, "flaky": 1})
    ['2', '75.0% ± 25.0', '100.0%', '50.0%', '1 of 2']
    """
    error, k = repeats["standard_error"], repeats["repeats"]
    return [
        str(k),
        f"{100 * repeats['mean']:.1f}%" + ("" if error is None else f" ± {100 * error:.1f}"),
        *(f"{100 * repeats[name][str(k)]:.1f}%" for name in ("pass_at_k", "pass_hat_k")),
        f"{repeats['flaky']:,} of {repeats['cases']:,}",
    ]


def _models(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Sorts the models as the table above does."""
    return (by_latency if document["summary"]["mode"] == FREEFORM else by_pass_rate)(document)
