"""Forty configurations, one a feature: the same prompts and the same verdicts as promptfoo itself gives.

`make convert-oracle` runs promptfoo on them and writes what is compared with here.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from producer.cases.load import PlannedRun, plan_run
from producer.convert.bench_text import bench_text
from producer.convert.foreign_formats import convert
from producer.convert.report import Conversion, ForeignFile
from producer.convert.verifying import usable
from producer.load.source import Source
from producer.options import CaseChoice
from shared.contracts.case_run import CasePayload
from tests.support.promptfoo_oracle import CONFIGURATIONS, EXPECTED, names
from worker.executors.case_criteria import checks_of
from worker.sandbox.pool import Sandbox, Sandboxes
from worker.validation.pipeline import before_judge, with_checks

ROWS: dict[str, list[dict[str, Any]]] = json.loads(EXPECTED.read_text())["rows"]

SETS = "sets"
"""Where promptfoo lists the parts of sets as checks."""
LEFT = {"unknown"}
"""Configurations of which something has no counterpart."""
NAMED = {"chat", "chat_inline", "chat_rendered", "prompt_forms"}
"""Those of which something is named that changes no verdict in them."""


def converted(name: str, folder: Path) -> tuple[Conversion, PlannedRun]:
    """A configuration as a bench, written and read again."""
    beside = folder / name
    shutil.copytree(CONFIGURATIONS / name, beside)
    found = convert(ForeignFile(beside / "promptfooconfig.yaml", beside))
    bench = beside / "bench.yaml"
    for each, text in found.files.items():
        (beside / each).write_text(text)
    found = usable(found, bench)
    bench.write_text(bench_text(found.bench))
    return found, plan_run(Source(bench), CaseChoice())


def messages_of(prompt: str) -> Any:
    """A prompt of promptfoo, whose conversations are JSON."""
    try:
        found = json.loads(prompt)
    except ValueError:
        return prompt
    roles = [each.get("role") for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return found[0]["content"] if roles == ["user"] else found


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[Sandboxes]:
    made = Sandboxes()
    yield made
    made.close()


@pytest.mark.parametrize("name", names())
def test_prompts_and_verdicts_are_those_of_promptfoo(name: str, tmp_path: Path, sandboxes: Sandboxes) -> None:
    found, plan = converted(name, tmp_path)

    source = plan.run.validators.source if plan.run.validators else None
    with sandboxes.batch(source) as sandbox:
        ours = sorted(row_of(item, sandbox, has_sets=name == SETS) for item in plan.items())
    assert bool(found.left) is (name in LEFT | NAMED), [each.message for each in found.left]
    if name in LEFT:
        return
    theirs = sorted(
        json.dumps([messages_of(row["prompt"]), row["checks"], row["success"]], ensure_ascii=False)
        for row in ROWS[name]
        if not row.get("error")
    )
    assert ours == theirs


def row_of(item: CasePayload, sandbox: Sandbox, *, has_sets: bool = False) -> str:
    """What is sent for an item, and how the checks find it when a model echoes it."""
    sent: Any = messages_of(item.input)
    if item.messages is not None or item.system:
        first = [{"role": "system", "content": item.system}] if item.system else []
        sent = [*first, *(item.messages or [{"role": "user", "content": item.input}])]
    case = {**item.criteria, "checks": None, "input": item.input, "vars": item.vars}
    result = before_judge(case, item.input, checks=checks_of(item), sandbox=sandbox)
    verdict = with_checks(result, item.criteria.get("at_least"))
    passed = [check.passed is not False for check in verdict.checks]
    return json.dumps(
        [sent, None if has_sets else passed, verdict.status.value == "passed"], ensure_ascii=False
    )
