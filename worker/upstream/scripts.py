"""Puts the scripts of `lua/` together; they stand on the ledger's keys, numbers and helpers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from shared.ledger.scripts import Library, Script, compose, ledger_library
from shared.ledger.times import TIMES, Times
from worker.upstream import constants

FOLDER: Final = Path(__file__).parent / "lua"
NAMES: Final = (
    "acquire", "release", "renew_permits",
    "look_up", "keep_answer", "renew_leads",
    "reserve", "settle_cost", "renew_reservations",
    "add_counts",
)  # fmt: skip


def compose_all(replaced: Mapping[str, str] | None = None, *, times: Times = TIMES) -> dict[str, Script]:
    """Reads every script by name.

    Args:
        replaced: helpers to use instead of those in `lua/lib`; tests put their own clock under `now`.
        times: the ledger's; by default the standard ones.

    >>> sorted(compose_all()) == sorted(NAMES)
    True
    """
    ledger = ledger_library(times)
    library = Library((FOLDER, *ledger.folders), (*ledger.sources, constants.lua_source))
    return {name: compose(name, library, replaced) for name in NAMES}
