"""Reads the options of a command line into what they choose: settings of runs, and items of files."""

import os
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

import msgspec

from producer.cli.options.option_groups import given_flags
from producer.cli.options.run_options import PLACES, CaseOptions, ModelOptions, QueryOptions, SelectionOptions
from producer.options import CaseChoice, QueryChoice
from shared.contracts.case_vocabulary import MOST_JUDGES
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_environment import api_url, delay_s
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import HEADER_VARIABLE
from shared.contracts.turn_vocabulary import Live
from shared.errors import UsageError
from shared.scrubbing import is_secret_header
from shared.server.redis_url import mask_password
from shared.upstream.addresses import NO_ADDRESS, address_problem
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import GivenPrice

NO_JUDGE: Final = ("null", "none", "")
"""Names that stand for a run without a judge."""
MOST_PRICE: Final = 1_000_000.0
"""Dollars for a million tokens; more is a mistake."""
SECRET_PREFIXES: Final = ("sk-", "sk_", "Bearer ")
"""Prefixes of API keys, to detect a key given in place of a variable's name."""
_LATER_ELEMENT: Final = re.compile(r"/[1-9][0-9]*(?=/|$)")
"""A step of a JSON pointer to an element of an array that has others before it."""


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
    target = ModelTarget(model, api_base_of(options), api_key_env_of(options)).compatible()
    run = LiveRun(
        target,
        live=Live(options.live or Live.SHOULD),
        temperature=options.temperature,
        max_cost=max_cost_of(options),
        use_cache=not options.no_cache,
        concurrency=in_flight,
        prices={model: price} if (price := price_of(options.price)) else {},
    )
    from producer.cases.unknown_models import unknown_model  # noqa: PLC0415 - start-up: pydantic

    if error := unknown_model(target, "--model"):
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


def price_of(text: str | None) -> GivenPrice | None:
    """Reads `--price`; None when it was not given.

    Raises:
        UsageError: it is no price.

    >>> price_of("0.15/0.60").completion_per_million
    0.6
    """
    if text is None:
        return None
    try:
        prompt, answer = (float(part) for part in text.split("/"))
    except ValueError:
        prompt = answer = -1.0
    if not (0 <= prompt <= MOST_PRICE and 0 <= answer <= MOST_PRICE):
        raise UsageError(
            f"--price: {text!r} is no price",
            hint="write --price 0.15/0.60: dollars for a million tokens in and out",
        )
    return GivenPrice(prompt, answer)


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


def read_case_choice(
    options: CaseOptions, selection: SelectionOptions, models: ModelOptions, *, in_flight: int | None = None
) -> CaseChoice:
    """Returns the settings of a run of cases.

    Args:
        options: of cases.
        selection: which of them.
        models: options of the models under test.
        in_flight: value of `-j`, the maximum of concurrent items across all workers.

    Raises:
        UsageError: a value cannot be used.
    """
    from shared.contracts.case_config import ModelConfig, Price, RunSettings  # noqa: PLC0415 - start-up: pydantic

    settings: dict[str, Any] = {
        "temperature": models.temperature,
        "max_cost": max_cost_of(models),
        "cache": False if models.no_cache else None,
        "concurrency": selection.concurrency or in_flight,
        "repeat": selection.repeat,
        "stream": options.stream or None,
        "fail_fast": options.fail_fast or None,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    price = price_of(models.price)
    return CaseChoice(
        RunSettings.model_construct(**given, **_judges(options.judges)),
        model_names(models),
        ModelConfig.model_construct(
            api_base=api_base_of(models),
            api_key_env=api_key_env_of(models),
            prices=Price(**msgspec.to_builtins(price)) if price else None,
        ),
        validators_file=options.validators_file,
        outputs=options.outputs,
        all_repeats=options.all_repeats,
        cases=options.cases,
        tags=options.tags,
        containing=selection.containing or "",
        first=selection.first,
        sample=selection.sample,
    )


def _judges(names: Sequence[str]) -> dict[str, Any]:
    """Reads `--judge` into the settings that it replaces; nothing where it was not given.

    Raises:
        UsageError: a name and `null` are given, a name is given twice, or there are too many.

    >>> _judges(["a", "b"]), _judges([])
    ({'judge_model': None, 'judge_models': ['a', 'b']}, {})
    >>> _judges(["null"])
    {'judge_model': None, 'judge_models': None}
    """
    judges = [name.strip() for name in names]
    if not judges:
        return {}
    if len(judges) == 1:
        alone = judges[0]
        return {"judge_model": None if alone.lower() in NO_JUDGE else alone, "judge_models": None}
    if any(judge.lower() in NO_JUDGE for judge in judges):
        raise UsageError("--judge: names a judge, and null", hint="keep one of them")
    if len(judges) != len(set(judges)):
        raise UsageError("--judge: the same name twice", hint="a judge has one vote")
    if len(judges) > MOST_JUDGES:
        raise UsageError(f"--judge: {len(judges)} judges, at most {MOST_JUDGES}", hint="leave some out")
    return {"judge_model": None, "judge_models": judges}


def read_query_run(
    options: QueryOptions, selection: SelectionOptions, *, in_flight: int | None = None
) -> QueryRun:
    """Returns the settings of a run of queries.

    Args:
        options: of queries.
        selection: how often each is sent, and how many at a time.
        in_flight: value of `-j`, which stands for `--concurrency` where that is not given.

    Raises:
        UsageError: a value cannot be used.
        ConfigError: neither can one of the environment.
    """
    usual = QueryRun()
    places = dict(_pair("--field", text) for text in options.places)
    unknown = [name for name in places if name not in PLACES]
    if unknown:
        raise UsageError(f"--field: unknown name {unknown[0]!r}", hint=f"one of {', '.join(PLACES)}")
    wrong = [pointer for pointer in places.values() if not pointer.startswith("/")]
    if wrong:
        raise UsageError(f"--field: {wrong[0]!r} is no JSON pointer", hint="write answer=/choices/0/text")
    query_at, method = places.pop("query", usual.query_at), options.method or usual.method
    if method != "GET" and _LATER_ELEMENT.search(query_at):
        raise UsageError(
            f"--field: {query_at!r} places the query after elements that the request does not have",
            hint="an array is sent with one element; write query=/messages/0/text",
        )
    path = options.path or usual.path
    if not path.startswith("/"):
        raise UsageError(f"--path: {path!r} does not begin with a slash", hint="write --path /api/query")
    return QueryRun(
        api_url=api_url(options.api_url, os.environ),
        delay_s=_delay_s(options.delay),
        method=method,
        path=path,
        query_at=query_at,
        places=places,
        headers=_headers(options.headers),
        bearer_env=options.bearer_env or "",
        concurrency=selection.concurrency or in_flight or 1,
        fold_apostrophes=options.fold_apostrophes,
        retry_errors=options.retry_errors or 0,
        timeout_s=options.query_timeout_s or usual.timeout_s,
        start_from=options.start_from or "",
        repeat=selection.repeat or 1,
    )


def _delay_s(given: float | None) -> float:
    """Reads `--delay`, else the document's variable; a whole number stays one, as its reports have it.

    Raises:
        UsageError: it is no number.
        ConfigError: the variable is no whole number.

    >>> _delay_s(0.1), _delay_s(3.0)
    (0.1, 3)
    """
    if given is None:
        return delay_s(None, os.environ, default=0)
    if not isfinite(given):
        raise UsageError("--delay: must be a finite number", hint="write --delay 0.1")
    return int(given) if given == int(given) else given


def read_query_choice(options: QueryOptions, selection: SelectionOptions) -> QueryChoice:
    """Returns which queries of a file are sent."""
    return QueryChoice(
        categories=options.categories,
        containing=selection.containing or "",
        first=selection.first,
        sample=selection.sample,
    )


def _headers(texts: Sequence[str]) -> dict[str, str]:
    """Reads headers, and refuses secrets, which would be stored in Redis."""
    headers = dict(_pair("--header", text) for text in texts)
    for name, value in headers.items():
        literal = HEADER_VARIABLE.sub("", value)
        if is_secret_header("" if literal != value else name, literal):
            raise UsageError(
                f"--header: the value of {name} would be stored with the run",
                hint=f"set a variable where the workers run, and write --header '{name}=$VARIABLE'",
            )
        if not (name.isascii() and value.isprintable() and name.replace("-", "").isalnum()):
            raise UsageError(f"--header: {name!r} cannot be sent", hint="write --header 'X-Tenant=blue'")
    return headers


def _pair(option: str, text: str) -> tuple[str, str]:
    """Splits `NAME=VALUE`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise UsageError(f"{option}: {text!r} is not NAME=VALUE", hint=f"see `proctor run --help`, {option}")
    return name, value
