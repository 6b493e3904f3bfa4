"""Options of runs of test cases: which cases, who judges, what was recorded before."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from producer.cli.options.model_options import endpoint_of, price_of
from producer.cli.options.shared_options import CASE_FLAGS, chain
from shared.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from producer.options import CaseChoice
    from shared.kinds import Kind

F = TypeVar("F", bound="Callable[..., Any]")

NOBODY: Final = ("null", "none", "")
"""Words for a run without a judge."""
ALSO_QUERIES: Final = ("repeat", "concurrency")
"""Options of queries that mean the same for cases."""
ALSO_CASES: Final = ("containing", "first", "sample")
"""Options of cases that mean the same for queries."""


def case_options(function: F) -> F:
    """Adds the options of test cases; other kinds of files take none of them.

    Longer than 40 lines, because it is a table: one option, one entry, and no logic.
    """
    return chain(
        [
            click.option(
                "--judge",
                "--judge-model",
                "judges",
                multiple=True,
                metavar="NAME",
                help="Cases: ask this model whether unequal outputs mean the same; null: nobody; several: "
                "more than half of them must say so.",
            ),
            click.option(
                "--validators-file",
                metavar="FILE",
                help="Cases: functions that judge outputs, in the folder of the configuration.",
            ),
            click.option(
                "--outputs",
                metavar="FILE",
                help="Cases: validate recorded outputs (JSON Lines: case, model, output); call no model.",
            ),
            click.option("--stream", is_flag=True, help="Cases: also record the time to the first token."),
            click.option("--fail-fast", is_flag=True, help="Cases: end the run with its first failure."),
            click.option(
                "--case",
                "cases",
                multiple=True,
                metavar="ID",
                help="Cases: only this one, by its id or its number from 1; may be repeated.",
            ),
            click.option(
                "-k",
                "containing",
                metavar="TEXT",
                help="Queries, cases: only those with this in their id or text, in any case of letters.",
            ),
            click.option(
                "--first", type=click.IntRange(1), metavar="N", help="Queries, cases: only the first N."
            ),
            click.option(
                "--sample",
                type=click.IntRange(1),
                metavar="N",
                help="Queries, cases: only N at random, the same ones each time.",
            ),
        ]
    )(function)  # fmt: skip - one option, one paragraph


def read_case_choice(
    case_words: Mapping[str, Any],
    model_words: Mapping[str, Any],
    words: Mapping[str, Any],
    *,
    in_flight: int | None = None,
) -> CaseChoice:
    """Makes what the command line says about a run of cases.

    Args:
        case_words: values of `case_options`, by parameter.
        model_words: values of `model_options`.
        words: values of `query_options`, of which `--repeat` and `--concurrency` are for cases too.
        in_flight: value of `-j`, which bounds the run over the whole fleet.

    Raises:
        UsageError: a value cannot be used.
    """
    from producer.options import CaseChoice  # noqa: PLC0415 - start-up: `--help` must not load the ledger

    models = tuple(model.strip() for model in model_words.get("models") or ())
    if not all(models):
        raise UsageError("--model: the name is empty", hint="write --model openai/gpt-4o")
    if model_words.get("live"):
        raise UsageError("--live is for turns, and this file describes cases", hint="leave it out")
    max_cost = model_words.get("max_cost")
    if max_cost is not None and not isfinite(max_cost):
        raise UsageError("--max-cost: must be a finite number", hint="leave it out for no limit")
    api_base, api_key_env = endpoint_of(model_words)
    return CaseChoice(
        models=models,
        api_base=api_base,
        api_key_env=api_key_env,
        temperature=model_words.get("temperature"),
        max_cost=max_cost,
        price=price_of("", model_words.get("price")).get("", {}),
        cache=not model_words.get("no_cache"),
        concurrency=words.get("concurrency") or in_flight,
        repeat=words.get("repeat"),
        judges=_judges(case_words.get("judges") or ()),
        validators_file=case_words.get("validators_file"),
        outputs=case_words.get("outputs"),
        stream=bool(case_words.get("stream")),
        fail_fast=bool(case_words.get("fail_fast")),
        cases=tuple(case_words.get("cases") or ()),
        containing=case_words.get("containing") or "",
        first=case_words.get("first"),
        sample=case_words.get("sample"),
    )


def _judges(names: Sequence[str]) -> list[str] | None:
    """Reads who judges; None where nothing is said, nobody where that is said.

    Raises:
        UsageError: somebody and nobody are named, or one stands twice.

    >>> _judges(["a", "b"]), _judges(["null"]), _judges([])
    (['a', 'b'], [], None)
    """
    from shared.contracts.case_vocabulary import MOST_JUDGES  # noqa: PLC0415 - start-up: `--help` needs none of it

    judges = [name.strip() for name in names]
    if not judges or (len(judges) == 1 and judges[0].lower() in NOBODY):
        return [] if judges else None
    if any(judge.lower() in NOBODY for judge in judges):
        raise UsageError("--judge: names a judge, and nobody", hint="keep one of them")
    if len(judges) != len(set(judges)):
        raise UsageError("--judge: one stands twice", hint="a judge has one vote")
    if len(judges) > MOST_JUDGES:
        raise UsageError(
            f"--judge: {len(judges)} judges, at most {MOST_JUDGES} are asked", hint="leave some out"
        )
    return judges


def refuse_case_options(words: Mapping[str, Any], kind: Kind) -> None:
    """Refuses options of cases for a file of another kind.

    Raises:
        UsageError: one was given.
    """
    given = [name for name in CASE_FLAGS if words.get(name) not in (None, (), False)]
    if given:
        whose = "queries and cases" if given[0] in ALSO_CASES else "cases"
        flag = CASE_FLAGS[given[0]]
        raise UsageError(f"{flag} is for {whose}, and this file describes {kind}", hint="leave it out")
