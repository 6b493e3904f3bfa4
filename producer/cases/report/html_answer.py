"""What the HTML report of cases shows of one answer: outcome, differences, checks, transcript, command."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from msgspec import UNSET

from producer.cases.report.html_images import PageImages, Picture
from producer.cases.report.opened_rows import OpenedCase
from producer.cases.report.reasons import reason_of
from producer.cases.report.shown_cases import CHECKED, TITLES, wanted_of
from producer.cases.report.wording import dollars, latency
from producer.cases.results import (
    CaseResult,
    CheckRow,
    DifferencesFound,
    JudgeVote,
    SchemaViolation,
    StageEntry,
)
from producer.item_ids import item_id
from producer.report.cells import Size, plain
from producer.report.html.rendering import Text, cut
from producer.report.html.viewer import Letter
from producer.report.transcript import TOOL_CALL, as_read, call_text
from producer.text import plural
from shared.contracts.case_run import CaseRun
from shared.contracts.case_vocabulary import STAGE_TABLE, Stage
from shared.kinds import CASES
from worker.validation.case_verdict import StageOutcome

WORDS: Final = {Letter.PASSED: "passed", Letter.FAILED: "failed", Letter.ERROR: "error"}
GIST_CHARS: Final = 420
"""Of an output, in its cell."""
DIFF_LINES: Final = 200
"""Of an expected object, up to which it is compared line by line."""
EMPTY_VALUES: Final[tuple[Any, ...]] = ("", None, [], {})
GIST_LINES: Final = 8
"""Of code, in its cell."""
TIMES: Final = " × "  # noqa: RUF001 - the sign for times
ROOT: Final = "(root)"
"""The path of the whole object."""
_FENCE: Final = re.compile(r"^[ \t]*```[^\n`]*(?:\n|$)", re.MULTILINE)
"""What stands around a block of code."""
_SHOWN_ELSEWHERE: Final = frozenset({"errors", "reply", "votes"})


class ValueSide(NamedTuple):
    """One side of a difference: what differs from the other stands between what does not."""

    before: str = ""
    differs: str = ""
    after: str = ""


class ShownDifference(NamedTuple):
    """One difference, ready to be read."""

    path: str
    expected: ValueSide | str
    """A text is a remark instead of a value."""
    actual: ValueSide | str
    note: str = ""


class FoundLine(NamedTuple):
    """One check or stage, ready to be read."""

    letter: str
    name: str
    figure: str = ""
    notes: Sequence[str] = ()


class ShownMessage(NamedTuple):
    """One message of a transcript."""

    who: str
    text: Text
    kind: str = ""
    """`code`, `answer` or nothing."""
    fold: str = ""
    """Summary of one that is folded."""
    pictures: Sequence[Picture] = ()
    """Images in place of a text."""


class ShownAnswer(NamedTuple):
    """What the page shows of an answer: the argument of the macro `answer`."""

    letter: Letter
    word: str
    """The outcome in words."""
    why: str
    """Why it did not pass; empty where it did, or was not checked."""
    message: str
    """What the error or the verdict says, whole."""
    figures: Sequence[str]
    """What it took and cost, and what else was measured."""
    decided: str
    """What decided first."""
    diff: Sequence[tuple[str, str]]
    """The expected object and the answer, line by line."""
    differences: Sequence[ShownDifference]
    more: str
    """Differences that are left out, and a note on them."""
    problems: Sequence[SchemaViolation]
    """How the output breaks the schema."""
    ran: Sequence[FoundLine]
    """Stages and checks that ran, those that failed first."""
    skipped: Sequence[FoundLine]
    asked: Sequence[ShownMessage]
    """What was sent, where the cells of a row differ in it."""
    answered: Sequence[ShownMessage]
    good: Sequence[tuple[str, Text]]
    """What was expected."""
    command: str
    """Asks for this answer again."""


def letter_of(case: OpenedCase, *, is_freeform: bool = False) -> Letter:
    """Returns the letter of an answer; one that was not checked has no outcome."""
    letter = Letter.of(case.row.outcome)
    return Letter.NONE if is_freeform and letter is not Letter.ERROR else letter


def gist_of(case: OpenedCase, *, is_freeform: bool = False) -> tuple[str, bool]:
    """Returns the beginning of an answer, and whether it is code; tool calls stand for an empty one.

    Args:
        case: as it was stored.
        is_freeform: whether it is read for its own sake: it keeps its lines.
    """
    output, calls = case.answer.raw_output or case.answer.refusal, case.answer.tool_calls
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
) -> ShownAnswer:
    """Returns what the page shows of an answer.

    Args:
        case: as it was stored.
        run: the settings of the run.
        limit: characters of each long text.
        images: of the page.
        run_id: of the run, for the command.
        is_freeform: whether nothing was checked.
    """
    result, found = case.answer, case.answer.differing
    differences = list(_differences(found))
    ran, skipped = _lines(result, _configured(case, run), is_brief=bool(differences))
    reason = reason_of(case)
    letter = letter_of(case, is_freeform=is_freeform)
    is_unchecked = is_freeform and letter is Letter.NONE
    violations = (stage.known.errors for stage in result.stages if stage.stage is Stage.SCHEMA)
    return ShownAnswer(
        letter=letter,
        word="not checked" if is_unchecked else WORDS.get(letter, "not asked"),
        why="" if reason is None or is_unchecked else reason.text,
        message=_message(case),
        figures=_figures(case),
        decided=_decided(result),
        diff=_line_diff(case.item.expected, result.parsed_output) if differences else [],
        differences=differences,
        more="; ".join(filter(None, (f"{found.omitted:,} more" if found.omitted else "", found.note))),
        problems=[each for errors in violations for each in errors],
        ran=ran,
        skipped=skipped,
        asked=list(asked_of(case, run, limit, images)) if run.prompts else [],
        answered=list(_answered(case, limit)),
        good=[(label, cut(text, limit)) for label, text in wanted_of(case.item)],
        command="" if run.recorded else _command(run_id, case),
    )


def _command(run_id: str, case: OpenedCase) -> str:
    """Writes the command that asks for this answer again."""
    name = f"{case.item.name} · {case.item.asked}"
    item = name if name.isprintable() else item_id(CASES, case.row.index)
    return shlex.join(["proctor", "retry", run_id, "--item", item])


def asked_of(case: OpenedCase, run: CaseRun, limit: int, images: PageImages) -> Iterator[ShownMessage]:
    """Yields what was sent: system message, conversation and images."""
    item = case.item
    system = run.system_prompt if item.system is None else item.system
    if system:
        head = plain(system, Size.NAME)
        yield ShownMessage("system", cut(system, limit), fold=head if len(head) > Size.NAME else "")
    for who, text in as_read(item.messages or [{"role": "user", "content": item.input}]):
        yield ShownMessage(who, cut(text, limit), "code" if who == TOOL_CALL else "")
    if item.images:
        pictures = [images.picture(name) for name in item.images]
        yield ShownMessage("image" if len(pictures) == 1 else "images", Text(""), pictures=pictures)


def _answered(case: OpenedCase, limit: int) -> Iterator[ShownMessage]:
    """The messages of an answer: reasoning, tool calls, output."""
    result = case.answer
    if result.reasoning:
        words = plural(len(result.reasoning.split()), "word")
        yield ShownMessage("reasoning", cut(result.reasoning, limit), fold=words)
    for call in result.tool_calls:
        yield ShownMessage(TOOL_CALL, cut(call_text(call), limit), "code")
    if result.refusal:
        yield ShownMessage("refusal", cut(result.refusal, limit), "answer")
    output = result.raw_output
    if case.code or output is None:
        yield ShownMessage("error" if case.code else "answer", Text(_message(case) or "none"), "answer")
    elif output or not result.tool_calls:
        yield ShownMessage(
            "answer", cut(output, limit) if output else Text("(empty)"), "answer" + _code(output)
        )
    if (checked := result.checked_output) is not UNSET:
        yield ShownMessage(CHECKED, cut(checked or "(empty)", limit), "answer" + _code(checked))


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
    if cached := result.usage.cached_input_tokens:
        figures.append(f"{cached:,} of them cached by the provider")
    if (rouge_l := result.measured.rouge_l) is not None:
        figures.append(f"ROUGE-L {rouge_l:.2f}")
    if result.score is not None:
        figures.append(f"score {result.score:.2f}")
    if case.item.label is not None:
        figures.append(f"human label: {case.item.label}")
    if row.attempts > 1:
        figures.append(plural(row.attempts, "attempt"))
    return figures


def _decided(result: CaseResult) -> str:
    """Names what decided first, of an answer that did not pass."""
    decided = result.decided_by
    if result.passed or not decided:
        return ""
    if decided == "checks":
        return "decided by the failed checks"
    return f"decided by {TITLES[Stage(decided)] if decided in TITLES else decided}"


def _configured(case: OpenedCase, run: CaseRun) -> frozenset[str]:
    """Returns the stages that a case has something for."""
    keys = case.item.criteria.keys() | (set() if run.schema is None else {"schema"})
    return frozenset(stage for stage, row in STAGE_TABLE.items() if not keys.isdisjoint(row.keys))


def _lines(
    result: CaseResult, configured: frozenset[str], *, is_brief: bool
) -> tuple[list[FoundLine], list[FoundLine]]:
    """Lists stages and checks: those that failed first, and apart those that did not run."""
    stages = [
        stage
        for stage in result.stages
        if stage.outcome is not StageOutcome.SKIPPED or stage.stage in configured
    ]
    found = [_stage(stage, is_brief=is_brief) for stage in stages] + [_check(row) for row in result.checks]
    ran = sorted((line for line in found if line.letter != "s"), key=lambda line: line.letter)
    return ran, [line for line in found if line.letter == "s"]


def _stage(stage: StageEntry, *, is_brief: bool) -> FoundLine:
    """One stage; brief when the difference says the rest."""
    is_told = is_brief and stage.stage is Stage.EQUALITY
    notes = [stage.reason.partition(":")[0] if is_told else stage.reason]
    notes += [
        f"{key}: {plain(value if isinstance(value, str) else _json(value), Size.TEXT)}"
        for key, value in stage.detail.items()
        if value not in EMPTY_VALUES and key not in _SHOWN_ELSEWHERE
    ]
    if stage.stage is Stage.FUZZY and (reply := stage.known.reply):
        notes.append(f"reply: {reply}")
    letter = {StageOutcome.PASS: "p", StageOutcome.FAIL: "f"}.get(stage.outcome, "s")
    return FoundLine(letter, TITLES[stage.stage], notes=[note for note in notes if note])


def _check(row: CheckRow) -> FoundLine:
    """One check, with the votes of its judges."""
    votes = [vote for rubric in row.rubrics for vote in rubric.votes]
    notes = [plain(row.reason, Size.TEXT), *(_vote(vote) for vote in votes if len(votes) > 1)]
    letter = "s" if row.passed is None else "p" if row.passed else "f"
    figure = "" if row.score is None else f"{row.score:.2f}"
    return FoundLine(letter, row.name, figure, [note for note in notes if note])


def _vote(vote: JudgeVote) -> str:
    """What one judge of a panel answered."""
    reason = plain(vote.reason, Size.TEXT)
    return f"{vote.model}: {vote.verdict or 'unreachable'}" + (f", {reason}" if reason else "")


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
    return [(kind, cut(line, Size.TEXT).shown) for kind, line in lines]


def _differences(found: DifferencesFound) -> Iterator[ShownDifference]:
    """Returns the differences in the order in which they matter."""
    for each in found.changed:
        note = "type changed" if each.type_changed else ""
        yield ShownDifference(each.path or ROOT, *sides(each.expected, each.actual), note)
    for each in found.missing:
        yield ShownDifference(each.path or ROOT, ValueSide(differs=_shown(each.expected)), "missing")
    for each in found.unexpected:
        yield ShownDifference(each.path or ROOT, "nothing", ValueSide(differs=_shown(each.actual)))
    for each in found.repetitions:
        value = _shown(each.value)
        expected, actual = f"{each.expected_times:,}{TIMES}", f"{each.actual_times:,}{TIMES}"
        yield ShownDifference(each.path or ROOT, ValueSide(expected, value), ValueSide(actual, value))


def sides(expected: Any, actual: Any) -> tuple[ValueSide, ValueSide]:
    """Sets the words that differ of two values apart from what they begin and end with.

    >>> sides("an old hat", "a new hat")[1]
    ValueSide(before='"', differs='a new', after=' hat"')
    >>> sides(4, "4")
    (ValueSide(before='', differs='4', after=''), ValueSide(before='', differs='"4"', after=''))
    """
    one, other = _shown(expected), _shown(actual)
    if not isinstance(expected, str) or not isinstance(actual, str):
        return ValueSide(differs=one), ValueSide(differs=other)
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


def _in_three(text: str, head: int, tail: int) -> ValueSide:
    """Cuts a text in three."""
    return ValueSide(text[:head], text[head : len(text) - tail], text[len(text) - tail :])


def _shown(value: Any) -> str:
    """Writes a value, bounded."""
    text = _json(value)
    return text if len(text) <= Size.TEXT else f"{text[: Size.TEXT]}…"


def _code(output: str) -> str:
    """The class of an answer that is an object, a table or a block of code."""
    return " code" if output.lstrip().startswith(("{", "[", "|", "```")) else ""


def _json(value: Any) -> str:
    """Writes a value as JSON."""
    return json.dumps(value, ensure_ascii=False)
