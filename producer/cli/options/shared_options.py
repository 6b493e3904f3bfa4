"""Options that several commands share, declared once so that they mean the same everywhere."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import click

from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.errors import UsageError
from shared.kinds import TURNS, Kind, all_kinds, kind_named

F = TypeVar("F", bound=Callable[..., Any])


MODEL_FLAGS: Final[Mapping[str, str]] = {
    "models": "--model",
    "live": "--live",
    "api_base": "--api-base",
    "api_key_env": "--api-key-env",
    "temperature": "--temperature",
    "max_cost": "--max-cost",
    "price": "--price",
    "no_cache": "--no-cache",
}
"""The options of models (`producer.cli.options.model_options`) by parameter."""
CASE_FLAGS: Final[Mapping[str, str]] = {
    "judges": "--judge",
    "validators_file": "--validators-file",
    "outputs": "--outputs",
    "stream": "--stream",
    "fail_fast": "--fail-fast",
    "cases": "--case",
    "containing": "-k",
    "first": "--first",
    "sample": "--sample",
}
"""The options of test cases (`producer.cli.options.case_options`) by parameter."""


class SubmitChoice(NamedTuple):
    """What the command line says about a submit."""

    kind: Kind | None
    """What the file describes; None: recognised from its content."""
    namespace: str
    """Where the threads' state lives; empty for the run's own."""
    summary_policy: SummaryPolicy
    """What keeps a proposed summary out of a memento."""
    idempotency_key: str
    """The same key again stands for the same run; empty for none."""
    words: dict[str, Any] = {}  # noqa: RUF012 - never changed; a NamedTuple has no factories
    """The options of queries, as they were given."""
    in_flight: int | None = None
    """What `-j` says."""
    model_words: dict[str, Any] = {}  # noqa: RUF012 - as above
    """The options of models, as they were given."""
    case_words: dict[str, Any] = {}  # noqa: RUF012 - as above
    """The options of test cases, as they were given."""


def chain(options: list[Callable[[Any], Any]]) -> Callable[[F], F]:
    """Puts several options on a command, in the order of the list."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def config_option(function: F) -> F:
    """Adds `-c`, which names the file as the validation document does."""
    return click.option("-c", "--config", metavar="FILE", help="FILE, named as an option.")(function)


def one_file(file: str | None, config: str | None) -> str | None:
    """Returns the file, whichever way it was named.

    Raises:
        UsageError: it was named in both ways.

    >>> one_file(None, "bench.config.yaml")
    'bench.config.yaml'
    """
    if file is not None and config is not None:
        raise UsageError(f"both {file} and --config {config} are named", hint="keep one of them")
    return config if file is None else file


def submit_options(function: F) -> F:
    """Adds `--kind`, `--namespace`, `--summary-policy` and `--idempotency-key`."""
    kinds = click.Choice([kind.name for kind in all_kinds()])
    policies = click.Choice([policy.value for policy in SummaryPolicy])
    return chain(
        [
            click.option(
                "--kind", type=kinds, help="What the file describes [default: told by its content]."
            ),
            click.option(
                "--namespace",
                default="",
                metavar="NAME",
                help="Turns: share the threads' state with other runs of this name [default: the run's own].",
            ),
            click.option(
                "--summary-policy",
                type=policies,
                default=SummaryPolicy.GUARDRAIL.value,
                show_default=True,
                help="Turns: what keeps a proposed summary out: the peak guardrail, or every skip as well.",
            ),
            click.option(
                "--idempotency-key",
                default="",
                metavar="KEY",
                help="The same key with the same content is the same run, however often it is sent.",
            ),
        ]
    )(function)  # fmt: skip - one option, one paragraph


def worker_options(
    function: F, *, in_flight: str = "Items in flight per process started here [default: 100]."
) -> F:
    """Adds `--processes` and `-j` for workers that the command starts itself.

    Args:
        function: the command.
        in_flight: help of `-j`, which for a new run is the run's own limit.
    """
    return chain(
        [
            click.option(
                "--processes",
                type=click.IntRange(0, 256),
                metavar="N",
                help="Worker processes to start when none is alive; 0: none [default: cores, at most 4].",
            ),
            click.option(
                "-j",
                "--in-flight",
                type=click.IntRange(1, 10_000),
                metavar="N",
                help=in_flight,
            ),
        ]
    )(function)  # fmt: skip - one option, one paragraph


def gate_options(function: F) -> F:
    """Adds `--fail-on`."""
    return click.option(
        "--fail-on",
        "gates",
        multiple=True,
        metavar="EXPR",
        help='Exit 1 when this is true, such as "pass_rate<0.9" or "error_rate>1%"; may be repeated.',
    )(function)  # fmt: skip - one option, one paragraph


def text_option(function: F) -> F:
    """Adds `--no-text`."""
    return click.option(
        "--no-text", is_flag=True, help="Turns: leave what was said out of reports and results."
    )(function)


def refuse_no_text(kind: Kind, *, no_text: bool) -> None:
    """Refuses `--no-text` where it would leave nothing out.

    Raises:
        UsageError: it was given for a run of another kind.
    """
    if no_text and kind != TURNS:
        raise UsageError(f"--no-text is for turns, and this run is of {kind}", hint="leave it out")


def chosen(
    kind: str | None,
    namespace: str,
    summary_policy: str,
    idempotency_key: str,
    *,
    words: dict[str, Any] | None = None,
    in_flight: int | None = None,
) -> SubmitChoice:
    """Reads the words of `submit_options`, and those of queries, models and cases if the command has them."""
    others = dict(words or {})
    model_words = {name: others.pop(name) for name in MODEL_FLAGS if name in others}
    case_words = {name: others.pop(name) for name in CASE_FLAGS if name in others}
    return SubmitChoice(
        kind_named(kind) if kind else None,
        namespace,
        SummaryPolicy(summary_policy),
        idempotency_key,
        others,
        in_flight,
        model_words,
        case_words,
    )
