"""When output is coloured, and help texts with bold heads."""

from collections.abc import Mapping

import click


def wants_color(
    stream_is_terminal: bool,  # noqa: FBT001 - the one fact that the result depends on
    mode: str,
    environment: Mapping[str, str],
) -> bool:
    """Returns whether to colour: the flag first, then `NO_COLOR`, `FORCE_COLOR`, `CI` and the terminal.

    >>> wants_color(True, "auto", {"NO_COLOR": "1"}), wants_color(True, "auto", {"TERM": "xterm"})
    (False, True)
    """
    if mode != "auto":
        return mode == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return stream_is_terminal and not environment.get("CI") and environment.get("TERM") != "dumb"


class HelpFormatter(click.HelpFormatter):
    """Writes heads bold; `click.echo` takes that out again where colours are not wanted."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Writes the line on how a command is called."""
        super().write_usage(prog, args, click.style(prefix or "Usage:", bold=True) + " ")

    def write_heading(self, heading: str) -> None:
        """Writes the head of a section."""
        self.write(f"{'':>{self.current_indent}}{click.style(f'{heading}:', bold=True)}\n")
