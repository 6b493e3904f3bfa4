"""HTML reports of cases runs, made of real rows by the real report, without a queue."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from producer.document import document_of, totals_of
from producer.documents import AnyRun
from producer.report.formats import format_of
from producer.report.interfaces import ReadsFiles
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, CaseRun, Mode, encode_case
from shared.kinds import CASES
from shared.runs import RunInfo
from shared.upstream.model_target import ModelTarget
from tests.support.run_infos import info as turns_info
from worker.executors.case_results import CallDetails, case_document, case_line
from worker.validation.pipeline import validate

USAGE: Final[dict[str, int | None]] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
EXPECTED: Final = {"city": "Paris", "tags": ["late", "broken"], "note": "The box was broken."}
GOOD: Final = json.dumps(EXPECTED)
WRONG: Final = json.dumps({"city": "Lyon", "tags": ["late", "broken"], "note": "The lid was broken."})
NO_JSON: Final = "I would rather not say."


def run_info(models: Sequence[str], cases: int, *, mode: Mode = "standard", repeat: int = 1) -> RunInfo:
    """A cases run as the store reads it."""
    endpoints = {model: ModelTarget(model) for model in models}
    run = CaseRun("Support desk", "Answer in JSON.", endpoints, mode=mode, cases=cases, repeat=repeat)
    snapshot: dict[str, Any] = {"v": 1, "source": "bench.yaml", "cases": msgspec.to_builtins(run)}
    return replace(turns_info(total=cases * len(models) * repeat), kind=CASES, snapshot=snapshot)


def item_row(at: int, item: CasePayload, output: str | None, *, ms: int, cost: float | None) -> ItemRow:
    """A result as the store reads it; without an output, an error."""
    payload = encode_case(item)
    if output is None:
        line = case_line(case_document(item, None), "upstream_timeout", "no answer within 120 s")
        return ItemRow(at, "x", line, 1_000, 2_000, 3, payload=payload)
    result = _verdict(output, is_checked=item.expected is not None)
    line = case_line(case_document(item, result, CallDetails(USAGE)))
    return ItemRow(at, "p" if result.passed else "f", line, 1_000, 2_000, 1, ms, cost, payload)


def rows_of(models: Sequence[str], cases: int, outputs: Sequence[str | None]) -> Iterator[ItemRow]:
    """Rows in the order of a run; outputs take turns, and so do latencies; the last model has no price."""
    for at in range(len(models) * cases):
        place, case = divmod(at, cases)
        item = CasePayload(
            case,
            models[place],
            f"Read ticket {case + 1}.",
            id=f"ticket-{case + 1}",
            criteria={"expected": EXPECTED},
        )
        cost = None if place == len(models) - 1 else 0.001 * (place + 1)
        yield item_row(at, item, outputs[at % len(outputs)], ms=100 + 37 * at % 1_000, cost=cost)


def write_page(
    path: Path,
    info: RunInfo,
    rows: Iterable[ItemRow],
    *,
    name: str = "html",
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Writes a report as the command does, page by page."""
    totals = totals_of(CASES)
    with path.open("wb") as out:
        report = format_of(CASES, name)(out, info)
        if isinstance(report, ReadsFiles):
            report.read_files(files.get)
        left = iter(rows)
        while some := list(islice(left, 500)):
            totals.add(some)
            report.page(some)
        report.end(document_of(info, totals))
    return path


def written(name: str, rows: Sequence[ItemRow], info: RunInfo) -> str:
    """A report of rows that come in two pages."""
    out = BytesIO()
    report = format_of(CASES, name)(out, info)
    totals = totals_of(CASES)
    for some in (rows[:1], rows[1:]):
        totals.add(some)
        report.page(some)
    report.end(document_of(info, totals))
    return out.getvalue().decode()


def document(rows: Sequence[ItemRow], info: RunInfo) -> AnyRun:
    """The document of a run."""
    totals = totals_of(CASES)
    totals.add(rows)
    return document_of(info, totals)


@lru_cache(maxsize=1_000)
def _verdict(output: str, *, is_checked: bool) -> Any:
    """The verdict of the pipeline on an output."""
    return validate({"expected": EXPECTED} if is_checked else {}, output)
