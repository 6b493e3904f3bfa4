"""`proctor init [DIR]`: writes a small commented example that runs as it is."""

import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from producer import kinds
from producer.atomic_file import atomic_file
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from producer.kinds.declaration import Example
from shared.errors import UsageError

EXAMPLES: Final = {each.name: each for kind in reversed(kinds.declared()) for each in kind.examples}
"""By name; the first one is what most people want."""
USUAL: Final = next(iter(EXAMPLES))


@declare()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(list(EXAMPLES)),
    help=f"Which example [default: asked on a terminal, else {USUAL}].",
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
def command(session: Session, *, folder: Path, kind: str | None, output: Path | None, force: bool) -> None:
    """Write a commented example into DIR (default: the current folder).

    Cases: a bench of test cases with the validators file that it uses. Prompts: a bench with prompts,
    variables and checks. Freeform: a bench that shows answers side by side. Queries: five questions to the
    sample API. Turns: a file with a note on every line. Prints the files it wrote.
    """
    example = EXAMPLES[kind or _asked(session)]
    first, *needed = example.files
    folder = folder if output is None else folder / output.parent
    main = folder / (Path(first).name if output is None else output.name)
    targets = {first: main, **{name: folder / Path(name).name for name in needed}}
    taken = [path for path in targets.values() if path.exists()]
    if taken and not force:
        raise UsageError(f"{taken[0]} exists already", hint="--force overwrites it, or name another DIR")
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in targets.items():
        text = (files("examples") / name).read_text(encoding="utf-8")
        with atomic_file(path) as out:
            out.write(text.replace(Path(first).name, main.name).encode())  # its comments name the file itself
        session.output.data(str(path))
    for name in needed:
        session.output.note(f"{main.name} needs {Path(name).name}")
    session.output.note(f"next: proctor run {main}{example.need}")


def _asked(session: Session) -> str:
    """Returns the name of the example that somebody at a terminal chooses; elsewhere the usual one."""
    options = session.options
    if options.yes or options.json or options.quiet or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return USUAL
    widest = max(map(len, EXAMPLES))
    for each in EXAMPLES.values():
        session.output.note(f"  {_listed(each, widest)}")
    choice = click.Choice(list(EXAMPLES))
    return str(click.prompt("What do you want to evaluate?", type=choice, default=USUAL, err=True))


def _listed(example: Example, width: int) -> str:
    """Writes an example with what it shows."""
    return f"{example.name:<{width}}  {example.about}"
