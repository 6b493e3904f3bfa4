"""The images that were sent with cases: each stands once in an HTML report, as far as there is room.

A page is one file that loads nothing, so an image is part of it, as a `data:` URL. One that is too large, no
image that browsers draw, or not stored any more is named. Nothing that a message links to is loaded.
"""

from base64 import b64encode
from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from producer.image_types import media_type_of
from producer.report.cells import Size
from producer.report.html.rendering import fill
from producer.report.html.spool import Spool
from producer.tables import cut_middle
from producer.text import size
from shared.contracts.case_run import Image

if TYPE_CHECKING:
    from producer.report.interfaces import ReadFile

TEMPLATE: Final = "cases/report/page.html.j2"
IMAGE_BYTES: Final = 200_000
"""The largest image that a page shows."""
PAGE_BYTES: Final = 20_000_000
"""All images of a page together."""
HASH_CHARS: Final = 12
"""Of the hash that stands for an image without a name."""
_decode: Final = msgspec.msgpack.Decoder(Image).decode


class Picture(NamedTuple):
    """How an image is named where it was sent."""

    name: str
    note: str
    """Its size, and why it is not shown."""
    id: str = ""
    """Of the element that shows it; empty: none does."""


class PageImages:
    """Keeps the images of a page on disk until its end."""

    def __init__(self) -> None:
        self.read: ReadFile = _no_file
        """Reads a file of the run; none is found before a report has what reads them."""
        self._spool = Spool()
        self._known: dict[str, Picture] = {}
        self._left = PAGE_BYTES

    def __len__(self) -> int:
        return len(self._spool)

    def picture(self, stored: str) -> Picture:
        """Names an image, which the page shows from then on if there is room.

        Args:
            stored: the name of its file in the run.
        """
        if stored not in self._known:
            self._known[stored] = self._take(stored)
        return self._known[stored]

    def pieces(self) -> Iterator[bytes]:
        """Yields the part of the page that shows them; called once."""
        if self:
            yield fill(TEMPLATE, "gallery")
            yield from map(itemgetter(1), self._spool.pieces())
            yield fill(TEMPLATE, "gallery_end")
        self._spool.close()

    def _take(self, stored: str) -> Picture:
        """Reads an image, and keeps it for the page."""
        image, hashed = self._image(stored), f"{stored[:HASH_CHARS]}…"
        if image is None:
            return Picture(hashed, "not stored with the run")
        name, amount = cut_middle(image.name or hashed, Size.NAME), size(len(image.data))
        media_type = media_type_of(image.data)  # what is stored as its type proves nothing
        if media_type is None:
            return Picture(name, f"{amount}, not shown: no PNG, JPEG, GIF or WebP")
        if len(image.data) > IMAGE_BYTES:
            return Picture(name, f"{amount}, not shown: larger than {size(IMAGE_BYTES)}")
        if len(image.data) > self._left:
            return Picture(name, f"{amount}, not shown: the page has {size(PAGE_BYTES)} of images")
        self._left -= len(image.data)
        picture = Picture(name, amount, f"image-{len(self._spool) + 1}")
        url = f"data:{media_type};base64,{b64encode(image.data).decode()}"
        self._spool.add(len(self._spool), fill(TEMPLATE, "figure", picture, url))
        return picture

    def _image(self, stored: str) -> Image | None:
        """Reads an image; None where there is none."""
        data = self.read(stored)
        try:
            return None if data is None else _decode(data)
        except msgspec.DecodeError:
            return None


def _no_file(_name: str) -> None:
    """Finds no file."""
