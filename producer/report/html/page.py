"""Makes the pages of HTML reports from templates: one file, no network, everything filled in is only text.

A report writes `begin`, then whatever it fills in from templates of its own, then `end`. What the script of
the page does with marks in the markup:

    table[data-sort] with an id    sorts by a click on a heading; `data-value` of a cell is what it sorts by,
                                   empty for what is not known; columns of class `n` begin with the highest
    [data-scope]                   the macro `tools`, and one or more [data-list] that hold [data-item]
    [data-item data-model=…]       is filtered by the choice with the key `model`, and so on; the order with
                                   the key `latency` sorts by `data-latency`, `-latency` from the highest
    details[data-item] with an id  stays open after a reload; what stands inside a `noscript` after its
                                   summary is read without a script, and with one becomes elements when it is
                                   opened: thousands of closed details cost little; each `.said` in it gets
                                   a button that copies
    [data-chunk]                   directly in a [data-list], holds up to 100 of many items: only chunks in
                                   sight are laid out
    [data-item data-parts]         has [data-part] inside, which are filtered one by one
    [data-none] beside a list      is shown when nothing of the list is
    button.copy                    copies the `pre` before it
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from producer.report.html.rendering import Text, cut, fill, markup, text_limit

__all__ = ["Text", "Tile", "begin", "chunked", "cut", "end", "fill", "markup", "text_limit"]

FRAME: Final = "html/frame.html.j2"
CHUNK: Final = 100
"""Items that are laid out together; the script of the page knows it too."""

_HERE: Final = Path(__file__).parent


class Tile(NamedTuple):
    """One figure of the first screen."""

    name: str
    value: str
    note: str = ""
    tone: str = ""
    """`good`, `bad`, `warn` or nothing."""
    link: str = ""
    """Where on the page there is more of it, such as `#failures`."""


def begin(
    title: str,
    verdict: str,
    *,
    is_good: bool | None,
    remarks: Iterable[str] = (),
    tiles: Sequence[Tile] = (),
    badge: str = "",
    about: str = "",
) -> bytes:
    """Writes a page up to its first own section.

    Args:
        title: what the page is of.
        verdict: the one line that counts.
        is_good: colours it; None while there is no telling.
        remarks: what else is worth a line.
        tiles: the figures of the first screen.
        badge: a word beside the title.
        about: where it comes from.
    """
    policy = (
        f"default-src 'none'; style-src '{_digest('style.css')}'; script-src '{_digest('page.js')}'; "
        "base-uri 'none'; form-action 'none'"
    )
    style = markup(_text("style.css"))
    told = (list(remarks), list(tiles), badge, about)
    return fill(FRAME, "begin", title, verdict, is_good, *told, style, markup(policy))


def end(facts: Iterable[tuple[str, str]] = ()) -> bytes:
    """Writes the end of a page.

    Args:
        facts: names and values that say what was run, for the fold at its foot.
    """
    return fill(FRAME, "end", list(facts), markup(_text("page.js")))


def chunked(items: Iterable[bytes]) -> Iterator[bytes]:
    """Puts items into chunks, of which a browser lays out only those in sight.

    >>> b"".join(chunked([b"a", b"b"]))
    b'<div data-chunk>ab</div>'
    """
    at = -1
    for at, item in enumerate(items):
        if at % CHUNK == 0:
            yield b"</div>" * bool(at) + b"<div data-chunk>"
        yield item
    yield b"</div>" * (at >= 0)


@cache
def _text(name: str) -> str:
    """Reads a file that goes into every page."""
    return (_HERE / name).read_text(encoding="utf-8")


def _digest(name: str) -> str:
    """Names a file as a content security policy does: by what is in it."""
    return "sha256-" + b64encode(sha256(_text(name).encode()).digest()).decode()
