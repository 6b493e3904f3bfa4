"""Options of runs that ask a model: which one, where it is, how it is asked and what it may cost."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from producer.cli.options.shared_options import MODEL_FLAGS, chain
from shared.contracts.live_turns import LiveRun
from shared.contracts.turn_vocabulary import Live
from shared.errors import UsageError
from shared.server.redis_url import mask_password
from shared.upstream.addresses import NO_ADDRESS, address_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shared.kinds import Kind

F = TypeVar("F", bound="Callable[..., Any]")

MOST_PRICE: Final = 1_000_000.0
"""Dollars for a million tokens; more is a mistake."""
SECRET_PREFIXES: Final = ("sk-", "sk_", "Bearer ")
"""What a key begins with that somebody took for a variable's name."""


def model_options(function: F) -> F:
    """Adds the options of models; files of queries take none of them.

    Longer than 40 lines, because it is a table: one option, one entry, and no logic.
    """
    return chain(
        [
            click.option(
                "-m",
                "--model",
                "models",
                multiple=True,
                metavar="NAME",
                help="Models: ask this one, such as openai/gpt-4o; turns are answered live by it.",
            ),
            click.option(
                "--live",
                type=click.Choice([word.value for word in Live]),
                help="Turns: decisions worth a call of the model [default: should, so no skip].",
            ),
            click.option(
                "--api-base",
                metavar="URL",
                help="Models: where they are, an OpenAI-compatible endpoint.",
            ),
            click.option(
                "--api-key-env",
                metavar="VARIABLE",
                help="Models: the worker's variable that holds the key [default: the provider's].",
            ),
            click.option(
                "-t",
                "--temperature",
                type=click.FloatRange(0, 2),
                metavar="T",
                help="Models: of their answers [default: the provider's].",
            ),
            click.option(
                "--max-cost",
                type=click.FloatRange(0),
                metavar="USD",
                help="Models: end the run as incomplete before it costs more than this.",
            ),
            click.option(
                "--price",
                metavar="IN/OUT",
                help="Models: USD for a million tokens of prompt and answer, where that is not known.",
            ),
            click.option("--no-cache", is_flag=True, help="Models: ask again what was answered before."),
        ]
    )(function)  # fmt: skip - one option, one paragraph


def read_live_run(words: Mapping[str, Any], *, in_flight: int | None = None) -> LiveRun | None:
    """Makes the settings of live turns of what the command line says; None without a model.

    Args:
        words: values of `model_options`, by parameter.
        in_flight: value of `-j`, which bounds the run over the whole fleet.

    Raises:
        UsageError: a value cannot be used.
    """
    given = given_flags(words)
    if not words.get("models"):
        if given:
            raise UsageError(f"{given[0]} needs a model", hint="add --model NAME")
        return None
    model, *more = words["models"]
    if more:
        raise UsageError("turns are answered by one model", hint=f"keep one of {', '.join(words['models'])}")
    if not model.strip():
        raise UsageError("--model: the name is empty", hint="write --model openai/gpt-4o")
    max_cost = words["max_cost"]
    if max_cost is not None and not isfinite(max_cost):
        raise UsageError("--max-cost: must be a finite number", hint="leave it out for no limit")
    return LiveRun(
        model=model.strip(),
        live=Live(words["live"] or Live.SHOULD),
        api_base=_api_base(words["api_base"] or ""),
        api_key_env=_variable(words["api_key_env"] or ""),
        temperature=words["temperature"],
        max_cost=max_cost,
        use_cache=not words["no_cache"],
        concurrency=in_flight,
        prices=price_of(model.strip(), words["price"]),
    )


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


def endpoint_of(words: Mapping[str, Any]) -> tuple[str, str]:
    """Reads `--api-base` and `--api-key-env`; empty where they were not given.

    Raises:
        UsageError: one cannot be used.
    """
    return _api_base(words.get("api_base") or ""), _variable(words.get("api_key_env") or "")


def refuse_model_options(words: Mapping[str, Any], kind: Kind) -> None:
    """Refuses options of models for a file of a kind that asks none.

    Raises:
        UsageError: one was given.
    """
    given = given_flags(words)
    if given:
        raise UsageError(
            f"{given[0]} is for runs that ask a model, and this file describes {kind}", hint="leave it out"
        )


def given_flags(words: Mapping[str, Any]) -> list[str]:
    """Lists the options that were given.

    >>> given_flags({"models": (), "max_cost": 0.0, "no_cache": False})
    ['--max-cost']
    """
    return [
        flag
        for name, flag in MODEL_FLAGS.items()
        if (value := words.get(name)) is not None and value is not False and value != ()
    ]


def _api_base(text: str) -> str:
    """Proves an endpoint's URL."""
    if not text:
        return ""
    problem = address_problem(text)
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


def _variable(text: str) -> str:
    """Proves a variable's name; a key given in its place is neither stored nor shown."""
    if text and (text.startswith(SECRET_PREFIXES) or not text.isidentifier()):
        raise UsageError(
            "--api-key-env: that is no variable's name",
            hint="name the variable that holds the key: --api-key-env OPENAI_API_KEY",
        )
    return text
