"""What the HTML report of cases shows of one answer: outcome, differences, checks, transcript, command."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from producer.aggregate.judging import rubrics_of
from producer.item_ids import item_id
from producer.report.cases.html_images import PageImages, Picture
from producer.report.cases.opened_rows import OpenedCase
from producer.report.cases.reasons import reason_of
from producer.report.cases.shown_cases import TITLES, wanted_of
from producer.report.cases.wording import dollars, latency
from producer.report.cells import plain
from producer.report.html.rendering import Text, cut
from producer.report.transcript import TOOL_CALL, as_read, call_text
from producer.text import plural
from shared.contracts.case_run import CaseRun
from shared.contracts.case_vocabulary import Stage
from shared.kinds import CASES
from shared.names import Outcome

SKIPPED: Final = Outcome.SKIPPED.value
"""Status of a case that was not sent."""
LETTERS: Final = {Outcome.PASSED: "p", Outcome.FAILED: "f", Outcome.ERROR: "e"}
"""Of a cell; others have none."""
GIST_CHARS: Final = 420
"""Of an output, in its cell."""
VALUE_CHARS: Final = 400
"""Of one side of a difference."""
DETAIL_CHARS: Final = 500
"""Of one entry of what a stage says beside its reason."""
DIFF_LINES: Final = 200
"""Of an expected object, up to which it is compared line by line."""
FOLD_CHARS: Final = 90
"""Of a system message, above which it is folded."""
EMPTY_VALUES: Final[tuple[Any, ...]] = ("", None, [], {})
GIST_LINES: Final = 8
"""Of code, in its cell."""
_FENCE: Final = re.compile(r"^[ \t]*```[^\n`]*(?:\n|$)", re.MULTILINE)
"""What stands around a block of code."""
_SHOWN_ELSEWHERE: Final = frozenset({"errors", "reply", "votes"})


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


class Line(NamedTuple):
    """One check or stage, ready to be read."""

    letter: str
    name: str
    figure: str = ""
    notes: Sequence[str] = ()


class Message(NamedTuple):
    """One message of a transcript."""

    who: str
    text: Text
    kind: str = ""
    """`code`, `answer` or nothing."""
    fold: str = ""
    """Summary of one that is folded."""
    pictures: Sequence[Picture] = ()
    """Images in place of a text."""


def letter_of(case: OpenedCase, *, is_freeform: bool = False) -> str:
    """Returns the letter of an answer; one that was not checked has no outcome."""
    letter = LETTERS.get(case.row.outcome, "n")
    return "n" if is_freeform and letter != "e" else letter


def status_of(case: OpenedCase) -> str:
    """Names how a case ended in one word of the pipeline, or of the error."""
    return case.code or str((case.result or {}).get("status") or SKIPPED)


def gist_of(case: OpenedCase, *, is_freeform: bool = False) -> tuple[str, bool]:
    """Returns the beginning of an answer, and whether it is code; tool calls stand for an empty one.

    Args:
        case: as it was stored.
        is_freeform: whether it is read for its own sake: it keeps its lines.
    """
    result = case.result or {}
    output = str(result.get("raw_output") or result.get("refusal") or "")
    calls = result.get("tool_calls") or ()
    text = output if output.strip() or not calls else " · ".join(map(call_text, calls))
    is_fenced = text.lstrip().startswith("```")
    text = _FENCE.sub("", text[: 2 * GIST_CHARS]).strip()
    is_code = bool((calls and not output.strip()) or is_fenced or _code(text))
    if is_freeform:
        return text, is_code
    if is_fenced and not _code(text):  # its lines are part of it, unlike those of an object
        return "\n".join(text.split("\n")[:GIST_LINES])[:GIST_CHARS], True
    return plain(text, GIST_CHARS), is_code


def answer_of(
    case: OpenedCase, run: CaseRun, limit: int, images: PageImages, *, run_id: str, is_freeform: bool
) -> dict[str, Any]:
    """Returns what the page shows of an answer.

    Args:
        case: as it was stored.
        run: the settings of the run.
        limit: characters of each long text.
        images: of the page.
        run_id: of the run, for the command.
        is_freeform: whether nothing was checked.
    """
    result = case.result or {}
    differences = result.get("differences") or {}
    listed = list(_differences(differences))
    ran, skipped = _lines(result, _configured(case, run), is_brief=bool(listed))
    reason = reason_of(case)
    letter = letter_of(case, is_freeform=is_freeform)
    words = {"p": "passed", "f": "failed", "e": "error"}
    return {
        "letter": letter,
        "word": "not checked" if is_freeform and letter == "n" else words.get(letter, "not asked"),
        "repeat": case.item.repeat + 1,
        "status": status_of(case),
        "why": "" if reason is None or (is_freeform and letter == "n") else reason.text,
        "message": _message(case),
        "figures": _figures(case),
        "decided": _decided(result),
        "diff": _line_diff(case.item.expected, result.get("parsed_output")) if listed else [],
        "differences": listed,
        "more": _omitted(differences),
        "problems": _problems(result),
        "ran": ran,
        "skipped": skipped,
        "asked": list(asked_of(case, run, limit, images)) if run.prompts else [],
        "answered": list(_answered(case, limit)),
        "good": list(_requirements(case, limit)),
        "command": "" if run.recorded else _command(run_id, case),
    }


def _command(run_id: str, case: OpenedCase) -> str:
    """Writes the command that asks for this answer again."""
    name = f"{case.item.name} · {case.item.asked}"
    item = name if name.isprintable() else item_id(CASES, case.row.index)
    return shlex.join(["proctor", "retry", run_id, "--item", item])


def asked_of(case: OpenedCase, run: CaseRun, limit: int, images: PageImages) -> Iterator[Message]:
    """Yields what was sent: system message, conversation and images."""
    item = case.item
    system = run.system_prompt if item.system is None else item.system
    if system:
        head = plain(system, FOLD_CHARS)
        yield Message("system", cut(system, limit), fold=head if len(head) > FOLD_CHARS else "")
    for who, text in as_read(item.messages or [{"role": "user", "content": item.input}]):
        yield Message(who, cut(text, limit), "code" if who == TOOL_CALL else "")
    if item.images:
        pictures = [images.picture(name) for name in item.images]
        yield Message("image" if len(pictures) == 1 else "images", Text(""), pictures=pictures)


def _answered(case: OpenedCase, limit: int) -> Iterator[Message]:
    """The messages of an answer: reasoning, tool calls, output."""
    result = case.result or {}
    if result.get("reasoning"):
        words = plural(len(str(result["reasoning"]).split()), "word")
        yield Message("reasoning", cut(result["reasoning"], limit), fold=words)
    for call in result.get("tool_calls") or ():
        yield Message(TOOL_CALL, cut(call_text(call), limit), "code")
    if result.get("refusal"):
        yield Message("refusal", cut(result["refusal"], limit), "answer")
    output = result.get("raw_output")
    if case.code or output is None:
        yield Message("error" if case.code else "answer", Text(_message(case) or "none"), "answer")
    elif output or not result.get("tool_calls"):
        yield Message("answer", cut(output, limit) if output else Text("(empty)"), "answer" + _code(output))


def _requirements(case: OpenedCase, limit: int) -> Iterator[tuple[str, Text]]:
    """What a good answer looks like."""
    for label, text in wanted_of(case.item):
        yield label, cut(text, limit)


def _message(case: OpenedCase) -> str:
    """What the error or the verdict says, whole."""
    if case.result is None:
        return ""
    return f"{case.code}: {case.message}" if case.code else case.message


def _figures(case: OpenedCase) -> list[str]:
    """What the case took and cost, and what else was measured."""
    if case.result is None:
        return []
    row, result = case.row, case.result
    figures = [] if row.latency_ms is None else [latency(row)]
    if row.cost_usd is not None:
        figures.append(dollars(row.cost_usd))
    elif figures:
        figures.append("cost unknown")
    if case.total_tokens:
        figures.append(f"{case.total_tokens:,} tokens")
    score = (result.get("metrics") or {}).get("rouge_l")
    figures += [] if score is None else [f"ROUGE-L {float(score):.2f}"]
    checks = result.get("score")
    figures += [] if checks is None else [f"score {float(checks):.2f}"]
    if case.item.label is not None:
        figures.append(f"human label: {case.item.label}")
    if row.attempts > 1:
        figures.append(plural(row.attempts, "attempt"))
    return figures


def _decided(result: Mapping[str, Any]) -> str:
    """Names what decided first, of an answer that did not pass."""
    decided = result.get("decided_by")
    if result.get("passed") or not decided:
        return ""
    return "the failed checks decided" if decided == "checks" else f"{TITLES.get(decided, decided)} decided"


def _configured(case: OpenedCase, run: CaseRun) -> frozenset[str]:
    """Returns the stages that a case has something for."""
    criteria, has_expected = case.item.criteria, case.item.expected is not None
    has_schema = run.schema is not None
    asked_for = {
        Stage.REGEX: "regex_pattern" in criteria,
        Stage.CUSTOM: "validator" in criteria,
        Stage.JSON: has_expected or has_schema,
        Stage.SCHEMA: has_schema,
        Stage.EQUALITY: has_expected,
        Stage.FUZZY: has_expected,
    }
    return frozenset(stage for stage, is_asked_for in asked_for.items() if is_asked_for)


def _lines(
    result: Mapping[str, Any], configured: frozenset[str], *, is_brief: bool
) -> tuple[list[Line], list[Line]]:
    """Lists stages and checks: those that failed first, and apart those that did not run."""
    stages = [
        stage
        for stage in result.get("stages") or ()
        if stage["outcome"] != "skipped" or stage["stage"] in configured
    ]
    found = [_stage(stage, is_brief=is_brief) for stage in stages]
    found += [_check(row) for row in result.get("checks") or ()]
    ran = sorted((line for line in found if line.letter != "s"), key=lambda line: line.letter)
    return ran, [line for line in found if line.letter == "s"]


def _stage(stage: Mapping[str, Any], *, is_brief: bool) -> Line:
    """One stage; brief when the difference says the rest."""
    name, detail, reason = str(stage["stage"]), stage.get("detail") or {}, str(stage["reason"])
    notes = [reason.partition(":")[0] if is_brief and name == Stage.EQUALITY else reason]
    notes += [
        f"{key}: {plain(value if isinstance(value, str) else _json(value), DETAIL_CHARS)}"
        for key, value in detail.items()
        if value not in EMPTY_VALUES and key not in _SHOWN_ELSEWHERE
    ]
    if detail.get("reply"):
        notes.append(f"reply: {detail.get('reply')}")
    letter = {"pass": "p", "fail": "f"}.get(str(stage["outcome"]), "s")
    return Line(letter, TITLES.get(name, name), notes=[note for note in notes if note])


def _check(row: Mapping[str, Any]) -> Line:
    """One check, with the votes of its judges."""
    passed, score = row["passed"], row["score"]
    votes = [vote for rubric in rubrics_of(row) for vote in rubric.votes]
    notes = [plain(str(row["reason"]), VALUE_CHARS), *(_vote(vote) for vote in votes if len(votes) > 1)]
    letter = "s" if passed is None else "p" if passed else "f"
    figure = "" if score is None else f"{score:.2f}"
    return Line(letter, str(row["name"]), figure, [note for note in notes if note])


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


def _line_diff(expected: Any, actual: Any) -> list[tuple[str, str]]:
    """Sets two objects against each other line by line: (`del`, `add` or nothing, line).

    >>> _line_diff({"a": 1, "b": 2}, {"b": 2, "a": 3})
    [('', '{'), ('del', '  "a": 1,'), ('add', '  "a": 3,'), ('', '  "b": 2'), ('', '}')]
    """
    one, other = (
        json.dumps(each, indent=2, ensure_ascii=False, sort_keys=True).split("\n")
        for each in (expected, actual)
    )
    if actual is None or max(len(one), len(other)) > DIFF_LINES:
        return []
    lines = list[tuple[str, str]]()
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += [("", line) for line in one[a:b]]
        else:
            lines += [("del", line) for line in one[a:b]] + [("add", line) for line in other[c:d]]
    return [(kind, cut(line, VALUE_CHARS).shown) for kind, line in lines]


def _differences(found: Mapping[str, Any]) -> Iterator[Difference]:
    """Returns the differences in the order in which they matter."""
    for entry in found.get("changed") or ():
        note = "type changed" if entry.get("type_changed") else ""
        yield Difference(_path(entry), *sides(entry["expected"], entry["actual"]), note)
    for entry in found.get("missing") or ():
        yield Difference(_path(entry), Side(differs=_shown(entry["expected"])), "missing")
    for entry in found.get("unexpected") or ():
        yield Difference(_path(entry), "nothing", Side(differs=_shown(entry["actual"])))
    for entry in found.get("repetitions") or ():
        value = _shown(entry["value"])
        often = [f"{entry[key]:,} ×" for key in ("expected_times", "actual_times")]  # noqa: RUF001 - the sign for times
        yield Difference(_path(entry), Side(f"{often[0]} ", value), Side(f"{often[1]} ", value))


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
    return _in_three(one, head, tail), _in_three(other, head, tail)


def _common(one: str, other: str) -> int:
    """Counts the characters with which both begin, up to the last end of a word."""
    most = min(len(one), len(other))
    same = next((at for at in range(most) if one[at] != other[at]), most)
    while 0 < same < max(len(one), len(other)) and one[same - 1].isalnum():
        same -= 1
    return same


def _in_three(text: str, head: int, tail: int) -> Side:
    """Cuts a text in three."""
    return Side(text[:head], text[head : len(text) - tail], text[len(text) - tail :])


def _omitted(found: Mapping[str, Any]) -> str:
    """How many differences are left out, and the note on them."""
    left = f"{found['omitted']:,} more" if found.get("omitted") else ""
    return "; ".join(filter(None, (left, str(found.get("note") or ""))))


def _path(entry: Mapping[str, Any]) -> str:
    """Where a difference is."""
    return str(entry.get("path") or "(root)")


def _shown(value: Any) -> str:
    """Writes a value, bounded."""
    text = _json(value)
    return text if len(text) <= VALUE_CHARS else f"{text[:VALUE_CHARS]}…"


def _code(output: str) -> str:
    """The class of an answer that is an object, a table or a block of code."""
    return " code" if output.lstrip().startswith(("{", "[", "|", "```")) else ""


def _json(value: Any) -> str:
    """Writes a value as JSON."""
    return json.dumps(value, ensure_ascii=False)
