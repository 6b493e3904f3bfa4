"""Small images that browsers draw, made without a library, and how a run stores them."""

import struct
import zlib
from hashlib import sha256

import msgspec

from shared.contracts.case_run import Image


def png(width: int, height: int, rgba: tuple[int, int, int, int] = (200, 40, 40, 255)) -> bytes:
    """A PNG of one colour."""
    line = b"\0" + bytes(rgba) * width
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(line * height)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, *zip(*chunks, strict=True)))


def stored(name: str, data: bytes, media_type: str = "image/png") -> tuple[str, bytes]:
    """An image as a run has it: the name of its file, and what stands in it."""
    return sha256(data).hexdigest(), msgspec.msgpack.encode(Image(media_type, data, name))


def _chunk(kind: bytes, data: bytes) -> bytes:
    """A part of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
