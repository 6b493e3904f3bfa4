"""The tree of commands: names and one-line helps here, everything else loaded when a command is called.

`proctor --help` reads this table only, so it answers well within 150 ms (`tests/e2e/test_cli_start_up.py`).
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, cast

import click
from click.shell_completion import CompletionItem

from producer import env_files
from producer.cli.completions import completed
from producer.cli.error_exit import EXIT_INTERRUPTED, report
from producer.cli.options.global_options import (
    COMPLETION_VARIABLE,
    GLOBAL_OPTIONS,
    GlobalOptions,
    ProctorGroup,
)
from producer.cli.output import Output
from shared.errors import ProctorError, UsageError
from shared.kinds import import_kinds

SECTIONS: Final[dict[str, dict[str, str]]] = {
    "Work": {
        "run": "Evaluate a file: submit it, run it, follow it and report.",
        "submit": "Submit a file to the queue and print the run's id.",
        "worker": "Start workers and keep them running.",
        "serve": "Decide turns over HTTP while people talk.",
        "up": "Start Redis, workers, Flower and metrics in the foreground.",
    },
    "Look": {
        "status": "Show queues, workers, runs and failed items.",
        "runs": "List, show or remove runs.",
        "watch": "Follow a run until it ends, and exit with its code.",
        "show": "Show an item of a run: question, answer, reason and checks.",
        "results": "Print the results of a run, item by item.",
        "report": "Write a report of a run: Markdown, JSON, JSON Lines, CSV, HTML, JUnit.",
        "compare": "Compare two runs: fixes, regressions and their significance.",
        "open": "Write the report of a run as a page and open it.",
        "view": "Show runs in a browser: live progress, results, comparisons.",
    },
    "Act": {
        "cancel": "Cancel a run; finished results are kept.",
        "pause": "Pause a run until `resume`.",
        "resume": "Continue a paused or interrupted run.",
        "retry": "Retry the items of a run that ended in error.",
        "rescore": "Judge the stored answers of a run again, without calling its models.",
        "rank": "Rank the models of a run by comparing their answers in pairs.",
        "labels": "List, export or import what people say of answers.",
        "dead": "Inspect, retry or discard failed items.",
        "threads": "List, show or remove the state of conversation threads.",
        "limits": "Show and change rate limits of models and APIs.",
        "cache": "Inspect or clear cached answers.",
    },
    "Help": {
        "decide": "Classify one message locally, without a queue.",
        "validate": "Check a file without submitting it.",
        "convert": "Translate an evaluation of another tool into a bench.",
        "data": "List which cases differ between two files or runs.",
        "models": "List the models of a configuration, with their keys and prices.",
        "plugins": "List checks, clients and prompts of installed packages.",
        "sample-api": "Serve a sample API and sample models; no key needed.",
        "init": "Write a commented example to start from.",
        "demo": "Run an example of each kind and show the results.",
        "doctor": "Check this machine and its Redis.",
        "config": "Show the effective settings and where they come from.",
        "flower": "Start Flower, a web view of workers and tasks.",
        "metrics": "Serve metrics for Prometheus.",
        "health": "Health checks for workers, Redis, the broker or a URL.",
        "completion": "Print the completion script for a shell.",
    },
}
PROGRAM: Final = "proctor"
COMMANDS: Final = {name: text for section in SECTIONS.values() for name, text in section.items()}
_LISTS: Final = "`proctor runs` lists runs"
_PAGE: Final = "`proctor report RUN -o run.html` writes a run as a page for browsers"
_EVALUATES: Final = "`proctor run FILE` evaluates a file"
HABITS: Final = {
    "ls": _LISTS,
    "list": _LISTS,
    "history": _LISTS,
    "ps": "`proctor status` shows queues, workers and runs",
    "eval": _EVALUATES,
    "evaluate": _EVALUATES,
    "test": _EVALUATES,
    "logs": "`proctor watch RUN` follows a run, `proctor show RUN` shows what did not pass",
    "diff": "`proctor compare A B` compares two runs, `proctor data diff A B` their cases",
}
"""Commands of other tools, with those that take their place."""
_WIDEST: Final = max(map(len, COMMANDS))
EXIT_CODES: Final = (
    ("0", "done, and every gate passed"),
    ("1", "done, but items failed or ended in error; with --fail-on, a gate failed"),
    ("2", "usage, configuration or input error"),
    ("3", "infrastructure: Redis or an upstream cannot be reached, a disk is full"),
    ("4", "incomplete: cancelled, timed out or at its cost cap; what is done is kept"),
    ("70", "internal error; the traceback is in a log file"),
    ("130", "Ctrl-C"),
)


class LazyGroup(ProctorGroup):
    """The program: lists its commands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names in the order of the table."""
        del ctx  # the same in every context
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads a command's module; None when there is no such command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        return cast(
            "click.Command", import_module(f"producer.cli.commands.{cmd_name.replace('-', '_')}").command
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command, or refuses with the names that are near."""
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if name in HABITS:
            raise UsageError(f"no such command: {name}", hint=HABITS[name])
        from difflib import get_close_matches  # noqa: PLC0415 - start-up: only a mistyped name needs it

        error = click.UsageError(f"no such command: {name}", ctx)
        error.possibilities = get_close_matches(name, COMMANDS)  # type: ignore[attr-defined]  # read by errors.py
        raise error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Offers commands by the table, and options; imports no command."""
        named = [
            CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes commands by section, then the options, then the exit codes."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{_WIDEST}}", text) for name, text in commands.items()])
        with formatter.section("Options, before or after the command"):
            params = [*GLOBAL_OPTIONS, *self.get_params(ctx)[-1:]]
            formatter.write_dl([r for p in params if (r := p.get_help_record(ctx)) is not None])
        with formatter.section("Exit codes"):
            formatter.write_dl(list(EXIT_CODES))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    options_metavar="[OPTIONS]",
    subcommand_metavar="COMMAND [ARGUMENTS]",
)
def proctor() -> None:
    """Evaluate conversations, models and RAG APIs: a file in, results out.

    Start with `proctor demo`, then `proctor run FILE`. A RUN is named by its id, a unique prefix of it,
    `last` for the newest run, or `last~1` for the one before it.
    """


def run(arguments: Sequence[str]) -> int:
    """Reads `.env`, runs one command line and returns its exit code; every failure ends here."""
    options = GlobalOptions()
    warn = Output(options).warn if COMPLETION_VARIABLE not in os.environ else (lambda _warning: None)
    try:
        options.from_file = env_files.load(arguments, os.environ, warn=warn)
    except ProctorError as error:
        return report(error, options, arguments)
    return run_command(arguments, options)


def run_command(arguments: Sequence[str], options: GlobalOptions, *, program: str = PROGRAM) -> int:
    """Runs one command line in this environment and returns its exit code; every failure ends here.

    Args:
        arguments: without the name of the program.
        options: the global ones, which are read from the arguments.
        program: what help and hints call it.
    """
    try:
        import_kinds(os.environ)
        code = _invoke(arguments, options, program)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        # The reader has closed the pipe (`proctor results RUN | head`), which is no error. With `--jsonl` the
        # followed run may not have ended, so exit code 0 would be wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_INTERRUPTED if options.jsonl else 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last line of defence against tracebacks
        return report(error, options, arguments)
    return code


def _invoke(arguments: Sequence[str], options: GlobalOptions, program: str) -> int:
    """Runs a command, or prints completions for the shell.

    By hand rather than by click's `main`, which turns Ctrl-C and broken pipes into exits of its own.
    """
    shell = os.environ.get(COMPLETION_VARIABLE)
    if shell:
        return completed(proctor, PROGRAM, COMPLETION_VARIABLE, shell)
    with proctor.make_context(program, list(arguments), obj=options) as context:
        outcome = proctor.invoke(context)
    return outcome if isinstance(outcome, int) else 0
