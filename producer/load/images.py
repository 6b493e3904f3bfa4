"""Reads the images of cases: files beside the bench, each stored once with the run and named by its hash."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePath
from typing import Final

import msgspec

from producer.image_types import media_type_of
from producer.load.places import Place
from producer.load.problems import shown
from shared.contracts.case_run import Image

IMAGE_BYTES: Final = 5 << 20
"""The largest image."""
IMAGES_BYTES: Final = 256 << 20
"""All images of a run together: they lie in Redis' memory."""

ReadBytes = Callable[[Place, str, int], bytes]
"""Reads a file that the bench names at a place, of so many bytes at most."""


@dataclass(slots=True)
class Images:
    """The images of a run.

    Args:
        read: reads a file beside the bench.
    """

    read: ReadBytes
    files: dict[str, bytes] = field(default_factory=dict)
    """By hash, as workers read them."""
    _hashes: dict[str, str] = field(default_factory=dict)
    _size: int = 0

    def add(self, written: Sequence[str], place: Place) -> tuple[str, ...]:
        """Reads the images of a case and returns their hashes.

        Args:
            written: their paths.
            place: where they stand.

        Raises:
            InputError: one is no image, is too large, or lies elsewhere.
        """
        return tuple(self._add(path, place.at(at)) for at, path in enumerate(written))

    def _add(self, path: str, place: Place) -> str:
        """Reads one image, the first time it is named."""
        if path not in self._hashes:
            data = self.read(place, path, IMAGE_BYTES)
            media_type = media_type_of(data)
            if media_type is None:
                raise place.error(f"{shown(path)} is no image", "PNG, JPEG, GIF and WebP are sent")
            name = sha256(data).hexdigest()
            if name not in self.files:
                self._size += len(data)
                self.files[name] = msgspec.msgpack.encode(Image(media_type, data, PurePath(path).name))
            if self._size > IMAGES_BYTES:
                what = f"the images of the run have more than {IMAGES_BYTES >> 20} MiB together"
                raise place.error(what, "split the cases into several runs, or make images smaller")
            self._hashes[path] = name
        return self._hashes[path]
