"""`proctor show RUN [ITEM]`: what was asked and answered, and why it did not pass; or an overview."""

import click

from producer.cli.completions import complete_items, complete_runs
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session


@declare()
@click.argument("run", shell_complete=complete_runs)
@click.argument("items", nargs=-1, metavar="[ITEM]...", shell_complete=complete_items)
@pass_session
def command(session: Session, *, run: str, items: tuple[str, ...]) -> None:
    """Show ITEM of RUN: question, answer, reason, checks, and the other answers to the same case.

    ITEM is an id of the file, such as Q-06. The id of a case shows all its answers; one of them is named by
    its id, model and prompt: "france · openai/gpt-4o". Of turns, ITEM is also a thread or a clientRequestId.
    Without ITEM, shows what did not pass. RUN is also a stream of `proctor serve`: served, or served@1h.
    """
    from producer import item_names, service_documents  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli import item_view, overview, printing, run_lookup  # noqa: PLC0415 - same

    info = run_lookup.find_results(session, run)
    if not items:
        overview.print_overview(session, info)
        return
    positions = item_names.find_items(session.access.store, info, items, is_each=True)
    if session.options.json:
        rows = tuple(printing.lines_of(session, info, item_view.read_rows(session, info, positions)))
        session.output.document(
            service_documents.ItemsDocument(run_id=info.run, kind=info.kind.name, items=rows)
        )
        return
    shown = item_view.read_items(session, info, positions)
    others = item_view.others_of(session, info, shown[0]) if len(shown) == 1 else []
    item_view.print_whole(session.output, shown, others)
