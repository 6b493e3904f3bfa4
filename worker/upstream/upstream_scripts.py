"""Puts the scripts of `lua/` together; they stand on the ledger's keys, numbers and functions."""

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
    "answered", "unreached", "absent",
    "add_counts",
)  # fmt: skip


def upstream_library(times: Times) -> Library:
    """Names what the scripts are made of, with these times."""
    ledger = ledger_library(times)
    return Library((FOLDER, *ledger.folders), (*ledger.sources, constants.lua_source))


def compose_all(replaced: Mapping[str, str] | None = None, *, times: Times = TIMES) -> dict[str, Script]:
    """Reads every script by name.

    Args:
        replaced: functions to use instead of those in `lua/lib`; tests put their own clock under `now`.
        times: the ledger's; by default the standard ones.

    >>> sorted(compose_all()) == sorted(NAMES)
    True
    """
    library = upstream_library(times)
    return {name: compose(name, library, replaced) for name in NAMES}
