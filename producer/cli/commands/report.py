"""`proctor report RUN`: writes reports of a run, or prints one."""

import json
from pathlib import Path

import click

from producer.cli.context import Session, pass_session
from producer.cli.errors import SCHEMA_VERSION
from producer.cli.files import FORMATS, plan_files
from producer.cli.options import command as declare


@declare()
@click.argument("run")
@click.option(
    "-o",
    "--output",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write; the suffix (.md .json .jsonl .csv) tells the format; may be repeated.",
)  # fmt: skip - one option, one paragraph
@click.option("--format", "format_name", type=click.Choice(FORMATS), help="Format, whatever the suffix says.")
@pass_session
def command(session: Session, *, run: str, paths: tuple[Path, ...], format_name: str | None) -> None:
    """Write a report of RUN and print its path; without -o print the report itself, as Markdown."""
    from producer.cli.ending import write_reports  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.find import find_run  # noqa: PLC0415 - same
    from producer.cli.printing import print_results  # noqa: PLC0415 - same

    files = plan_files(paths, format_name) if paths else []
    info = find_run(session, run)
    if not files:
        default = "json" if session.options.json else "md"
        print_results(session, info, format_name or default, only_failed=False, first=None)
        return
    document = write_reports(session, info, files)
    if session.options.json:
        written = {
            "schema_version": SCHEMA_VERSION,
            "run_id": info.run,
            "files": document["files"],
            "exit": 0,
        }
        session.output.data(json.dumps(written))
    else:
        for file in files:
            session.output.data(str(file.path))
