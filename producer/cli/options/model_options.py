"""Options of runs that call a model: its name, endpoint, parameters and cost cap."""

from __future__ import annotations

from dataclasses import dataclass

import click

from producer.cli.completions import complete_models
from producer.cli.options.option_groups import option
from shared.contracts.turn_vocabulary import Live


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The model, its endpoint and parameters, and the cost cap."""

    models: tuple[str, ...] = option(
        "-m",
        "--model",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_models,
        topics=("models",),
        help="Model to evaluate, e.g. openai/gpt-4o; turns are answered live by it.",
    )
    live: str | None = option(
        "--live",
        type=click.Choice([word.value for word in Live]),
        topics=("turns",),
        help="Decisions that are worth a model call [default: should, so no skip].",
    )
    api_base: str | None = option(
        "--api-base", metavar="URL", topics=("models",), help="Base URL of an OpenAI-compatible API."
    )
    api_key_env: str | None = option(
        "--api-key-env",
        metavar="VARIABLE",
        topics=("models",),
        help="Environment variable of the workers that holds the API key [default: the provider's].",
    )
    temperature: float | None = option(
        "-t",
        "--temperature",
        type=click.FloatRange(0, 2),
        metavar="T",
        topics=("models",),
        help="Sampling temperature [default: the bench's, else 0.1; for turns the provider's].",
    )
    max_cost: float | None = option(
        "--max-cost",
        type=click.FloatRange(0),
        metavar="USD",
        topics=("models",),
        help="End the run as incomplete before it costs more than this.",
    )
    price: str | None = option(
        "--price",
        metavar="IN/OUT",
        topics=("models",),
        help="USD per million prompt and completion tokens, for models without a known price.",
    )
    no_cache: bool = option("--no-cache", is_flag=True, topics=("models",), help="Ignore cached answers.")
