"""`proctor init [DIR]`: writes a small commented example that runs as it is."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from producer.cli.context import Session, pass_session
from producer.cli.options.global_options import command as declare
from producer.cli.report_files import whole_file
from shared.errors import UsageError

FILES: Final = {
    "turns": ("starter/turns.jsonl", "starter/README.md"),
    "queries": ("starter/baselines.json", "starter/QUERIES.md"),
    "cases": ("bench.config.yaml", "validators.py", "freeform.yaml"),
}
"""What is written for each kind, from the packaged examples; the first one is to be run."""
SAMPLE: Final = {
    "queries": "  # after `proctor sample-api` in another terminal",
    "cases": " --api-base http://localhost:3000/v1  # no key: after `proctor sample-api` in another terminal",
}
"""What has to be there first, without a key or an API of one's own."""


@declare()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option(
    "--kind", type=click.Choice(list(FILES)), default="turns", show_default=True, help="Kind of example."
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
    questions to the sample API. Cases: a bench with its validators, and a freeform comparison. Prints the
    files it wrote.
    """
    first = FILES[kind][0]
    folder = folder if output is None else folder / output.parent
    targets = {name: folder / Path(name).name for name in FILES[kind]}
    if output is not None:
        targets[first] = folder / output.name
    taken = [path for path in targets.values() if path.exists()]
    if taken and not force:
        raise UsageError(f"{taken[0]} exists already", hint="--force overwrites it, or name another DIR")
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in targets.items():
        with whole_file(path) as out:
            out.write((files("examples") / name).read_bytes())
        session.output.data(str(path))
    session.output.note(f"next: proctor run {targets[first]}{SAMPLE.get(kind, '')}")
