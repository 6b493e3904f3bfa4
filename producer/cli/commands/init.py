"""`proctor init [DIR]`: writes a small commented example that runs as it is."""

import sys
from pathlib import Path
from typing import Final

import click

from producer import kinds
from producer.atomic_file import atomic_file
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from producer.kind import Example
from producer.packaged_examples import example as packaged
from shared.errors import UsageError

EXAMPLES: Final = {each.name: each for kind in reversed(kinds.declared()) for each in kind.traits.examples}
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
@click.option(
    "--force", is_flag=True, help="Overwrite the main file; others of the same name are never overwritten."
)
@pass_session
def command(session: Session, *, folder: Path, kind: str | None, output: Path | None, force: bool) -> None:
    """Write a commented example into DIR (default: the current folder).

    Cases: a bench of test cases with the validators file that it uses. Prompts: a bench with prompts,
    variables and checks. Table: a bench whose cases are in a CSV file and asked several times. Http: a
    bench of an application over HTTP. Freeform: a bench that shows answers side by side. Queries: five
    questions to the sample API. Turns: a file with a note on every line. Prints the files it wrote.
    """
    example = EXAMPLES[kind or _asked(session)]
    first, *needed = example.files
    folder = folder if output is None else folder / output.parent
    main = folder / (Path(first).name if output is None else output.name)
    if main.exists() and not force:
        raise UsageError(f"{main} exists already", hint="--force overwrites it, or name another DIR")
    beside = {name: _path_beside(main, name) for name in needed}
    folder.mkdir(parents=True, exist_ok=True)
    text = _example(first).replace(Path(first).name, main.name)  # its comments name the file itself
    for name, path in beside.items():
        text = text.replace(Path(name).name, path.name)
    for path, content in {main: text, **{path: _example(name) for name, path in beside.items()}}.items():
        if path == main or not path.exists():
            with atomic_file(path) as out:
                out.write(content.encode())
            session.output.data(str(path))
    for path in beside.values():
        session.output.note(f"{main.name} needs {path.name}")
    session.output.note(f"next: proctor run {main}{example.need}")


def _example(name: str) -> str:
    """Reads a packaged file."""
    return packaged(name).read_text(encoding="utf-8")


def _path_beside(main: Path, name: str) -> Path:
    """Returns where a file goes that an example needs; one of its name that is another one stays as it is.

    Raises:
        UsageError: all its names are taken by other files.
    """
    usual = main.parent / Path(name).name
    own = usual.with_name(f"{main.name.partition('.')[0]}_{usual.name}")
    for path in (usual, own):
        if not path.exists() or path.read_bytes() == _example(name).encode():
            return path
    raise UsageError(f"{usual} and {own} are files of yours", hint="name another DIR")


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
