"""Comparisons of two runs for tests of their reports, made from lines of results without a queue."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import convert

from producer import kinds
from producer.aggregate.compared_items import ComparedLine, Comparing, Known, items_of
from producer.aggregate.comparison import compare
from producer.cases.load import PlannedRun
from producer.report.comparison.configurations import case_configuration
from producer.report.comparison.contents import Contents, Side
from producer.report.comparison.item_texts import TextStore
from shared.contracts.case_hashes import hash_of
from shared.contracts.case_run import GIT_KEY, SNAPSHOT_KEY
from shared.kinds import CASES, Kind
from tests.support.run_infos import info

RESULT: Final[dict[str, Any]] = {
    "prompt_id": None,
    "repeat_index": 0,
    "tags": [],
    "metrics": {},
    "checks": [],
    "message": "",
    "refusal": "",
    "tool_calls": [],
    "score": None,
}


def case_line(number: int, answer: str | None, *, is_good: bool = True, **changes: Any) -> dict[str, Any]:
    """A line of a cases run; without an answer, an error."""
    outcome = "error" if answer is None else "passed" if is_good else "failed"
    error = {"code": "upstream_timeout", "message": "no answer within 60 s"} if answer is None else None
    envelope = {
        "kind": "cases",
        "started_at": "2026-11-22T17:20:00.000Z",
        "cached": False,
        "latency_ms": None if answer is None else changes.pop("ms", 900),
        "cost_usd": None if answer is None else 0.001,
    }
    result = RESULT | {
        "model": "m",
        "case_index": number,
        "case_id": f"case-{number}",
        "raw_output": answer,
        "passed": answer is not None and is_good,
        "message": "" if is_good else 'does not contain "14 days"',
    }
    asked: dict[str, Any] = {
        key: changes.pop(key)
        for key in ("item_id", "known", "messages", "input_hash", "expectation_hash")
        if key in changes
    }
    return {**envelope, **asked, "outcome": outcome, "error": error, "result": result | changes}


def planned(plan: PlannedRun, *, passes: bool = True) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """The lines and the settings of a bench's run as the command reads them; each item has an answer."""
    run = replace(info(), kind=CASES, snapshot={SNAPSHOT_KEY: msgspec.to_builtins(plan.run), GIT_KEY: None})
    lines = list[dict[str, Any]]()
    for item in plan.items():
        names = {"case_id": item.id, "model": item.model, "prompt_id": item.prompt_id, "weight": item.weight}
        hashes = {"input_hash": item.input_hash, "expectation_hash": item.expectation_hash}
        answer = f"{item.system or plan.run.system_prompt}: {item.input}"
        lines.append(case_line(item.case, answer, is_good=passes, **hashes, **names))
    return lines, case_configuration(run)


ALIKE: Final = Known(hash_of("alike"), hash_of("alike"))
"""What is known of items of which nothing differs."""


def known_line(comparing: Comparing, line: Mapping[str, Any]) -> tuple[ComparedLine[Any], Known | None]:
    """A line as it is compared, with what a run knows of its item where the line has it."""
    return convert(line, comparing.line), line.get("known")


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """Writes a report in JSON Lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@contextmanager
def comparison(
    before: Iterable[Mapping[str, Any]],
    after: Iterable[Mapping[str, Any]],
    *,
    kind: Kind = CASES,
    names: tuple[str, str] = ("run-a", "run-b"),
    configurations: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = (None, None),
) -> Iterator[Contents]:
    """Compares lines as the command does."""
    with ExitStack() as resources:
        sides = list[Side]()
        for lines, name, configuration in zip((before, after), names, configurations, strict=True):
            compared = kinds.of(kind).compared()
            texts = resources.enter_context(closing(TextStore(compared.texts)))
            read = (known_line(compared.comparing, line) for line in lines)
            items = items_of(compared.comparing, read, keep=texts.add)
            sides.append(
                Side(
                    name=name,
                    source="bench.yaml",
                    kind=kind,
                    items=items,
                    is_final=True,
                    texts=texts,
                    began="2026-11-22T17:20:00.000Z",
                    configuration=configuration,
                )
            )
        found = compare(kind, sides[0].items, sides[1].items)
        document = found.as_document(sides[0].as_document(), sides[1].as_document())
        yield Contents(document, found, (sides[0], sides[1]), f"proctor compare {names[0]} {names[1]}")
