"""Reads files of environment variables: `.env` in the working directory, or the file that is named instead.

The environment goes before `.env`. Since `.env` may come with a folder that somebody else has written, only
variables that keys and headers may name are taken from it. Servers, folders, addresses of providers and all
other variables come from the environment, or from a file that the person who runs the command names.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

from shared.errors import InputError, UsageError
from shared.names import ENVIRONMENT_PREFIX
from shared.settings import variable_of

OPTION: Final = "--env-file"
VARIABLE: Final = variable_of("env_file")
NO_FILE: Final = "none"
"""The name that stands for no file."""
DEFAULT: Final = Path(".env")
ENV_BYTES: Final = 1 << 20
_READ_BY_COMMANDS: Final = (ENVIRONMENT_PREFIX, "AWS_", "VERTEXAI_")
"""How variables begin, beside those of providers with a key, that someone expects commands to read."""


class EnvFile(NamedTuple):
    """The content of a file."""

    found: dict[str, str]
    """Variables."""
    broken: list[int]
    """Numbers of lines that are no variable."""


def load(
    words: Sequence[str], environment: MutableMapping[str, str], *, warn: Callable[[str], None]
) -> Mapping[str, str]:
    """Adds the variables of the command's file to the environment, where they are not set.

    Args:
        words: the command line, of which `--env-file` is read; the last one counts.
        environment: is changed.
        warn: is called with what is wrong with `.env`; a named file that is wrong is an error.

    Returns:
        The file that each variable was taken from.

    Raises:
        InputError: the named file cannot be read, or a line of it is no variable.
    """
    named = list(named_files(words)) or [environment.get(VARIABLE, "").strip()]
    if named[-1] == NO_FILE:
        return {}
    if named[-1]:
        found = variables(Path(named[-1]))
        return _set(found, environment, origin=named[-1])
    if not DEFAULT.is_file():
        return {}
    try:
        read = read_variables(DEFAULT)
    except InputError as error:
        warn(f"{error.message}; it is not used")
        return {}
    if read.broken:
        word = "line" if len(read.broken) == 1 else "lines"
        lines = f"{word} {', '.join(map(str, read.broken))}"
        warn(f"{DEFAULT}: {lines}: not NAME=VALUE, skipped")
    return _set(keys_of(read.found, str(DEFAULT), environment, warn=warn), environment, origin=str(DEFAULT))


def named_files(words: Sequence[str]) -> Iterator[str]:
    """Yields the values of `--env-file` in a command line.

    >>> list(named_files(["run", "--env-file", "a", "--env-file=b", "--", "--env-file=c"]))
    ['a', 'b']
    """
    for at, word in enumerate(words):
        if word == "--":
            return
        option, equals, value = word.partition("=")
        if option == OPTION and (equals or at + 1 < len(words)):
            yield value if equals else words[at + 1]


def taken_from(words: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Splits a command line into words without `--env-file`, and the files.

    Raises:
        UsageError: `--env-file` names nothing.

    >>> taken_from(["run", "--env-file", "a", "-q"])
    (['run', '-q'], [PosixPath('a')])
    """
    left, named, waits = list[str](), list[Path](), False
    for word in words:
        option, equals, value = word.partition("=")
        if waits:
            named.append(Path(word))
            waits = False
        elif option != OPTION:
            left.append(word)
        elif equals:
            named.append(Path(value))
        else:
            waits = True
    if waits:
        raise UsageError(f"{OPTION} names no file", hint=f"write {OPTION} .env")
    return left, named


def keys_of(
    found: Mapping[str, str], name: str, environment: Mapping[str, str], *, warn: Callable[[str], None]
) -> dict[str, str]:
    """Selects the variables of `.env` that keys and headers may name; see the module.

    Args:
        found: the variables of the file.
        name: of the file.
        environment: may list further names of keys.
        warn: is called if the file has variables that take effect only from elsewhere.

    >>> keys_of({"MY_API_KEY": "k", "OPENSSL_CONF": "x", "PROCTOR_REDIS_URL": "y"}, ".env", {}, warn=print)
    .env supplies only keys, PROCTOR_REDIS_URL is ignored: write --env-file .env to take all of it
    {'MY_API_KEY': 'k'}
    """
    from shared.upstream.key_variables import SENT, unsendable  # noqa: PLC0415 - start-up: only `.env` needs it

    kept = {
        variable: value
        for variable, value in found.items()
        if not variable.startswith(ENVIRONMENT_PREFIX) and not unsendable(variable, environment)
    }
    left = found.keys() - kept.keys() - environment.keys()
    noticed = (*_READ_BY_COMMANDS, *(f"{key.removesuffix('_API_KEY')}_" for key in SENT))
    if ignored := ", ".join(sorted(variable for variable in left if variable.startswith(noticed))):
        warn(f"{name} supplies only keys, {ignored} is ignored: write {OPTION} {name} to take all of it")
    return kept


def variables(path: Path) -> dict[str, str]:
    """Reads a file of `NAME=VALUE` lines with comments, `export` and quotes, as python-dotenv does.

    Raises:
        InputError: it cannot be read, or a line is something else; its content is not shown.
    """
    read = read_variables(path)
    if read.broken:
        raise InputError(f"{path}:{read.broken[0]}: not NAME=VALUE", hint="one variable on each line")
    return read.found


def read_variables(path: Path) -> EnvFile:
    """Reads a file of variables; lines that are none are listed.

    Raises:
        InputError: it cannot be read.
    """
    try:
        text = path.read_bytes()[:ENV_BYTES].decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"{path}: cannot be read: {why}", hint="check the name and its rights") from None
    return variables_in(text)


def variables_in(text: str) -> EnvFile:
    r"""Reads the lines of a file of variables.

    >>> variables_in("export A='two words'  \n\nsk-secret\n")
    EnvFile(found={'A': 'two words'}, broken=[3])
    """
    from dotenv.parser import parse_stream  # noqa: PLC0415 - start-up: only files of variables need it

    found, broken = dict[str, str](), list[int]()
    for binding in parse_stream(StringIO(text)):
        if binding.key is None and not binding.error:
            continue  # a comment
        is_variable = binding.key is not None and binding.key.isidentifier() and binding.value is not None
        if binding.error or not is_variable or "\0" in str(binding.value):
            written = binding.original.string  # begins with the empty lines before it
            broken.append(binding.original.line + written[: len(written) - len(written.lstrip())].count("\n"))
        else:
            found[str(binding.key)] = str(binding.value)
    return EnvFile(found, broken)


def _set(found: Mapping[str, str], environment: MutableMapping[str, str], *, origin: str) -> dict[str, str]:
    """Sets the variables that are not set yet; returns these, with their file."""
    new = {name: value for name, value in found.items() if name not in environment}
    environment.update(new)
    return dict.fromkeys(new, origin)
