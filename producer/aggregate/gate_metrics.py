"""The numbers of a run that a gate may ask for, by kind, and how each is found in the run's document."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from msgspec import UNSET

from producer.aggregate.gate_words import Unit
from producer.documents import AnyRun, Percentiles, counted

Find = Callable[[AnyRun], Any]


def _count_share(*words: str) -> Find:
    """Makes a finder of the share of outcomes in all items, whether they have a result or not."""

    def find(document: AnyRun) -> float | None:
        counts = counted(document.summary, document.counts)
        return sum(getattr(counts, word) for word in words) / counts.total if counts.total else None

    return find


def _at(*path: str) -> Find:
    """Makes a finder of a number in the summary."""
    return lambda document: number_at(document.summary, path)


def number_at(found: Any, path: Sequence[str]) -> Any:
    """Follows a path of attributes, and of keys of tallies; None where it does not lead to anything."""
    for name in path:
        values = found.named() if isinstance(found, Percentiles) else found
        found = values.get(name) if isinstance(values, Mapping) else getattr(values, name, None)
    return None if found is UNSET else found


def _first(*finds: Find) -> Find:
    """Makes a finder of the first that is there."""

    def find(document: AnyRun) -> Any:
        return next((found for each in finds if (found := each(document)) is not None), None)

    return find


def _of_group(name: str, group: str) -> Find:
    """Makes a finder of a metric of queries that has no value when nothing is in its group."""

    def find(document: AnyRun) -> Any:
        metrics = document.summary.metrics
        return getattr(metrics, name) if getattr(metrics, group) else None

    return find


def _turn_share(*path: str) -> Find:
    """Makes a finder of a count's share in the decided turns."""
    count = _at(*path)

    def find(document: AnyRun) -> float | None:
        decided = document.counts.decided
        return count(document) / decided if decided else None

    return find


def _of_models(choose: Callable[[Iterable[Any]], Any], *path: str) -> Find:
    """Makes a finder of the worst model's number: a gate holds for each model."""

    def find(document: AnyRun) -> Any:
        models = document.summary.models
        found = [number for model in models if (number := number_at(model, path)) is not None]
        return choose(found) if found else None

    return find


def _of_repeats(name: str) -> Find:
    """Makes a finder of the worst model's chance with as many tries as there are repeats."""

    def find(document: AnyRun) -> Any:
        repeats = [model.repeats for model in document.summary.models if model.repeats is not None]
        found = [getattr(each, name).get(str(each.repeats)) for each in repeats]
        return min(found) if found and None not in found else None

    return find


def _of_named(group: str, key: str, figure: str) -> Callable[[str], Find]:
    """Makes finders of a figure of the prompt, tag or check with a name."""

    def of(name: str) -> Find:
        def find(document: AnyRun) -> Any:
            rows = getattr(document.summary, group) or ()
            found = next((row for row in rows if number_at(row, (key,)) == name), None)
            return number_at(found, (figure, "value")) if number_at(found, (figure, "n")) else None

        return find

    return of


def _flaky(document: AnyRun) -> int:
    """Counts the cases whose answers differ in verdict, over all models."""
    return sum(model.repeats.flaky for model in document.summary.models if model.repeats is not None)


@dataclass(frozen=True, slots=True)
class GateMetric:
    """A number of a run that a gate may ask for."""

    find: Find
    """Reads it from a run's document; None when the run has no such number."""
    unit: Unit = "number"
    """What it is."""
    find_named: Callable[[str], Find] | None = None
    """Makes `find` for metrics such as `check:NAME.pass_rate`."""


def _no_number(_document: AnyRun) -> None:
    """Finds nothing: the metric needs a name."""


_share: Final = partial(GateMetric, unit="share")
COMMON_METRICS: Final[Mapping[str, GateMetric]] = {
    "pass_rate": _share(_count_share("passed", "decided")),
    "fail_rate": _share(_count_share("failed")),
    "error_rate": _share(_count_share("error")),
    "skipped_rate": _share(_count_share("skipped")),
    "duration_s": GateMetric(_at("duration_s")),
}
_LATENCIES: Final = ("p50", "p90", "p95", "p99")
_COST: Final = {"cost_usd": GateMetric(_first(_at("cost_usd"), _at("calls", "cost_usd")))}


def _latencies(*places: Sequence[str]) -> dict[str, GateMetric]:
    """Names the percentiles of a latency."""
    return {
        f"latency_{name}_ms": GateMetric(_first(*(_at(*place, name) for place in places)))
        for name in _LATENCIES
    }


STREAMED: Final = "first_token_"
"""Begins the names of metrics that need streamed answers."""
COMPLETE_REPEATS: Final = ("pass_at_k", "pass_hat_k")
"""Metrics that need all answers to each case, also those that cannot change its verdict."""
_PERCENT_OF: Final = {
    "deflection_rate": "in_scope_queries",
    "citation_accuracy": "citation_applicable_queries",
    "citation_accuracy_raw": "in_scope_queries",
    "hallucination_rate": "successful_queries",
    "oos_handling_rate": "oos_queries",
    "latency_under_5s": "successful_queries",
}
_COUNTS: Final = (
    "citation_applicable_queries",
    "citation_na_queries",
    "total_queries",
    "successful_queries",
    "failed_queries",
    "in_scope_queries",
    "oos_queries",
)
TURN_METRICS: Final[Mapping[str, GateMetric]] = {
    **COMMON_METRICS,
    **{f"{word}_share": _share(_turn_share("decisions", word)) for word in ("must", "should", "skip")},
    "freeze_share": _share(_turn_share("freezes")),
    "calls_made": GateMetric(_at("calls", "made")),
    "calls_avoided": GateMetric(_at("calls", "avoided")),
    **_COST,
    **_latencies(("calls", "latency_ms")),
}
"""What gates may ask of a turns run."""
GROUPS: Final[Mapping[str, tuple[str, str]]] = {
    "check": ("checks", "name"),
    "prompt": ("prompts", "prompt"),
    "tag": ("tags", "tag"),
}
"""By the word before a name: the rows of the summary, and the key of the name in them."""
_NAMED_METRICS: Final = {
    f"{word}:NAME.{metric}": GateMetric(_no_number, "share", _of_named(group, name, figure))
    for word, (group, name) in GROUPS.items()
    for metric, figure in (("pass_rate", "pass_rate"), ("score_mean", "score"))
}
CASE_METRICS: Final[Mapping[str, GateMetric]] = {
    **COMMON_METRICS,
    **_COST,
    "rouge_l_mean": _share(_of_models(min, "rouge_l_mean")),
    "score_mean": _share(_of_models(min, "score", "value")),
    "judge_accuracy": _share(_at("judge", "calibration", "accuracy", "value")),
    "judge_precision": _share(_at("judge", "calibration", "precision", "value")),
    "judge_recall": _share(_at("judge", "calibration", "recall", "value")),
    "judge_sameness": _share(_at("judge", "consistency", "same", "value")),
    "judge_unanimity": _share(_at("judge", "agreement", "unanimous", "value")),
    "judge_alpha": GateMetric(_at("judge", "agreement", "krippendorff_alpha")),
    **{f"latency_{name}_ms": GateMetric(_of_models(max, "latency_ms", name)) for name in _LATENCIES},
    **{f"first_token_{name}_ms": GateMetric(_of_models(max, "first_token_ms", name)) for name in _LATENCIES},
    "cost_per_case": GateMetric(_of_models(max, "cost_per_case", "value")),
    **_NAMED_METRICS,
    **{f"case:{name}": COMMON_METRICS[name] for name in ("pass_rate", "fail_rate", "error_rate")},
    "flaky": GateMetric(_flaky),
    **{name: _share(_of_repeats(name)) for name in COMPLETE_REPEATS},
}
"""What gates may ask of a cases run."""
QUERY_METRICS: Final[Mapping[str, GateMetric]] = {
    **COMMON_METRICS,
    **{name: GateMetric(_of_group(name, group), "percent") for name, group in _PERCENT_OF.items()},
    "avg_latency_ms": GateMetric(_of_group("avg_latency_ms", "successful_queries")),
    **{name: GateMetric(_at("metrics", name)) for name in _COUNTS},
    **_latencies(("latency_ms",)),
}
"""What gates may ask of a queries run."""
