"""Runs hostile validators without the static policy: none reaches anything, none spoils the next case."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.hostile_validators import hostile_validators
from worker.sandbox import SandboxError, Sandboxes, SandboxReason
from worker.sandbox.zygote_client import ChildLimits
from worker.validation.policy import first_problem

STATE_CHANGERS: Final = (
    "next case: re.search replaced",
    "next case: json.loads replaced",
    "next case: len replaced",
    "next case: a decoder's method replaced",
    "next case: an escape of JSON changed",
    "next case: a type registered as another",
    "next case: a pattern's cache filled",
    "next case: fields of a tree changed",
    "next case: a template's pattern changed",
    "next case: a partial's target changed",
)
"""Of the corpus those that change the interpreter and nothing else."""
SAME_PROCESS: Final = """
import builtins, sys
code = compile(sys.stdin.read(), "v", "exec")
for name, text in (("v", sys.argv[1]), ("honest", "ok")):
    names = {"__name__": "validators", "__builtins__": builtins}
    try:
        exec(code, names)
        verdict = names[name](text)
    except Exception:
        verdict = None
sys.stdout.write("spoilt" if verdict is not True else "honest")
"""
"""Runs two calls as they must not be run: one after the other in one process."""
SECRET: Final = "geheim-4711"  # noqa: S105 - planted, so that it can be looked for
CORPUS: Final = hostile_validators()


class Targets(NamedTuple):
    """What hostile validators go for."""

    text: str
    """As validators get them."""
    file: Path
    tcp: socket.socket
    udp: socket.socket


@pytest.fixture(scope="module")
def boxes() -> Iterator[Sandboxes]:
    """Sandboxes without the static policy, with short deadlines and little memory."""
    os.environ["GEHEIM"] = SECRET
    made = Sandboxes(check=None, call_s=1.5, limits=ChildLimits(memory_bytes=128 << 20))
    if made.why_unlocked:
        pytest.skip(f"needs a kernel that locks processes: {made.why_unlocked}")
    yield made
    made.close()
    del os.environ["GEHEIM"]


@pytest.fixture
def targets(tmp_path: Path) -> Iterator[Targets]:
    """A file, a listener of each kind, this process."""
    file = tmp_path / "secret.txt"
    file.write_text(SECRET)
    (tmp_path / "planted.py").write_text("")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        tcp.settimeout(0)
        udp.settimeout(0)
        want = {
            "file": str(file),
            "folder": str(tmp_path),
            "port": port,
            "pid": os.getpid(),
            "secret": SECRET,
        }
        yield Targets(json.dumps(want), file, tcp, udp)


def test_the_corpus_is_large() -> None:
    """There are enough of them to mean something."""
    assert len(CORPUS) >= 100


@pytest.mark.parametrize("name", CORPUS)
def test_a_hostile_validator_reaches_nothing(name: str, boxes: Sandboxes, targets: Targets) -> None:
    """It does not get what it wants, touches no file and no listener, and costs its own call only."""
    with boxes.batch(CORPUS[name]) as sandbox:
        with suppress(SandboxError):
            assert sandbox.call("v", targets.text) in {False, None}
        if not name.startswith("at load"):
            assert sandbox.call("honest", "ok") is True
            assert sandbox.call("honest", "no") is False
            assert sandbox.call("honest", "ok") is True
        assert sandbox.search("^b", "a\nb") == "b"
    assert targets.file.read_text() == SECRET
    assert sorted(each.name for each in targets.file.parent.iterdir()) == ["planted.py", "secret.txt"]
    with pytest.raises(BlockingIOError):
        targets.tcp.accept()
    with pytest.raises(BlockingIOError):
        targets.udp.recv(1)


@pytest.mark.parametrize("name", STATE_CHANGERS)
def test_the_honest_validator_has_teeth(name: str, targets: Targets) -> None:
    """In one process the next case is spoilt by it, so that a process for each call is what keeps it fair."""
    command = [sys.executable, "-I", "-c", SAME_PROCESS, targets.text]
    ran = subprocess.run(command, input=CORPUS[name], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.endswith("spoilt")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("uses up: a loop", SandboxReason.TIMEOUT),
        ("uses up: a pattern", SandboxReason.TIMEOUT),
        ("uses up: 10 GB", SandboxReason.MEMORY),
        ("uses up: a list without end", SandboxReason.MEMORY),
        ("kernel: a null pointer", SandboxReason.CRASH),
        ("next case: half an answer", SandboxReason.CRASH),
        ("next case: an answer written ahead", SandboxReason.FORGED),
        ("next case: 100 MB", SandboxReason.FORGED),
        ("next case: BaseException", SandboxReason.EXCEPTION),
        ("files: open", SandboxReason.EXCEPTION),
        ("at load: a loop at the top", SandboxReason.TIMEOUT),
        ("at load: an exit at the top", SandboxReason.CRASH),
        ("at load: an exception at the top", SandboxReason.EXCEPTION),
    ],
)
def test_the_failure_says_why(name: str, reason: SandboxReason, boxes: Sandboxes, targets: Targets) -> None:
    """Programs read the reason, people the message."""
    with boxes.batch(CORPUS[name]) as sandbox, pytest.raises(SandboxError) as caught:
        sandbox.call("v", targets.text)
    assert caught.value.reason is reason, caught.value.message
    assert caught.value.message


def test_the_static_policy_refuses_nearly_all_of_them() -> None:
    """What it lets through uses up time or memory, raises, or changes a process that ends with its call."""
    let_through = {name for name, source in CORPUS.items() if _is_accepted(source)}
    harmless = {"at load: a loop at the top", "at load: an exception at the top", "next case: BaseException"}
    harmless |= {name for name in CORPUS if name.startswith("uses up")}
    harmless |= {"next case: an exception that cannot be printed", *STATE_CHANGERS}
    assert let_through <= harmless


def _is_accepted(source: str) -> bool:
    try:
        return first_problem(source) is None
    except SyntaxError:
        return False
