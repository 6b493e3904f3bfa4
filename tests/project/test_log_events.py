"""Holds the table of log events in docs/operations.md to the code: names and levels."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from tests.support.tree import ROOT, python_files

LEVELS: Final = {name: name for name in ("debug", "info", "warning", "error")} | {"exception": "error"}
PACKAGES: Final = ("shared", "worker")


def calls() -> Iterator[tuple[str, str]]:
    """Each constant event that the code logs, with the level; the level is empty where the call has none."""
    for path in python_files():
        if path.relative_to(ROOT).parts[0] not in PACKAGES:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            holder, name = ast.unparse(node.func.value), node.func.attr
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if holder == "logger" and name in LEVELS and texts:
                yield str(texts[0]), LEVELS[name]
            elif texts and ((holder == "logger" and name == "log") or holder.endswith(".pauses")):
                yield str(texts[0]), ""


def documented() -> dict[str, set[str]]:
    """Events of the table with their levels."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- events: .*? -->\n(.*?)\n<!-- end of events -->", text, re.DOTALL)
    assert found
    table: dict[str, set[str]] = {}
    for row in found[1].splitlines()[2:]:
        events, levels = (cell.strip() for cell in row.split("|")[1:3])
        names = re.findall(r"`([^`]+)`", events)
        each = levels.split(", ")
        # Two events in a row have a level each, in their order; one event may have two.
        pairs = zip(names, each, strict=True) if len(names) == len(each) > 1 else ((n, levels) for n in names)
        table |= {name: set(level.split(", ")) for name, level in pairs}
    return table


def test_every_event_is_documented_with_its_level() -> None:
    """What operators filter and count by is in the table, and nothing else is."""
    logged: dict[str, set[str]] = defaultdict(set)
    for event, level in calls():
        logged[event] |= {level} - {""}
    table = documented()
    assert set(logged) == set(table)
    wrong = {event: levels for event, levels in logged.items() if not levels <= table[event]}
    assert not wrong
