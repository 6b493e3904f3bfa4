"""Puts the scripts of `lua/` together; they stand on the ledger's keys, numbers and helpers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from shared.ledger.scripts import LEDGER, Library, Script, compose
from worker.upstream import numbers

FOLDER: Final = Path(__file__).parent / "lua"
NAMES: Final = (
    "begin", "end", "renew_calls",
    "look_up", "keep_answer", "renew_flights",
    "reserve", "settle_cost", "renew_holds",
)  # fmt: skip
UPSTREAM: Final = Library((FOLDER, *LEDGER.folders), (*LEDGER.sources, numbers.lua_source))


def compose_all(replaced: Mapping[str, str] | None = None) -> dict[str, Script]:
    """Reads every script by name.

    Args:
        replaced: helpers to use instead of those in `lua/lib`; tests put their own clock under `now`.

    >>> sorted(compose_all()) == sorted(NAMES)
    True
    """
    return {name: compose(name, replaced, UPSTREAM) for name in NAMES}
