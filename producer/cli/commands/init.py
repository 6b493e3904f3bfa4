"""`proctor init [DIR]`: writes a small commented example that runs as it is."""

from importlib.resources import files
from pathlib import Path

import click

from producer.cli.context import Session, pass_session
from producer.cli.options import command as declare
from shared.errors import UsageError

FILES = ("turns.jsonl", "README.md")


@declare()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite files of the same name.")
@pass_session
def command(session: Session, *, folder: Path, force: bool) -> None:
    """Write an example to start from into DIR (default: here).

    A turns file with a note on every line, and a README that explains each key. Prints the files it wrote.
    """
    taken = [name for name in FILES if (folder / name).exists()]
    if taken and not force:
        raise UsageError(
            f"{folder / taken[0]} exists already", hint="--force overwrites it, or name another DIR"
        )
    folder.mkdir(parents=True, exist_ok=True)
    source = files("examples") / "starter"
    for name in FILES:
        (folder / name).write_bytes((source / name).read_bytes())
        session.output.data(str(folder / name))
    session.output.note(f"next: proctor run {folder / FILES[0]}")
