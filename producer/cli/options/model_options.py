"""Options of runs that call a model: its name, endpoint, parameters and cost cap."""

from dataclasses import dataclass
from math import isfinite
from typing import Final

import click

from producer.cli.completions import complete_models
from producer.cli.options.option_groups import given_flags, option
from shared.contracts.live_turns import LiveRun
from shared.contracts.turn_vocabulary import Live
from shared.errors import UsageError
from shared.server.redis_url import mask_password
from shared.upstream.addresses import NO_ADDRESS, address_problem

MOST_PRICE: Final = 1_000_000.0
"""Dollars for a million tokens; more is a mistake."""
SECRET_PREFIXES: Final = ("sk-", "sk_", "Bearer ")
"""Prefixes of API keys, to detect a key given in place of a variable's name."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The model, its endpoint and parameters, and the cost cap."""

    models: tuple[str, ...] = option(
        "-m",
        "--model",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_models,
        help="Models: model to evaluate, e.g. openai/gpt-4o; turns are answered live by it.",
    )
    live: str | None = option(
        "--live",
        type=click.Choice([word.value for word in Live]),
        help="Turns: decisions that are worth a model call [default: should, so no skip].",
    )
    api_base: str | None = option(
        "--api-base", metavar="URL", help="Models: base URL of an OpenAI-compatible API."
    )
    api_key_env: str | None = option(
        "--api-key-env",
        metavar="VARIABLE",
        help="Models: environment variable of the workers that holds the API key [default: the provider's].",
    )
    temperature: float | None = option(
        "-t",
        "--temperature",
        type=click.FloatRange(0, 2),
        metavar="T",
        help="Models: sampling temperature [default: the bench's, else 0.1; for turns the provider's].",
    )
    max_cost: float | None = option(
        "--max-cost",
        type=click.FloatRange(0),
        metavar="USD",
        help="Models: end the run as incomplete before it costs more than this.",
    )
    price: str | None = option(
        "--price",
        metavar="IN/OUT",
        help="Models: USD per million prompt and completion tokens, for models without a known price.",
    )
    no_cache: bool = option("--no-cache", is_flag=True, help="Models: ignore cached answers.")


def read_live_run(options: ModelOptions, *, in_flight: int | None = None) -> LiveRun | None:
    """Returns the settings of live turns from the command line; None without a model.

    Args:
        options: as given.
        in_flight: value of `-j`, the maximum of concurrent items across all workers.

    Raises:
        UsageError: a value cannot be used.
    """
    if not options.models:
        if given := given_flags(options):
            raise UsageError(f"{given[0]} needs a model", hint="add --model NAME")
        return None
    model, *more = model_names(options)
    if more:
        raise UsageError("turns are answered by one model", hint=f"keep one of {', '.join(options.models)}")
    run = LiveRun(
        model=model,
        live=Live(options.live or Live.SHOULD),
        api_base=api_base_of(options),
        api_key_env=api_key_env_of(options),
        temperature=options.temperature,
        max_cost=max_cost_of(options),
        use_cache=not options.no_cache,
        concurrency=in_flight,
        prices=price_of(model, options.price),
    )
    if not run.api_base:
        from producer.load.unknown_models import unknown_model  # noqa: PLC0415 - start-up: only live turns need it

        if error := unknown_model(model, "--model"):
            raise error
    return run


def model_names(options: ModelOptions) -> tuple[str, ...]:
    """Reads `--model`.

    Raises:
        UsageError: a name is empty.
    """
    names = tuple(name.strip() for name in options.models)
    if not all(names):
        raise UsageError("--model: the name is empty", hint="write --model openai/gpt-4o")
    return names


def max_cost_of(options: ModelOptions) -> float | None:
    """Reads `--max-cost`.

    Raises:
        UsageError: it is not finite.
    """
    if options.max_cost is not None and not isfinite(options.max_cost):
        raise UsageError("--max-cost: must be a finite number", hint="leave it out for no limit")
    return options.max_cost


def price_of(model: str, text: str | None) -> dict[str, dict[str, float]]:
    """Reads `--price`: nothing when it was not given.

    Raises:
        UsageError: it is no price.

    >>> price_of("m", "0.15/0.60")
    {'m': {'prompt_per_million': 0.15, 'completion_per_million': 0.6}}
    """
    if text is None:
        return {}
    try:
        prompt, answer = (float(part) for part in text.split("/"))
    except ValueError:
        prompt = answer = -1.0
    if not (0 <= prompt <= MOST_PRICE and 0 <= answer <= MOST_PRICE):
        raise UsageError(
            f"--price: {text!r} is no price",
            hint="write --price 0.15/0.60: dollars for a million tokens in and out",
        )
    return {model: {"prompt_per_million": prompt, "completion_per_million": answer}}


def api_base_of(options: ModelOptions) -> str:
    """Reads `--api-base`; empty where it was not given.

    Raises:
        UsageError: it is no URL, or holds a password.
    """
    text = options.api_base or ""
    problem = address_problem(text) if text else ""
    if problem == NO_ADDRESS:
        raise UsageError(
            f"--api-base: {mask_password(text)!r} is no URL", hint="write --api-base http://localhost:8000/v1"
        )
    if problem:
        raise UsageError(
            f"--api-base: {problem}",
            hint="name the variable that holds the key with --api-key-env",
        )
    return text.rstrip("/")


def api_key_env_of(options: ModelOptions) -> str:
    """Reads `--api-key-env`; empty where it was not given.

    Raises:
        UsageError: it is no name of a variable; a key given in its place is neither stored nor shown.
    """
    text = options.api_key_env or ""
    if text and (text.startswith(SECRET_PREFIXES) or not text.isidentifier()):
        raise UsageError(
            "--api-key-env: that is no variable's name",
            hint="name the variable that holds the key: --api-key-env OPENAI_API_KEY",
        )
    return text
