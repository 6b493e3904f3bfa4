"""Gates of a run, such as `pass_rate<0.9`: read before anything is sent, judged by the run's document."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Final

from producer import kinds
from producer.aggregate.gate_metrics import COMPLETE_REPEATS, GROUPS, STREAMED, GateMetric, number_at
from producer.aggregate.gate_words import Wanted, gate_words, metric_words
from producer.documents import AnyRun, JudgedGate
from producer.options import CaseChoice
from shared.errors import UsageError
from shared.kinds import Kind, kind_named
from shared.thresholds import exceeds, reaches

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
    r"\s*([a-z][a-z0-9_]*|case:[a-z_]+|[a-z]+:.+\.[a-z_]+)\s*(<=|>=|<|>)\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*",
    re.ASCII | re.DOTALL,
)
_NAMED: Final = re.compile(r"([a-z]+):(.+)\.([a-z_]+)", re.ASCII | re.DOTALL)


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
    every = {name: value for each in kinds.declared() for name, value in each.metrics().items()}
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


def metric_named(name: str, known: Mapping[str, GateMetric]) -> GateMetric | None:
    """Finds a metric; in `check:contains: Paris.pass_rate` the name of a check stands between its parts.

    >>> from producer.aggregate.gate_metrics import CASE_METRICS
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
    return GateMetric(metric.find_named(parts[2]), metric.unit)


def check_gates(gates: Sequence[Gate], kind: Kind) -> None:
    """Refuses gates that a kind of run has no number for.

    Raises:
        UsageError: there is one.
    """
    known = kinds.of(kind).metrics()
    for gate in gates:
        if metric_named(gate.metric, known) is None:
            what = f"--fail-on: no metric is called {gate.metric!r} in a run of {kind}"
            raise UsageError(what, hint=f"{kind} have {', '.join(known)}")


def choice_for(gates: Sequence[Gate], choice: CaseChoice) -> CaseChoice:
    """Returns what the command line says of a run of cases, with what gates cannot do without."""
    if any(gate.metric in COMPLETE_REPEATS for gate in gates):
        choice = replace(choice, all_repeats=True)
    if any(gate.metric.startswith(STREAMED) for gate in gates):
        choice = replace(choice, is_timed=True)
    return choice


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


def judge_gates(gates: Sequence[Gate], document: AnyRun) -> list[JudgedGate]:
    """Compares gates with a run's document; one whose number the run does not have counts as missed."""
    known = kinds.of(kind_named(document.kind)).metrics()
    return [_judged(gate, metric_named(gate.metric, known), document) for gate in gates]


def _judged(gate: Gate, metric: GateMetric | None, document: AnyRun) -> JudgedGate:
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
    return JudgedGate(
        expression=gate.expression,
        metric=gate.metric,
        value=value,
        relation=gate.relation,
        bound=gate.bound,
        met=is_met,
        text=f"gate {'passed' if is_met else 'failed'}: {words}",
    )


def _is_missed(gate: Gate, value: float) -> bool:
    """Whether a value makes a gate fail."""
    return _TESTS[gate.relation](value, gate.bound)


def _missing(metric: str, document: AnyRun) -> str:
    """Says that a run has no such number, with the nearest name."""
    parts = _NAMED.fullmatch(metric)
    if parts is None or parts[1] not in GROUPS:
        return f"the run has no {metric_words(metric)}"
    group, key = GROUPS[parts[1]]
    names = [number_at(row, (key,)) for row in getattr(document.summary, group, None) or ()]
    if parts[2] in names:
        return f"{metric_words(metric)} has no value"
    near = get_close_matches(parts[2], names, n=1)
    return f"the run has no {parts[1]} {parts[2]!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _unknown(name: str, known: Mapping[str, GateMetric]) -> UsageError:
    """Makes the error for a name that stands for no metric of any kind."""
    parts = _NAMED.fullmatch(name)
    wanted = f"{parts[1]}:NAME.{parts[3]}" if parts else name
    near = get_close_matches(wanted, known, n=MOST_SUGGESTED)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join([*known][:MOST_SHOWN])}, …"
    )
    return UsageError(f"--fail-on: no metric is called {name!r}", hint=f"{hint} All: {ALL_METRICS}")
