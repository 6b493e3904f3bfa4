"""`proctor models FILE`: the models of a configuration, and whether key and price are known."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

import click

from producer.cli.completions import complete_files
from producer.cli.error_exit import SCHEMA_VERSION
from producer.cli.options.global_options import command as declare
from producer.cli.options.shared_options import config_option, one_file
from producer.cli.session import Session, pass_session
from shared.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shared.contracts.case_config import BenchConfig

COLUMNS: Final = ("MODEL", "ROLE", "PROVIDER", "ENDPOINT", "KEY", "USD PER 1M IN/OUT")
MILLION: Final = 1_000_000


@declare()
@click.argument("file", shell_complete=complete_files, required=False)
@config_option
@click.option("-p", "--provider", metavar="NAME", help="Only models of this provider, e.g. openai.")
@pass_session
def command(session: Session, *, file: str | None, config: str | None, provider: str | None) -> None:
    """List the models and judges of the configuration FILE (`-`: stdin); nothing is sent.

    KEY refers to the environment of this command. Workers on other machines have their own.
    """
    from producer.load.bench_config import check_models, read_bench  # noqa: PLC0415 - start-up: `--help` must not load pydantic
    from producer.load.source import Source  # noqa: PLC0415 - same

    named = one_file(file, config)
    if named is None:
        raise UsageError("name a FILE", hint="see `proctor models --help`")
    bench = read_bench(Source(named))
    rows = [
        row
        for row in model_rows(bench.config, os.environ, check_models(bench.cases))
        if provider in (None, row["provider"])
    ]
    if session.options.json:
        session.output.data(json.dumps({"schema_version": SCHEMA_VERSION, "models": rows, "exit": 0}))
    elif rows:
        session.output.table(COLUMNS, [_cells(row) for row in rows])
    else:
        session.output.note(f"no model of {provider}")


def model_rows(
    config: BenchConfig, environment: Mapping[str, str], asked_by_checks: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Describes each model of a configuration, those that judge last.

    Args:
        config: as it is written.
        environment: contains the keys, of which only the presence is reported.
        asked_by_checks: the models that checks ask.
    """
    from shared.upstream.key_variables import key_in, provider_of  # noqa: PLC0415 - start-up

    roles = [("model", name) for name in dict.fromkeys(config.models)]
    roles += [("judge", name) for name in config.settings.judges]
    roles += [("check", name) for name in asked_by_checks if name not in config.settings.judges]
    for role, name in roles:
        target = config.target(name)
        variable, is_usual = target.key_variable, not target.api_key_env
        yield {
            "model": name,
            "role": role,
            "provider": provider_of(name) or None,
            "api_base": target.api_base or None,
            "api_key_env": variable or None,
            "key_present": bool(key_in(variable, environment, is_usual=is_usual)) if variable else None,
            "price": _price(name, config),
        }


def _price(model: str, config: BenchConfig) -> dict[str, float] | None:
    """Returns the dollars for a million tokens in and out; None where they are not known."""
    from shared.upstream.prices import cost_of  # noqa: PLC0415 - start-up

    settings = config.model_configs.get(model)
    prices = {} if settings is None or settings.prices is None else {model: settings.prices.model_dump()}
    prompt_price, completion_price = cost_of(model, MILLION, 0, prices), cost_of(model, 0, MILLION, prices)
    if prompt_price is None or completion_price is None:
        return None
    return {"prompt_per_million": prompt_price, "completion_per_million": completion_price}


def _cells(row: Mapping[str, Any]) -> list[str]:
    """One line for people."""
    variable, price = row["api_key_env"], row["price"]
    key = f"{variable} {'set' if row['key_present'] else 'not set'}" if variable else "none"
    usd = "unknown" if price is None else " / ".join(f"{value:.6g}" for value in price.values())
    endpoint = row["api_base"] or "provider's own"
    return [row["model"], row["role"], row["provider"] or "-", endpoint, key, usd]
