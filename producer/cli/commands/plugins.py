"""`proctor plugins`: checks, clients and prompts of installed packages, and which workers have them."""

from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session


@declare()
@pass_session
def command(session: Session) -> None:
    """List the plug-ins of this environment, and of the live workers of cases.

    Packages register them as entry points of proctor.checks, proctor.clients and proctor.prompts. Prompts are
    made where the run is submitted; workers have no use for them. proctor[js] is what runs JavaScript, and
    --allow-code the permission to run code beside a bench.
    """
    from producer.cli.plugins_view import COLUMNS, plugin_cells, plugins_document  # noqa: PLC0415 - start-up: `--help` must not load redis

    document = plugins_document(session.access)
    if session.options.json:
        session.output.document(document)
    elif document.plugins:
        session.output.table(COLUMNS, [plugin_cells(each, document.workers) for each in document.plugins])
    else:
        session.output.note("no plug-in is installed, here or where workers run")
