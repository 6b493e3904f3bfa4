"""Options that several commands share, declared once so that they mean the same everywhere."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from producer import kinds
from producer.cli.completions import complete_files
from producer.cli.options.global_options import TopicOption
from producer.cli.options.option_groups import option, option_group, refuse_other_kinds
from producer.cli.options.run_options import CaseOptions, ModelOptions, QueryOptions, SelectionOptions
from producer.report_files import FORMATS, REPORT_SUFFIXES
from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.errors import UsageError
from shared.kinds import Kind, all_kinds

F = TypeVar("F", bound=Callable[..., Any])
KINDS: Final = tuple(kind.name for kind in all_kinds())
_SUFFIXES: Final = " ".join(suffixes[0] for suffixes in REPORT_SUFFIXES.values() if suffixes)


@dataclass(frozen=True, slots=True)
class InputOptions:
    """Kind, namespace and idempotency key of a submit."""

    kind: str | None = option(
        "--kind",
        type=click.Choice(KINDS),
        help="What the file describes [default: detected from its content].",
    )
    name: str = option(
        "--name",
        default="",
        metavar="TEXT",
        help="What lists, pages and comparisons call the run [default: the name of the bench, or the file].",
    )
    namespace: str = option(
        "--namespace",
        default="",
        metavar="NAME",
        topics=("turns",),
        help="Share the threads' state with other runs of this namespace [default: the run's own].",
    )
    summary_policy: str = option(
        "--summary-policy",
        type=click.Choice([policy.value for policy in SummaryPolicy]),
        default=SummaryPolicy.GUARDRAIL.value,
        show_default=True,
        topics=("turns",),
        help="What rejects a proposed summary: the peak guardrail, or every skip as well.",
    )
    signals_once: bool = option(
        "--signals-once",
        is_flag=True,
        topics=("turns",),
        help="A signal counts once in its thread, by endMessageId and kind; later turns that send it "
        "again are decided without it.",
    )
    idempotency_key: str = option(
        "--idempotency-key",
        default="",
        metavar="KEY",
        help="Submitting the same content with the same key again returns the same run.",
    )


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Workers that a command starts itself."""

    processes: int | None = option(
        "--processes",
        type=click.IntRange(0, 256),
        metavar="N",
        help="Worker processes to start when none is alive; 0: none [default: cores, at most 4].",
    )
    in_flight: int | None = option(
        "-j",
        "--in-flight",
        type=click.IntRange(1, 10_000),
        metavar="N",
        help="Items in flight per process started here [default: 100].",
    )


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Report files to write when a run has ended."""

    paths: tuple[Path, ...] = option(
        "-o",
        "--output",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Report to write; its suffix ({_SUFFIXES}) is its format; may be repeated.",
    )
    formats: tuple[str, ...] = option(
        "-e",
        "--export",
        multiple=True,
        type=click.Choice(FORMATS),
        help="Format of the report; without -o: report.FORMAT, and it may be repeated.",
    )


@dataclass(frozen=True, slots=True)
class SubmitChoice:
    """Options of a submit; each group is refused for files of other kinds."""

    input: InputOptions = field(default_factory=InputOptions)
    models: ModelOptions = field(default_factory=ModelOptions)
    cases: CaseOptions = field(default_factory=CaseOptions)
    selection: SelectionOptions = field(default_factory=SelectionOptions)
    queries: QueryOptions | None = None
    """None for a command without these options, which ignores their environment variables too."""
    in_flight: int | None = None
    """Value of `-j`."""

    def refuse_other_kinds(self, kind: Kind) -> None:
        """Refuses options that are not for files of this kind.

        Raises:
            UsageError: one was given.
        """
        for values in (self.input, self.queries, self.models, self.cases, self.selection):
            if values is not None:
                refuse_other_kinds(values, kind.name, asks_model=kinds.of(kind).traits.asks_models)


def submit_options(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a submit; the command gets one object for each group."""
    for argument, group in (
        ("queries", QueryOptions),
        ("selection", SelectionOptions),
        ("cases", CaseOptions),
        ("models", ModelOptions),
        ("submit", InputOptions),
    ):
        handler = option_group(argument, group)(handler)
    return handler


@dataclass(frozen=True, slots=True)
class ServedOptions:
    """Who may send turns over HTTP, and what is kept of them."""

    tokens: str | None = option(
        "--tokens",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Tokens of callers, each with its namespace [default: one token, which is printed].",
    )
    keep_turns: int = option(
        "--keep-turns",
        type=click.IntRange(1),
        default=100_000,
        show_default=True,
        metavar="N",
        help="Latest turns to keep in full, with the requests that they answered, for a day at most.",
    )
    access_log: bool = option(
        "--access-log", is_flag=True, help="Log requests to stderr, without ids and what callers send."
    )


def served_options(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a service that decides turns; the command gets `served` and `models`."""
    with_models = option_group(
        "models",
        ModelOptions,
        models="Model that answers turns over HTTP; without one they are decided only.",
        temperature="Sampling temperature [default: the provider's].",
        max_cost=None,
        no_cache=None,
    )
    return option_group("served", ServedOptions)(with_models(handler))


def config_option(function: F) -> F:
    """Adds `-c`, which names the file as the validation document does."""
    return click.option(
        "-c",
        "--config",
        metavar="FILE",
        shell_complete=complete_files,
        help="The same as FILE, as an option.",
    )(function)  # fmt: skip - one option, one paragraph


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


def gate_options(function: F) -> F:
    """Adds `--fail-on`."""
    return click.option(
        "--fail-on",
        "gates",
        multiple=True,
        metavar="EXPR",
        help='Exit 1 if this is true, e.g. "pass_rate<0.9" or "error_rate>1%"; may be repeated.',
    )(function)  # fmt: skip - one option, one paragraph


def notify_option(function: F) -> F:
    """Adds `--notify`."""
    return click.option(
        "--notify",
        metavar="URL",
        help="Post the summary to this webhook at the end of the run; env:VARIABLE reads it from a variable.",
    )(function)  # fmt: skip - one option, one paragraph


def text_option(function: F) -> F:
    """Adds `--no-text`."""
    return click.option(
        "--no-text",
        is_flag=True,
        cls=TopicOption,
        topics=("turns",),
        help="Withhold message texts in reports and results.",
    )(function)


def time_options(function: F) -> F:
    """Adds `--since` and `--until`."""
    for name, what in (("until", "before this time"), ("since", "from this time on")):
        function = click.option(
            f"--{name}",
            default="",
            metavar="TIME",
            help=f"Of a stream, turns that ended {what}: how long ago (30m, 2h, 1d), or a time (UTC).",
        )(function)
    return function


def refuse_no_text(kind: Kind, *, no_text: bool) -> None:
    """Refuses `--no-text` where it would leave nothing out.

    Raises:
        UsageError: it was given for a run of another kind.
    """
    if no_text and not kinds.of(kind).traits.has_text:
        raise UsageError(f"--no-text is for turns, and this run is of {kind}", hint="leave it out")
