"""Heartbeat files: what a probe reads about the worker processes of a machine."""

import os
from pathlib import Path

from shared.processes.heartbeat import FOLDER, Heartbeat, oldest_beat_s, sweep_dead


def test_no_worker_has_no_age(tmp_path: Path) -> None:
    """A data folder in which no worker ever ran has no heartbeat."""
    assert oldest_beat_s(tmp_path) is None


def test_the_quietest_process_counts(tmp_path: Path) -> None:
    """One process that has not reached Redis for a minute makes the machine a minute old."""
    busy, quiet = Heartbeat(tmp_path, "turns-1@host"), Heartbeat(tmp_path, "turns-2@host")
    busy.beat()
    quiet.beat()
    a_minute_ago = tmp_path.stat().st_mtime - 60
    os.utime(tmp_path / FOLDER / "turns-2@host.alive", (a_minute_ago, a_minute_ago))
    age = oldest_beat_s(tmp_path)
    assert age is not None
    assert age >= 59
    busy.stop()
    quiet.stop()


def test_an_ended_process_leaves_no_file(tmp_path: Path) -> None:
    """A process that ended in good order is not waited for."""
    heartbeat = Heartbeat(tmp_path, "turns-1@host")
    heartbeat.beat()
    heartbeat.stop()
    assert list((tmp_path / FOLDER).iterdir()) == []
    assert oldest_beat_s(tmp_path) is None


def test_the_files_of_killed_processes_name_them(tmp_path: Path) -> None:
    """A file that no process holds says that its process is dead, once; those of other hosts are theirs."""
    (tmp_path / FOLDER).mkdir()
    for name in ("turns-1.7@host", "turns-1.7@other"):
        (tmp_path / FOLDER / f"{name}.alive").touch()
    live = Heartbeat(tmp_path, "turns-1.8@host")
    live.beat()
    assert sweep_dead(tmp_path, "host") == ["turns-1.7@host"]
    assert sweep_dead(tmp_path, "host") == []
    left = {path.name for path in (tmp_path / FOLDER).iterdir()}
    assert left == {"turns-1.7@other.alive", "turns-1.8@host.alive"}
    live.stop()


def test_a_dead_process_is_no_life(tmp_path: Path) -> None:
    """A file that no process holds has no age, and is left for the next process that starts."""
    (tmp_path / FOLDER).mkdir()
    stale = tmp_path / FOLDER / "turns-1.7@host.alive"
    stale.touch()
    assert oldest_beat_s(tmp_path) is None
    assert stale.exists()


def test_a_removed_file_comes_back_with_the_next_beat(tmp_path: Path) -> None:
    """Cleaning the folder while a worker runs costs one beat."""
    heartbeat = Heartbeat(tmp_path, "turns-1@host")
    heartbeat.beat()
    (tmp_path / FOLDER / "turns-1@host.alive").unlink()
    heartbeat.beat()
    assert oldest_beat_s(tmp_path) is not None
    heartbeat.stop()


def test_a_folder_that_cannot_be_written_does_not_stop_the_worker(tmp_path: Path) -> None:
    """The work goes on where a file stands in the place of the folder."""
    (tmp_path / FOLDER).write_text("")
    heartbeat = Heartbeat(tmp_path, "turns-1@host")
    heartbeat.beat()
    heartbeat.stop()
    assert oldest_beat_s(tmp_path) is None
