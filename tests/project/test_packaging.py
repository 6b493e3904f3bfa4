"""Proves that the installed wheel is complete, and that a foreign `shared` folder is never picked up."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.tree import ROOT, project_files
from tests.support.wheels import built_wheel, unpacked

OURS: Final = {"shared", "producer", "worker", "proctor"}
EXAMPLES: Final = "examples/"
"""In the wheel below `producer/`."""
REQUIREMENT: Final = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)( ; [^\\]+)? \\$")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel."""
    return built_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel and, in `bin/`, the commands that an installer writes."""
    folder = unpacked(wheel, tmp_path_factory.mktemp("installed"))
    scripts = folder / "bin"
    scripts.mkdir()
    for name, target in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"].items():
        module, function = target.split(":")
        (scripts / name).write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    return folder


@pytest.fixture(params=["no __init__", "with __init__"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A working folder with somebody else's `shared`, as a plain folder or as a package."""
    decoy = tmp_path / "shared"
    decoy.mkdir()
    (decoy / "notes.txt").write_text("somebody else's\n")
    if request.param == "with __init__":
        (decoy / "__init__.py").write_text("")
    return tmp_path


def run(installed: Path, foreign: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs Python on the installed wheel, standing in the foreign folder."""
    env = {**os.environ, "PYTHONPATH": str(installed), "PROCTOR_DATA_DIR": str(foreign / "data")}
    return subprocess.run(
        [sys.executable, *args], cwd=foreign, env=env, capture_output=True, text=True, check=False
    )


def locked(name: str) -> set[tuple[str, str]]:
    """Packages and versions of a lock file; every one has at least one hash, and nothing else is there."""
    versions = set()
    text = (ROOT / name).read_text(encoding="utf-8")
    for block in re.split(r"\n(?=\S)", text):
        head, *hashes = block.splitlines()
        match = REQUIREMENT.match(head)
        assert match, f"{name}: {head!r} is not `package==version \\`"
        assert hashes, f"{name}: {head!r} has no hash"
        assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes)
        versions.add((match[1], match[2]))
    return versions


def test_wheel_holds_our_packages_and_nothing_else(wheel: Path) -> None:
    """The wheel's top level is our packages and the metadata: no tests, no deploy, no stray file."""
    with zipfile.ZipFile(wheel) as archive:
        top = {name.split("/")[0] for name in archive.namelist()}
        metadata = next(name for name in top if name.endswith(".dist-info"))
        assert f"{metadata}/licenses/LICENSE" in archive.namelist()
    assert top == {*OURS, metadata}


def test_wheel_holds_every_file_of_our_packages(wheel: Path) -> None:
    """Scripts for Redis, examples and all other files that the code reads travel with it."""
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    tracked = {path.relative_to(ROOT).as_posix() for path in project_files()}
    assert {name for name in tracked if name.split("/")[0] in OURS} <= packed
    assert {f"producer/{name}" for name in tracked if name.startswith(EXAMPLES)} <= packed


def test_installed_code_imports_itself_beside_a_foreign_shared_folder(installed: Path, foreign: Path) -> None:
    """From a folder with a decoy `shared`, all three packages still come from the installation."""
    code = (
        "import shared.names, producer, worker\n"
        "print(shared.names.__file__, producer.__file__, worker.__file__)"
    )
    done = run(installed, foreign, "-P", "-c", code)
    assert done.returncode == 0, done.stderr
    assert all(path.startswith(str(installed)) for path in done.stdout.split())


@pytest.mark.parametrize("script", ["proctor", "proctor-worker", "llm-bench"])
def test_commands_start_beside_a_foreign_shared_folder(installed: Path, foreign: Path, script: str) -> None:
    """The console scripts answer `--help` from a folder with a decoy `shared`."""
    done = run(installed, foreign, installed / "bin" / script, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout or "usage" in done.stdout


def test_module_start_beside_a_foreign_package_ends_in_one_clear_line(
    installed: Path, tmp_path: Path
) -> None:
    """`python -m worker` puts the working folder first; a foreign `shared` is named, exit code 2."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("")
    done = run(installed, tmp_path, "-m", "worker", "--help")
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(tmp_path) in done.stderr


def test_no_dependency_ships_a_package_with_one_of_our_names() -> None:
    """Plain names are safe as long as no other installed distribution has a top-level folder of that name."""
    rivals = {
        f"{each.metadata['Name']}: {file}"
        for each in distributions()
        if each.metadata["Name"] != "proctor"
        for file in each.files or ()
        if file.parts[0] in {*OURS, "tests", "deploy"} and len(file.parts) > 1 and file.suffix == ".py"
    }
    assert not {rival for rival in rivals if rival.split(": ")[1].split("/")[0] in OURS}


def test_every_dependency_is_locked(project: dict[str, Any]) -> None:
    """The lock for users holds each direct dependency, with hashes and without any address."""
    direct = {re.split(r"[<>=;! ]", each)[0] for each in project["project"]["dependencies"]}
    assert direct <= {name for name, _ in locked("requirements.lock")}


def test_the_developers_lock_extends_the_users_lock(project: dict[str, Any]) -> None:
    """Developers test the very versions that users get."""
    users, developers = locked("requirements.lock"), locked("requirements-dev.lock")
    assert users <= developers
    direct = {re.split(r"[<>=;! ]", each)[0] for each in project["dependency-groups"]["dev"]}
    assert direct <= {name for name, _ in developers}
