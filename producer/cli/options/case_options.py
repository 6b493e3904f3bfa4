"""Options of runs of test cases, and those that choose items of cases and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from producer.cli.completions import complete_cases, complete_files, complete_models
from producer.cli.options.model_options import (
    ModelOptions,
    api_base_of,
    api_key_env_of,
    max_cost_of,
    model_names,
    price_of,
)
from producer.cli.options.option_groups import option
from shared.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from producer.options import CaseChoice

NO_JUDGE: Final = ("null", "none", "")
"""Names that stand for a run without a judge."""
MOST_REPEATS: Final = 1_000


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """Which cases are run, with which judges and which recorded outputs."""

    judges: tuple[str, ...] = option(
        "--judge",
        "--judge-model",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_models,
        help="Cases: model that judges whether a non-identical output means the same; null: no judge; "
        "repeat it for a majority vote of several.",
    )
    validators_file: str | None = option(
        "--validators-file",
        metavar="FILE",
        shell_complete=complete_files,
        help="Cases: Python file with validator functions, in the folder of the configuration.",
    )
    outputs: str | None = option(
        "--outputs",
        metavar="FILE",
        shell_complete=complete_files,
        help="Cases: validate recorded outputs (JSON Lines: case, model, output); call no model.",
    )
    stream: bool = option("--stream", is_flag=True, help="Cases: also record the time to the first token.")
    fail_fast: bool = option("--fail-fast", is_flag=True, help="Cases: end the run at its first failure.")
    cases: tuple[str, ...] = option(
        "--case",
        multiple=True,
        metavar="ID",
        shell_complete=complete_cases,
        help="Cases: only this case, by its id or its number from 1; may be repeated.",
    )


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Which items of a file are run, how often, and how many at a time."""

    containing: str | None = option(
        "-k",
        metavar="TEXT",
        help="Queries, cases: only those with this in their id or text; case-insensitive.",
    )
    first: int | None = option(
        "--first", type=click.IntRange(1), metavar="N", help="Queries, cases: only the first N."
    )
    sample: int | None = option(
        "--sample",
        type=click.IntRange(1),
        metavar="N",
        help="Queries, cases: only N at random, the same ones each time.",
    )
    last_failed: bool = option(
        "--last-failed",
        is_flag=True,
        help="Queries, cases: only what failed or ended in error in the newest run of this file; "
        "everything, if nothing did.",
    )
    concurrency: int | None = option(
        "--concurrency",
        type=click.IntRange(1, 100_000),
        metavar="N",
        help="Queries, cases: maximum concurrent requests, across all workers [default: -j].",
    )
    repeat: int | None = option(
        "--repeat",
        type=click.IntRange(1, MOST_REPEATS),
        metavar="N",
        help="Queries, cases: run each one N times.",
    )


def read_case_choice(
    options: CaseOptions, selection: SelectionOptions, models: ModelOptions, *, in_flight: int | None = None
) -> CaseChoice:
    """Returns the settings of a run of cases.

    Args:
        options: of cases.
        selection: which of them.
        models: options of the models under test.
        in_flight: value of `-j`, the maximum of concurrent items across all workers.

    Raises:
        UsageError: a value cannot be used.
    """
    from producer.options import CaseChoice  # noqa: PLC0415 - start-up: `--help` must not load the ledger

    return CaseChoice(
        models=model_names(models),
        api_base=api_base_of(models),
        api_key_env=api_key_env_of(models),
        temperature=models.temperature,
        max_cost=max_cost_of(models),
        price=price_of("", models.price).get("", {}),
        cache=not models.no_cache,
        concurrency=selection.concurrency or in_flight,
        repeat=selection.repeat,
        judges=_judges(options.judges),
        validators_file=options.validators_file,
        outputs=options.outputs,
        stream=options.stream,
        fail_fast=options.fail_fast,
        cases=options.cases,
        containing=selection.containing or "",
        first=selection.first,
        sample=selection.sample,
    )


def _judges(names: Sequence[str]) -> list[str] | None:
    """Reads `--judge`: None where it was not given, an empty list for no judge.

    Raises:
        UsageError: a name and `null` are given, a name is given twice, or there are too many.

    >>> _judges(["a", "b"]), _judges(["null"]), _judges([])
    (['a', 'b'], [], None)
    """
    from shared.contracts.case_vocabulary import MOST_JUDGES  # noqa: PLC0415 - start-up: `--help` needs none of it

    judges = [name.strip() for name in names]
    if not judges or (len(judges) == 1 and judges[0].lower() in NO_JUDGE):
        return [] if judges else None
    if any(judge.lower() in NO_JUDGE for judge in judges):
        raise UsageError("--judge: names a judge, and null", hint="keep one of them")
    if len(judges) != len(set(judges)):
        raise UsageError("--judge: the same name twice", hint="a judge has one vote")
    if len(judges) > MOST_JUDGES:
        raise UsageError(f"--judge: {len(judges)} judges, at most {MOST_JUDGES}", hint="leave some out")
    return judges
