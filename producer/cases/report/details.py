"""What a terminal shows of single cases: outputs by prompt, or what failed, or each stage of each case."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from producer.cases.report.opened_rows import OpenedCase, opened
from producer.cases.report.reasons import reason_of
from producer.cases.report.wording import check_example, check_finding, check_line, dollars, latency
from producer.documents import AnyRun
from producer.report.cells import Size, plain
from producer.report.interfaces import Paint, unpainted
from producer.report.run_report import FailureExample, FailureGroup, Failures
from producer.report.shown_item import without_quote
from producer.report.to_terminal import ASKED, LINE_CHARS, in_line, indented, marked
from producer.report.transcript import asked_line
from producer.tables import boxed_table, panel
from shared.codecs.item_rows import ItemRow
from worker.validation.case_verdict import StageOutcome

PANEL: Final = "Freeform Mode - Showing raw model outputs for manual inspection"
"""As in the document."""
MOST_PROMPTS: Final = 50
"""Prompts of a freeform run whose outputs are shown; a report has them all."""
MOST_FAILURES: Final = 5
"""Reasons of each model that are shown."""
MOST_NAMES: Final = 3
"""Cases that a line of equal failures names."""
MOST_VERBOSE: Final = 200
"""Cases whose stages are shown."""
_VALUES: Final = re.compile(r'"[^"]*"|\'[^\']*\'|\d[\d.,:]*')
"""Quoted texts and numbers in a message."""
MARKS: Final = {StageOutcome.PASS: "✓", StageOutcome.FAIL: "✗", StageOutcome.SKIPPED: "·"}
COLUMNS: Final = ("Model", "Output", "Latency", "Cost")


class FreeformDetails:
    """Collects the outputs of each prompt."""

    def __init__(self) -> None:
        self._run = ""
        self._prompts: dict[tuple[int, str | None], tuple[str, list[tuple[str, str, str, str]]]] = {}
        self._more = set[tuple[int, str | None]]()

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for case in opened(rows):
            at = (case.item.case, case.item.prompt_id)
            if at not in self._prompts and len(self._prompts) >= MOST_PROMPTS:
                self._more.add(at)
                continue
            prompt = self._prompts.setdefault(at, (plain(asked_line(case.item), LINE_CHARS), []))
            prompt[1].append(_cells(case))

    def end(self, document: AnyRun) -> None:
        """Keeps the run's id, for commands in the text."""
        self._run = document.run_id

    def text(self, paint: Paint = unpainted) -> str:
        """Draws the panel, and a table for each prompt."""
        parts = [panel(PANEL)]
        ordered = sorted(self._prompts.items(), key=lambda each: each[0][0])  # stable: prompts in their order
        for (at, name), (prompt, cells) in ordered:
            drawn = boxed_table(COLUMNS, cells, wraps="Output", right=COLUMNS[2:])
            heading = paint(f"Prompt {at + 1}{_named(name)}:", "bold")
            parts.append(f"{heading} {prompt}\n\n{drawn}")
        if self._more:
            parts.append(f"{len(self._more):,} more prompts: `proctor report {self._run} -o report.html`")
        return "\n\n".join(parts)


class VerboseDetails:
    """Shows the first cases with their stages."""

    def __init__(self) -> None:
        self._run = ""
        self._lines = list[str]()
        self._shown = self._left = 0

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for case in opened(rows):
            if self._shown < MOST_VERBOSE:
                self._lines += [*_case(case), *_stages(case)]
                self._shown += 1
            else:
                self._left += 1

    def end(self, document: AnyRun) -> None:
        """Keeps the run's id, for the command that lists the rest."""
        self._run = document.run_id

    def text(self, paint: Paint = unpainted) -> str:
        """Writes them one under the other."""
        more = [f"{self._left:,} more: `proctor results {self._run}`"] if self._left else []
        return "\n".join(marked(line, paint) for line in [*self._lines, *more])


class CaseFailures:
    """Collects failures by their reason: equal ones are one group with a count and the first names."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = {}
        self._of_model = Counter[str]()
        self._left = 0

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for case in opened(rows):
            self.add(case)

    def failures(self) -> Failures:
        """Returns the groups, the most frequent reason first."""
        groups = sorted(self._groups.values(), key=lambda group: -group.number)
        return Failures([group.shown() for group in groups], self._left)

    def add(self, case: OpenedCase) -> None:
        """Counts a case that failed, and names it while there are few with the same reason."""
        if not case.code and (case.result is None or case.result.passed):
            return
        reason, reasons = _reason(case), _reasons(case)
        group = self._groups.get(reason)
        if group is None:
            if self._of_model[case.item.model] >= MOST_FAILURES:
                self._left += 1
                return
            self._of_model[case.item.model] += 1
            asked = plain(asked_line(case.item), Size.LINE)
            group = self._groups[reason] = _Group(asked, reasons, noun="error" if case.code else "answer")
        group.number += 1
        group.differing.update(
            at for at, first in enumerate(group.reasons) if reasons[at : at + 1] != [first]
        )
        if len(group.examples) < MOST_NAMES:
            group.examples.append(FailureExample(_name(case), answer=_answer(case)))


class _Finding(NamedTuple):
    """Why an answer did not pass."""

    text: str
    example: str
    """The text in a line about many answers that this one is an example of."""


@dataclass(slots=True)
class _Group:
    """Failures with the same reason, as they come."""

    asked: str
    """What was asked in the first one."""
    reasons: list[_Finding]
    """Of the first one."""
    noun: str
    differing: set[int] = field(default_factory=set)
    """Positions of the reasons that do not hold for all of them."""
    number: int = 0
    examples: list[FailureExample] = field(default_factory=list)
    """The first ones."""

    def shown(self) -> FailureGroup:
        """Returns what is shown of them; one alone is shown with what was asked."""
        reasons = [
            reason.example if at in self.differing else reason.text for at, reason in enumerate(self.reasons)
        ]
        asked = self.asked if self.number == 1 else None
        return FailureGroup(self.number, self.noun, reasons, self.examples, asked)


def _reason(case: OpenedCase) -> tuple[str, str]:
    """Returns what failures with the same reason have in common: the failed checks, or the message.

    Numbers and quoted texts are left out of messages, since they differ from case to case.
    """
    checks = "; ".join(row.name for row in case.answer.failed_checks)
    return case.status, checks or _VALUES.sub("#", plain(case.message, Size.TEXT))


def _named(prompt: str | None) -> str:
    """Names the prompt that rendered an input; nothing without prompts."""
    return "" if prompt is None else f" ({plain(prompt, LINE_CHARS)})"


def _cells(case: OpenedCase) -> tuple[str, str, str, str]:
    """One output as cells."""
    model = plain(case.item.model, LINE_CHARS)
    if case.result is None:
        return model, "skipped", "", ""
    if case.code:
        return model, plain(f"{case.code}: {case.message}", Size.TEXT), "", ""
    output = plain(case.result.text, Size.TEXT)
    return model, output, latency(case.row), dollars(case.row.cost_usd)


def _reasons(case: OpenedCase) -> list[_Finding]:
    """Returns why a case did not pass, one sentence for each check that failed; its answer is not quoted."""
    checks = [] if case.code else case.answer.failed_checks
    if checks:
        return [_Finding(_brief(check_finding(row)), _brief(check_example(row))) for row in checks]
    found = reason_of(case)
    text = _brief(found.text if found else "")
    return [_Finding(text, f"e.g. {text}")]


def _brief(text: str) -> str:
    """Cuts a reason, and takes the answer out of it."""
    return plain(without_quote(text), Size.TEXT)


def _case(case: OpenedCase) -> list[str]:
    """Writes a case, why it did not pass, and what was asked."""
    is_passed = case.answer.passed
    lines = [indented(0, f"{'✓' if is_passed else '✗'} {_name(case)}")]
    lines += [indented(4, reason.text) for reason in ([] if is_passed else _reasons(case))]
    return [*lines, f"{ASKED}{in_line(asked_line(case.item), ASKED)}"]


def _answer(case: OpenedCase) -> str:
    """Returns the beginning of an answer; empty without one."""
    return "" if case.result is None else plain(case.result.text, Size.LINE)


def _name(case: OpenedCase) -> str:
    """Names a case, the model, the prompt and the repeat."""
    return f"{plain(case.item.name, LINE_CHARS)} · {plain(case.item.asked, LINE_CHARS)}"


def _stages(case: OpenedCase) -> list[str]:
    """Writes the result of each stage, with matches, differences and the judge's words."""
    lines = []
    result = case.answer
    for stage in result.stages:
        head = f"{MARKS[stage.outcome]} {stage.stage}"
        lines.append(indented(4, f"{head}: {plain(stage.reason, Size.TEXT)}".rstrip(": ")))
        for key, value in stage.detail.items():
            if value not in (None, "", [], {}) and key != "votes":  # the reply has them in words
                lines.append(indented(8, f"{key}: {plain(str(value), Size.TEXT)}"))
    lines += [indented(4, plain(check_line(row), Size.TEXT)) for row in result.checks]
    for sort, found in (result.differences or {}).items():
        if found and isinstance(found, list | dict):
            lines.append(indented(6, f"{sort}: {plain(str(found), Size.TEXT)}"))
    answer = plain(result.text, Size.TEXT)
    return [*lines, indented(4, f"answer: {answer}")] if answer else lines
