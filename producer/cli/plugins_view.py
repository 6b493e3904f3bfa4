"""Describes plug-ins: those of this environment, and which live workers have them."""

from collections import Counter
from collections.abc import Mapping
from importlib.metadata import Distribution
from itertools import chain
from typing import Final

from producer.access import Access
from producer.service_documents import ListedPlugin, PluginsDocument
from shared import plugins
from shared.kinds import CASES
from shared.server.diagnostics import Diagnosis

COLUMNS: Final = ("PLUG-IN", "PACKAGE", "WORKERS")
_OF_SUBMIT: Final = "prompts"
"""The kind that no worker needs."""
_EXTRA: Final = "extra"
"""The kind of what is part of Proctor."""
_PERMISSION: Final = "permission"
"""The kind of what workers are allowed."""


def plugins_document(access: Access) -> PluginsDocument:
    """Lists the plug-ins of this environment and of the live workers of cases.

    Raises:
        RedisUnreachableError: Redis is away.
    """
    here = plugins.installed()
    workers = access.store.plugins(CASES)
    found = Counter(chain.from_iterable(workers.values()))
    listed = [_listed(key, here.get(key), found[key]) for key in sorted(here.keys() | found.keys())]
    return PluginsDocument(plugins=tuple(listed), workers=len(workers))


def _listed(key: str, here: Distribution | None, workers: int) -> ListedPlugin:
    kind, _, name = key.rpartition(":")
    kind = _PERMISSION if key == plugins.CODE else kind or _EXTRA
    package, version = (here.name, here.version) if here else (None, None)
    return ListedPlugin(kind, name, package, version, workers)


def plugin_cells(row: ListedPlugin, workers: int) -> list[str]:
    """Writes a plug-in for people.

    >>> plugin_cells(ListedPlugin("checks", "polite", "manners", "1.0", 1), 2)
    ['checks:polite', 'manners 1.0', '1 of 2']
    >>> plugin_cells(ListedPlugin("prompts", "short", "manners", "1.0", 0), 2)
    ['prompts:short', 'manners 1.0', '-']
    >>> plugin_cells(ListedPlugin("extra", "proctor[js]", None, None, 1), 2)
    ['proctor[js]', 'not here', '1 of 2']
    >>> plugin_cells(ListedPlugin("permission", "--allow-code", None, None, 1), 2)
    ['--allow-code', 'permission', '1 of 2']
    """
    name = row.name if row.kind in {_EXTRA, _PERMISSION} else plugins.plugin_key(row.kind, row.name)
    lacking = row.kind if row.kind == _PERMISSION else "not here"
    package = f"{row.package} {row.version}" if row.package else lacking
    return [name, package, "-" if row.kind == _OF_SUBMIT else f"{row.workers} of {workers}"]


def check_plugins(here: frozenset[str], workers: Mapping[str, frozenset[str]]) -> list[Diagnosis]:
    """Checks whether the live workers have the same plug-ins as this machine; nothing if there are none.

    That some may run code and others may not is nothing to warn of.

    >>> check_plugins(frozenset({"checks:a"}), {"w1": frozenset(), "w2": frozenset({"checks:a"})})[0].detail
    'checks:a; 1 of 2 workers lacks checks:a'
    """
    known = here.union(*workers.values()) - {plugins.CODE}
    if not known:
        return []
    needed = {each for each in known if not each.startswith(f"{_OF_SUBMIT}:")}
    lacking = {name: needed - has for name, has in workers.items() if needed - has}
    detail = ", ".join(sorted(known))
    if not lacking:
        return [Diagnosis("plug-ins", "ok", detail)]
    missing = ", ".join(sorted(set().union(*lacking.values())))
    who = f"{len(lacking)} of {len(workers)} workers {'lacks' if len(lacking) == 1 else 'lack'}"
    text = f"{detail}; {who} {missing}"
    return [Diagnosis("plug-ins", "warn", text, "install their packages there, and restart these workers")]
