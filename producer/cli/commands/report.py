"""`proctor report RUN`: writes reports of a run, or prints one."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from producer import kinds
from producer.cli.completions import complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.options.shared_options import gate_options, refuse_no_text, text_option, time_options
from producer.cli.session import Session, pass_session
from producer.report_files import FORMATS, plan_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from producer.documents import AnyRun
    from producer.report.github import Annotations
    from shared.runs import RunInfo


@declare()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "-o",
    "--output",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report to write; its suffix (.md .json .jsonl .csv .html .xml) is its format; may be repeated.",
)  # fmt: skip - one option, one paragraph
@click.option("--format", "format_name", type=click.Choice(FORMATS), help="Format, regardless of the suffix.")
@time_options
@text_option
@gate_options
@pass_session
def command(
    session: Session,
    *,
    run: str,
    paths: tuple[Path, ...],
    format_name: str | None,
    since: str,
    until: str,
    no_text: bool,
    gates: tuple[str, ...],
) -> int:
    """Write a report of RUN and print its path; without -o print the report itself, as Markdown.

    RUN is also a stream of `proctor serve`: served, or served:NAMESPACE where there are several.

    --format github is Markdown for the summary of a GitHub Actions job, with annotations on stderr, where the
    runner reads them too: `proctor report RUN --format github >> "$GITHUB_STEP_SUMMARY"`.
    """
    from producer.aggregate.gates import check_gates, parse_gate  # noqa: PLC0415 - start-up: only gates need it
    from producer.cli import presenters, printing, run_lookup  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.reporting import write_reports  # noqa: PLC0415 - same

    files = plan_files(paths, [format_name] if format_name else []) if paths else []
    parsed_gates = [parse_gate(text) for text in gates]
    info = run_lookup.find_results(session, run, since, until)
    refuse_no_text(info.kind, no_text=no_text)
    check_gates(parsed_gates, info.kind)
    annotations = _annotations(info, format_name)
    with_text = not no_text
    if files:
        document = write_reports(
            session.access, info, files, annotations, gates=parsed_gates, with_text=with_text
        )
        _tell_files(session, document, presenters.exit_of_gates(document))
    else:
        name = format_name or ("json" if session.options.json else "md")
        document = printing.print_results(
            session, info, name, gates=parsed_gates, more=annotations, with_text=with_text
        )
    _annotate(session, annotations)
    presenters.print_gates(session.output, document)
    return presenters.exit_of_gates(document)


def _tell_files(session: Session, document: "AnyRun", code: int) -> None:
    """Names the files that were written."""
    if not session.options.json:
        for file in document.files:
            session.output.data(file.path)
        return
    from producer.service_documents import ReportDocument  # noqa: PLC0415 - start-up: only this needs it

    session.output.document(
        ReportDocument(run_id=document.run_id, files=document.files, gates=document.gates, exit=code)
    )


def _annotations(info: "RunInfo", format_name: str | None) -> "Sequence[Annotations]":
    """Begins to collect annotations, where they are wanted."""
    if format_name != "github":
        return ()
    from producer.report.github import Annotations  # noqa: PLC0415 - start-up: only this format needs it

    return (Annotations(info, kinds.of(info.kind).tests, Path(os.environ.get("GITHUB_WORKSPACE", "."))),)


def _annotate(session: Session, annotations: "Sequence[Annotations]") -> None:
    """Writes annotations to stderr, also when quiet: stdout may be the summary."""
    for line in (line for each in annotations for line in each.lines):
        session.output.message(line)
