"""How child processes are started: which command line, which environment."""

import sys
from pathlib import Path

import pytest

from producer.cli.local.child_processes import (
    Child,
    ProcessGroup,
    child_environment,
    flower_command,
    last_log_line,
    open_log,
    worker_command,
)
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output
from shared.kinds import TURNS
from shared.processes.own_modules import PACKAGES_ROOT
from shared.settings import Settings
from worker.command_line import read_options


def test_worker_command_says_everything() -> None:
    """The supervisor gets kinds, processes and items in flight, also those that are defaults."""
    settings = Settings.from_environment({"PROCTOR_PROCESSES": "3", "PROCTOR_IN_FLIGHT": "7"})
    command = worker_command(settings, kinds=[TURNS], burst=True)
    assert command[:4] == [sys.executable, "-P", "-m", "worker"]
    assert command[4:] == ["--supervise", "-Q", "turns", "--processes", "3", "-j", "7", "--burst"]
    trusting = worker_command(settings, unsandboxed_validators=True)
    assert read_options(trusting[4:]).unsandboxed_validators


def test_child_finds_our_servers_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child gets the URLs that are in force, also when ours came from a file, and the same data folder."""
    secret = tmp_path / "url"
    secret.write_text("redis://from.file:6379/0\n")
    monkeypatch.setenv("PROCTOR_REDIS_URL_FILE", str(secret))
    monkeypatch.setenv("PROCTOR_BROKER_URL", "redis://broker:6379/0")
    monkeypatch.setenv("PROCTOR_DATA_DIR", str(tmp_path / "data"))
    environment = child_environment(Settings.from_environment())
    assert environment["PROCTOR_REDIS_URL"] == "redis://from.file:6379/0"
    assert "PROCTOR_REDIS_URL_FILE" not in environment
    assert environment["PROCTOR_DATA_DIR"] == str(tmp_path / "data")
    flagged = Settings.from_environment().override("--redis", redis_url="unix:///flag", broker_url=None)
    environment = child_environment(flagged)
    assert environment["PROCTOR_REDIS_URL"] == "unix:///flag"
    assert "PROCTOR_BROKER_URL" not in environment


def test_embedded_child_is_left_to_its_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a URL in force a child finds the embedded server by its data folder, whatever was set."""
    monkeypatch.setenv("PROCTOR_REDIS_URL", "redis://somewhere:6379/0")
    settings = Settings.from_environment().override("demo", data_dir=tmp_path, redis_url=None)
    environment = child_environment(settings)
    assert "PROCTOR_REDIS_URL" not in environment
    assert environment["PROCTOR_DATA_DIR"] == str(tmp_path)


def test_child_finds_this_installation() -> None:
    """A child imports the packages that we were imported from, whatever folder it stands in."""
    environment = child_environment(Settings.from_environment({}))
    assert str(PACKAGES_ROOT) in [*sys.path[1:], *environment.get("PYTHONPATH", "").split(":")]


def test_flower_is_read_only_by_default() -> None:
    """Flower starts on loopback, read-only, with the arguments of a task among its columns."""
    command = flower_command(address="127.0.0.1", port=5555)
    assert "--address=127.0.0.1" in command
    assert "--read_only=True" in command
    assert any("kwargs" in part for part in command if part.startswith("--tasks_columns="))
    assert "--read_only=False" in flower_command(address="127.0.0.1", port=5555, allow_control=True)


def test_large_log_steps_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log file does not grow for ever, and the one before is kept."""
    monkeypatch.setattr("producer.cli.local.child_processes.LOG_BYTES", 10)
    settings = Settings.from_environment({"PROCTOR_DATA_DIR": str(tmp_path)})
    path = tmp_path / "logs" / "workers.log"
    for text in (b"first and long\n", b"second\n"):
        opened, log = open_log(settings, "workers")
        with log:
            log.write(text)
        assert opened == path
    assert path.read_bytes() == b"second\n"
    assert path.with_suffix(".log.1").read_bytes() == b"first and long\n"


def test_last_words(tmp_path: Path) -> None:
    """The last line that says something is what an error message shows of a log."""
    log = tmp_path / "log"
    assert last_log_line(log) == ""
    log.write_text("one\nTypeError: two\n\n")
    assert last_log_line(log) == "TypeError: two"


GIVES_BACK = """
import os, signal, threading
end = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"drains\\n"))
signal.signal(signal.SIGQUIT, lambda *_: (os.write(1, b"gives back\\n"), end.set()))
print("ready", flush=True)
while not end.wait(0.05): pass
"""
"""A worker with a running item: it does not end for SIGTERM, and gives back for SIGQUIT."""


class ImpatientlyStopped(Child):
    """A child for whose end somebody presses Ctrl-C a second time."""

    def stop(self) -> None:
        """Asks it to end, and is interrupted."""
        self.ask_to_stop()
        raise KeyboardInterrupt


def test_second_ctrl_c_of_up_gives_items_back(capfd: pytest.CaptureFixture[str]) -> None:
    """Workers are asked to give back what runs, and end by themselves; a child without work is killed."""
    together = ProcessGroup(Output(GlobalOptions()))
    command = [sys.executable, "-c", GIVES_BACK]
    workers, other = (
        kind.start(name, command, environment={}, grace_s=60, returns_items=returns_items)
        for kind, name, returns_items in ((Child, "workers", True), (ImpatientlyStopped, "flower", False))
    )
    for child in (workers, other):
        assert child.process.stdout is not None
        assert child.process.stdout.readline() == b"ready\n"
        together.add(child)
    with pytest.raises(KeyboardInterrupt):
        together.stop()
    assert (workers.exit_code, other.exit_code) == (0, -9)
    for child, reader in zip((workers, other), together._readers, strict=True):
        reader.join(5)
        assert child.process.stdout is not None
        child.process.stdout.close()
    printed = capfd.readouterr().err
    assert "workers | gives back" in printed
    assert "running items go back to the queue" in printed
