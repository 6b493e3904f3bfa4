"""`proctor compare A B`: what was fixed, what broke, and whether that is more than chance."""

from pathlib import Path
from typing import Final

import click

from producer.cli.completions import complete_runs_or_files
from producer.cli.options.global_options import command as declare
from producer.cli.options.shared_options import time_options
from producer.cli.session import Session, pass_session
from shared.errors import UsageError

SCORES: Final = ("score", "keywords_found", "rouge_l", "latency_ms", "cost_usd")
FORMATS: Final = frozenset({"html", "md", "json"})
LEVEL: Final = 0.05
SHOWN: Final = 20
"""Items of a list by default."""


@declare()
@click.argument("a", shell_complete=complete_runs_or_files)
@click.argument("b", shell_complete=complete_runs_or_files, required=False)
@click.option(
    "--by",
    type=click.Choice(["prompt", "model"]),
    help="Compare two prompts or models within run A.",
)
@click.option(
    "--pair",
    nargs=2,
    metavar="A B",
    help="The two prompts or models to compare; needed if the run has more.",
)
@click.option("--tag", metavar="TAG", help="Compare only cases with this tag.")
@click.option("--fail-on-regression", is_flag=True, help="Exit 1 if B is significantly worse than A.")
@click.option(
    "--metric",
    "judged",
    multiple=True,
    type=click.Choice(SCORES),
    help="Test this score as well as the outcomes; may be repeated.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=LEVEL,
    show_default=True,
    metavar="P",
    help="Significance level (false-positive rate).",
)
@time_options
@click.option(
    "--first", type=click.IntRange(1), metavar="N", help=f"Items to show per list [default: {SHOWN}]."
)
@click.option(
    "-o",
    "--output",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report to write; its suffix (.html .md .json) is its format; may be repeated.",
)  # fmt: skip - one option, one paragraph
@pass_session
def command(
    session: Session,
    *,
    a: str,
    b: str | None,
    by: str | None,
    pair: tuple[str, str] | None,
    tag: str | None,
    fail_on_regression: bool,
    judged: tuple[str, ...],
    level: float,
    since: str,
    until: str,
    first: int | None,
    paths: tuple[Path, ...],
) -> int:
    """Compare run B with the earlier run A; each is a run's id, or its report as JSON or JSON Lines.

    Of one run alone, A is the run before it of the same file. Items are paired by query id, by case,
    model and prompt, or by thread and message. With --by, two prompts or two models of one run are
    compared instead. One broken case alone is not a regression: McNemar's test over all cases decides,
    at the significance level --level.

    Streams of served turns share no message: the shares of their decisions, rules and errors are compared;
    one alone, such as `proctor compare served --since 1h`, with as long a time before it.
    """
    from producer.cli.compare_inputs import CompareChoice  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.comparison_output import compare_sides  # noqa: PLC0415 - same
    from producer.report_files import plan_files  # noqa: PLC0415 - same

    files = plan_files(paths)
    if wrong := [file for file in files if file.format not in FORMATS]:
        raise UsageError(
            f"{wrong[0].path}: a comparison is written as .html, .md or .json",
            hint="choose one of these suffixes",
        )
    choice = CompareChoice(a, b, by, pair or None, tag, level, tuple(dict.fromkeys(judged)), since, until)
    return compare_sides(session, choice, files, first or SHOWN, has_gate=fail_on_regression)
