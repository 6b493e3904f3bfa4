"""Writes the verdict of a queries run: a sentence from its targets, and what a reader must know beside it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.aggregate.gates import gate_line
from producer.aggregate.queries import Target, targets
from producer.text import plural, sentence_of
from shared.names import FINAL_STATES, RunState

PASSED: Final = "p"
FAILED: Final = "f"
ERROR: Final = "e"
NAMES: Final[Mapping[str, str]] = {
    "deflection_rate": "deflection rate",
    "citation_accuracy": "citation accuracy",
    "hallucination_rate": "hallucination rate",
    "oos_handling_rate": "OOS handling",
    "avg_latency_ms": "average latency",
}
"""Of targets within a sentence."""
_NAMED: Final = 2
"""Missed targets that the sentence names."""


class Verdict(NamedTuple):
    """How a run ended, for people."""

    tone: str
    """`PASSED`, `FAILED`, `ERROR`, or empty while there is no telling."""
    sentence: str
    """Without its mark and without a full stop."""
    why: Sequence[str]
    """Sentences: by how much, and what is in doubt."""


def verdict_of(document: Mapping[str, Any], notes: Sequence[str] = ()) -> Verdict:
    """Returns the verdict of a run.

    Args:
        document: as `producer.document` makes it.
        notes: what else a reader must know before trusting the numbers.
    """
    why = [*_counts(document), *_gates(document), *_doubts(document)]
    why += [*map(sentence_of, notes), *_vacuous(document["summary"]["vacuous_deflections"])]
    tone, sentence = _sentence(document)
    return Verdict(tone, sentence, why)


def marked(verdict: Verdict) -> str:
    """Writes the sentence behind its mark, for reports that have no colour.

    >>> marked(Verdict("f", "Gate failed", ()))
    '✗ Gate failed'
    """
    return f"{ {PASSED: '✓', FAILED: '✗', ERROR: '!'}.get(verdict.tone, '●') } {verdict.sentence}"


def answered(document: Mapping[str, Any]) -> int:
    """Returns how many queries of a run have an answer."""
    return int(document["counts"]["passed"] + document["counts"]["failed"])


def percent(part: int, whole: int) -> str:
    """Writes a share with one decimal, whole ones without; of nothing there is none.

    >>> percent(2, 3), percent(3, 3), percent(0, 0)
    ('66.7 %', '100 %', '-')
    """
    if not whole:
        return "-"
    return f"{100 * part // whole} %" if part in (0, whole) else f"{100 * part / whole:.1f} %"


def value_of(target: Target) -> str:
    """Writes what a run reached; a rate without answers is none, never zero.

    >>> from producer.aggregate.queries import TARGETS
    >>> value_of(TARGETS[0])
    'no answers'
    """
    return "no answers" if target.status == "N/A" else _number(target, target.value)


def wanted(target: Target) -> str:
    """Writes the limit of a target.

    >>> from producer.aggregate.queries import TARGETS
    >>> wanted(TARGETS[0]), wanted(TARGETS[4])
    ('≥ 40 %', '< 5,000 ms')
    """
    return f"{'≥' if target.relation == '>=' else '<'} {_number(target, target.threshold, decimals=0)}"


def _number(target: Target, number: float, *, decimals: int = 1) -> str:
    """Writes a number with the unit of a target."""
    if target.is_time:
        return f"{number:,.0f} ms"
    return f"{number:.0f} %" if number in (0, 100) else f"{number:.{decimals}f} %"


def _sentence(document: Mapping[str, Any]) -> tuple[str, str]:
    """Returns tone and sentence."""
    counts, state = document["counts"], document["state"]
    done, total = answered(document) + counts["error"], counts["total"]
    if state not in FINAL_STATES:
        return "", f"{state.capitalize()}: {done:,} of {_queries(total)} done"
    judged = [target for target in targets(document["summary"]["metrics"]) if target.status != "N/A"]
    missed = [target for target in judged if target.status == "FAIL"]
    before = (
        "" if state == RunState.FINISHED else f"{state.capitalize()} after {done:,} of {_queries(total)}: "
    )
    gates = sum(not gate["met"] for gate in document.get("gates", ()))
    if not judged:
        return ERROR, f"{before}{'no' if before else 'No'} query was answered"
    if missed:
        named = "; ".join(
            f"{NAMES[each.metric]} {value_of(each)}, needs {wanted(each)}" for each in missed[:_NAMED]
        )
        more = f"; and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
        text = f"{len(missed)} of {plural(len(judged), 'target')} missed: {named}{more}"
    elif gates:
        text = f"{plural(gates, 'gate')} failed; {_all(judged)} met"
    elif counts["failed"]:
        text = f"{counts['failed']:,} of {_queries(total)} failed; {_all(judged)} met"
    elif counts["error"]:
        text = (
            f"{counts['error']:,} of {_queries(total)} {_has(counts['error'])} no answer; {_all(judged)} met"
        )
        return ERROR, before + text
    else:
        text = f"{_all(judged)} met and every {'answered ' if before else ''}query passed"
        text = text if before else f"{text[:1].upper()}{text[1:]}"
        return (PASSED if state == RunState.FINISHED else ERROR), before + text
    return FAILED, before + text


def _counts(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields how many passed: of the queries that were answered, and of all."""
    counts, total, has_answer = document["counts"], document["counts"]["total"], answered(document)
    if has_answer == total:
        yield f"{counts['passed']:,} of {_queries(total)} passed ({percent(counts['passed'], total)})."
    elif has_answer:
        of_answered, of_all = percent(counts["passed"], has_answer), percent(counts["passed"], total)
        share = f"{of_answered} of answered, {of_all} of all {total:,}"
        yield f"{counts['passed']:,} of {has_answer:,} answered queries passed ({share})."
    left = [f"{counts['error']:,} {_has(counts['error'])} no answer"] * bool(counts["error"])
    if counts["skipped"] and document["state"] in FINAL_STATES:
        left.append(f"{counts['skipped']:,} {'was' if counts['skipped'] == 1 else 'were'} never sent")
    if left:
        yield f"{', '.join(left)}."


def _gates(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields the gates, the failed ones first."""
    for gate in sorted(document.get("gates", ()), key=lambda gate: bool(gate["met"])):
        yield sentence_of(gate_line(gate))


def _doubts(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields the rates whose interval holds their target: too few queries for a clear verdict."""
    rates = document["summary"]["rates"]
    doubtful = [
        f"{NAMES[target.metric]} {100 * rate['low']:.0f} to {100 * rate['high']:.0f} %"
        for target in targets(document["summary"]["metrics"])
        if target.status != "N/A"
        and (rate := rates.get(target.metric))
        and rate["low"] < target.threshold / 100 < rate["high"]
    ]
    if doubtful:
        because = "Too few queries to be sure, since the target lies within the 95 % interval"
        yield f"{because}: {', '.join(doubtful)}."


def _vacuous(number: int) -> Iterator[str]:
    """Yields what makes the deflection rate look better than it is."""
    if number:
        verb = "requires no keyword and counts" if number == 1 else "require no keyword and count"
        yield f"{number:,} in-scope {'query' if number == 1 else 'queries'} {verb} as deflected."


def _all(judged: Sequence[Target]) -> str:
    """Names all targets of which there is data."""
    return "the target that applies is" if len(judged) == 1 else f"all {len(judged)} targets are"


def _has(number: int) -> str:
    """Returns the verb for a number."""
    return "has" if number == 1 else "have"


def _queries(number: int) -> str:
    """Counts queries.

    >>> _queries(1), _queries(50)
    ('1 query', '50 queries')
    """
    return plural(number, "query")
