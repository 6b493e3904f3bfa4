"""`proctor results RUN`: prints results item by item, in input order, as a table or as data."""

import click

from producer.cli.completions import complete_items, complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.options.shared_options import refuse_no_text, text_option, time_options
from producer.cli.session import Session, pass_session
from producer.report_files import NOT_PRINTED, REPORT_SUFFIXES
from shared.errors import UsageError

FORMATS = ("table", *(name for name in REPORT_SUFFIXES if name not in NOT_PRINTED))


@declare()
@click.argument("run", shell_complete=complete_runs)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help="How to print them [default: table; json with --json]. All but the table print every item.",
)  # fmt: skip - one option, one paragraph
@click.option(
    "--failed", "only", flag_value="failed", help="Only items that did not pass: failed, or ended in error."
)
@click.option("--errors", "only", flag_value="errors", help="Only items that ended in error.")
@click.option(
    "--where",
    metavar="FILTER",
    help="Only items that meet a condition, such as: failed and (tag = slow or latency > 2s).",
)
@click.option(
    "--item",
    "items",
    multiple=True,
    metavar="ITEM",
    shell_complete=complete_items,
    help="Only this item: its id, such as Q-06; all answers of a case, all turns of a thread; repeatable.",
)  # fmt: skip - one option, one paragraph
@click.option(
    "--first", type=click.IntRange(1), metavar="N", help="Only the first N items; a table shows 50."
)
@click.option("--traces", is_flag=True, help="Print the trace events instead, one JSON object per line.")
@time_options
@text_option
@click.option("--all-phases", is_flag=True, help="With --traces: of every phase, not only of breakpoints.")
@pass_session
def command(
    session: Session,
    *,
    run: str,
    format_name: str | None,
    only: str | None,
    where: str | None,
    items: tuple[str, ...],
    first: int | None,
    traces: bool,
    since: str,
    until: str,
    no_text: bool,
    all_phases: bool,
) -> None:
    """Print the results of RUN in input order, also while it goes on.

    RUN is also a stream of `proctor serve`: served, or served:NAMESPACE where there are several.
    """
    from producer.cli import printing, run_lookup  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.item_names import find_items  # noqa: PLC0415 - same

    if all_phases and not traces:
        raise UsageError("--all-phases says which traces to print", hint="add --traces")
    if traces and format_name not in {None, "jsonl"}:
        raise UsageError(f"traces cannot be printed as {format_name}", hint="leave --format out")
    info = run_lookup.find_results(session, run, since, until)
    refuse_no_text(info.kind, no_text=no_text)
    phases = "all traces" if all_phases else "traces"
    name = phases if traces else format_name or ("json" if session.options.json else "table")
    chosen = frozenset(find_items(session.access.store, info, items, is_each=True)) if items else None
    selection = printing.selection_of(only, first, chosen, where)
    if name == "table":
        printing.print_table(session, info, selection)
    else:
        printing.print_results(session, info, name, selection, with_text=not no_text)
