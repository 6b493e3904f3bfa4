"""The page docs/checks.md has a row for each check, whose example passes, and the messages of mistakes."""

import re
from typing import Any, Final

import pytest
import yaml

from shared.contracts.checks import Check
from shared.errors import WrongInput
from tests.support.checking import call
from tests.support.sandbox_box import CheckBox
from tests.support.tree import ROOT
from worker.validation.checks import (
    CHECK_KINDS,
    Answer,
    CheckKind,
    Score,
    Subject,
    parse_checks,
)
from worker.validation.checks.kind import Rival, passes
from worker.validation.checks.table import ROWS
from worker.validation.scoring import Evaluation

PAGE: Final = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")
RECORDED: Final = Answer(
    latency_s=1.0,
    first_token_s=0.5,
    tokens_per_s=40,
    tokens=100,
    cost_usd=0.001,
    finish_reason="stop",
    tool_calls=[call("get_weather", '{"city": "Paris"}')],
)


SORRY: Final = "Sorry, I cannot help with that at all, whatever you may ask me to do for you today.\x00" * 9
"""An output that passes no example but that of `refusal`."""
NEVER_FAIL_SO: Final = (
    "max_tokens_used",
    "max_latency_s",
    "max_first_token_s",
    "min_tokens_per_s",
    "max_cost",
    "finish_reason",
    "python",
)
"""Checks that do not look at the output, or only in the sandbox."""


def code(text: str) -> str:
    """A text as code in a table of Markdown."""
    return f"`{text.replace('|', chr(92) + '|')}`"


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.name)
def test_the_page_has_its_row(kind: CheckKind) -> None:
    assert f"| {code(kind.name)} | {kind.passes_when} | {code(kind.example)} |\n" in PAGE


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.name)
def test_it_is_evaluated_in_one_way(kind: CheckKind) -> None:
    """A row that held checks and asked judges as well would never ask them."""
    assert [kind.run, kind.nested, kind.asks].count(None) == 2


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.name)
def test_its_example_passes_and_fails(kind: CheckKind) -> None:
    """Its output passes; of free checks, an answer with nothing of it does not."""
    [check] = parse_checks([yaml.safe_load(kind.example)])
    assert found(check, kind, kind.example_output) is True
    if not kind.is_paid and kind.name not in NEVER_FAIL_SO:
        nothing = Subject("Paris" if kind.name == "refusal" else SORRY)
        assert Evaluation().score(check, nothing).passed is False


def found(check: Check, kind: CheckKind, output: str) -> bool | None:
    """Whether the output of an example passes; a model that is asked agrees in full."""
    sandbox = CheckBox(found=output, returned=True) if kind.needs_sandbox else None
    rivals = [Rival("a", output), Rival("b", SORRY)]
    subject = Subject(output, RECORDED, sandbox=sandbox, rivals=rivals)
    dry = Evaluation()
    dry.score(check, subject)
    assert bool(dry.questions) is kind.is_paid
    return passes(
        check, Evaluation({key: Score(1.0, "agreed") for key in dry.questions}).score(check, subject)
    )


def test_the_table_has_no_other_rows() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| `.*` \|$", PAGE, re.MULTILINE)
    assert rows == list(CHECK_KINDS)


PROBLEMS: Final = re.findall(
    r"^\| `(\[.*\]|\{.*\}|\w+)` \| (.*) \|$", PAGE.split("## Mistakes")[1], re.MULTILINE
)


@pytest.mark.parametrize(("raw", "message"), PROBLEMS)
def test_a_mistake_has_its_message(raw: str, message: str) -> None:
    check: Any = yaml.safe_load(raw)
    with pytest.raises(WrongInput) as caught:
        parse_checks([check])
    problem = caught.value
    assert f"{problem.what} ({problem.hint})" == message.replace("\\|", "|") or problem.what == message


def test_the_page_shows_mistakes() -> None:
    assert len(PROBLEMS) >= 10
