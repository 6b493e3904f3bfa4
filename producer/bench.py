"""`llm-bench`, the command of the validation document, as an alias of Proctor's commands.

    llm-bench run --config bench.config.yaml --verbose    is    proctor run bench.config.yaml --verbose

Variables come from `.env` where they are not set, from `.env.local` and `--env-file` in any case, so that
keys need not stand in a shell's history.
"""

import os
import sys
from collections.abc import MutableMapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final

import click

from producer.cli.error_exit import report
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import named_stdout
from producer.text import plural
from shared.errors import InputError, ProctorError, UsageError

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
ENV_BYTES: Final = 1 << 20


def main() -> None:
    """Runs one command and ends the process with its exit code."""
    from producer.__main__ import handle_signals, leave  # noqa: PLC0415 - it imports the whole command line

    handle_signals()
    with named_stdout():
        code = run(sys.argv[1:], os.environ)
    leave(code)


def run(arguments: Sequence[str], environment: MutableMapping[str, str]) -> int:
    """Runs one command line and returns its exit code."""
    from producer.cli.main import run as run_proctor  # noqa: PLC0415 - after the variables are set

    try:
        words = read_environment(list(arguments), environment)
        if not words or words[0] in ("-h", "--help"):
            sys.stdout.write(help_text())
            sys.stdout.flush()
            return 0
        words = translated(words)
    except (ProctorError, OSError) as error:
        return report(error, GlobalOptions(), arguments)
    return run_proctor(words)


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


def read_environment(words: list[str], environment: MutableMapping[str, str]) -> list[str]:
    """Reads the files of variables, and returns the command line without `--env-file`.

    Raises:
        InputError: a file cannot be read, or a line of it is none.
        UsageError: `--env-file` names nothing.
    """
    named = list[Path]()
    while any(word == "--env-file" or word.startswith("--env-file=") for word in words):
        at = next(at for at, word in enumerate(words) if word.startswith("--env-file"))
        option, equals, value = words[at].partition("=")
        if not equals and at + 1 == len(words):
            raise UsageError(f"{option} names no file", hint="write --env-file .env")
        named.append(Path(value if equals else words[at + 1]))
        words = words[:at] + words[at + (1 if equals else 2) :]
    for path, is_stronger in ((Path(".env"), False), (Path(".env.local"), True)):
        if path.is_file():
            _set(variables(path), environment, is_stronger=is_stronger)
    for path in named:
        _set(variables(path), environment, is_stronger=True)
    return words


def variables(path: Path) -> dict[str, str]:
    """Reads a file of `NAME=VALUE` lines with comments, `export` and quotes, as python-dotenv does.

    Raises:
        InputError: it cannot be read, or a line is something else; its content is not shown.
    """
    try:
        text = path.read_bytes()[:ENV_BYTES].decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}", hint="check the name and its rights") from None
    return variables_in(str(path), text)


def variables_in(name: str, text: str) -> dict[str, str]:
    """Reads the lines of a file of variables.

    Raises:
        InputError: a line is no variable, or holds what no variable can.

    >>> variables_in(".env", "export A='two words'  ")
    {'A': 'two words'}
    """
    from dotenv.parser import parse_stream  # noqa: PLC0415 - start-up: only files of variables need it

    found = dict[str, str]()
    for binding in parse_stream(StringIO(text)):
        if binding.key is None and not binding.error:
            continue  # a comment
        is_variable = binding.key is not None and binding.key.isidentifier() and binding.value is not None
        if binding.error or not is_variable or "\0" in str(binding.value):
            text = binding.original.string  # begins with the empty lines before it
            line = binding.original.line + text[: len(text) - len(text.lstrip())].count("\n")
            raise InputError(f"{name}:{line}: not NAME=VALUE", hint="one variable on each line")
        found[str(binding.key)] = str(binding.value)
    return found


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
