"""Draws the modules, the imports between rooms and the call paths of a checkout.

`make structure` draws this checkout; `--root`, `--paths` and `--out` draw another one. Only syntax trees are
read and nothing is imported, so that any commit can be drawn.
"""

import argparse
import ast
import sys
import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.tree import ROOT

PACKAGES: Final = {"producer": "#2563eb", "worker": "#b45309", "shared": "#047857"}
"""Our packages from top to bottom, each with the colour of its arrows."""
PICTURE: Final = ROOT / "build" / "structure.svg"
PATHS: Final = ROOT / "docs" / "pictures" / "call-paths.toml"
OUTSIDE: Final = "~"
"""Begins a step that is no module of ours, such as a Celery queue."""

WIDTH: Final = 1400
MARGIN, GAP, ROW_GAP = 16, 14, 34
CELL_W, CELL_H, HEAD_H = 112, 15, 20
STEP_W, STEP_H, FLOOR_H = 132, 24, 32
STYLE: Final = (
    "text{font:10px ui-monospace,Menlo,Consolas,monospace;fill:#1f2937}"
    ".title{font:600 18px system-ui,sans-serif}.head{font:600 12px system-ui,sans-serif}"
    ".note{font:12px system-ui,sans-serif;fill:#4b5563}"
    ".room{fill:#f9fafb;stroke:#9ca3af}.module{fill:#fff;stroke:#d1d5db}.step{fill:#fff;stroke:#6b7280}"
    ".outside{fill:#f3f4f6;stroke:#9ca3af;stroke-dasharray:3 3}"
    ".import{fill:none;stroke-width:1.1;opacity:.38}.call{fill:none;stroke:#374151;stroke-width:1.4}"
    ".back{fill:none;stroke:#dc2626;stroke-width:1.4;stroke-dasharray:5 4}"
)


class Room(NamedTuple):
    """A folder with its modules, and where it is drawn."""

    name: str
    modules: tuple[str, ...]
    columns: int
    x: int = 0
    y: int = 0

    @property
    def width(self) -> int:
        """Width of the box."""
        return max(self.columns * (CELL_W + 4) + 12, 7 * len(self.name) + 24)

    @property
    def height(self) -> int:
        """Height of the box."""
        return HEAD_H + -(-len(self.modules) // self.columns) * (CELL_H + 4) + 8


class Stop(NamedTuple):
    """One step of a call path."""

    name: str
    floor: int
    caller: int
    """Place of the step that calls it, -1 for the first."""
    is_back: bool
    """Whether the path went back to an earlier step before this one."""


def read_imports(root: Path) -> dict[str, frozenset[str]]:
    """The modules of a checkout by name, with those of ours that each imports, functions included."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: frozenset(_imported(path, found) - {name}) for name, path in found.items()}


def _imported(path: Path, known: Mapping[str, Path]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names.update(member if member in known else node.module for member in members)
    return names & known.keys()


def room_of(module: str, modules: Mapping[str, object]) -> str:
    """The folder of a module, as a name with slashes.

    >>> room_of("shared.ledger", {"shared.ledger": 0, "shared.ledger.ledger": 0})
    'shared/ledger'
    >>> room_of("shared.names", {"shared.names": 0})
    'shared'
    """
    is_package = "." not in module or any(name.startswith(f"{module}.") for name in modules)
    return (module if is_package else module.rpartition(".")[0]).replace(".", "/")


def rooms_of(imports: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    """Modules by room; the `__init__.py` of a room belongs to its name and has no box."""
    rooms: dict[str, list[str]] = {}
    for module in sorted(imports):
        room = room_of(module, imports)
        modules = rooms.setdefault(room, [])
        if module.replace(".", "/") != room:
            modules.append(module.rpartition(".")[2])
    return rooms


def arrows_of(imports: Mapping[str, frozenset[str]]) -> list[tuple[str, str]]:
    """Pairs of rooms of which the first imports the second."""
    pairs = {
        (room_of(module, imports), room_of(other, imports))
        for module, others in imports.items()
        for other in others
    }
    return sorted((one, other) for one, other in pairs if one != other)


def depths_of(imports: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """How many modules stand below each at most; a ring counts where it is entered first."""
    depths: dict[str, int] = {}

    def depth(module: str, above: frozenset[str]) -> int:
        if module not in depths:
            below = imports[module] - above
            depths[module] = 1 + max((depth(other, above | {module}) for other in sorted(below)), default=-1)
        return depths[module]

    for module in sorted(imports):
        depth(module, frozenset({module}))
    return depths


def placed(imports: Mapping[str, frozenset[str]], top: int) -> tuple[list[Room], int]:
    """Rooms with their places, package below package, importers above what they import; and the end."""
    depths, rooms, y = depths_of(imports), [], top
    by_room = rooms_of(imports)
    for package in PACKAGES:
        names = [name for name in by_room if name.split("/")[0] == package]
        deepest = {
            name: max(depths[module] for module in imports if room_of(module, imports) == name)
            for name in names
        }
        x, row_height = MARGIN, 0
        for name in sorted(names, key=lambda name: (-deepest[name], name)):
            count = len(by_room[name])
            room = Room(name, tuple(by_room[name]), 1 if count <= 4 else 2 if count <= 14 else 4)
            if x + room.width > WIDTH - MARGIN and x > MARGIN:
                x, y, row_height = MARGIN, y + row_height + ROW_GAP, 0
            rooms.append(room._replace(x=x, y=y))
            x, row_height = x + room.width + GAP, max(row_height, room.height)
        y += row_height + ROW_GAP + 10
    return rooms, y


def _room(room: Room) -> list[str]:
    parts = [
        f'<rect class="room" x="{room.x}" y="{room.y}" width="{room.width}" height="{room.height}" rx="5"/>',
        f'<text class="head" x="{room.x + 8}" y="{room.y + 15}">{escape(room.name)}/</text>',
    ]
    rows = -(-len(room.modules) // room.columns)
    for number, module in enumerate(room.modules):
        x = room.x + 8 + number // max(1, rows) * (CELL_W + 4)
        y = room.y + HEAD_H + 2 + number % max(1, rows) * (CELL_H + 4)
        parts.append(f'<rect class="module" x="{x}" y="{y}" width="{CELL_W}" height="{CELL_H}" rx="2"/>')
        parts.append(f'<text x="{x + 4}" y="{y + 11}">{escape(_cut(module, 17))}</text>')
    return parts


def _cut(text: str, most: int) -> str:
    """Shortens a text that is too long for its box."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _import_arrow(one: Room, other: Room) -> str:
    colour = PACKAGES[one.name.split("/")[0]]
    start_x, end_x = one.x + one.width / 2, other.x + other.width / 2
    is_down = other.y > one.y
    start_y = one.y + one.height if is_down else one.y
    end_y = other.y if is_down else other.y + other.height
    if other.y == one.y:
        start_y, end_y, bend = one.y + one.height, other.y + other.height, 26.0
        curve = f"C{start_x:.0f} {start_y + bend:.0f} {end_x:.0f} {end_y + bend:.0f} {end_x:.0f} {end_y:.0f}"
    else:
        bend = (end_y - start_y) / 2
        curve = f"C{start_x:.0f} {start_y + bend:.0f} {end_x:.0f} {end_y - bend:.0f} {end_x:.0f} {end_y:.0f}"
    package = one.name.split("/")[0]
    return (
        f'<path class="import" stroke="{colour}" marker-end="url(#{package})"'
        f' d="M{start_x:.0f} {start_y:.0f}{curve}"/>'
    )


def stops_of(steps: Sequence[str], imports: Mapping[str, frozenset[str]]) -> list[Stop]:
    """Floors of a call path: what the step before imports is one floor below it.

    Where an earlier step imports it, the path goes back there first. Where none does, the step before was
    given it as a value, and it stands one floor below as well.

    >>> imports = {"a": frozenset({"b", "c"}), "b": frozenset(), "c": frozenset()}
    >>> [(stop.name, stop.floor, stop.is_back) for stop in stops_of(["a", "b", "c"], imports)]
    [('a', 0, False), ('b', 1, False), ('c', 1, True)]
    """
    stops: list[Stop] = []
    stack: list[int] = []
    for place, step in enumerate(steps):
        if step.startswith(OUTSIDE):
            stops.append(Stop(step, 0, place - 1, is_back=False))
            stack = []
            continue
        if not stack:
            stops.append(Stop(step, 0, place - 1, is_back=False))
            stack = [place]
            continue
        keep = next((n for n in range(len(stack), 0, -1) if step in imports[steps[stack[n - 1]]]), len(stack))
        is_back = keep < len(stack)
        stack = stack[:keep]
        stops.append(Stop(step, len(stack), stack[-1], is_back=is_back))
        stack.append(place)
    return stops


def _staircase(stops: Sequence[Stop], top: int) -> list[tuple[int, int]]:
    """Where the steps stand: each right of the one before, far enough that no two overlap."""
    narrow = [stop.floor != before.floor for before, stop in pairwise(stops)]
    wide = STEP_W + 18
    free = WIDTH - 2 * MARGIN - STEP_W - wide * narrow.count(False)
    across = max(24, min(wide, free // max(1, narrow.count(True))))
    x, places = MARGIN, []
    for stop, is_narrow in zip(stops, [*narrow, True], strict=True):
        places.append((x, top + stop.floor * FLOOR_H))
        x += across if is_narrow else wide
    return places


def _call_path(title: str, stops: Sequence[Stop], top: int) -> tuple[list[str], int]:
    """The drawing of one path, and where it ends."""
    backs, deepest = sum(stop.is_back for stop in stops), 1 + max(stop.floor for stop in stops)
    modules = len({stop.name for stop in stops if not stop.name.startswith(OUTSIDE)})
    text = f"{title}: {modules} modules, {deepest} floors, {backs} returns"
    parts = [f'<text class="head" x="{MARGIN}" y="{top}">{escape(text)}</text>']
    places = _staircase(stops, top + 12)
    for number, stop in enumerate(stops):
        x, y = places[number]
        if stop.caller >= 0:
            from_x, from_y = places[stop.caller]
            style = "back" if stop.is_back else "call"
            start = f"M{from_x + STEP_W / 2:.0f} {from_y + STEP_H}"
            if from_y == y:
                start = f"M{from_x + STEP_W:.0f} {from_y + STEP_H / 2:.0f}"
                parts.append(f'<path class="{style}" marker-end="url(#call)" d="{start}H{x}"/>')
            else:
                parts.append(
                    f'<path class="{style}" marker-end="url(#call)" d="{start}V{y + STEP_H / 2:.0f}H{x}"/>'
                )
    for stop, (x, y) in zip(stops, places, strict=True):
        style = "outside" if stop.name.startswith(OUTSIDE) else "step"
        name = stop.name.removeprefix(OUTSIDE)
        folder, _, module = name.rpartition(".")
        parts.append(f'<rect class="{style}" x="{x}" y="{y}" width="{STEP_W}" height="{STEP_H}" rx="3"/>')
        if folder:
            parts.append(
                f'<text x="{x + 5}" y="{y + 10}">{escape(_cut(folder.replace(".", "/"), 24))}/</text>'
            )
            parts.append(
                f'<text x="{x + 5}" y="{y + 20}" font-weight="700">{escape(_cut(module, 24))}</text>'
            )
        else:
            parts.append(f'<text x="{x + 5}" y="{y + 15}">{escape(_cut(name, 24))}</text>')
    return parts, top + 12 + deepest * FLOOR_H + 26


def drawing(imports: Mapping[str, frozenset[str]], paths: Mapping[str, Sequence[str]]) -> str:
    """Draws a checkout as an SVG document.

    Args:
        imports: as `read_imports` has them.
        paths: modules in the order in which a reader meets them, by the name of the path.

    Raises:
        KeyError: a path names a module that is not there.
    """
    for title, steps in paths.items():
        for step in steps:
            if not step.startswith(OUTSIDE) and step not in imports:
                message = f"the path {title!r} names {step}, which is no module: edit {PATHS.name}"
                raise KeyError(message)
    rooms, y = placed(imports, 76)
    by_name = {room.name: room for room in rooms}
    arrows = arrows_of(imports)
    parts = [_import_arrow(by_name[one], by_name[other]) for one, other in arrows]
    for room in rooms:
        parts += _room(room)
    y += 14
    parts.append(f'<text class="title" x="{MARGIN}" y="{y}">Call paths</text>')
    note = "One floor down is a call; a red dashed arrow: the reader goes back to an earlier module first."
    parts.append(f'<text class="note" x="{MARGIN + 110}" y="{y}">{note}</text>')
    y += 26
    for title, steps in paths.items():
        drawn, y = _call_path(title, stops_of(steps, imports), y)
        parts += drawn
    counts = f"{sum(len(room.modules) for room in rooms)} modules in {len(rooms)} rooms, {len(arrows)} arrows"
    markers = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        for name, colour in {**PACKAGES, "call": "#374151"}.items()
    )
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img">',
        f"<title>Structure of the code</title><style>{STYLE}</style><defs>{markers}</defs>",
        f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>',
        f'<text class="title" x="{MARGIN}" y="30">Modules and imports</text>',
        f'<text class="note" x="{MARGIN}" y="52">{counts}. An arrow: a room imports another.</text>',
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def main(arguments: Sequence[str]) -> None:
    """Writes the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to draw")
    parser.add_argument("--paths", type=Path, default=PATHS, help="its call paths, as TOML")
    parser.add_argument("--out", type=Path, default=PICTURE, help="the SVG file to write")
    options = parser.parse_args(arguments)
    paths = tomllib.loads(options.paths.read_text(encoding="utf-8"))["paths"]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(drawing(read_imports(options.root), paths), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
