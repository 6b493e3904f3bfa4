"""Options of runs of test cases, and those that choose items of cases and queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import click

from producer.cli.completions import complete_cases, complete_files, complete_models
from producer.cli.options.option_groups import option

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
        topics=("cases",),
        help="Model that judges whether a non-identical output means the same; null: no judge; "
        "repeat it for a majority vote of several.",
    )
    validators_file: str | None = option(
        "--validators-file",
        metavar="FILE",
        shell_complete=complete_files,
        topics=("cases",),
        help="Python file with validator functions, in the folder of the configuration.",
    )
    outputs: str | None = option(
        "--outputs",
        metavar="FILE",
        shell_complete=complete_files,
        topics=("cases",),
        help="Validate recorded outputs (JSON Lines: case, model, output); call no model.",
    )
    stream: bool = option(
        "--stream", is_flag=True, topics=("cases",), help="Also record the time to the first token."
    )
    fail_fast: bool = option(
        "--fail-fast", is_flag=True, topics=("cases",), help="End the run at its first failure."
    )
    cases: tuple[str, ...] = option(
        "--case",
        multiple=True,
        metavar="ID",
        shell_complete=complete_cases,
        topics=("cases",),
        help="Only this case, by its id or its number from 1; may be repeated.",
    )


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Which items of a file are run, how often, and how many at a time."""

    containing: str | None = option(
        "-k",
        metavar="TEXT",
        topics=("queries", "cases"),
        help="Only those with this in their id or text; case-insensitive.",
    )
    first: int | None = option(
        "--first", type=click.IntRange(1), metavar="N", topics=("queries", "cases"), help="Only the first N."
    )
    sample: int | None = option(
        "--sample",
        type=click.IntRange(1),
        metavar="N",
        topics=("queries", "cases"),
        help="Only N at random, the same ones each time.",
    )
    last_failed: bool = option(
        "--last-failed",
        is_flag=True,
        topics=("queries", "cases"),
        help="Only what failed or ended in error in the newest run of this file; everything, if nothing did.",
    )
    concurrency: int | None = option(
        "--concurrency",
        type=click.IntRange(1, 100_000),
        metavar="N",
        topics=("queries", "cases"),
        help="Maximum concurrent requests, across all workers [default: -j].",
    )
    repeat: int | None = option(
        "--repeat",
        type=click.IntRange(1, MOST_REPEATS),
        metavar="N",
        topics=("queries", "cases"),
        help="Run each one N times.",
    )
