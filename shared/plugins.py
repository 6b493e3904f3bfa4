"""Plug-ins: what installed packages have registered as entry points of our groups.

Nothing of it is looked up before a bench, a worker's announcement or `proctor plugins` needs it: reading the
metadata of all packages takes a while, and importing a plug-in may take long.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

GROUPS: Final = ("checks", "clients", "prompts")
"""What can be installed; the entry point groups are `proctor.` and these words."""
JAVASCRIPT: Final = "proctor[js]"
"""The extra that runs JavaScript; runs with scripts need it as others need plug-ins."""


class Plugin(NamedTuple):
    """One that is installed."""

    group: str
    name: str
    package: str
    """The package that has it."""
    version: str
    """Of the package."""

    @property
    def key(self) -> str:
        """What runs that need it and workers that have it call it."""
        return plugin_key(self.group, self.name)


def plugin_key(group: str, name: str) -> str:
    """Names a plug-in.

    >>> plugin_key("checks", "polite")
    'checks:polite'
    """
    return f"{group}:{name}"


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    found = (each for group in GROUPS for each in entry_points(group=f"proctor.{group}"))
    return {plugin_key(each.group.removeprefix("proctor."), each.name): each for each in found}


def installed() -> list[Plugin]:
    """Returns the plug-ins of this environment, by group and name."""
    found = list[Plugin]()
    for key, each in sorted(_entry_points().items()):
        package, version = (each.dist.name, each.dist.version) if each.dist else ("", "")
        found.append(Plugin(key.partition(":")[0], each.name, package, version))
    return found


def is_installed(key: str) -> bool:
    """Returns whether this environment has a plug-in, or what runs JavaScript, without importing it."""
    return find_spec("_quickjs") is not None if key == JAVASCRIPT else key in _entry_points()


@cache
def load(group: str, name: str) -> Any:
    """Imports a plug-in.

    Raises:
        LookupError: none of this name is installed, or it cannot be imported.
    """
    found = _entry_points().get(plugin_key(group, name))
    if found is None:
        raise LookupError(f"no plug-in {name!r} of proctor.{group} is installed here")
    try:
        return found.load()
    except Exception as error:
        raise LookupError(
            f"the plug-in {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
