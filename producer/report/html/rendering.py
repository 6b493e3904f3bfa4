"""Fills in templates of HTML reports: what is filled in is only text, without control characters."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from producer.report.cells import Size

LEAST_CHARS: Final = 1_000
"""Of one text that are shown however many items there are."""
PAGE_CHARS: Final = 48_000_000
"""Of all texts of a page, as far as `LEAST_CHARS` allows."""

_PRODUCER: Final = Path(__file__).parents[2]
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202d\u202e]")
"""Characters that no page should carry: controls, and those that override the direction of what follows."""


_CRUMBS: Final[ContextVar[Sequence[tuple[str, str]]]] = ContextVar("_CRUMBS", default=())
"""Pages above the one that is being written."""


class Text(NamedTuple):
    """A text as the page shows it."""

    shown: str
    left: int = 0
    """Characters that are not shown."""


def text_limit(items: int) -> int:
    """Returns how many characters of one text a page of so many items shows, so that it can be opened.

    >>> text_limit(10), text_limit(2_000), text_limit(20_000)
    (20000, 8000, 1000)
    """
    return max(LEAST_CHARS, min(int(Size.WHOLE), PAGE_CHARS // (3 * max(1, items))))


def cut(text: str, limit: int = Size.WHOLE) -> Text:
    """Shortens a text and counts what was left out.

    >>> cut("abcdef", 4)
    Text(shown='abcd', left=2)
    """
    return Text(text[:limit], max(0, len(text) - limit))


def fill(template: str, macro: str, *arguments: Any) -> bytes:
    r"""Fills in one macro of a template; every text is escaped.

    Control characters are shown as their pictures; halves of surrogate pairs, and characters that override
    the direction of a text, as their numbers.

    Args:
        template: its path below `producer`.
        macro: its name.
        arguments: what the macro takes.

    >>> fill("report/html/viewer.html.j2", "cmd", "<b>\x1b\ud800")
    b'<div class="cmd"><pre data-copy data-key="y">&lt;b&gt;\xe2\x90\x9b\\ud800</pre></div>'
    """
    return _encoded(str(getattr(_module(template), macro)(*arguments)))


def readable(text: str) -> str:
    r"""Shows control characters as their pictures, others that do harm as their numbers; see `fill`.

    >>> readable("\x1b\ud800\u202e")
    '␛\\ud800\\u202e'
    """
    return _encoded(text).decode()


def markup(text: str) -> Markup:
    """Marks text as HTML: only for charts and for files of our own."""
    return Markup(text)  # noqa: S704 - made by our own code, which escapes what it puts in


@contextmanager
def leading_back(crumbs: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Gives pages that are written within the block ways back, as a server has them and a file has not.

    Args:
        crumbs: names and addresses of the pages above them.
    """
    token = _CRUMBS.set(crumbs)
    try:
        yield
    finally:
        _CRUMBS.reset(token)


def ways_back() -> Sequence[tuple[str, str]]:
    """Returns these names and addresses; empty for a file."""
    return _CRUMBS.get()


@cache
def file_text(name: str) -> str:
    """Returns a file of ours that goes into a page, by its path below `producer`; or nothing."""
    path = _PRODUCER / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


@cache
def _module(template: str) -> Any:
    """Reads a template when it is first needed."""
    return _environment().get_template(template).module


@cache
def _environment() -> Environment:
    """Where templates are."""
    return Environment(
        loader=FileSystemLoader(_PRODUCER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _encoded(text: str) -> bytes:
    """Encodes what a page may carry."""
    return _CONTROLS.sub(_picture, text).encode(errors="backslashreplace")


def _picture(found: re.Match[str]) -> str:
    """Shows a control character as its picture, and another one as its number."""
    number = ord(found[0])
    if number > 0x7F:  # noqa: PLR2004 - the last one with a picture
        return f"\\u{number:04x}"
    return "\u2421" if number == 0x7F else chr(0x2400 + number)  # noqa: PLR2004 - the picture of delete
