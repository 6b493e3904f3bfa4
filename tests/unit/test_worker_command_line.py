"""The command line of a worker, its node names, and the check that our packages come from one place."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from shared.errors import UsageError
from shared.kinds import CASES, TURNS, all_kinds
from tests.support.tree import ROOT
from worker.command_line import node_name, read_options
from worker.kinds import MOST_THREADS, executed_kinds, slots_for, threads_for
from worker.supervisor import worker_command


def test_without_options_all_kinds_are_worked_on() -> None:
    """A bare `python -m worker` takes every kind, and numbers from the environment."""
    options = read_options([])
    assert options.kinds == all_kinds()
    assert (options.in_flight, options.processes) == (None, None)
    assert not options.supervise
    assert not options.burst
    assert not options.unsandboxed_validators


def test_kinds_are_read_once_and_in_order() -> None:
    """Spaces and repetitions in `-Q` do no harm."""
    assert read_options(["-Q", "turns, cases,turns"]).kinds == (TURNS, CASES)


@pytest.mark.parametrize("arguments", [["-Q", "turn"], ["-Q", ","], ["-j", "0"], ["-j", "x"], ["--nonsense"]])
def test_a_mistake_is_a_usage_error(arguments: list[str]) -> None:
    """What cannot be understood is an error of ours, and no SystemExit of argparse."""
    with pytest.raises(UsageError):
        read_options(arguments)


def test_node_names_tell_processes_apart() -> None:
    """Kind, number, process id and host; several kinds are all named, all kinds are `all`."""
    end = f"{os.getpid()}@{socket.gethostname()}"
    assert node_name([TURNS], 2) == f"turns-2.{end}"
    assert node_name([TURNS, CASES], 1) == f"turns-cases-1.{end}"
    assert node_name(all_kinds(), 1) == f"all-1.{end}"


def test_a_child_gets_the_settings_of_its_supervisor() -> None:
    """Kinds, items in flight, burst and trust go down to the processes; supervising does not."""
    trust = "--allow-unsandboxed-validators"
    options = read_options(["--supervise", "-Q", "turns", "-j", "7", "--burst", "--processes", "3", trust])
    command = worker_command(options, "turns-1.5@here")
    assert read_options(command[command.index("worker") + 1 :]) == read_options(
        ["--stop-on-eof", "--name", "turns-1.5@here", "-Q", "turns", "-j", "7", "--burst", trust]
    )


@pytest.mark.parametrize("flags", [[], ["--allow-unsandboxed-validators"]])
def test_only_the_option_makes_a_worker_trust_validators(flags: list[str]) -> None:
    """Where the sandbox looks, it finds what the command line allows, and no trust without it."""
    program = (
        "import sys\nfrom shared.settings import Settings\nfrom worker.start import start\n"
        "code = start(['-Q', 'cases', *sys.argv[1:]])\n"
        "print(code, Settings.from_environment().unsafe_validators)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *flags],
        env={"PROCTOR_REDIS_URL": "redis://127.0.0.1:1/0", "PROCTOR_CONNECT_PATIENCE_S": "0.1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["3", str(bool(flags))]


def test_a_child_imports_nothing_from_the_current_folder() -> None:
    """However a supervisor was started, its workers do not import a `redis.py` of the current folder."""
    assert worker_command(read_options(["--supervise"]), "n")[1] == "-P"


def test_threads_cover_all_slots_and_no_more_than_64() -> None:
    """Each kind gets its slots; one item in flight is one thread per kind."""
    assert threads_for(slots_for(all_kinds(), 100)) == MOST_THREADS
    assert threads_for(slots_for([TURNS], 100)) == 2
    assert slots_for(all_kinds(), 1) == dict.fromkeys(executed_kinds(), 1)
    assert slots_for([], 100) == {}


@pytest.mark.parametrize("has_init", [True, False])
def test_a_foreign_shared_folder_is_noticed(tmp_path: Path, has_init: bool) -> None:  # noqa: FBT001 - a case
    """A folder called `shared/` where Python looks first costs one clear line, not an hour."""
    (tmp_path / "shared").mkdir()
    if has_init:
        (tmp_path / "shared" / "__init__.py").touch()
        (tmp_path / "shared" / "errors.py").touch()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "worker", "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    if has_init:
        assert done.returncode == 2
        assert str(tmp_path) in done.stderr
        assert "`python -P`" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    else:
        # A folder without __init__.py gives way to a real package further down the path.
        assert done.returncode == 0, done.stderr
