"""What a run may need of its workers: plug-ins, what runs JavaScript, and the permission to run code.

Plug-ins are entry points of our groups, which installed packages have registered. A run lists the keys of
what it needs, workers announce those of what they have, and one that lacks something leaves it to others.

Nothing of it is looked up before a bench, a worker's announcement or `proctor plugins` needs it: reading the
metadata of all packages takes a while, and importing a plug-in may take long.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distribution, entry_points
from importlib.util import find_spec
from typing import Any, Final

GROUPS: Final = ("checks", "clients", "prompts")
"""What can be installed; the entry point groups are `proctor.` and these words."""
JAVASCRIPT: Final = "proctor[js]"
"""The extra that runs JavaScript; runs with scripts need it as others need plug-ins."""
CODE: Final = "--allow-code"
"""The permission to run code beside a bench; runs with models that are code need it likewise."""


def plugin_key(group: str, name: str) -> str:
    """Names a plug-in, for runs that need it and workers that have it.

    >>> plugin_key("checks", "polite")
    'checks:polite'
    """
    return f"{group}:{name}"


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    found = ((group, each) for group in GROUPS for each in entry_points(group=f"proctor.{group}"))
    return {plugin_key(group, each.name): each for group, each in found}


def installed() -> Mapping[str, Distribution | None]:
    """Returns the packages of the plug-ins of this environment, by key."""
    found = {key: each.dist for key, each in _entry_points().items()}
    return found | ({JAVASCRIPT: distribution("quickjs-ng")} if is_installed(JAVASCRIPT) else {})


def is_installed(key: str) -> bool:
    """Returns whether this environment has a plug-in, or what runs JavaScript, without importing it."""
    return find_spec("_quickjs") is not None if key == JAVASCRIPT else key in _entry_points()


def lacking(needed: Iterable[str], *, allow_code: bool) -> list[str]:
    """Returns the keys of what a process lacks.

    Args:
        needed: keys of what a run needs.
        allow_code: whether the process may run code beside a bench.

    >>> lacking([CODE], allow_code=True), lacking([CODE], allow_code=False)
    ([], ['--allow-code'])
    """
    return [key for key in needed if not (allow_code if key == CODE else is_installed(key))]


def having(keys: Collection[str]) -> str:
    """Says what a worker has, or may do, that has these.

    >>> having(["checks:a", "clients:b"])
    'has the plug-in checks:a, clients:b'
    >>> having(["--allow-code", "checks:a"])
    'has the plug-in checks:a and may run code (--allow-code)'
    """
    named = ", ".join(sorted(key for key in keys if key != CODE))
    has = f"has the plug-in {named}" if named else ""
    return " and ".join(filter(None, [has, f"may run code ({CODE})" if CODE in keys else ""]))


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
