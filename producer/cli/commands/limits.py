"""`proctor limits show|set|unset|reset`: limits of models and APIs, and their current state."""

import click

from producer.cli.options.global_options import group
from producer.cli.session import Session, pass_session
from producer.text import plural
from shared.errors import UsageError


@group()
def command() -> None:
    """Show and change rate limits of models and APIs.

    KEY is a model as configurations name it (openai/gpt-4o), a provider (openai) or the URL of an API. A
    limit applies per API key, across all workers; changes take effect within a second.
    """


@command.command()
@click.argument("key", required=False)
@pass_session
def show(session: Session, *, key: str | None) -> None:
    """Show the limits that are set and what was called in the last hour: all, or of KEY.

    KEY is what the other commands take; ENDPOINT is where a model is called that is not called at its
    provider. RPM and TPM are limits per minute, AT ONCE of requests in flight; FREE is how many more
    requests may be sent now, NEXT when the next one may be sent. A blank is no limit. The limits of single
    runs are left out: --json has them, and `run:ID` as KEY shows one.
    """
    from producer.cli.limits_view import (  # noqa: PLC0415 - start-up
        COLUMNS,
        CUT,
        LEAST_KEY,
        LEGEND,
        RIGHT,
        SPARE,
        cells,
        limits_document,
    )
    from producer.fleet_state import is_of_run, read_bounds  # noqa: PLC0415 - start-up

    bounds = read_bounds(session.access.ledger.caller, key)
    if session.options.json:
        session.output.document(limits_document(bounds))
    elif shown := [bound for bound in bounds if key is not None or not is_of_run(bound)]:
        output, rows = session.output, [cells(bound) for bound in shown]
        output.table(COLUMNS, rows, right=RIGHT, spare=SPARE, middle=CUT, least=LEAST_KEY)
        if output.width is not None:
            output.note(output.folded(LEGEND))
    else:
        session.output.note("no limit is set, and nothing was called in the last hour")


@command.command("set")
@click.argument("key")
@click.option("--rpm", type=float, metavar="N", help="Requests per minute.")
@click.option("--tpm", type=float, metavar="N", help="Tokens per minute, prompt and completion.")
@click.option("--concurrency", type=int, metavar="N", help="Maximum concurrent requests.")
@click.option("--pace", "pace_s", type=float, metavar="SECONDS", help="Minimum time between two requests.")
@pass_session
def set_(
    session: Session,
    *,
    key: str,
    rpm: float | None,
    tpm: float | None,
    concurrency: int | None,
    pace_s: float | None,
) -> None:
    """Set limits of KEY; limits that are not named are unchanged."""
    from producer.cli.limits_view import number, set_limits, set_values  # noqa: PLC0415 - start-up: `--help` loads no more than it shows
    from shared.upstream.limits import Limits  # noqa: PLC0415 - same

    limits = Limits(rpm, tpm, concurrency, pace_s)
    if limits == Limits():
        raise UsageError("nothing to set", hint="add --rpm, --tpm, --concurrency or --pace")
    document = set_limits(session.access.ledger.caller, key, limits)
    if session.options.json:
        session.output.document(document)
    else:
        values = ", ".join(f"{word} {number(value)}" for word, value in set_values(document.set).items())
        session.output.data(session.output.folded(f"{document.key}: {values}"))


@command.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@pass_session
def unset(session: Session, *, keys: tuple[str, ...]) -> None:
    """Remove the limits that were set for KEYs."""
    from producer.cli.limits_view import unset_limits  # noqa: PLC0415 - start-up: `--help` loads no more than it shows

    document = unset_limits(session.access.ledger.caller, keys)
    if session.options.json:
        session.output.document(document)
    else:
        for name in document.unset:
            session.output.data(f"{name}: no limits")


@command.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@pass_session
def reset(session: Session, *, keys: tuple[str, ...]) -> None:
    """Reset pauses, circuit breakers and adaptive limits of KEYs; configured limits are kept."""
    from producer.cli.limits_view import reset_limits  # noqa: PLC0415 - start-up: `--help` loads no more than it shows

    document = reset_limits(session.access.ledger.caller, keys)
    if session.options.json:
        session.output.document(document)
    else:
        session.output.data(f"{plural(document.reset, 'place')} reset")
