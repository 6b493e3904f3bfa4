"""Runs programs in a root folder as a container engine does, without one: Linux name spaces and `chroot`.

What it has of a container: its own process ids (the program is number 1) and mounts, a root folder that can
be read-only, another user without capabilities or a way to new privileges, a system call filter. What it has
not: a network of its own, limits of memory and processor. The base image is this machine's /usr and the
interpreter of the tests, mounted read-only at /usr/local, where Python's official images have theirs.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support import syscall_filter

ENTER: Final = r"""
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
bind() { mount --bind "$1" "$ROOT$2"; mount -o remount,bind,ro "$ROOT$2"; }
bind /usr /usr
bind "$PYTHON_HOME" /usr/local
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
for pair in $WRITABLE; do mount --bind "${pair%%:*}" "$ROOT${pair#*:}"; done
for pair in $READABLE; do bind "${pair%%:*}" "${pair#*:}"; done
if [ "$READ_ONLY" = 1 ]; then
  mount -o remount,bind,ro "$ROOT"
  mount -t tmpfs -o mode=1777 tmp "$ROOT/tmp"
fi
exec chroot "$ROOT" "$@"
"""
LINKS: Final = ("bin", "sbin", "lib", "lib64")
FOLDERS: Final = ("usr", "proc", "dev", "etc", "tmp", "opt", "run", "src", "var/lib", "var/cache")
ACCOUNTS: Final = {
    "passwd": "root:x:0:0:root:/:/bin/sh\n",
    "group": "root:x:0:\n",
    "shadow": "root:*:1::::::\n",
    "gshadow": "root:*::\n",
    "ld.so.conf": "/usr/local/lib\n",
}
FROM_MACHINE: Final = ("ssl", "resolv.conf", "nsswitch.conf", "hosts", "pip.conf", "login.defs")
"""What of this machine's /etc a build needs to reach a registry."""

UNPRIVILEGED: Final = ("--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")


@cache
def why_not() -> str:
    """Why this machine cannot run containers of this kind; empty when it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root on Linux"
    missing = [name for name in ("unshare", "chroot", "setpriv", "mount", "env") if not shutil.which(name)]
    if missing:
        return f"needs {', '.join(missing)} (package util-linux)"
    if not Path(sys.base_prefix, "bin", "python").exists():
        return f"needs an interpreter in a folder of its own, and {sys.base_prefix} has no bin/python"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "mount", "--make-rprivate", "/"],
        capture_output=True,
        check=False,
    )
    return "" if tried.returncode == 0 else f"needs mount name spaces: {tried.stderr.decode().strip()}"


def require_containers() -> None:
    """Skips the test where containers cannot be run, and says why."""
    if why_not():
        pytest.skip(why_not())


def make_root(root: Path) -> None:
    """Makes the base image: folders, accounts, and links into the /usr that is mounted later."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    (root / "tmp").chmod(0o1777)
    for name in LINKS:
        if (Path("/") / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for name, text in ACCOUNTS.items():
        (root / "etc" / name).write_text(text)
    for name in FROM_MACHINE:
        source = Path("/etc", name)
        if source.is_dir():
            shutil.copytree(source, root / "etc" / name, symlinks=False, ignore_dangling_symlinks=True)
        elif source.exists():
            shutil.copy(source, root / "etc" / name)


@dataclass(frozen=True)
class Container:
    """How to run programs in a root folder."""

    root: Path
    env: Mapping[str, str]
    """All of the program's environment."""
    workdir: str = "/"
    user: str = "0:0"
    """User and group as numbers."""
    read_only: bool = False
    """Whether nothing but /tmp and `writable` can be written."""
    writable: Mapping[Path, str] = field(default_factory=dict)
    """Folders of this machine, and where they are mounted."""
    readable: Mapping[Path, str] = field(default_factory=dict)
    """Files and folders of this machine that are mounted read-only."""
    filter_rules: Sequence[syscall_filter.Rule] = ()
    """System calls that fail."""

    def command(self, *program: str) -> list[str]:
        """Writes the command line that runs a program in here; killing it kills all that runs inside.

        The program is process 1 of the container, so signals for it go to the child of this command.
        """
        inside = ["env", "-i", "-C", self.workdir, *(f"{name}={value}" for name, value in self.env.items())]
        if self.filter_rules:
            code = Path(syscall_filter.__file__).read_text(encoding="utf-8")
            inside += ["python", "-c", code, json.dumps(self.filter_rules)]
        if self.user != "0:0":
            user, group = self.user.split(":")
            inside = ["setpriv", f"--reuid={user}", f"--regid={group}", *UNPRIVILEGED, *inside]
        settings = {
            "ROOT": self.root,
            "PYTHON_HOME": sys.base_prefix,
            "READ_ONLY": int(self.read_only),
            "WRITABLE": _pairs(self.writable, self.root),
            "READABLE": _pairs(self.readable, self.root),
        }
        return [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child", "env"),
            *(f"{name}={value}" for name, value in settings.items()),
            *("sh", "-c", ENTER, "enter", *inside, *program),
        ]

    def run(self, *program: str) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end."""
        return subprocess.run(self.command(*program), capture_output=True, text=True, check=False)


def _pairs(mounts: Mapping[Path, str], root: Path) -> str:
    """Writes mounts for the shell, and makes their targets, which cannot be made in a read-only root."""
    for source, target in mounts.items():
        inside = root / target.lstrip("/")
        inside.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            inside.mkdir(exist_ok=True)
        else:
            inside.touch()
        assert " " not in f"{source}{target}", "the shell parts mounts at spaces"
    return " ".join(f"{source}:{target}" for source, target in mounts.items())
