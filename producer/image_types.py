"""Recognises the types of images that models take and pages show, by the first bytes of a file."""

from typing import Final

_STARTS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
"""How the files of a type begin."""


def media_type_of(data: bytes) -> str | None:
    r"""Recognises an image; None of any other file, also of SVG, which is a document.

    >>> media_type_of(b"\x89PNG\r\n\x1a\n"), media_type_of(b"<svg>")
    ('image/png', None)
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for start, name in _STARTS if data.startswith(start)), None)
