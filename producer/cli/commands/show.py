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
    its id, model and prompt: "france · openai/gpt-4o". Without ITEM, shows what did not pass.
    """
    from producer.cli.item_view import others_of, print_whole, read_items, read_rows  # noqa: PLC0415 - same
    from producer.cli.overview import print_overview  # noqa: PLC0415 - same
    from producer.cli.printing import lines_of  # noqa: PLC0415 - same
    from producer.cli.run_lookup import find_run  # noqa: PLC0415 - same
    from producer.item_names import find_items  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.service_documents import ItemsDocument  # noqa: PLC0415 - same

    info = find_run(session, run)
    if not items:
        print_overview(session, info)
        return
    positions = find_items(session.access.store, info, items, is_each=True)
    if session.options.json:
        rows = tuple(lines_of(session, info, read_rows(session, info, positions)))
        session.output.document(ItemsDocument(run_id=info.run, kind=info.kind.name, items=rows))
        return
    shown = read_items(session, info, positions)
    others = others_of(session, info, shown[0]) if len(shown) == 1 else []
    print_whole(session.output, shown, others)
