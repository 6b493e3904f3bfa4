"""Holds systemd/ to what systemd-analyze does not look at: times, credentials, what is installed."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.deployment import DEPLOY, SUPERVISOR_MARGIN_S, default_grace_s, seconds, units
from tests.support.tools import require_tool
from tests.support.tree import ROOT


def environment_of(name: str) -> dict[str, str]:
    """The variables that a unit sets."""
    lines = units()[name]["Service"]["Environment"].splitlines()
    return dict(pair.split("=", 1) for line in lines for pair in line.split())


@pytest.mark.parametrize("name", units())
def test_there_is_more_time_to_stop_than_the_grace_period(name: str) -> None:
    """The service manager kills later than a supervisor does, which kills later than the grace period."""
    grace_s = float(environment_of(name).get("PROCTOR_GRACE_S", default_grace_s()))
    assert seconds(units()[name]["Service"]["TimeoutStopSec"]) > grace_s + SUPERVISOR_MARGIN_S


@pytest.mark.parametrize("name", units())
def test_secrets_are_credentials(name: str) -> None:
    """Each variable and argument that names a secret's file names a credential that the unit loads."""
    loaded = dict(line.split(":") for line in units()[name]["Service"]["LoadCredential"].splitlines())
    files = {key: value for key, value in environment_of(name).items() if key.endswith("_FILE")}
    assert "PROCTOR_REDIS_URL_FILE" in files
    arguments = [word for word in units()[name]["Service"]["ExecStart"].split() if word.startswith("%d/")]
    assert {value.removeprefix("%d/") for value in (*files.values(), *arguments)} == set(loaded)
    assert all(path == f"/etc/proctor/{credential}" for credential, path in loaded.items())


@pytest.mark.parametrize("name", units())
def test_services_come_back_and_are_bounded(name: str) -> None:
    """A service is started again, and has limits of memory and tasks and a state folder of its own."""
    service = units()[name]["Service"]
    assert service["Restart"] == "always"
    assert {"MemoryMax", "TasksMax"} <= set(service)
    assert environment_of(name)["PROCTOR_DATA_DIR"] == f"%S/{service['StateDirectory']}"
    assert service["DynamicUser"] == "yes"


def make(target: str, root: Path, **variables: str) -> str:
    """Runs one of the Makefile's targets on a root folder of its own."""
    command = [require_tool("make"), "--no-print-directory", "-C", str(ROOT), target]
    env = {**os.environ, "DESTDIR": str(root), **variables}
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        env.pop(name, None)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_units_are_installed_and_removed(tmp_path: Path) -> None:
    """`install-systemd` puts units in place for a prefix; `uninstall-systemd` leaves the configuration."""
    make("install-systemd", tmp_path, PROGRAM="no", PREFIX="/srv/proctor")
    folder = tmp_path / "etc" / "systemd" / "system"
    expected = {
        path.name for path in (DEPLOY / "systemd").glob("*") if path.suffix in {".service", ".target"}
    }
    assert {path.name for path in folder.iterdir()} == expected
    for path in folder.glob("*.service"):
        text = path.read_text()
        assert "ExecStart=/srv/proctor/bin/proctor " in text
        assert "/opt/" not in text
    configuration = tmp_path / "etc" / "proctor"
    assert stat.S_IMODE(configuration.stat().st_mode) == 0o700
    (configuration / "redis-url").write_text("redis://db\n")
    make("uninstall-systemd", tmp_path, PREFIX="/srv/proctor")
    assert not list(folder.iterdir())
    assert (configuration / "redis-url").exists()


def test_only_an_installation_of_ours_is_removed(tmp_path: Path) -> None:
    """`uninstall-systemd` removes an environment with our command in it, and no other folder."""
    program, other = tmp_path / "opt" / "proctor", tmp_path / "opt" / "other"
    for folder in (program, other):
        (folder / "bin").mkdir(parents=True)
    (program / "pyvenv.cfg").touch()
    (program / "bin" / "proctor").write_text("#!/bin/sh\n")
    (program / "bin" / "proctor").chmod(0o755)
    make("uninstall-systemd", tmp_path, PREFIX="/opt/other")
    make("uninstall-systemd", tmp_path)
    assert other.exists()
    assert not program.exists()
