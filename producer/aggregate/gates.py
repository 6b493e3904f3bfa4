"""Gates of a run, such as `pass_rate<0.9`: read before anything is sent, judged by the run's document."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from producer import kinds
from producer.aggregate.gate_words import Unit, Wanted, gate_words, metric_words
from shared.errors import UsageError
from shared.kinds import Kind, kind_named
from shared.thresholds import exceeds, reaches

Document = Mapping[str, Any]
Find = Callable[[Document], Any]
MOST_SUGGESTED: Final = 3
MOST_SHOWN: Final = 4
ALL_METRICS: Final = "docs/exports.md, section Gates"
_TESTS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": lambda value, bound: not reaches(value, bound),
    "<=": lambda value, bound: not exceeds(value, bound),
    ">": exceeds,
    ">=": reaches,
}
_FORM: Final = re.compile(
    r"\s*([a-z][a-z0-9_]*|[a-z]+:.+\.[a-z_]+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*",
    re.ASCII | re.DOTALL,
)
_NAMED: Final = re.compile(r"([a-z]+):(.+)\.([a-z_]+)", re.ASCII | re.DOTALL)


def _count_share(*words: str) -> Find:
    """Makes a finder of the share of outcomes in all items, whether they have a result or not."""

    def find(document: Document) -> float | None:
        counts = document["counts"]
        return sum(counts[word] for word in words) / counts["total"] if counts["total"] else None

    return find


def _at(*path: str) -> Find:
    """Makes a finder of what stands under a path of keys in the summary."""

    def find(document: Document) -> Any:
        found: Any = document["summary"]
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    return find


def _first(*finds: Find) -> Find:
    """Makes a finder of the first that is there."""

    def find(document: Document) -> Any:
        return next((found for each in finds if (found := each(document)) is not None), None)

    return find


def _of_group(name: str, group: str) -> Find:
    """Makes a finder of a metric of queries that has no value when nothing is in its group."""

    def find(document: Document) -> Any:
        metrics = document["summary"]["metrics"]
        return metrics[name] if metrics[group] else None

    return find


def _turn_share(*path: str) -> Find:
    """Makes a finder of a count's share in the decided turns."""
    count = _at(*path)

    def find(document: Document) -> float | None:
        decided = document["counts"]["decided"]
        return count(document) / decided if decided else None

    return find


def _of_models(choose: Callable[[Iterable[Any]], Any], *path: str) -> Find:
    """Makes a finder of the worst model's number: a gate holds for each model."""

    def find(document: Document) -> Any:
        models = [{"summary": model} for model in document["summary"].get("models", ())]
        found = [number for model in models if (number := _at(*path)(model)) is not None]
        return choose(found) if found else None

    return find


def _of_named(group: str, key: str, figure: str) -> Callable[[str], Find]:
    """Makes finders of a figure of the prompt, tag or check with a name."""

    def of(name: str) -> Find:
        def find(document: Document) -> Any:
            rows = document["summary"].get(group, ())
            found = next((row[figure] for row in rows if row[key] == name), None)
            return found["value"] if found is not None and found["n"] else None

        return find

    return of


@dataclass(frozen=True, slots=True)
class Metric:
    """A number of a run that a gate may ask for."""

    find: Find
    """Reads it from a run's document; None when the run has no such number."""
    unit: Unit = "number"
    """What it is."""
    find_named: Callable[[str], Find] | None = None
    """Makes `find` for metrics such as `check:NAME.pass_rate`."""


def _no_number(document: Document) -> None:
    """Finds nothing: the metric needs a name."""
    del document


_share: Final = partial(Metric, unit="share")
COMMON_METRICS: Final[Mapping[str, Metric]] = {
    "pass_rate": _share(_count_share("passed", "decided")),
    "fail_rate": _share(_count_share("failed")),
    "error_rate": _share(_count_share("error")),
    "skipped_rate": _share(_count_share("skipped")),
    "duration_s": Metric(_at("duration_s")),
}
_LATENCIES: Final = ("p50", "p90", "p95", "p99")
_COST: Final = {"cost_usd": Metric(_first(_at("cost_usd"), _at("calls", "cost_usd")))}


def _latencies(*places: Sequence[str]) -> dict[str, Metric]:
    """Names the percentiles of a latency."""
    return {
        f"latency_{name}_ms": Metric(_first(*(_at(*place, name) for place in places))) for name in _LATENCIES
    }


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
TURN_METRICS: Final[Mapping[str, Metric]] = {
    **COMMON_METRICS,
    **{f"{word}_share": _share(_turn_share("decisions", word)) for word in ("must", "should", "skip")},
    "freeze_share": _share(_turn_share("freezes")),
    "calls_made": Metric(_at("calls", "made")),
    "calls_avoided": Metric(_at("calls", "avoided")),
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
    f"{word}:NAME.{metric}": Metric(_no_number, "share", _of_named(group, name, figure))
    for word, (group, name) in GROUPS.items()
    for metric, figure in (("pass_rate", "pass_rate"), ("score_mean", "score"))
}
CASE_METRICS: Final[Mapping[str, Metric]] = {
    **COMMON_METRICS,
    **_COST,
    "rouge_l_mean": _share(_of_models(min, "rouge_l_mean")),
    "score_mean": _share(_of_models(min, "score", "value")),
    "judge_accuracy": _share(_at("judge", "calibration", "accuracy", "value")),
    "judge_precision": _share(_at("judge", "calibration", "precision", "value")),
    "judge_recall": _share(_at("judge", "calibration", "recall", "value")),
    "judge_sameness": _share(_at("judge", "consistency", "same", "value")),
    "judge_unanimity": _share(_at("judge", "agreement", "unanimous", "value")),
    "judge_alpha": Metric(_at("judge", "agreement", "krippendorff_alpha")),
    **{f"latency_{name}_ms": Metric(_of_models(max, "latency_ms", name)) for name in _LATENCIES},
    **_NAMED_METRICS,
}
"""What gates may ask of a cases run."""
QUERY_METRICS: Final[Mapping[str, Metric]] = {
    **COMMON_METRICS,
    **{name: Metric(_of_group(name, group), "percent") for name, group in _PERCENT_OF.items()},
    "avg_latency_ms": Metric(_of_group("avg_latency_ms", "successful_queries")),
    **{name: Metric(_at("metrics", name)) for name in _COUNTS},
    **_latencies(("latency_ms",)),
}
"""What gates may ask of a queries run."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Something that must not be true of a run."""

    expression: str
    """As it was written."""
    metric: str
    """The name of a number that the kind of the run has."""
    relation: str
    """One of `<`, `<=`, `>`, `>=`."""
    bound: float
    """The limit; a fraction where the metric is a rate."""


def parse_gate(text: str) -> Gate:
    """Reads what is not to be, such as `pass_rate<0.9`, `error_rate > 1%` or `latency_p95_ms>=5000`.

    Raises:
        UsageError: it has another form, or no kind of run has such a number.

    >>> parse_gate("check:contains: Paris.pass_rate<0.9").metric
    'check:contains: Paris.pass_rate'
    >>> parse_gate("pass_rate < 90%")
    Gate(expression='pass_rate < 90%', metric='pass_rate', relation='<', bound=0.9)
    """
    found = _FORM.fullmatch(text)
    if not found:
        raise UsageError(
            f"--fail-on {text!r}: no metric, relation (< <= > >=) and number",
            hint='such as --fail-on "pass_rate<0.9"',
        )
    metric, relation, number, percent = found.groups()
    every = {name: value for each in kinds.declared() for name, value in each.metrics.get().items()}
    known = metric_named(metric, every)
    if known is None:
        raise _unknown(metric, every)
    bound = float(number) / 100 if percent else float(number)
    if percent and known.unit == "number":
        raise UsageError(f"--fail-on {text!r}: {metric} is no share", hint=f"write {number}")
    if known.unit != "number" and bound > 1:
        raise UsageError(
            f"--fail-on {text!r}: {metric} is between 0 and 1",
            hint=f"write {bound / 100:g} or {bound:g}%",
        )
    return Gate(text, metric, relation, bound)


def metric_named(name: str, known: Mapping[str, Metric]) -> Metric | None:
    """Finds a metric; in `check:contains: Paris.pass_rate` the name of a check stands between its parts.

    >>> metric_named("check:contains: Paris.pass_rate", CASE_METRICS).unit
    'share'
    >>> metric_named("check:NAME.colour", CASE_METRICS) is None
    True
    """
    if name in known and known[name].find_named is None:
        return known[name]
    parts = _NAMED.fullmatch(name)
    metric = known.get(f"{parts[1]}:NAME.{parts[3]}") if parts else None
    if parts is None or metric is None or metric.find_named is None:
        return None
    return Metric(metric.find_named(parts[2]), metric.unit)


def check_gates(gates: Sequence[Gate], kind: Kind) -> None:
    """Refuses gates that a kind of run has no number for.

    Raises:
        UsageError: there is one.
    """
    known = kinds.of(kind).metrics.get()
    for gate in gates:
        if metric_named(gate.metric, known) is None:
            what = f"--fail-on: no metric is called {gate.metric!r} in a run of {kind}"
            raise UsageError(what, hint=f"{kind} have {', '.join(known)}")


def check_gate_names(gates: Sequence[Gate], names: Mapping[str, Sequence[str]]) -> None:
    """Refuses gates on a check, prompt or tag that a run is not going to have.

    Args:
        gates: all of them.
        names: those of the run, by the words of `GROUPS`.

    Raises:
        UsageError: there is one.

    >>> check_gate_names([parse_gate("prompt:shrt.pass_rate<1")], {"prompt": ["short"]})
    Traceback (most recent call last):
        ...
    shared.errors.UsageError: --fail-on: the run has no prompt 'shrt'
    """
    for gate in gates:
        parts = _NAMED.fullmatch(gate.metric)
        known = names.get(parts[1]) if parts else None
        if parts is not None and known is not None and parts[2] not in known:
            near = get_close_matches(parts[2], known, n=1)
            listed = ", ".join(map(repr, known[:MOST_SHOWN])) or "none"
            hint = f"did you mean {near[0]!r}?" if near else f"there are {listed}"
            raise UsageError(f"--fail-on: the run has no {parts[1]} {parts[2]!r}", hint=hint)


def judge_gates(gates: Sequence[Gate], document: Document) -> list[dict[str, Any]]:
    """Compares gates with a run's document; one whose number the run does not have counts as missed.

    Returns:
        For each gate its expression, metric, value, relation, bound, whether it was met, and that as a text.
    """
    known = kinds.of(kind_named(document["kind"])).metrics.get()
    return [_judged(gate, metric_named(gate.metric, known), document) for gate in gates]


def _judged(gate: Gate, metric: Metric | None, document: Document) -> dict[str, Any]:
    """Compares one gate with a run's document."""
    found = None if metric is None else metric.find(document)
    is_missed = partial(_is_missed, gate)
    if found is None or metric is None:
        value, is_met, words = None, False, _missing(gate.metric, document)
    else:
        value = found / 100 if metric.unit == "percent" else found
        is_met = not is_missed(value)
        wanted = Wanted(gate.metric, gate.relation, gate.bound)
        words = gate_words(wanted, metric.unit, value, is_missed)
    return {
        "expression": gate.expression,
        "metric": gate.metric,
        "value": value,
        "relation": gate.relation,
        "bound": gate.bound,
        "met": is_met,
        "text": f"gate {'passed' if is_met else 'failed'}: {words}",
    }


def _is_missed(gate: Gate, value: float) -> bool:
    """Whether a value makes a gate fail."""
    return _TESTS[gate.relation](value, gate.bound)


def _missing(metric: str, document: Document) -> str:
    """Says that a run has no such number, with the nearest name."""
    parts = _NAMED.fullmatch(metric)
    if parts is None or parts[1] not in GROUPS:
        return f"the run has no {metric_words(metric)}"
    group, key = GROUPS[parts[1]]
    names = [row[key] for row in document["summary"].get(group, ())]
    if parts[2] in names:
        return f"{metric_words(metric)} has no value"
    near = get_close_matches(parts[2], names, n=1)
    return f"the run has no {parts[1]} {parts[2]!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _unknown(name: str, known: Mapping[str, Metric]) -> UsageError:
    """Makes the error for a name that stands for no metric of any kind."""
    parts = _NAMED.fullmatch(name)
    wanted = f"{parts[1]}:NAME.{parts[3]}" if parts else name
    near = get_close_matches(wanted, known, n=MOST_SUGGESTED)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join([*known][:MOST_SHOWN])}, …"
    )
    return UsageError(f"--fail-on: no metric is called {name!r}", hint=f"{hint} All: {ALL_METRICS}")
