"""What the HTML report shows of one case: its trace, and where the output and the expected object part."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from producer.aggregate.judging import rubrics_of
from producer.report.cases.opened_rows import OpenedCase
from producer.report.cases.wording import case_name, dollars, seconds
from producer.report.cells import plain
from producer.report.html.page import cut
from shared.contracts.case_vocabulary import Stage
from shared.names import Outcome

SKIPPED: Final = Outcome.SKIPPED.value
"""Status of a case that was not sent."""
GIST_CHARS: Final = 110
"""Of a prompt, in the line of a closed case."""
REASON_CHARS: Final = 180
"""Of what failed, in the line of a closed case."""
VALUE_CHARS: Final = 400
"""Of one side of a difference."""
DETAIL_CHARS: Final = 500
"""Of one entry of what a stage tells beside its reason."""
TITLES: Final[Mapping[str, str]] = {
    Stage.REGEX: "0 regex",
    Stage.CUSTOM: "0.5 validator",
    Stage.JSON: "1 JSON",
    Stage.SCHEMA: "2 schema",
    Stage.EQUALITY: "3 equality",
    Stage.FUZZY: "4 judge",
}
"""The stages as people call them, with the numbers of the document."""
UNWANTED: Final[tuple[Any, ...]] = ("", None, [], {})
_TOLD_ELSEWHERE: Final = frozenset({"errors", "reply", "votes"})


class Side(NamedTuple):
    """One side of a difference: what differs from the other stands between what does not."""

    before: str = ""
    differs: str = ""
    after: str = ""


class Difference(NamedTuple):
    """One difference, ready to be read."""

    path: str
    expected: Side | str
    """A text is a remark instead of a value."""
    actual: Side | str
    note: str = ""


def told(case: OpenedCase, limit: int) -> dict[str, Any]:
    """Returns what the page shows of a case.

    Args:
        case: as it was stored.
        limit: characters of each long text.
    """
    result, item = case.result or {}, case.item
    expected = None if item.expected is None else json.dumps(item.expected, indent=2, ensure_ascii=False)
    raw, differences = result.get("raw_output"), list(_differences(result.get("differences") or {}))
    return {
        "id": f"i{case.row.index + 1}",
        "number": item.case + 1,
        "name": case_name(item),
        "again": f" #{item.repeat + 1}" if item.repeat else "",
        "prompt": item.prompt_id,
        "model": item.model,
        "passed": bool(result.get("passed")),
        "status": status_of(case),
        "gist": plain(item.input, GIST_CHARS),
        "why": "" if result.get("passed") else plain(_why(case), REASON_CHARS),
        "latency": case.row.latency_ms,
        "cost": case.row.cost_usd,
        "figures": _figures(case),
        "message": case.message if case.code or not result.get("stages") else "",
        "texts": [(label, cut(text, limit)) for label, text in _asked(case)],
        "expected": None if expected is None else cut(expected, limit),
        "output": None if raw is None else cut(raw, limit),
        "reasoning": cut(result["reasoning"], limit) if result.get("reasoning") else None,
        "tool_calls": cut(_json(result["tool_calls"]), limit) if result.get("tool_calls") else None,
        "refusal": cut(result["refusal"], limit) if result.get("refusal") else None,
        "differences": differences,
        "more": _more(result.get("differences") or {}),
        "problems": _problems(result),
        "checks": [_check(row) for row in result.get("checks") or ()],
        "stages": [_stage(stage, is_brief=bool(differences)) for stage in result.get("stages") or ()],
    }


def status_of(case: OpenedCase) -> str:
    """Names how a case ended in one word of the pipeline, or of the error."""
    return case.code or str((case.result or {}).get("status") or SKIPPED)


def _why(case: OpenedCase) -> str:
    """Says why there is no pass."""
    return case.message if case.result else "the run ended first"


def _figures(case: OpenedCase) -> list[str]:
    """What the case took and cost, and what else was measured."""
    if case.result is None:
        return []
    row = case.row
    figures = [] if row.latency_ms is None else [seconds(row.latency_ms)]
    if row.cost_usd is not None:
        figures.append(dollars(row.cost_usd))
    elif figures:
        figures.append("cost unknown")
    figures += [f"{case.total_tokens:,} tokens"] * bool(case.total_tokens)
    score = (case.result.get("metrics") or {}).get("rouge_l")
    figures += [] if score is None else [f"ROUGE-L {float(score):.2f}"]
    checks = case.result.get("score")
    figures += [] if checks is None else [f"score {float(checks):.2f}"]
    figures += [f"tags: {', '.join(case.item.tags)}"] * bool(case.item.tags)
    figures += [f"human label: {case.item.label}"] * (case.item.label is not None)
    figures += [f"{case.row.attempts} attempts"] * (case.row.attempts > 1)
    return figures


def _asked(case: OpenedCase) -> Iterator[tuple[str, str]]:
    """The texts of a case: what was asked, and what a good answer looks like."""
    item = case.item
    if item.system is not None:
        yield "System message", item.system
    for message in (item.messages or ())[:-1]:
        yield str(message.get("role", "")).capitalize(), _text_of(message)
    yield "Prompt", item.input
    if "regex_pattern" in item.criteria:
        yield "Pattern", item.criteria["regex_pattern"]
    if "validator" in item.criteria:
        yield "Validator", item.criteria["validator"]
    if "reference" in item.criteria:
        yield "Reference", item.criteria["reference"]


def _text_of(message: Mapping[str, Any]) -> str:
    """The text of a message; parts that are no text as JSON."""
    content = message.get("content")
    return content if isinstance(content, str) else _json(content)


def _stage(stage: Mapping[str, Any], *, is_brief: bool) -> dict[str, Any]:
    """One stage of the trace; brief when the table of differences says the rest."""
    name, detail, reason = str(stage["stage"]), stage.get("detail") or {}, str(stage["reason"])
    told = [
        f"{key}: {plain(value if isinstance(value, str) else _json(value), DETAIL_CHARS)}"
        for key, value in detail.items()
        if value not in UNWANTED and key not in _TOLD_ELSEWHERE
    ]
    return {
        "title": TITLES.get(name, name),
        "outcome": str(stage["outcome"]),
        "reason": reason.partition(":")[0] if is_brief and name == Stage.EQUALITY else reason,
        "detail": " · ".join(told),
        "reply": str(detail.get("reply") or ""),
    }


def _check(row: Mapping[str, Any]) -> dict[str, Any]:
    """One check, with the votes of its judges."""
    passed, score = row["passed"], row["score"]
    votes = [vote for rubric in rubrics_of(row) for vote in rubric.votes]
    told = [_vote(vote) for vote in votes if len(votes) > 1]
    return {
        "name": row["name"],
        "outcome": "skipped" if passed is None else "pass" if passed else "fail",
        "score": "" if score is None else f"{score:.2f}",
        "reason": plain(str(row["reason"]), VALUE_CHARS),
        "votes": told,
    }


def _vote(vote: Mapping[str, Any]) -> str:
    """What one judge of a panel answered."""
    reason = plain(str(vote.get("reason") or ""), DETAIL_CHARS)
    return f"{vote['model']}: {vote['verdict'] or 'unreachable'}" + (f", {reason}" if reason else "")


def _problems(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """How the output breaks the schema, one by one."""
    return [
        problem
        for stage in result.get("stages") or ()
        if stage["stage"] == Stage.SCHEMA
        for problem in (stage.get("detail") or {}).get("errors") or ()
    ]


def _differences(found: Mapping[str, Any]) -> Iterator[Difference]:
    """Returns the differences in the order in which they matter."""
    for entry in found.get("changed") or ():
        note = "type changed" if entry.get("type_changed") else ""
        yield Difference(_where(entry), *sides(entry["expected"], entry["actual"]), note)
    for entry in found.get("missing") or ():
        yield Difference(_where(entry), Side(differs=_shown(entry["expected"])), "missing")
    for entry in found.get("unexpected") or ():
        yield Difference(_where(entry), "nothing", Side(differs=_shown(entry["actual"])))
    for entry in found.get("repetitions") or ():
        value = _shown(entry["value"])
        often = [f"{entry[key]:,} ×" for key in ("expected_times", "actual_times")]  # noqa: RUF001 - the sign for times
        yield Difference(_where(entry), Side(f"{often[0]} ", value), Side(f"{often[1]} ", value))


def sides(expected: Any, actual: Any) -> tuple[Side, Side]:
    """Sets the words that differ of two values apart from what they begin and end with.

    >>> sides("an old hat", "a new hat")
    (Side(before='"', differs='an old', after=' hat"'), Side(before='"', differs='a new', after=' hat"'))
    >>> sides(4, "4")
    (Side(before='', differs='4', after=''), Side(before='', differs='"4"', after=''))
    """
    one, other = _shown(expected), _shown(actual)
    if not isinstance(expected, str) or not isinstance(actual, str):
        return Side(differs=one), Side(differs=other)
    head = _common(one, other)
    tail = _common(one[head:][::-1], other[head:][::-1])
    return _parted(one, head, tail), _parted(other, head, tail)


def _common(one: str, other: str) -> int:
    """Counts the characters with which both begin, up to the last end of a word."""
    most = min(len(one), len(other))
    same = next((at for at in range(most) if one[at] != other[at]), most)
    while 0 < same < max(len(one), len(other)) and one[same - 1].isalnum():
        same -= 1
    return same


def _parted(text: str, head: int, tail: int) -> Side:
    """Cuts a text in three."""
    return Side(text[:head], text[head : len(text) - tail], text[len(text) - tail :])


def _more(found: Mapping[str, Any]) -> str:
    """What else is to be said of the differences."""
    left = f"{found['omitted']:,} more" if found.get("omitted") else ""
    return "; ".join(filter(None, (left, str(found.get("note") or ""))))


def _where(entry: Mapping[str, Any]) -> str:
    """Where a difference is."""
    return str(entry.get("path") or "(root)")


def _shown(value: Any) -> str:
    """Writes a value, bounded."""
    text = _json(value)
    return text if len(text) <= VALUE_CHARS else f"{text[:VALUE_CHARS]}…"


def _json(value: Any) -> str:
    """Writes a value as JSON."""
    return json.dumps(value, ensure_ascii=False)
