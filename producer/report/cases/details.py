"""What a terminal shows of single cases: outputs by prompt, or what failed, or each stage of each case."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from producer.report.cases.opened_rows import OpenedCase, opened
from producer.report.cases.wording import check_lines, dollars, seconds
from producer.report.cells import plain
from producer.tables import boxed_table, panel, terminal_width
from shared.codecs.item_rows import ItemRow

PANEL: Final = "Freeform Mode - Showing raw model outputs for manual inspection"
"""As in the document."""
MOST_PROMPTS: Final = 50
"""Prompts of a freeform run whose outputs are shown; a report has them all."""
MOST_FAILURES: Final = 5
"""Failures of each model that are shown."""
MOST_VERBOSE: Final = 200
"""Cases whose stages are shown."""
PROMPT_CHARS: Final = 100
PROMPT_MARGIN: Final = len("    input: ...")
"""Characters around a prompt in its line."""
LEAST_ROOM: Final = 20
"""Characters of a prompt, however narrow the terminal is."""
OUTPUT_CHARS: Final = 500
MESSAGE_CHARS: Final = 400
MARKS: Final = {"pass": "✓", "fail": "✗", "skipped": "·"}
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
            prompt = self._prompts.setdefault(at, (plain(case.item.input, PROMPT_CHARS), []))
            prompt[1].append(_cells(case))

    def end(self, document: Mapping[str, Any]) -> None:
        """Keeps the run's id, for commands in the text."""
        self._run = document["run_id"]

    def text(self) -> str:
        """Draws the panel, and a table for each prompt."""
        parts = [panel(PANEL)]
        ordered = sorted(self._prompts.items(), key=lambda each: each[0][0])  # stable: prompts in their order
        for (at, name), (prompt, cells) in ordered:
            drawn = boxed_table(COLUMNS, cells, wraps="Output", right=COLUMNS[2:])
            parts.append(f"Prompt {at + 1}{_named(name)}: {prompt}\n\n{drawn}")
        if self._more:
            parts.append(f"{len(self._more):,} more prompts: `proctor report {self._run} -o report.html`")
        return "\n\n".join(parts)


class FailureDetails:
    """Collects the first failures of each model.

    Args:
        is_verbose: whether each case is shown with its stages.
    """

    def __init__(self, *, is_verbose: bool = False) -> None:
        self._is_verbose = is_verbose
        self._run = ""
        self._lines = list[str]()
        self._failures: dict[str, int] = {}
        self._shown = self._left = 0

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for case in opened(rows):
            if self._is_verbose:
                if self._shown < MOST_VERBOSE:
                    self._lines += [*_failure(case), *_stages(case)]
                self._shown += 1
            elif case.result is not None and not case.result["passed"]:
                number = self._failures[case.item.model] = self._failures.get(case.item.model, 0) + 1
                if number <= MOST_FAILURES:
                    self._lines += _failure(case)

    def end(self, document: Mapping[str, Any]) -> None:
        """Keeps the run's id, for commands in the text."""
        self._run = document["run_id"]

    def text(self) -> str:
        """Writes them one under the other; empty when nothing is to be shown."""
        lines = list(self._lines)
        left = sum(max(0, number - MOST_FAILURES) for number in self._failures.values())
        left += max(0, self._shown - MOST_VERBOSE)
        if left:
            only_failed = "" if self._is_verbose else " --failed"
            lines.append(f"{left:,} more: `proctor results {self._run}{only_failed}`")
        return "\n".join(lines)


def _named(prompt: str | None) -> str:
    """Names the prompt that rendered an input; nothing without prompts."""
    return "" if prompt is None else f" ({plain(prompt, PROMPT_CHARS)})"


def _cells(case: OpenedCase) -> tuple[str, str, str, str]:
    """One output as cells."""
    model = plain(case.item.model, PROMPT_CHARS)
    if case.result is None:
        return model, "skipped", "", ""
    if case.code:
        return model, plain(f"{case.code}: {case.message}", OUTPUT_CHARS), "", ""
    output = plain(str(case.result["raw_output"]), OUTPUT_CHARS)
    return model, output, seconds(case.row.latency_ms), dollars(case.row.cost_usd)


def _failure(case: OpenedCase) -> list[str]:
    """Names a case, its status and why."""
    status = case.code or str((case.result or {}).get("status") or "skipped")
    mark = "✓" if case.result and case.result["passed"] else "✗"
    name = f"case {case.item.case + 1}" + (f" ({plain(case.item.id, PROMPT_CHARS)})" if case.item.id else "")
    lines = [f"{mark} {name} · {plain(case.item.asked, PROMPT_CHARS)}  {status}"]
    # The prompt only reminds of the case: it never takes more than its line.
    room = terminal_width() - PROMPT_MARGIN
    lines.append(f"    input: {plain(case.item.input, max(LEAST_ROOM, min(PROMPT_CHARS, room)))}")
    lines += [f"    {plain(case.message, MESSAGE_CHARS)}"] * bool(case.message)
    failed = check_lines(case.result)
    return lines + [f"    {plain(line, MESSAGE_CHARS)}" for line in failed] * (len(failed) > 1)


def _stages(case: OpenedCase) -> list[str]:
    """Writes what each stage said, with matches, differences and the judge's words."""
    lines = []
    result = case.result or {}
    for stage in result.get("stages") or ():
        head = f"    {MARKS.get(stage['outcome'], '?')} {stage['stage']}"
        lines.append(f"{head}: {plain(str(stage['reason']), MESSAGE_CHARS)}".rstrip(": "))
        for key, value in (stage.get("detail") or {}).items():
            if value not in (None, "", [], {}) and key != "votes":  # the reply has them in words
                lines.append(f"        {key}: {plain(str(value), MESSAGE_CHARS)}")
    lines += [f"    {plain(line, MESSAGE_CHARS)}" for line in check_lines(result, only_failed=False)]
    for sort, found in (result.get("differences") or {}).items():
        if found and isinstance(found, list | dict):
            lines.append(f"      {sort}: {plain(str(found), MESSAGE_CHARS)}")
    if result.get("raw_output") is not None:
        lines.append(f"    output: {plain(str(result['raw_output']), OUTPUT_CHARS)}")
    return lines
