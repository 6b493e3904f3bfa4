"""Composes each Lua script from its file and only the functions, keys and numbers that it uses.

The names in its code are its dependencies: a name is a key (`shared.keys`), a bound
(`shared.ledger.bounds`), a time (`shared.ledger.times`) or a function of a file in `lua/lib`. There is one
such file for each topic; a blank line ends a function. Every function is a closure that is created by each
call, about 0.08 µs, which is why no script contains functions that it does not use.

Scripts in other packages are composed in the same way, from a `Library` of their own that extends the
ledger's.
"""

import re
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha1
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from shared import keys
from shared.kinds import Kind, all_kinds
from shared.ledger import bounds
from shared.ledger.times import TIMES, Times

FOLDER: Final = Path(__file__).parent / "lua"
NAMES: Final = (
    "open", "load", "seal", "discard",
    "claim", "renew", "commit", "commit_threads",
    "tries", "tick", "leave", "control", "retry", "remove", "fold", "forget",
)  # fmt: skip
PRELUDE: Final = "local call = redis.call\n"
DEFINITION: Final = re.compile(r"^local (?:function )?(\w+)", re.MULTILINE)
OWN: Final = re.compile(r"\blocal (?:function )?(\w+)")
NAME: Final = re.compile(r"[A-Za-z_]\w*")
COMMENT: Final = re.compile(r"--.*")


class Library:
    """Where scripts and what they use are found.

    Args:
        folders: the first holds the scripts; functions are in `lib` of any of them, the first one wins.
        sources: functions that render a key or a number as a Lua local.
    """

    def __init__(self, folders: Sequence[Path], sources: Sequence[Callable[[str], str | None]]) -> None:
        self.folders = folders
        self.sources = sources
        self._functions = ChainMap(*(dict(functions_of(folder)) for folder in folders))
        self._found = dict[str, str | None]()
        self._used = dict[str, Sequence[str]]()

    def is_function(self, name: str) -> bool:
        """Returns whether a name is that of a function, whose text has names in turn."""
        return name in self._functions

    def find(self, name: str) -> str | None:
        """Returns the source of a function, key or number; None when the name is that of something else."""
        if name not in self._found:
            found = self._functions.get(name)
            self._found[name] = found or next(filter(None, (source(name) for source in self.sources)), None)
        return self._found[name]

    def names_used(self, text: str) -> Sequence[str]:
        """Lists the functions, keys and numbers that a script or function uses."""
        if text not in self._used:
            code = COMMENT.sub("", text)
            own = {*OWN.findall(code)}
            names = dict.fromkeys(NAME.findall(code))
            self._used[text] = [name for name in names if self.find(name) and name not in own]
        return self._used[text]


@cache
def functions_of(folder: Path) -> Mapping[str, str]:
    """Reads the functions in `lib` of a folder by name, each with its header and the locals just above it.

    >>> print(functions_of(FOLDER)["position"].splitlines()[1])
    local function position(text)
    """
    found = dict[str, str]()
    for file in sorted((folder / "lib").glob("*.lua")):
        for block in file.read_text(encoding="utf-8").split("\n\n"):
            if names := DEFINITION.findall(block):
                if names[-1] in found:
                    raise ValueError(f"{file} defines {names[-1]!r} once more")
                found[names[-1]] = block.strip("\n") + "\n"
    return MappingProxyType(found)


def ledger_library(times: Times) -> Library:
    """Returns the library of the ledger's scripts, with these times."""
    return Library((FOLDER,), (keys.lua_source, bounds.lua_source, times.lua_source))


class Script(NamedTuple):
    """A whole script, ready for EVALSHA."""

    name: str
    text: str
    sha: str


def _add(name: str, parts: dict[str, str], replaced: Mapping[str, str], library: Library) -> None:
    """Adds the dependencies of `name`, then `name` itself: a Lua local must be defined above its use."""
    if name in parts:
        return
    text = replaced.get(name) or library.find(name) or ""
    if name not in replaced and library.is_function(name):
        for used in library.names_used(text):
            _add(used, parts, replaced, library)
    parts[name] = text


def compose(name: str, library: Library, replaced: Mapping[str, str] | None = None) -> Script:
    """Reads one script with its dependencies.

    Args:
        name: of one of the library's scripts.
        library: where to look.
        replaced: functions to use instead of those in `lua/lib`; tests put their own clock under `now`.

    >>> compose("leave", ledger_library(TIMES)).text.startswith(PRELUDE)
    True
    """
    body = (library.folders[0] / f"{name}.lua").read_text()
    parts: dict[str, str] = {}
    for used in library.names_used(body):
        _add(used, parts, replaced or {}, library)
    text = PRELUDE + "".join(parts.values()) + body
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def compose_all(replaced: Mapping[str, str] | None = None, *, times: Times = TIMES) -> dict[str, Script]:
    """Reads every script of the ledger by name."""
    library = ledger_library(times)
    return {name: compose(name, library, replaced) for name in NAMES}


def ledger_scripts(times: Times) -> Mapping[str, Script]:
    """Reads every script of the ledger once per process: it takes some milliseconds."""
    return _scripts_for(times, all_kinds())


@cache
def _scripts_for(times: Times, _kinds: tuple[Kind, ...]) -> Mapping[str, Script]:
    """Reads them again after kinds were registered, which are constants in the scripts."""
    return MappingProxyType(compose_all(times=times))
