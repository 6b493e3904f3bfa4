"""Makes pictures of terminal screens: commands run in a real terminal (tmux), what it shows becomes an SVG.

Part of `make gallery`.
"""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.support.tmux import Pane

ROWS: Final = 200
"""More than any command of the gallery prints."""
WITHIN_S: Final = 120.0
ENDED: Final = "ENDED-HERE"

THEME: Final = TerminalTheme(
    (0x19, 0x1B, 0x1F),
    (0xE8, 0xE9, 0xEC),
    [
        (0x19, 0x1B, 0x1F),
        (0xFF, 0x95, 0x8B),
        (0x62, 0xD2, 0xA2),
        (0xF1, 0xB7, 0x5F),
        (0x9D, 0xB4, 0xFF),
        (0xD4, 0xA5, 0xF5),
        (0x7B, 0xCB, 0xE6),
        (0xA8, 0xAD, 0xB7),
    ],
)
"""The dark colours of the pages (docs/pages.md)."""

SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "Liberation Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
}}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
<rect width="{width}" height="{height}" rx="8" fill="#191b1f"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As `rich` draws a screen, without a window's title and without fonts from the network."""


class Screen(NamedTuple):
    """A command and the terminal that it is shown in."""

    name: str
    """Of the picture."""
    command: str
    """For a shell."""
    columns: int = 80


def photograph(screen: Screen, folder: Path, env: Mapping[str, str], target: Path) -> None:
    """Runs a command in a terminal, waits for its end, and writes the screen as an SVG.

    Args:
        screen: the command.
        folder: where it runs.
        env: its environment.
        target: the picture.

    Raises:
        AssertionError: the command does not end within `WITHIN_S`.
    """
    line = f"clear; echo '$ {screen.command}'; {screen.command}; echo {ENDED}"
    with Pane(line, columns=screen.columns, rows=ROWS, cwd=folder, env=env) as pane:
        pane.wait_for(ENDED, WITHIN_S)
        text = "\n".join(pane.screen(escapes=True)).split(ENDED)[0].rstrip()
    console = Console(record=True, width=screen.columns, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text))
    target.write_text(
        console.export_svg(theme=THEME, code_format=SVG, unique_id=screen.name), encoding="utf-8"
    )
