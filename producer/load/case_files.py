"""Opens the files that a configuration names: in its own folder, links followed, never more than a bound."""

import os
import stat
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from producer.load.problems import shown
from producer.load.source import Source
from shared.errors import InputError

CONFIG_BYTES: Final = 10 << 20
"""The largest configuration."""
DATA_BYTES: Final = 100 << 20
"""The largest file of cases or recorded outputs."""
SCHEMA_BYTES: Final = 10 << 20
"""The largest schema."""
VALIDATORS_BYTES: Final = 1 << 18
"""The largest validators file."""

_KEPT_IN: Final = "files that a configuration names stay in its folder, or below; copy it there"


class TextFile(NamedTuple):
    """A file that was read."""

    name: str
    """As errors name it."""
    text: str
    """Its content, without a byte order mark."""


def read_source(source: Source, most: int) -> TextFile:
    """Reads a bounded input as UTF-8 text.

    Raises:
        InputError: it cannot be read, is too large, or is no UTF-8.
    """
    parts, size = list[bytes](), 0
    for block in source.blocks():
        size += len(block)
        if size > most:
            raise _too_large(source.name, most)
        parts.append(block)
    return TextFile(source.name, decoded(source.name, b"".join(parts)))


def read_beside(config: Path | None, key: str, written: str, most: int) -> TextFile:
    """Reads a file that a configuration names.

    Args:
        config: the configuration's file; None: it came over stdin, and the current folder counts as its own.
        key: where the path is written, for errors.
        written: the path, as it is written.
        most: bytes that it may have.

    Raises:
        InputError: it leads out of the configuration's folder, is no file, or cannot be read.
    """
    content = read_bytes_beside(config, key, written, most)
    name = _short(inside(config, key, written))
    return TextFile(name, decoded(name, content))


def read_bytes_beside(config: Path | None, key: str, written: str, most: int) -> bytes:
    """Reads the bytes of a file that a configuration names, as `read_beside` does.

    Raises:
        InputError: it leads out of the configuration's folder, is no file, or cannot be read.
    """
    path = inside(config, key, written)
    try:  # without waiting, should it be a pipe
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise InputError(f"{key}: {shown(written)} is no regular file", hint="name a file")
            content = stream.read(most + 1)
    except OSError as error:
        what = f"{key}: {shown(written)} cannot be read: {error.strerror}"
        raise InputError(what, hint="check its rights") from None
    if len(content) > most:
        raise _too_large(str(path), most)
    return content


def inside(config: Path | None, key: str, written: str) -> Path:
    """Finds a file inside the configuration's folder; symbolic links are followed first.

    Raises:
        InputError: it is elsewhere, missing, or a folder.
    """
    folder = config.parent if config is not None else Path()
    try:
        root, path = folder.resolve(), (folder / written).resolve()
        is_inside, is_there, is_folder = path.is_relative_to(root), path.exists(), path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name, a ring of links
        raise InputError(f"{key}: {shown(written)} is no usable path: {error}", hint=_KEPT_IN) from None
    if not is_inside:
        raise InputError(
            f"{key}: {shown(written)} leads out of the folder of the configuration", hint=_KEPT_IN
        )
    if not is_there:
        near = _nearest(path)
        hint = f"did you mean {near!r}?" if near else f"paths count from {root}"
        raise InputError(f"{key}: no such file: {shown(written)}", hint=hint)
    if is_folder:
        raise InputError(f"{key}: {shown(written)} is a directory", hint="name the file inside it")
    return path


def decoded(name: str, content: bytes) -> str:
    """Reads UTF-8, with or without a byte order mark.

    Raises:
        InputError: it is another encoding.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        hint = "save the file as UTF-8: iconv -f FROM -t UTF-8 FILE"
        raise InputError(f"{name}:{line}: not UTF-8 text (byte {error.start + 1})", hint=hint) from None


def _too_large(name: str, most: int) -> InputError:
    """The error for a file beyond its bound."""
    size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
    return InputError(f"{name}: is larger than {size}", hint="split it, or take out what is not needed")


def _short(path: Path) -> str:
    """A path as people type it, where that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def _nearest(path: Path) -> str | None:
    """A file of nearly this name in the same folder."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return None
    return next(iter(get_close_matches(path.name, names, n=1)), None)
