"""What reports show of cases that pass by several answers: verdicts, calls saved, a dot for each answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from producer.documents import AnyRun
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload, CaseRun, Quorum, encode_case
from shared.kinds import CASES
from shared.runs import RunInfo
from shared.upstream.model_target import ModelTarget
from tests.support.case_pages import EXPECTED, GOOD, WRONG, document, item_row, write_page, written
from tests.support.run_infos import info as turns_info

QUORUM: Final = Quorum(2, 3)


def info() -> RunInfo:
    """A run of three answers to each of two cases."""
    run = CaseRun(
        "Bench", "Answer.", {"m": ModelTarget("m")}, cases=2, repeat=3, quorum=QUORUM, has_quorums=True
    )
    snapshot: dict[str, Any] = {"v": 1, "source": "bench.yaml", "cases": msgspec.to_builtins(run)}
    return replace(turns_info(total=6), kind=CASES, snapshot=snapshot)


def rows() -> list[ItemRow]:
    """The first case passes by its first two answers, the second one fails by two of three."""
    found = list[ItemRow]()
    for at, output in enumerate((GOOD, GOOD, None, GOOD, WRONG, WRONG)):
        case, repeat = divmod(at, 3)
        criteria = {"expected": EXPECTED}
        item = CasePayload(case, "m", "one", repeat=repeat, quorum=QUORUM, criteria=criteria)
        if output is None:
            line = b'{"reason":"verdict certain: 2 of 2 passed, 2 needed"}'
            found.append(ItemRow(at, "n", line, payload=encode_case(item)))
        else:
            found.append(item_row(at, item, output, ms=100 * (at + 1), cost=0.01))
    return found


@pytest.fixture(scope="module")
def run() -> AnyRun:
    return document(rows(), info())


def test_the_document_counts_cases(run: AnyRun) -> None:
    """Exit code and verdict are those of cases; rows stay answers."""
    verdicts = run.summary.case_verdicts
    assert (run.counts.passed, run.counts.failed, run.counts.skipped, run.exit) == (3, 2, 1, 1)
    assert (verdicts.counts.passed, verdicts.counts.failed, verdicts.not_needed) == (1, 1, 1)
    [model] = run.summary.models
    assert (model.repeats.flaky, model.repeats.pass_hat_k, model.case_verdicts) == (1, {}, verdicts)


def test_files_tell_of_cases_and_saved_calls() -> None:
    """Markdown names both; what was not needed is in no list of failures, and CSV has its reason."""
    markdown = written("md", rows(), info())
    assert "1 of 2 cases passed" in markdown
    assert "1 call saved: the verdict on the case was certain" in markdown
    assert "verdict certain" not in markdown
    assert "verdict certain: 2 of 2 passed, 2 needed" in written("csv", rows(), info())
    junit = written("junit", rows(), info())
    assert (junit.count("<testcase"), junit.count("1 of 3 answers passed, 2 of 3 must")) == (2, 1)


def test_a_cell_has_a_dot_for_each_answer(tmp_path: Path) -> None:
    """A cell has the letter of its verdict; each dot opens its answer."""
    page = write_page(tmp_path / "page.html", info(), rows()).read_text(encoding="utf-8")
    assert page.count('class="cell is-p"') == page.count('class="cell is-f"') == 1
    dots = [f'<span class="dot {letter}" data-dot="{at}"' for at, letter in ((1, "p"), (2, "p"), (3, "n"))]
    assert all(dot in page for dot in dots)
    assert page.count('<details class="repeat" data-repeat=') == 6
