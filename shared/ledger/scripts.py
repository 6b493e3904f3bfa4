"""Composes each Lua script from its file and only the functions, keys and numbers that it uses.

A script or function lists its dependencies in its header: `-- uses: now, run_key, LEASE_MS`. A name is a key
(`shared.keys`), a bound (`shared.ledger.bounds`), a time (`shared.ledger.times`) or a function of a file in
`lua/lib`. There is one such file for each topic; a blank line ends a function. Every function is a closure
that is created by each call, about 0.08 µs, which is why no script contains functions that it does not use.

Scripts in other packages are composed in the same way, from a `Library` of their own that extends the
ledger's.
"""

import re
from collections.abc import Callable, Iterator, Mapping
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
    "tries", "tick", "leave", "control", "retry", "remove", "forget",
)  # fmt: skip
PRELUDE: Final = "local call = redis.call\n"
USES: Final = "-- uses:"
DEFINITION: Final = re.compile(r"^local (?:function )?(\w+)", re.MULTILINE)


class Library(NamedTuple):
    """The places of scripts and their dependencies."""

    folders: tuple[Path, ...]
    """The first holds the scripts; functions are in `lib` of any of them, the first one wins."""
    sources: tuple[Callable[[str], str | None], ...]
    """Functions that render a key or a number as a Lua local."""

    def find(self, name: str) -> str | None:
        """Returns the source of a key or number; None when the name is that of a function."""
        return next(filter(None, (source(name) for source in self.sources)), None)

    def function(self, name: str) -> str:
        """Returns the source of a function, with its header.

        Raises:
            LookupError: there is none of this name.
        """
        for folder in self.folders:
            if found := functions_of(folder).get(name):
                return found
        raise LookupError(f"no Lua function, key or number is called {name!r}")


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


def _uses(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith(USES):
            yield from (name.strip() for name in line.removeprefix(USES).split(","))


def _add(name: str, parts: dict[str, str], replaced: Mapping[str, str], library: Library) -> None:
    """Adds the dependencies of `name`, then `name` itself: a Lua local must be defined above its use."""
    if name in parts:
        return
    text = replaced.get(name) or library.find(name)
    if text is None:
        text = library.function(name)
        for used in _uses(text):
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
    for used in _uses(body):
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
