"""Writes a cases run as one HTML file that needs nothing else: no script, no network, hostile text inert."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from producer.report.case_rows import OpenedCase, opened
from producer.report.cases.scatter import Point, scatter
from producer.report.cases.words import (
    FREEFORM,
    by_latency,
    by_pass_rate,
    dollars,
    headline,
    percent,
    remarks,
    seconds,
)
from shared.item_rows import ItemRow
from shared.runs import RunInfo

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATE: Final = "page.html.j2"
TEXT_CHARS: Final = 20_000
"""Of a prompt or an output that are shown."""
MOST_PROMPTS: Final = 1_000
"""Prompts of a freeform run that are shown."""
END: Final = b"\n</body>\n</html>\n"


class CasesHtmlReport:
    """Keeps what the page shows of the rows on disk, and writes it behind the summary.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._page = out, _template()
        self._is_freeform = info.snapshot["cases"]["mode"] == FREEFORM
        self._failed, self._passed = TemporaryFile(), TemporaryFile()  # noqa: SIM115 - closed by `end`
        self._prompts: dict[int, tuple[str, list[dict[str, Any]]]] = {}

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        for case in opened(rows):
            told = _told(case)
            if not self._is_freeform:
                place = self._passed if told["passed"] else self._failed
                place.write(self._written("case", told))
            elif case.item.case in self._prompts or len(self._prompts) < MOST_PROMPTS:
                self._prompts.setdefault(case.item.case, (told["input"], []))[1].append(told)

    def end(self, document: Mapping[str, Any]) -> None:
        """Writes the page."""
        title = document["summary"]["name"]
        models = by_latency(document) if self._is_freeform else by_pass_rate(document)
        shown = [_model(model) for model in models]
        charts = _charts(models, is_freeform=self._is_freeform)
        said = headline(document)
        out = self._out
        out.write(
            self._written("head", title, document, shown, self._is_freeform, charts, remarks(document), said)
        )
        if self._is_freeform:
            out.write(b"\n<h2>Model Outputs by Prompt</h2>")
            for at, (asked, cases) in sorted(self._prompts.items()):
                out.write(self._written("prompt", at + 1, asked, cases))
        else:
            for name, place in (("Failures", self._failed), ("Passed", self._passed)):
                out.write(f"\n<h2>{name}</h2>".encode())
                out.write(b'<p class="none">None</p>' if not place.tell() else b"")
                place.seek(0)
                copyfileobj(place, out)
        self._failed.close()
        self._passed.close()
        out.write(END)

    def _written(self, macro: str, *arguments: Any) -> bytes:
        """Fills in one part of the template."""
        return str(getattr(self._page.module, macro)(*arguments)).encode(errors="backslashreplace")


def _template() -> "Template":
    """Reads the template; everything that is filled in is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - start-up: 40 ms

    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(TEMPLATE)


def _charts(models: Sequence[Mapping[str, Any]], *, is_freeform: bool) -> list[tuple[str, Any]]:
    """Draws what the document names: speed against price, and latency against accuracy."""
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2

    timed = [model for model in models if model["latency_ms"]]
    priced = [
        Point(model["model"], model["latency_ms"]["p50"] / 1000, model["cost_usd"])
        for model in timed
        if model["cost_usd"] is not None
    ]
    found = [("Speed vs. Price", scatter(priced, x_label="seconds (P50)", y_label="US dollars"))]
    if not is_freeform:
        rated = [
            Point(model["model"], model["latency_ms"]["p50"] / 1000, model["pass_rate"]) for model in timed
        ]
        chart = scatter(rated, x_label="seconds (P50)", y_label="pass rate, percent")
        found.insert(0, ("Latency vs. Accuracy", chart))
    return [(name, Markup(chart)) for name, chart in found]  # noqa: S704 - made by `scatter`, which escapes names


def _model(model: Mapping[str, Any]) -> dict[str, Any]:
    """What the tables show of a model."""
    return {
        **model,
        "pass_rate_text": percent(model["pass_rate"]),
        "p50": seconds(model["latency_ms"].get("p50")),
        "p95": seconds(model["latency_ms"].get("p95")),
        "tokens": f"{model['prompt_tokens'] + model['completion_tokens']:,}",
        "cost": dollars(model["cost_usd"]),
    }


def _told(case: OpenedCase) -> dict[str, Any]:
    """What the page shows of a case."""
    result = case.result or {}
    differences = result.get("differences")
    expected = case.item.expected
    again = f" #{case.item.repeat + 1}" if case.item.repeat else ""
    return {
        "name": f"case {case.item.case + 1}" + (f" ({case.item.id})" if case.item.id else "") + again,
        "model": case.item.model,
        "passed": bool(result.get("passed")),
        "status": case.code or result.get("status") or "never asked",
        "message": case.message if result else "never asked",
        "latency": seconds(case.row.latency_ms),
        "cost": dollars(case.row.cost_usd) if result else "",
        "input": _cut(case.item.input),
        "expected": "" if expected is None else json.dumps(expected, indent=2, ensure_ascii=False),
        "output": None if result.get("raw_output") is None else _cut(result["raw_output"]),
        "differences": json.dumps(differences, indent=2, ensure_ascii=False) if differences else "",
        "stages": [stage for stage in result.get("stages") or () if stage["outcome"] != "skipped"],
    }


def _cut(text: str) -> str:
    """Shortens a text and says so."""
    left = len(text) - TEXT_CHARS
    return text if left <= 0 else f"{text[:TEXT_CHARS]}\n… and {left:,} characters more"
