"""Tests the processes behind the sandbox: used again, replaced when killed, ended, locked or not lockable."""

import os
import subprocess
import sys
from collections.abc import Iterator
from time import monotonic
from typing import Final

import psutil
import pytest

from tests.benchmarks.bench_sandbox import measured
from tests.support.eventually import eventually
from tests.support.tree import ROOT
from worker.sandbox import Reason, SandboxError, Sandboxes
from worker.sandbox.keeper import Limits, Zygote

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
    assert caught.value.reason is Reason.UNAVAILABLE


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


def test_without_a_lock_validators_are_refused_and_patterns_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processes cannot be locked, a validator fails closed, unless the worker was told otherwise."""

    class Unlocked(Zygote):
        """A zygote on a machine that locks nothing."""

        def __init__(self, limits: Limits) -> None:
            super().__init__(limits)
            self.why_unlocked = "processes cannot be locked on plan9"

    monkeypatch.setattr("worker.sandbox.pool.Zygote", Unlocked)
    for word in ("", "1"):
        monkeypatch.setenv("PROCTOR_UNSAFE_VALIDATORS", word)
        boxes = Sandboxes(search_s=0.3)
        with boxes.batch(SOURCE) as sandbox:
            assert sandbox.search("^b", "a\nb") == "b"
            with pytest.raises(SandboxError, match="no answer within"):
                sandbox.search("(a+)+$", "a" * 64 + "b")
            if word:
                assert sandbox.call("is_short", "x") is True
            else:
                with pytest.raises(SandboxError, match="plan9") as caught:
                    sandbox.call("is_short", "x")
                assert caught.value.reason is Reason.UNAVAILABLE
                assert "PROCTOR_UNSAFE_VALIDATORS" in caught.value.hint
        boxes.close()


PROBE: Final = """
import sys
from worker.sandbox import lockdown
probes = lockdown.probes()
del probes["execve"]
if sys.argv[1] == "locked":
    lockdown.lock(512 << 20, 10)
reached = [name for name, probe in probes.items() if probe()]
print(len(probes), ",".join(reached))
"""


def test_the_self_test_has_teeth(boxes: Sandboxes) -> None:
    """Without the lock most of its calls reach the kernel, so that none with it means something."""
    assert boxes.why_unlocked == ""
    said = {
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
    assert said["locked"] == ""
    reached = said["open"].split(",")
    assert {"openat", "newfstatat", "memfd_create", "clone", "kill", "ptrace", "mprotect (execute)"} <= set(
        reached
    )


def test_a_slow_request_is_cut_off_in_time(boxes: Sandboxes) -> None:
    """A large text for a process that does not read it cannot hold up the thread that writes it."""
    with boxes.batch(SOURCE) as sandbox:
        sandbox.call("is_short", "x")
        (child,) = sandbox._children.values()
        psutil.Process(child._pipes.pid).suspend()
        start = monotonic()
        assert sandbox.call("is_short", "x" * 5_000_000) is False
        assert monotonic() - start < 10


def test_the_benchmark_measures_every_row(boxes: Sandboxes) -> None:
    """In small, so that it still runs when somebody wants its figures."""
    assert boxes.why_unlocked == ""
    rows = list(measured(1))
    assert len(rows) == 7
    assert all(row.best > 0 for row in rows)


def _assert(holds: bool) -> None:  # noqa: FBT001 - the one thing it is told
    assert holds
