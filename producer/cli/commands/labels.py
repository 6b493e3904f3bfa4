"""`proctor labels list|add|export|import|remove`: what people say of the answers of a run."""

from pathlib import Path

import click

from producer.cli.completions import complete_items, complete_runs
from producer.cli.options.global_options import group
from producer.cli.session import Session, pass_session

_run = click.argument("run", shell_complete=complete_runs)
_reviewer = click.option(
    "--reviewer", metavar="NAME", default="", help="Who says so [default: the name of the user]."
)


@group()
def command() -> None:
    """List, export or import labels: pass or fail, as people judge the answers of a run.

    Labels are kept beside the results and end with them; exports keep them longer. They change no result:
    reports measure the judges against them.
    """


@command.command("list")
@_run
@pass_session
def list_labels(session: Session, *, run: str) -> None:
    """List the labels of RUN, and how far its reviewers agree."""
    from producer.cli import labelling  # noqa: PLC0415 - start-up: `--help` must not load redis

    labelling.list_labels(session, run)


@command.command()
@_run
@click.argument("item", shell_complete=complete_items)
@click.argument("verdict", type=click.Choice(("pass", "fail", "defer")))
@_reviewer
@click.option("--note", default="", metavar="TEXT", help="Why, in your words.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find it by; may be repeated.")
@pass_session
def add(
    session: Session, *, run: str, item: str, verdict: str, reviewer: str, note: str, tags: tuple[str, ...]
) -> None:
    """Label the answer to ITEM of RUN; a second label of the same reviewer replaces the first."""
    from producer.cli import labelling  # noqa: PLC0415 - start-up: `--help` must not load redis

    labelling.add_label(session, run, item, verdict, reviewer=reviewer, note=note, tags=tags)


@command.command()
@_run
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a file, .jsonl or .csv [default: JSON Lines to stdout].",
)
@pass_session
def export(session: Session, *, run: str, output: Path | None) -> None:
    """Write the labels of RUN as JSON Lines or CSV."""
    from producer.cli import labelling  # noqa: PLC0415 - start-up: `--help` must not load redis

    labelling.export_labels(session, run, output)


@command.command("import")
@_run
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@_reviewer
@pass_session
def import_labels(session: Session, *, run: str, file: Path, reviewer: str) -> None:
    """Read labels of RUN from FILE: JSON Lines or CSV, as `labels export` writes them.

    Labels of another run are matched by the names of the items. A label of another answer than the run has
    is left out.
    """
    from producer.cli import labelling  # noqa: PLC0415 - start-up: `--help` must not load redis

    labelling.import_labels(session, run, file, reviewer)


@command.command()
@_run
@click.argument("items", nargs=-1, required=True, metavar="ITEM...")
@_reviewer
@pass_session
def remove(session: Session, *, run: str, items: tuple[str, ...], reviewer: str) -> None:
    """Take labels of ITEM... of RUN back."""
    from producer.cli import labelling  # noqa: PLC0415 - start-up: `--help` must not load redis

    labelling.remove_labels(session, run, items, reviewer)
