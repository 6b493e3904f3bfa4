"""Tests the sandbox as workers use it: answers, failures, threads, dead processes, and having no lock."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import monotonic
from typing import Any, Final

import psutil
import pytest

from shared.errors import ValidatorSecurityError
from tests.benchmarks.bench_sandbox import measured
from tests.support.eventually import eventually
from tests.support.tree import ROOT
from worker.sandbox import Reason, Sandbox, SandboxError, Sandboxes
from worker.sandbox.keeper import Limits, Zygote
from worker.validation.pipeline import validate

SOURCE: Final = """
import re
SEEN = []
def is_short(output): return len(output) < 10
def with_text(output): return output != "", f"got {output}"
def seen(output):
    SEEN.append(output)
    return len(SEEN) == 1
def raises(output): raise ValueError("not " + output)
def loops(output):
    while output == "loop": pass
    return True
def bomb(output): return bool(re.search("(a+)+$", "a" * 64 + "b"))
def eats(output): return len("x" * 10 ** 12)
def prints(output):
    print("noise", output)
    return True
def long(output): return False, "x" * 100_000_000
def nothing(output): pass
def number(output): return 1
def pair(output): return 1, 2
def text(output): return "yes"
def thing(output): return re.search("a", "a")
"""


@pytest.fixture(scope="module")
def boxes() -> Iterator[Sandboxes]:
    """Sandboxes with short deadlines."""
    made = Sandboxes(call_s=0.5, search_s=0.3)
    if made.why_unlocked:
        pytest.skip(f"needs a kernel that locks processes: {made.why_unlocked}")
    yield made
    made.close()


@pytest.fixture
def sandbox(boxes: Sandboxes) -> Iterator[Sandbox]:
    """One batch."""
    with boxes.batch(SOURCE) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "text", "returned"),
    [
        ("is_short", "abc", True),
        ("is_short", "a long enough text", False),
        ("with_text", "ü\ud800\0", (True, "got ü\ud800\0")),
        ("with_text", "", (False, "got ")),
        ("prints", "x", True),
        ("long", "x", (False, "x" * 4000)),
        ("nothing", "x", None),
        ("number", "x", 1),
        ("text", "x", "yes"),
    ],
)
def test_a_validator_answers(sandbox: Sandbox, name: str, text: str, returned: object) -> None:
    """What it returns comes back as it was, with its type; a message only as long as one is read."""
    answer = sandbox.call(name, text)
    assert answer == returned
    assert type(answer) is type(returned)


@pytest.mark.parametrize(("name", "kind"), [("pair", "tuple"), ("thing", "Match")])
def test_nonsense_is_told_by_its_type(sandbox: Sandbox, name: str, kind: str) -> None:
    """An object that nobody can use comes back as something of a type of this name."""
    assert type(sandbox.call(name, "x")).__name__ == kind


@pytest.mark.parametrize(
    ("name", "text", "reason", "message"),
    [
        ("raises", "good", Reason.EXCEPTION, "ValueError: not good"),
        ("loops", "loop", Reason.TIMEOUT, "no answer within 0.5 s"),
        ("bomb", "", Reason.TIMEOUT, "no answer within 0.5 s"),
        ("eats", "", Reason.MEMORY, "eats needs more memory than it may have"),
        ("other", "", Reason.UNKNOWN_VALIDATOR, "the validators file has no function other"),
        ("SEEN", "", Reason.UNKNOWN_VALIDATOR, "the validators file has no function SEEN"),
    ],
)
def test_a_failure_costs_one_call(
    sandbox: Sandbox, name: str, text: str, reason: Reason, message: str
) -> None:
    """The error says why, and the next call of the same batch is answered as if nothing had been."""
    assert sandbox.call("is_short", "a") is True
    with pytest.raises(SandboxError) as caught:
        sandbox.call(name, text)
    assert (caught.value.reason, caught.value.message) == (reason, message)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes, made in this line
    assert (again.reason, again.message) == (reason, message)
    assert sandbox.call("is_short", "a") is True


def test_calls_do_not_see_each_other(sandbox: Sandbox) -> None:
    """A validator that counts in a list of its file counts to one in every call."""
    assert [sandbox.call("seen", "x") for _ in range(5)] == [True] * 5


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^b$", "a\nb\nc", "b"),
        ("x*", "abc", ""),
        ("z", "abc", None),
        (r"(?s)a.*", "a\n" + "b" * 3_000_000, "a\n" + "b" * 3_000_000),
        (r"\N{BULLET}|\ud800", "\ud800", "\ud800"),
    ],
)
def test_patterns_are_searched_as_python_does(
    sandbox: Sandbox, pattern: str, text: str, found: str | None
) -> None:
    """MULTILINE, anywhere in the text, the text that matched, however long it is."""
    assert sandbox.search(pattern, text) == found


def test_bad_patterns_are_told_from_slow_ones(sandbox: Sandbox) -> None:
    """A pattern that is none, and one that never ends, each cost their own search."""
    for pattern, reason in (("(", Reason.BAD_PATTERN), ("(a+)+$", Reason.TIMEOUT)):
        with pytest.raises(SandboxError) as caught:
            sandbox.search(pattern, "a" * 64 + "b")
        assert caught.value.reason is reason
    assert sandbox.search("a", "a") == "a"


def test_the_pipeline_takes_it(sandbox: Sandbox) -> None:
    """Stages 0 and 0.5 of the pipeline ask the sandbox and tell what it said."""
    case = {"regex_pattern": "^b", "validator": "with_text"}
    assert validate(case, "a\nb", sandbox=sandbox).passed
    slow = validate({"validator": "loops"}, "loop", sandbox=sandbox)
    assert (slow.status, "timed out" in slow.message) == ("failed_custom", True)


def test_a_refused_file_is_not_run(boxes: Sandboxes) -> None:
    """The worker checks again what the submitting side has checked."""
    for _ in range(2):
        with pytest.raises(ValidatorSecurityError, match="line 1"), boxes.batch("import os"):
            pass


def test_a_file_that_is_no_python_fails_its_calls(boxes: Sandboxes) -> None:
    """Each call says what the compiler says; patterns are searched all the same."""
    with boxes.batch("def v(:") as sandbox:
        with pytest.raises(SandboxError, match="SyntaxError"):
            sandbox.call("v", "x")
        assert sandbox.search("x", "x") == "x"


def test_threads_do_not_disturb_each_other(boxes: Sandboxes) -> None:
    """Several batches at once, some of which loop, each get their own answers, soon."""
    together = Barrier(6)

    def work(number: int) -> list[Any]:
        with boxes.batch(SOURCE) as sandbox:
            together.wait(30)
            if number % 3 == 0:
                with pytest.raises(SandboxError):
                    sandbox.call("loops", "loop")
            return [sandbox.call("with_text", f"{number} {each}") for each in range(50)]

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(work, range(6)))
    assert answers == [[(True, f"got {number} {each}") for each in range(50)] for number in range(6)]


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
