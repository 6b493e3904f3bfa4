"""Mistakes in calls of the package that are found without the program."""

from collections.abc import Callable
from typing import Any

import pytest

import proctor
from proctor import Bench, Case, Run, check
from proctor.app import CheckPrompt, judge_of

BENCH = Bench("b", cases=[Case("Hi")])
run: Any = proctor.run
"""Without its types, which would find some of the mistakes."""
submit: Any = proctor.submit


def with_checks(*checks: Any) -> Bench:
    return Bench("b", cases=[Case("Hi", checks=checks)])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: run(3), "the source is 3: give a Bench"),
        (lambda: run([Case("Hi")], app=str), r"the source is \[Case\(.*: give a Bench"),
        (lambda: run(BENCH, app="answer"), "app= and checks= take functions, not 'answer'"),
        (lambda: run(BENCH, app=str, checks=str), r"write checks=\[my_check\]"),
        (lambda: run("b.yaml", checks=[str]), "checks= need a Bench .* not the path b.yaml"),
        (lambda: run(BENCH, app=str, max_cost={}), r"max_cost= is an option .* cannot be \{\}"),
        (
            lambda: submit(BENCH, app=str),
            "app= is an option of the command and cannot be <class 'str'>",
        ),
        (lambda: with_checks(check.contains).document(), r"call it, as in check.contains\('x'\)"),
        (lambda: run({"vars": {1, 2}}), r"a bench cannot hold \{1, 2\}: use texts"),
        (lambda: Run("run-1").assert_gate(), "name a requirement, such as pass_rate>=0.9"),
        (lambda: Run("run-1").assert_gate("pass_rate=1"), "'pass_rate=1' is not a requirement"),
    ],
)
def test_the_error_shows_the_value_and_the_way_out(call: Callable[[], Any], said: str) -> None:
    """No process is started for it."""
    with pytest.raises((TypeError, ValueError), match=said):
        call()


@pytest.mark.parametrize("found", [None, "yes", 5, (True, "a", 3), float("nan")])
def test_a_check_that_returns_no_verdict_is_an_error(found: Any) -> None:
    """It shows what was returned, and what may be."""
    prompt = CheckPrompt("|")
    judge = judge_of(lambda _output: found, prompt, "polite")
    with pytest.raises(TypeError, match=r"polite returned .*: return a bool, a score from 0 to 1, or"):
        judge("Hi|Hello?|null|[]")
