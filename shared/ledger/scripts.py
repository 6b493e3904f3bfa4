"""Puts each Lua script together from its file and only the helpers, keys and numbers that it uses.

A script or helper names what it stands on in its header: `-- uses: now, run_key, LEASE_MS`. A name is a key
(`shared.keys`), a bound (`shared.ledger.bounds`), a time (`shared.ledger.times`) or a helper
(`lua/lib/NAME.lua`). Every helper is a closure that is made anew by each call, about 0.08 µs, which is why no
script carries what it does not use.

Scripts that live elsewhere are put together in the same way, from a `Library` of their own that stands on the
ledger's.
"""

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


class Library(NamedTuple):
    """Where scripts and what they stand on are found."""

    folders: tuple[Path, ...]
    """The first holds the scripts; helpers are in `lib` of any of them, the first one wins."""
    sources: tuple[Callable[[str], str | None], ...]
    """Functions that render a key or a number as a Lua local."""

    def find(self, name: str) -> str | None:
        """Returns the source of a key or number; None when the name is that of a helper."""
        return next(filter(None, (source(name) for source in self.sources)), None)

    def helper(self, name: str) -> str:
        """Reads a helper."""
        places = [folder / "lib" / f"{name}.lua" for folder in self.folders]
        return next(filter(Path.exists, places), places[-1]).read_text()


def ledger_library(times: Times) -> Library:
    """Names what the ledger's scripts are made of, with these times."""
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
    """Adds what `name` stands on, then `name` itself; a Lua local must stand above its use."""
    if name in parts:
        return
    text = replaced.get(name) or library.find(name)
    if text is None:
        text = library.helper(name)
        for used in _uses(text):
            _add(used, parts, replaced, library)
    parts[name] = text


def compose(name: str, library: Library, replaced: Mapping[str, str] | None = None) -> Script:
    """Reads one script with all it stands on.

    Args:
        name: of one of the library's scripts.
        library: where to look.
        replaced: helpers to use instead of those in `lua/lib`; tests put their own clock under `now`.

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
    """Reads them again for other kinds, which stand in the scripts."""
    return MappingProxyType(compose_all(times=times))
