"""`llm-bench`, the command of the validation document, as an alias of Proctor's commands.

    llm-bench run --config bench.config.yaml --verbose    is    proctor run bench.config.yaml --verbose

Variables come from `.env` where they are not set, from `.env.local` and `--env-file` in any case, so that
keys need not stand in a shell's history.
"""

import os
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Final

import click

from producer import env_files
from producer.cli.error_exit import report
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output, usable_streams
from producer.text import plural
from shared.errors import ProctorError, UsageError

CONFIG: Final = "bench.config.yaml"
"""The configuration where none is named."""
COMMANDS: Final = {
    "run": "Run every case with every model and validate the outputs.",
    "validate": "Check a configuration without calling a model.",
    "init": "Write a configuration to start from (-o FILE, default bench.config.yaml).",
    "compare": "Compare two runs.",
    "models": "List the models of a configuration with endpoint, key and price.",
    "cache": "Inspect or clear cached answers: `cache info`, `cache clear`.",
}
_WITH_CONFIG: Final = ("run", "validate", "models")
_NAMES_INPUT: Final = ("file", "config", "resumed")
"""Parameters of those commands that name the input."""
LOCAL: Final = Path(".env.local")
PROGRAM: Final = "llm-bench"
COMPLETION_VARIABLE: Final = "_LLM_BENCH_COMPLETE"
"""Set by the completion script of a shell."""


def main() -> None:
    """Runs one command and ends the process with its exit code."""
    from producer.__main__ import handle_signals, leave  # noqa: PLC0415 - it imports the whole command line

    handle_signals()
    with usable_streams():
        code = run(sys.argv[1:], os.environ)
    leave(code)


def run(arguments: Sequence[str], environment: MutableMapping[str, str]) -> int:
    """Runs one command line and returns its exit code."""
    from producer.cli.main import run_command  # noqa: PLC0415 - after the variables are set

    if shell := environment.get(COMPLETION_VARIABLE):
        return complete(shell)
    try:
        words = read_environment(arguments, environment)
        if not words or words[0] in ("-h", "--help"):
            sys.stdout.write(help_text())
            sys.stdout.flush()
            return 0
        words = translated(words)
    except (ProctorError, OSError) as error:
        return report(error, GlobalOptions(), arguments)
    return run_command(words, GlobalOptions(), program=PROGRAM)


def complete(shell: str) -> int:
    """Prints completions for a shell, or its script: the commands of the document with Proctor's options."""
    from producer.cli.completions import completed  # noqa: PLC0415 - only completion needs it
    from producer.cli.main import proctor  # noqa: PLC0415 - same

    context = click.Context(proctor)
    known = {name: proctor.get_command(context, name) for name in COMMANDS}
    commands = {name: command for name, command in known.items() if command is not None}
    return completed(click.Group(commands=commands), PROGRAM, COMPLETION_VARIABLE, shell)


def translated(words: Sequence[str]) -> list[str]:
    """Translates a command line of the document to Proctor's.

    >>> translated(["run", "--export", "html", "-o", "report.html"])
    ['run', '--export', 'html', '-o', 'report.html', '--config', 'bench.config.yaml']
    >>> translated(["run", "-c", "freeform.yaml", "--no-color"])
    ['run', '-c', 'freeform.yaml', '--color', 'never']
    >>> translated(["init", "--non-interactive", "-o", "mine/bench.config.yaml"])
    ['init', '--kind', 'cases', '-o', 'mine/bench.config.yaml']
    """
    plain = list[str]()
    for word in words:
        plain += {"--no-color": ["--color", "never"], "-V": ["--version"]}.get(word, [word])
    if "--version" in plain:
        return ["--version"]
    plain = _command_first(plain)
    name = plain[0] if plain else ""
    if name not in COMMANDS:
        raise UsageError(f"no such command: {name or words[0]}", hint=f"one of {', '.join(COMMANDS)}")
    if "--help" in plain or "-h" in plain:
        return plain
    if name in _WITH_CONFIG and not _names_input(name, plain[1:]):
        return [*plain, "--config", CONFIG]
    if name == "init":
        return ["init", "--kind", "cases", *(word for word in plain[1:] if word != "--non-interactive")]
    return plain


def _command_first(words: Sequence[str]) -> list[str]:
    """Puts the command before the global options, which may stand in front of it."""
    from producer.cli.main import proctor  # noqa: PLC0415 - after the variables are set

    context = click.Context(proctor, resilient_parsing=True)
    _, rest, _ = proctor.make_parser(context).parse_args(list(words))
    return [*rest[:1], *words[: len(words) - len(rest)], *rest[1:]]


def _names_input(name: str, words: Sequence[str]) -> bool:
    """Whether a command line names what is run, as click parses it."""
    from producer.cli.main import proctor  # noqa: PLC0415 - after the variables are set

    context = click.Context(proctor, resilient_parsing=True)
    command = proctor.get_command(context, name)
    if command is None:
        return False
    parser = command.make_parser(click.Context(command, parent=context, resilient_parsing=True))
    parsed, _, _ = parser.parse_args(list(words))
    return any(isinstance(parsed.get(each), str) for each in _NAMES_INPUT)


def read_environment(words: Sequence[str], environment: MutableMapping[str, str]) -> list[str]:
    """Reads the files of variables, and returns the command line without `--env-file`.

    Raises:
        InputError: a file cannot be read, or a line of it is none.
        UsageError: `--env-file` names nothing.
    """
    left, named = env_files.taken_from(words)
    warn = Output(GlobalOptions()).warn
    for path, is_stronger in ((env_files.DEFAULT, False), (LOCAL, True)):
        if path.is_file():
            found = env_files.keys_of(env_files.variables(path), str(path), environment, warn=warn)
            _set(found, environment, is_stronger=is_stronger)
    for path in named:
        _set(env_files.variables(path), environment, is_stronger=True)
    return left


def help_text() -> str:
    """What there is to be called."""
    lines = [f"  {name:<10}{text}" for name, text in COMMANDS.items()]
    head = "Usage: llm-bench COMMAND [OPTIONS]\n\n  Evaluate language models against test cases.\n\n"
    tail = (
        "\n\nOptions:\n  --env-file FILE  Read environment variables from FILE."
        "\n  -V, --version    Print the version.\n"
    )
    return f"{head}{plural(len(lines), 'command').capitalize()}:\n" + "\n".join(lines) + tail


def _set(found: dict[str, str], environment: MutableMapping[str, str], *, is_stronger: bool) -> None:
    """Sets variables; weaker ones only where there is none."""
    for name, value in found.items():
        if is_stronger or name not in environment:
            environment[name] = value


if __name__ == "__main__":
    main()
