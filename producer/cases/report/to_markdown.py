"""Lists in Markdown which cases failed, or the outputs of a freeform run prompt by prompt."""

from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO, Final

from producer.cases.documents import CasesRun
from producer.cases.report.details import CaseFailures
from producer.cases.report.opened_rows import OpenedCase, opened
from producer.cases.report.run_report import run_report
from producer.cases.report.wording import FREEFORM, dollars, latency, model_and_prompt, untold_checks
from producer.report.cells import Size, markdown, markdown_table
from producer.report.to_markdown import markdown_report
from producer.report.transcript import asked_line
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CaseRun
from shared.runs import RunInfo

MOST_CASES: Final = 500
"""Failed cases, or prompts of a freeform run, that are listed; JSON Lines has them all."""


class CasesMarkdownReport:
    """Keeps what the report shows of the rows, bounded, and writes it at the end.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._is_freeform = out, CaseRun.from_snapshot(info.snapshot).mode == FREEFORM
        self._prompts: dict[tuple[int, str | None], list[OpenedCase]] = {}
        self._failed = list[OpenedCase]()
        self._left, self._reasons = 0, CaseFailures()

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Keeps some rows."""
        for case in opened(rows):
            if self._is_freeform:
                key = (case.item.case, case.item.prompt_id)
                if key in self._prompts or len(self._prompts) < MOST_CASES:
                    self._prompts.setdefault(key, []).append(case)
            elif not (case.answer.passed or case.is_not_needed):
                self._reasons.add(case)
                if len(self._failed) < MOST_CASES:
                    self._failed.append(case)
                else:
                    self._left += 1

    def end(self, document: CasesRun) -> None:
        """Writes the report."""
        report = replace(run_report(document), failures=self._reasons.failures())
        items = self._outputs() if self._is_freeform else self._failures(document.run_id)
        self._out.write(markdown_report(report, items))

    def _outputs(self) -> list[str]:
        """Lists the outputs, prompt by prompt."""
        parts = ["## Model Outputs by Prompt"]
        for (at, name), cases in sorted(self._prompts.items(), key=lambda each: each[0][0]):
            named = "" if name is None else f" ({markdown(name, Size.LINE)})"
            parts.append(f"### Prompt {at + 1}{named}: {markdown(asked_line(cases[0].item), Size.LINE)}")
            rows = [
                [
                    markdown(case.item.model, Size.LINE),
                    markdown(f"{case.code}: {case.message}" if case.code else _output(case), Size.TEXT),
                    latency(case.row),
                    dollars(case.row.cost_usd),
                ]
                for case in cases
            ]
            parts.append(markdown_table(("Model", "Output", "Latency", "Cost"), rows))
        return parts

    def _failures(self, run: str) -> list[str]:
        """Lists what did not pass."""
        if not self._failed:
            return ["## Failures", "None"]
        rows = [
            [
                markdown(case.item.name, Size.LINE) + _again(case.item.repeat),
                markdown(model_and_prompt(case.item), Size.LINE),
                case.status,
                markdown(asked_line(case.item), Size.LINE),
                markdown(_why(case), Size.REASON),
            ]
            for case in self._failed
        ]
        more = [f"{self._left:,} more: `proctor results {run} --failed`"] if self._left else []
        return ["## Failures", markdown_table(("Case", "Model", "Status", "Prompt", "Why"), rows), *more]


def _again(repeat: int) -> str:
    """Names a repeat as the other reports do; nothing for the first.

    >>> _again(0), _again(1)
    ('', ' #2')
    """
    return f" #{repeat + 1}" if repeat else ""


def _why(case: OpenedCase) -> str:
    """Returns why a case did not pass, with the failed checks that the message does not name."""
    return "; ".join((case.message, *untold_checks(case)))


def _output(case: OpenedCase) -> str:
    """The raw output of the model."""
    return "skipped" if case.result is None else case.result.text
