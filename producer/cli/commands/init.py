"""`proctor init [DIR]`: writes a small commented example that runs as it is."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from producer import kinds
from producer.atomic_file import atomic_file
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from shared.errors import UsageError

EXAMPLES: Final = {each.kind.name: each for each in kinds.declared() if each.examples}
"""The kinds that bring examples, by name."""


@declare()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(list(EXAMPLES)),
    default="turns",
    show_default=True,
    help="Kind of example.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Name of the main file.",
)  # fmt: skip - one option, one paragraph
@click.option("--force", is_flag=True, help="Overwrite files of the same name.")
@pass_session
def command(session: Session, *, folder: Path, kind: str, output: Path | None, force: bool) -> None:
    """Write a commented example into DIR (default: the current folder).

    Turns: a file with a note on every line, and a README that explains each key. Queries: five
    questions to the sample API. Cases: a bench with its validators, a freeform comparison, and a bench
    with prompts and checks. Prints the files it wrote.
    """
    names = EXAMPLES[kind].examples
    first = names[0]
    folder = folder if output is None else folder / output.parent
    targets = {name: folder / Path(name).name for name in names}
    if output is not None:
        targets[first] = folder / output.name
    taken = [path for path in targets.values() if path.exists()]
    if taken and not force:
        raise UsageError(f"{taken[0]} exists already", hint="--force overwrites it, or name another DIR")
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in targets.items():
        with atomic_file(path) as out:
            out.write((files("examples") / name).read_bytes())
        session.output.data(str(path))
    session.output.note(f"next: proctor run {targets[first]}{EXAMPLES[kind].examples_need}")
