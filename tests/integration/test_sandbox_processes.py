"""Tests the processes behind the sandbox: used again, replaced when killed, ended, locked or not lockable."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic
from typing import Final

import psutil
import pytest

from tests.benchmarks.bench_sandbox import measured
from tests.support.eventually import eventually
from tests.support.tree import ROOT
from worker.sandbox import SandboxError, Sandboxes, SandboxReason
from worker.sandbox.zygote_client import ChildLimits, Zygote

SOURCE: Final = "def is_short(output): return len(output) < 10\n"


@pytest.fixture(scope="module")
def boxes() -> Iterator[Sandboxes]:
    """Sandboxes with short deadlines."""
    made = Sandboxes(call_s=1.5, search_s=1.0)
    if made.why_unlocked:
        pytest.skip(f"needs a kernel that locks processes: {made.why_unlocked}")
    yield made
    made.close()


def test_children_are_used_again(boxes: Sandboxes) -> None:
    """A second batch of the same file takes the process of the first; another file gets another process."""
    with boxes.batch(SOURCE) as sandbox:
        sandbox.call("is_short", "x")
        (first,) = sandbox._children.values()
    with boxes.batch(SOURCE) as sandbox:
        sandbox.call("is_short", "x")
        assert [*sandbox._children.values()] == [first]
    with boxes.batch(SOURCE + "\n") as sandbox:
        sandbox.call("is_short", "x")
        assert [*sandbox._children.values()] != [first]


def test_a_killed_zygote_is_replaced(boxes: Sandboxes) -> None:
    """After kill -9 of the zygote, between calls and in a batch, every call still has its answer."""
    with boxes.batch(SOURCE) as sandbox:
        assert sandbox.call("is_short", "x") is True
        killed = boxes._started().process
        killed.kill()
        killed.wait(10)
        assert sandbox.call("is_short", "x") is True
        assert sandbox.search("x", "x") == "x"
    assert boxes._started().process.pid != killed.pid


def test_a_killed_child_is_replaced(boxes: Sandboxes) -> None:
    """After kill -9 of a process that has answered before, the call is made again in a new one."""
    with boxes.batch(SOURCE) as sandbox:
        sandbox.call("is_short", "x")
        (child,) = sandbox._children.values()
        os.kill(child._pipes.pid, 9)
        assert sandbox.call("is_short", "x") is True


def test_nothing_survives_close() -> None:
    """Closing ends zygote and children, also one that runs; what is asked later is refused."""
    closed = Sandboxes(call_s=5)
    with closed.batch(SOURCE) as sandbox:
        sandbox.search("x", "x")
    zygote = psutil.Process(closed._started().process.pid)
    children = zygote.children()
    assert children
    closed.close()
    assert not any(each.is_running() for each in [zygote, *children])
    with closed.batch(None) as sandbox, pytest.raises(SandboxError) as caught:
        sandbox.search("x", "x")
    assert caught.value.reason is SandboxReason.UNAVAILABLE


def test_nothing_survives_the_worker() -> None:
    """After kill -9 of a worker whose validator loops, zygote and looping process are gone at once."""
    program = (
        "from worker.sandbox import Sandboxes\nboxes = Sandboxes(call_s=60)\n"
        "with boxes.batch('def v(o):\\n while 1: pass') as sandbox:\n"
        "    print(boxes._started().process.pid, flush=True)\n    sandbox.call('v', 'x')\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as worker:
        assert worker.stdout is not None
        zygote = psutil.Process(int(worker.stdout.readline()))
        eventually(lambda: _assert(bool(zygote.children())), 20)
        (looping,) = zygote.children()
        worker.kill()
    eventually(lambda: _assert(not zygote.is_running() and not looping.is_running()), 10)


def test_nothing_of_the_worker_is_in_a_child(boxes: Sandboxes) -> None:
    """The zygote has an empty environment and holds no open file of the worker's."""
    zygote = psutil.Process(boxes._started().process.pid)
    assert zygote.environ() == {}
    assert zygote.cwd() == "/"
    assert not zygote.open_files()


OPEN: Final = [[0, 1, 2], [0, 1, 2, 3], [1, 2]]
"""Descriptors of a child for patterns; of a template, with the pipe of its case; of a case."""


@pytest.fixture
def many_files(tmp_path: Path) -> Iterator[None]:
    """Two hundred open files, which others may inherit."""
    with ExitStack() as stack:
        for number in range(200):
            file = stack.enter_context((tmp_path / str(number)).open("w"))
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - its one argument
        yield


@pytest.mark.usefixtures("many_files")
def test_no_descriptor_is_inherited() -> None:
    """With 200 open files and the control socket above 63, a child has its standard three and no more."""
    boxes = Sandboxes(call_s=30)
    with boxes.batch("def slow(o):\n    while o: pass\n    return True\n") as sandbox:
        if boxes.why_unlocked:
            pytest.skip(f"needs a kernel that locks processes: {boxes.why_unlocked}")
        zygote = psutil.Process(boxes._started().process.pid)
        assert int(zygote.cmdline()[5]) > 63
        sandbox.search("x", "x")
        with ThreadPoolExecutor(1) as pool:
            looping = pool.submit(sandbox.call, "slow", "x")
            try:
                eventually(lambda: _assert(_open_below(zygote) == OPEN), 20)
            finally:
                boxes.close()
            assert looping.exception() is not None


CLOSE: Final = """
import os, sys
from worker.sandbox import lockdown
os.dup2(os.open("/", 0), 700)
lockdown.CLOSE_RANGE = 100_000
if sys.argv[1] == "none":
    os.listdir = lambda path: os.stat("/no/such/folder")
if sys.argv[2] == "bounded":
    lockdown.resource.setrlimit(lockdown.resource.RLIMIT_NOFILE, (1000, 1000))
else:
    lockdown.MOST_DESCRIPTORS = 10
try:
    lockdown.close_descriptors()
except lockdown.CannotLockError as error:
    sys.exit("refused")
try:
    os.fstat(700)
    print("open")
except OSError:
    print("closed")
"""


@pytest.mark.parametrize(
    ("listed", "limit", "printed"),
    [("listed", "-", "closed"), ("none", "bounded", "closed"), ("none", "-", "refused")],
)
def test_descriptors_are_closed_on_older_kernels(listed: str, limit: str, printed: str) -> None:
    """Without `close_range` they are listed; without a list all numbers are tried; else nothing is run."""
    command = [sys.executable, "-c", CLOSE, listed, limit]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert (ran.stdout + ran.stderr).strip() == printed


def test_what_a_call_forked_ends_with_it(boxes: Sandboxes) -> None:
    """After a call that looped until its deadline no process of it is left; the next one answers."""
    zygote = psutil.Process(boxes._started().process.pid)
    with boxes.batch("def v(o):\n    while o: pass\n    return True\n") as sandbox:
        for _ in range(3):
            with pytest.raises(SandboxError, match="no answer within"):
                sandbox.call("v", "x")
        assert sandbox.call("v", "") is True
        (child,) = sandbox._children.values()
        template = psutil.Process(child._pipes.pid)
        eventually(lambda: _assert(not template.children()), 10)
        states = [each.status() for each in zygote.children(recursive=True)]
    assert psutil.STATUS_ZOMBIE not in states


def test_every_call_has_its_own_process(boxes: Sandboxes) -> None:
    """Calls of one batch are answered by one child, in processes that differ from it and from each other."""
    source = "import re\ndef v(o): return False, str(id(o)) + str(re.enum.sys.modules['posix'].getpid())\n"
    unchecked = Sandboxes(check=None, call_s=5)
    with unchecked.batch(source) as sandbox:
        answers = [sandbox.call("v", "x") for _ in range(5)]
        (child,) = sandbox._children.values()
        assert child.uses == 5
    unchecked.close()
    assert len(set(answers)) == 5
    assert boxes.why_unlocked == ""


def test_without_a_lock_validators_are_refused_and_patterns_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processes cannot be locked, a validator fails closed, unless an option allows it."""

    class Unlocked(Zygote):
        """A zygote on a machine that locks nothing."""

        def __init__(self, limits: ChildLimits) -> None:
            super().__init__(limits)
            self.why_unlocked = "processes cannot be locked on plan9"

    monkeypatch.setattr("worker.sandbox.pool.Zygote", Unlocked)
    for word in ("", "1"):
        monkeypatch.setenv("PROCTOR_UNSAFE_VALIDATORS", word)
        boxes = Sandboxes(search_s=1.5)
        with boxes.batch(SOURCE) as sandbox:
            assert sandbox.search("^b", "a\nb") == "b"
            with pytest.raises(SandboxError, match="no answer within"):
                sandbox.search("(a+)+$", "a" * 64 + "b")
            if word:
                assert sandbox.call("is_short", "x") is True
            else:
                with pytest.raises(SandboxError, match="plan9") as caught:
                    sandbox.call("is_short", "x")
                assert caught.value.reason is SandboxReason.UNAVAILABLE
                assert "PROCTOR_UNSAFE_VALIDATORS" in caught.value.hint
        boxes.close()


PROBE: Final = """
import sys
from worker.sandbox import lockdown
from worker.sandbox.probes import probes as made
probes = made()
del probes["execve"]
if sys.argv[1] == "locked":
    lockdown.lock(512 << 20, 10)
reached = [name for name, probe in probes.items() if probe()]
print(len(probes), ",".join(reached))
"""


def test_the_self_test_has_teeth(boxes: Sandboxes) -> None:
    """Without the lock most of its calls reach the kernel, so that none with it means something."""
    assert boxes.why_unlocked == ""
    reached_by = {
        each: subprocess.run(
            [sys.executable, "-c", PROBE, each],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            timeout=20,
        )
        .stdout.strip()
        .partition(" ")[2]
        for each in ("open", "locked")
    }
    assert reached_by["locked"] == ""
    reached = reached_by["open"].split(",")
    assert {"openat", "newfstatat", "memfd_create", "clone", "kill", "ptrace", "mprotect (execute)"} <= set(
        reached
    )


def test_a_slow_request_is_cut_off_in_time(boxes: Sandboxes) -> None:
    """A large text for a process that does not read it cannot hold up the thread that writes it."""
    patient = Sandboxes(call_s=2)
    with patient.batch(SOURCE) as sandbox:
        sandbox.call("is_short", "x")
        (child,) = sandbox._children.values()
        psutil.Process(child._pipes.pid).suspend()
        start = monotonic()
        assert sandbox.call("is_short", "x" * 5_000_000) is False
        assert monotonic() - start < 20
    patient.close()
    assert boxes.why_unlocked == ""


def test_the_benchmark_measures_every_row(boxes: Sandboxes) -> None:
    """In small, so that it still runs when somebody wants its figures."""
    assert boxes.why_unlocked == ""
    figures = list(measured(0.01))
    assert len(figures) == 8
    assert all(figure.value > 0 and figure.ratio for figure in figures)


def _open_below(zygote: psutil.Process) -> list[list[int]]:
    """The numbers of the open descriptors of each process below the zygote; of those that end now, none."""
    found = []
    for process in zygote.children(recursive=True):
        with suppress(FileNotFoundError):
            found.append(sorted(int(each.name) for each in Path(f"/proc/{process.pid}/fd").iterdir()))
    return sorted(found)


def _assert(holds: bool) -> None:  # noqa: FBT001 - its only argument
    assert holds
