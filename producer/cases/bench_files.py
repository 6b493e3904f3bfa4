"""Opens the files that a configuration names, in its own folder, links followed, never more than a bound."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path, PurePath
from typing import BinaryIO, Final, NamedTuple

import msgspec

from producer.image_types import media_type_of
from producer.load.problems import Place
from producer.load.source import BLOCK_BYTES, Source
from producer.text import shown
from shared.contracts.case_run import Image
from shared.errors import InputError

CONFIG_BYTES: Final = 10 << 20
"""The largest configuration."""
DATA_BYTES: Final = 1 << 30
"""The largest file of cases or recorded outputs that is read line by line."""
ROW_BYTES: Final = 16 << 20
"""The longest line of such a file."""
SCHEMA_BYTES: Final = 10 << 20
"""The largest schema."""
VALIDATORS_BYTES: Final = 1 << 18
"""The largest validators file."""

_PATTERN: Final = re.compile(r"[*?\[]")
_UTF8: Final = "save the file as UTF-8: iconv -f FROM -t UTF-8 FILE"
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


def read_beside(config: Path | None, place: Place, written: str, most: int) -> TextFile:
    """Reads a file that a configuration names.

    Args:
        config: the configuration's file; None: it came over stdin, and the current folder counts as its own.
        place: where the path is written.
        written: the path, as it is written.
        most: bytes that it may have.

    Raises:
        InputError: it leads out of the configuration's folder, is no file, or cannot be read.
    """
    content = read_bytes_beside(config, place, written, most)
    name = _short(inside(config, place, written))
    return TextFile(name, decoded(name, content, place))


def read_bytes_beside(config: Path | None, place: Place, written: str, most: int) -> bytes:
    """Reads the bytes of a file that a configuration names, as `read_beside` does.

    Raises:
        InputError: it leads out of the configuration's folder, is no file, or cannot be read.
    """
    path = inside(config, place, written)
    with opened(path, place, written) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise _too_large(f"{place}: {path}", most)
    return content


@contextmanager
def opened(path: Path, place: Place, written: str) -> Iterator[BinaryIO]:
    """Opens a regular file.

    Args:
        path: the file.
        place: where it is named.
        written: how.

    Raises:
        InputError: it is no regular file, or cannot be read.
    """
    try:  # without waiting, should it be a pipe
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise place.error(f"{shown(written)} is no regular file", "name a file")
            yield stream
    except OSError as error:
        what = f"{shown(written)} cannot be read: {error.strerror}"
        raise place.error(what, "check its rights") from None


def inside(config: Path | None, place: Place, written: str) -> Path:
    """Finds a file inside the configuration's folder; symbolic links are followed first.

    Raises:
        InputError: it is elsewhere, missing, or a folder.
    """
    folder = config.parent if config is not None else Path()
    try:
        root, path = folder.resolve(), (folder / written).resolve()
        is_inside, is_there, is_folder = path.is_relative_to(root), path.exists(), path.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name, a ring of links
        raise place.error(f"{shown(written)} is no usable path: {error}", _KEPT_IN) from None
    if not is_inside:
        raise place.error(f"{shown(written)} leads out of the folder of the configuration", _KEPT_IN)
    if not is_there:
        near = _nearest(path)
        hint = f"did you mean {near!r}?" if near else f"paths count from {root}"
        raise place.error(f"no such file: {shown(written)}", hint)
    if is_folder:
        raise place.error(f"{shown(written)} is a directory", "name the file inside it")
    return path


def decoded(name: str, content: bytes, named_at: Place | None = None) -> str:
    """Reads UTF-8, with or without a byte order mark.

    Args:
        name: of the file.
        content: of it.
        named_at: where another file names it, if one does.

    Raises:
        InputError: it is another encoding.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where = f"{named_at}: {name}" if named_at else name
        raise Place(where, line=line).error(f"not UTF-8 text (byte {error.start + 1})", _UTF8) from None


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


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of cases, which is opened by whoever reads it."""

    path: Path
    """Inside the configuration's folder."""
    place: Place
    """Where it is named."""
    written: str
    """How, or as a pattern found it."""

    @property
    def name(self) -> str:
        """Its path as errors name it."""
        return _short(self.path)

    def lines(self) -> Iterator[str]:
        """Yields its lines, one at a time.

        Raises:
            InputError: it cannot be read, is too large, is no UTF-8, or has a line beyond all bounds.
        """
        with opened(self.path, self.place, self.written) as stream:
            blocks = iter(partial(stream.read, BLOCK_BYTES), b"")
            yield from text_lines(blocks, self.name, self.place)

    def text(self, most: int) -> str:
        """Reads it as a whole.

        Raises:
            InputError: it cannot be read, is too large, or is no UTF-8.
        """
        with opened(self.path, self.place, self.written) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise _too_large(f"{self.place}: {self.name}", most)
        return decoded(self.name, content, self.place)


def data_files(config: Path | None, written: Iterable[tuple[Place, str]]) -> list[DataFile]:
    """Finds the files of cases that a configuration names, each once; those of a pattern by their names.

    Args:
        config: the configuration's file; None: it came over stdin.
        written: paths and patterns with their places.

    Raises:
        InputError: one leads out of the configuration's folder, is no file, or a pattern finds none.
    """
    found = dict[Path, DataFile]()
    folder = config.parent if config is not None else Path()
    for here, each in written:
        names = [each]
        if _PATTERN.search(each) and not (folder / each).exists():
            names = sorted(_matching(folder, here, each))
            if not names:
                raise here.error(f"no file matches {shown(each)}", f"patterns count from {folder.resolve()}")
        for name in names:
            path = inside(config, here, name)
            found.setdefault(path, DataFile(path, here, name))
    return list(found.values())


def _matching(folder: Path, place: Place, pattern: str) -> Iterator[str]:
    """Yields the files of a folder that match a pattern, but for hidden ones."""
    if Path(pattern).is_absolute():
        raise place.error(f"{shown(pattern)} is an absolute pattern", _KEPT_IN)
    try:
        for path in folder.glob(pattern):
            written = path.relative_to(folder)
            if path.is_file() and not any(part.startswith(".") and part != ".." for part in written.parts):
                yield str(written)
    except ValueError as error:  # `**` inside of a name
        raise place.error(f"{shown(pattern)} is no usable pattern: {error}", _KEPT_IN) from None


def text_lines(blocks: Iterable[bytes], name: str, named_at: Place | None = None) -> Iterator[str]:
    """Yields the lines of a text, with their ends, without a byte order mark.

    Args:
        blocks: its bytes.
        name: as errors name it.
        named_at: where another file names it, if one does.

    Raises:
        InputError: it is no UTF-8, is too large, or has a line beyond all bounds.
    """
    rest, size, number = b"", 0, 0
    for block in chain(blocks, (b"",)):
        size += len(block)
        if size > DATA_BYTES:
            raise _too_large(f"{named_at}: {name}" if named_at else name, DATA_BYTES)
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            number += 1
            yield _line(line + b"\n", number, name, named_at)
        if len(rest) > ROW_BYTES:
            what = f"the line is longer than {ROW_BYTES >> 20} MiB"
            raise Place(name, line=number + 1).error(what, "keep long texts in files of their own")
    if rest:
        yield _line(rest, number + 1, name, named_at)


def _line(content: bytes, number: int, name: str, named_at: Place | None) -> str:
    """Reads one line of a text."""
    try:
        return content.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        where = f"{named_at}: {name}" if named_at else name
        raise Place(where, line=number).error(f"not UTF-8 text (byte {error.start + 1})", _UTF8) from None


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


def check_validators(file: TextFile) -> None:
    """Proves that a validators file does nothing that validators may not; nothing of it is executed.

    Raises:
        InputError: it is no Python.
        ValidatorSecurityError: it does; says what, where and by which rule.
    """
    from worker.validation.policy import check_validator_source  # noqa: PLC0415 - only for runs with validators

    try:
        check_validator_source(file.text, file.name)
        # Some mistakes, such as a `return` outside of functions, are only found when code is made of it.
        compile(file.text, file.name, "exec", dont_inherit=True)
    except (RecursionError, MemoryError):
        what = f"{file.name}: the code is nested too deeply to be run"
        raise InputError(what, hint="write it flatter") from None
    except SyntaxError as error:
        what = f"{file.name}:{error.lineno or 1}: not valid Python: {error.msg}"
        raise InputError(what, hint="correct it: python -m py_compile FILE") from None
