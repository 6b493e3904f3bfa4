"""`proctor models FILE`: the models of a configuration, and whether key and price are known."""

import os

import click

from producer.cli.completions import complete_files
from producer.cli.options.global_options import command as declare
from producer.cli.options.shared_options import config_option, one_file
from producer.cli.session import Session, pass_session
from shared.errors import UsageError


@declare()
@click.argument("file", shell_complete=complete_files, required=False)
@config_option
@click.option("-p", "--provider", metavar="NAME", help="Only models of this provider, e.g. openai.")
@pass_session
def command(session: Session, *, file: str | None, config: str | None, provider: str | None) -> None:
    """List the models and judges of the configuration FILE (`-`: stdin); nothing is sent.

    KEY refers to the environment of this command. Workers on other machines have their own.
    """
    from producer.cli.models_view import COLUMNS, model_cells, models_document  # noqa: PLC0415 - start-up: `--help` must not load pydantic

    named = one_file(file, config)
    if named is None:
        raise UsageError("name a FILE", hint="see `proctor models --help`")
    document = models_document(named, os.environ, provider, allow_code=session.settings.allow_code)
    if session.options.json:
        session.output.document(document)
    elif document.models:
        session.output.table(COLUMNS, map(model_cells, document.models))
    else:
        session.output.note(f"no model of {provider}")
