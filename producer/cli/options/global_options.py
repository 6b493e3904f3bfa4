"""Gives every command the global options, so that they work before and after the command's name."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

import click
from click.shell_completion import CompletionItem

from producer.cli.colors import HelpFormatter, wants_color
from shared import __version__

ColorMode = Literal["auto", "always", "never"]
COMPLETION_VARIABLE: Final = "_PROCTOR_COMPLETE"
"""Set by the completion script of a shell, see `proctor completion`."""
SENTENCE_CHARS: Final = 200
"""Longest first sentence of a command in a list of commands."""
Topic = Literal["turns", "queries", "cases", "models"]
"""What an option is for: files of a kind, or `models`: files of every kind that can ask a model."""
GLOBAL_EPILOG: Final = "Global options (--redis, --json, --allow-code, -q …) work here too: `proctor --help`."


@dataclass(slots=True)
class GlobalOptions:
    """Global options, given before or after the command's name; the later one wins."""

    redis: str | None = None
    """URL of the Redis to use; None: environment, else the embedded one."""
    json: bool = False
    """Exactly one JSON document on stdout, also for an error."""
    jsonl: bool = False
    """Events as JSON Lines on stdout while a run goes on; see `jsonl_option`."""
    quiet: bool = False
    """No progress, no notes, no summary: only data, warnings and errors."""
    verbose: int = 0
    """Verbosity; 1 shows log files and settings."""
    color: ColorMode = "auto"
    """When to colour; `auto` looks at the terminal, `NO_COLOR` and `CI`."""
    no_progress: bool = False
    """No live view and no progress lines."""
    allow_code: bool = False
    """Code beside benches may run."""
    yes: bool = False
    """Questions are answered with yes: deletions, and large runs."""
    from_file: Mapping[str, str] = field(default_factory=dict)
    """Variables that were read from a file before the command line, and which file that was."""


def _remember(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Stores a global option if it was given, before or after the command."""
    # A shell that completes run ids asks the same Redis as the command would.
    if (ctx.resilient_parsing and param.name != "redis") or ctx.get_parameter_source(param.name or "") in {
        click.core.ParameterSource.DEFAULT,
        click.core.ParameterSource.DEFAULT_MAP,
    }:
        return
    options = ctx.ensure_object(GlobalOptions)
    name = param.name or ""
    if name == "verbose":
        options.verbose += cast("int", value)
    else:
        setattr(options, name, value)


def _read_before(_ctx: click.Context, _param: click.Parameter, _value: object) -> None:
    """Does nothing: the file is read before the command line, see `producer.env_files`."""


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    """Prints the version and ends the program."""
    if value and not ctx.resilient_parsing:
        click.echo(f"proctor {__version__}")
        ctx.exit(0)


def _option(*names: str, **settings: Any) -> click.Option:
    """Makes one global option: stored, not handed to the command."""
    settings.setdefault("callback", _remember)
    return click.Option(names, expose_value=False, is_eager=True, **settings)


GLOBAL_OPTIONS: Final = (
    _option(
        "--redis", metavar="URL", help="Redis to use [env PROCTOR_REDIS_URL; default: the embedded one]."
    ),
    _option(
        "--env-file",
        metavar="FILE",
        callback=_read_before,
        shell_complete=lambda _ctx, _param, incomplete: [CompletionItem(incomplete, type="file")],
        help="Read environment variables from FILE, or from `none` [env PROCTOR_ENV_FILE; default: .env].",
    ),
    _option("--json", is_flag=True, help="Print exactly one JSON document to stdout."),
    _option("-q", "--quiet", is_flag=True, help="Print only data, warnings and errors."),
    _option("-v", "--verbose", count=True, help="Show more: log files, settings, retries."),
    _option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        help="When to use colors [env NO_COLOR, FORCE_COLOR].",
    ),
    _option("--no-progress", is_flag=True, help="Hide progress."),
    _option(
        "-y", "--yes", is_flag=True, help="Delete, and send large runs, without asking for confirmation."
    ),
    _option(
        "--allow-code",
        is_flag=True,
        help="Run Python and JavaScript files that a bench names, with your rights [env PROCTOR_ALLOW_CODE].",
    ),
    _option("--version", is_flag=True, callback=_print_version, help="Print the version and exit."),
)


class TopicOption(click.Option):
    """An option for files of some kinds; help pages list it apart.

    Args:
        arguments: those of `click.Option`.
        topics: what it is for.
        settings: those of `click.Option`.
    """

    def __init__(self, *arguments: Any, topics: Sequence[Topic], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.topics = tuple(topics)


jsonl_option: Final = click.option(
    "--jsonl",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Print events as JSON Lines to stdout; the last one is the summary.",
)
"""For commands that follow a run."""


class _Context(click.Context):
    """The context of a command: its help has bold heads where colours are wanted."""

    formatter_class = HelpFormatter

    def make_formatter(self) -> click.HelpFormatter:
        """Decides on colours when a help text is made: `--color` may come before `--help`."""
        options = self.find_object(GlobalOptions) or GlobalOptions()
        self.color = wants_color(sys.stdout.isatty(), options.color, os.environ)
        return super().make_formatter()


class ProctorCommand(click.Command):
    """A command that takes the global options beside its own."""

    context_class = _Context

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Returns the command's options, the global ones, and `--help`."""
        own = super().get_params(ctx)
        return [*own[:-1], *GLOBAL_OPTIONS, *own[-1:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the command's own options by topic; the global ones in one line."""
        sections: dict[tuple[Topic, ...], list[tuple[str, str]]] = {(): []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and param not in GLOBAL_OPTIONS:
                record = param.get_help_record(ctx)
                if record is not None:
                    topics = param.topics if isinstance(param, TopicOption) else ()
                    sections.setdefault(topics, []).append(record)
        for topics, records in sections.items():
            if records:
                with formatter.section(f"Options for {' and '.join(topics)}" if topics else "Options"):
                    formatter.write_dl(records)
        formatter.write_paragraph()
        formatter.write_text(GLOBAL_EPILOG)


class ProctorGroup(click.Group):
    """A command with commands of its own (`runs`, `dead`, …) that takes the global options too."""

    command_class = ProctorCommand
    context_class = _Context

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Returns the group's options, the global ones, and `--help`."""
        own = super().get_params(ctx)
        return [*own[:-1], *GLOBAL_OPTIONS, *own[-1:]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the group's commands, each with its whole sentence, and one line on the global options."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, each.get_short_help_str(SENTENCE_CHARS))
                    for name, each in commands
                    if each is not None
                ]
            )
        formatter.write_paragraph()
        formatter.write_text(GLOBAL_EPILOG)


def command(name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], ProctorCommand]:
    """Declares a command with the global options; the arguments are click's."""
    return click.command(name, cls=ProctorCommand, **settings)


def group(name: str | None = None, **settings: Any) -> Callable[[Callable[..., Any]], ProctorGroup]:
    """Declares a group of commands with the global options; the arguments are click's."""
    return click.group(name, cls=ProctorGroup, **settings)
