"""`proctor convert FILE`: translates an evaluation of another tool into a bench."""

from pathlib import Path

import click

from producer.cli.completions import complete_files
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session

NAMES = ("promptfoo", "inspect", "inspect-log", "openai-evals", "deepeval")
"""The formats of `producer.convert.foreign_formats`, which is loaded late."""


@declare()
@click.argument("file", shell_complete=complete_files, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the bench to FILE [default: print it].",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--strict", is_flag=True, help="Exit with 1 if anything has no counterpart.")
@click.option("--from", "name", type=click.Choice(NAMES), help="The format of FILE [default: recognised].")
@pass_session
def command(
    session: Session, *, file: Path, output: Path | None, force: bool, strict: bool, name: str | None
) -> int:
    """Translate FILE, an evaluation of another tool, into a bench.

    Reads promptfoo configurations with the prompts, tests and schemas that they name, data sets and logs of
    Inspect, definitions of OpenAI Evals with their samples, and test cases of DeepEval. Nothing of them is
    executed. What has no counterpart in a bench is listed with its line and the reason, and is a comment in
    the bench.
    """
    from producer.cli.converting import convert_file  # noqa: PLC0415 - start-up: `--help` must not load pydantic

    return convert_file(session, file, output, is_forced=force, is_strict=strict, name=name)
