"""Describes the models of a configuration: where each is called, and whether its key and price are known."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import UNSET

from producer.cases.bench_config import Bench, read_bench
from producer.load.source import Source
from producer.service_documents import ListedModel, ModelPrice, ModelsDocument
from shared.contracts.case_config import BenchConfig
from shared.upstream.key_variables import key_in, provider_of
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import tariff_of

COLUMNS: Final = ("MODEL", "ROLE", "PROVIDER", "ENDPOINT", "KEY", "USD PER 1M IN/OUT")


def models_document(
    named: str, environment: Mapping[str, str], provider: str | None = None, *, allow_code: bool = False
) -> ModelsDocument:
    """Reads a configuration and describes its models.

    Args:
        named: the file.
        environment: contains the keys, of which only the presence is reported.
        provider: only models of this one.
        allow_code: whether code beside the bench may run: it may make the cases, whose checks ask models.

    Raises:
        InputError: the file cannot be read, or breaks its contract.
    """
    bench = read_bench(Source(named), allow_code=allow_code)
    rows = model_rows(bench, environment)
    return ModelsDocument(models=tuple(row for row in rows if provider in (None, row.provider)))


def model_rows(bench: Bench, environment: Mapping[str, str]) -> Iterator[ListedModel]:
    """Describes each model of a configuration, those that judge last.

    Args:
        bench: the configuration.
        environment: contains the keys, of which only the presence is reported.
    """
    config = bench.config
    roles: list[tuple[Literal["model", "judge", "check"], str]]
    roles = [("model", name) for name in dict.fromkeys(config.model_names)]
    roles += [("judge", name) for name in config.settings.judges]
    roles += [("check", name) for name in bench.cases.asked if name not in config.settings.judges]
    for role, name in roles:
        target = bench.target(name)
        variable, is_usual = target.key_variable, not target.api_key_env
        yield ListedModel(
            model=name,
            role=role,
            provider=provider_of(name) or None,
            api_base=target.api_base or None,
            api_key_env=variable or None,
            key_present=bool(key_in(variable, environment, is_usual=is_usual)) if variable else None,
            price=ModelPrice(0.0, 0.0) if target.is_echo else _price(name, config),
        )


def _price(model: str, config: BenchConfig) -> ModelPrice | None:
    """Returns the dollars for a million tokens in and out; None where they are not known."""
    given = config.config_of(model).price_on(datetime.now(UTC).date().isoformat())
    tariff = tariff_of(model, {} if given is None else {model: given})
    if tariff is None:
        return None
    rates = tariff.rates("", 0)
    return ModelPrice(
        rates.input,
        rates.output,
        UNSET if rates.cached == rates.input else rates.cached,
        UNSET if rates.cache_write == rates.input else rates.cache_write,
        UNSET if rates.reasoning == rates.output else rates.reasoning,
    )


def model_cells(row: ListedModel) -> list[str]:
    """Writes a model for people."""
    variable, price = row.api_key_env, row.price
    key = f"{variable} {'set' if row.key_present else 'not set'}" if variable else "none"
    usd = (
        "unknown" if price is None else f"{price.prompt_per_million:.6g} / {price.completion_per_million:.6g}"
    )
    is_echo = ModelTarget(row.model, row.api_base or "").is_echo
    endpoint = row.api_base or ("none" if is_echo else "provider's own")
    return [row.model, row.role, row.provider or "-", endpoint, key, usd]
