"""`proctor config show|schema`: the effective settings, and the JSON Schemas of outputs and inputs."""

import json
from pathlib import Path

import click

from producer.cli.completions import complete_schemas
from producer.cli.options.global_options import group
from producer.cli.session import Session, pass_session
from shared.settings import describe


@group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show the effective settings, or the JSON Schemas of outputs and inputs."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@command.command()
@pass_session
def show(session: Session) -> None:
    """List every setting with its value, its variable and its origin; secrets are masked."""
    settings = describe(session.settings)
    if session.options.json:
        from producer.service_documents import ConfigDocument, ListedSetting  # noqa: PLC0415 - start-up: only this needs it

        values = [str(s.value) if isinstance(s.value, Path) else s.value for s in settings]
        rows = [ListedSetting(s.name, s.env, v, s.origin) for s, v in zip(settings, values, strict=True)]
        session.output.document(ConfigDocument(settings=tuple(rows)))
        return
    session.output.table(
        ("SETTING", "VALUE", "FROM", "VARIABLE"),
        [
            (setting.name, "-" if setting.value is None else str(setting.value), setting.origin, setting.env)
            for setting in settings
        ],
    )


@command.command()
@click.argument("name", shell_complete=complete_schemas, required=False)
@pass_session
def schema(session: Session, *, name: str | None) -> None:
    """Print the JSON Schema NAME of what Proctor prints, writes or reads; without NAME list them."""
    from producer.schemas.catalog import list_of, names, schema_of  # noqa: PLC0415 - start-up: nothing else needs it

    if name is not None:
        session.output.data(json.dumps(schema_of(name), indent=2, ensure_ascii=False))
        return
    known = names()
    if session.options.json:
        session.output.document(list_of(known))
    else:
        session.output.table(("NAME", "OF"), list(known.items()))
