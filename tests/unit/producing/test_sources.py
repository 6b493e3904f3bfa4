"""Inputs are files, pipes or stdin; what cannot be read is named in one line, and memory stays bounded."""

import io
import os
import threading
from pathlib import Path

import pytest

from producer.load.source import BLOCK_BYTES, Source
from shared.errors import InputError


def refused(where: str | Path) -> InputError:
    """The error of reading from a place that cannot be read."""
    with pytest.raises(InputError) as caught:
        list(Source(where).blocks())
    return caught.value


def test_a_missing_file_is_named_with_its_neighbour(tmp_path: Path) -> None:
    """A mistyped name gets the file that was probably meant."""
    (tmp_path / "turns.jsonl").touch()
    error = refused(tmp_path / "turn.jsonl")
    assert error.message == f"{tmp_path}/turn.jsonl: no such file"
    assert error.hint == f"did you mean {tmp_path}/turns.jsonl?"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A file in a folder that does not exist says so."""
    assert "there is no folder" in refused(tmp_path / "nowhere" / "turns.jsonl").hint


def test_a_directory_is_refused(tmp_path: Path) -> None:
    """A folder is no input."""
    assert refused(tmp_path).message == f"{tmp_path}: is a directory"


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    """A file without read permission, or a name no system allows, is one line too."""
    path = tmp_path / "secret.jsonl"
    path.write_bytes(b"{}")
    path.chmod(0)
    if os.geteuid():  # root may read everything
        assert "cannot be read: Permission denied" in refused(path).message
    assert "cannot be read" in refused("a\0b").message


def test_a_file_can_be_read_again(tmp_path: Path) -> None:
    """Looking at the head uses nothing up, and a file starts anew each time."""
    path = tmp_path / "turns.jsonl"
    path.write_bytes(b"one\ntwo\n")
    source = Source(path)
    assert source.repeatable
    assert source.head() == b"one\ntwo\n"
    assert [b"".join(source.blocks()) for _ in range(2)] == [b"one\ntwo\n"] * 2


def test_stdin_is_read_once() -> None:
    """The head of a stream comes again with its content; a second reading is refused."""
    source = Source("-", stdin=io.BytesIO(b"one\ntwo\n"))
    assert not source.repeatable
    assert source.head().startswith(b"one\n")
    assert b"".join(source.blocks()) == b"one\ntwo\n"
    with pytest.raises(InputError, match="a stream cannot be read twice"):
        list(source.blocks())


def test_a_pipe_is_a_stream(tmp_path: Path) -> None:
    """A named pipe, as process substitution makes it, is read like stdin: its head waits for a whole line."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as stream:
            for part in (b"on", b"e\n", b"two\n"):
                stream.write(part)

    writer = threading.Thread(target=write)
    writer.start()
    source = Source(pipe)
    try:
        assert source.head().startswith(b"one\n")
        assert not source.repeatable
        assert b"".join(source.blocks()) == b"one\ntwo\n"
    finally:
        writer.join()


def test_blocks_are_bounded(tmp_path: Path) -> None:
    """A file of one endless line comes in blocks like any other."""
    path = tmp_path / "endless"
    with path.open("wb") as stream:
        stream.truncate(5 * BLOCK_BYTES + 1)
    sizes = [len(block) for block in Source(path).blocks()]
    assert sizes == [BLOCK_BYTES] * 5 + [1]
