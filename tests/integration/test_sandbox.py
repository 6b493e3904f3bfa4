"""Tests the sandbox as workers use it: answers, failures, patterns, threads."""

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, Final

import pytest

from shared.errors import CheckUnusableError, ValidatorSecurityError
from tests.unit.validation.test_policy import ORDINARY
from worker.sandbox import Sandbox, SandboxError, Sandboxes, SandboxReason, UnusableError
from worker.validation.checks import Subject, parse_checks
from worker.validation.pipeline import validate
from worker.validation.scoring import run_deterministic

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
def score(output): return 0.25
def reasoned(output): return 0.5, f"half of {output}"
def with_context(output, context): return output == context["vars"]["city"], context["input"]
def with_option(output, limit=3): return len(output) < limit
def with_named(output, context=None): return context is not None
def changes(output, context):
    context["vars"]["city"] = "Rome"
    SEEN.append(output)
    return len(SEEN) == 1
"""


@pytest.fixture(scope="module")
def boxes() -> Iterator[Sandboxes]:
    """Sandboxes with short deadlines."""
    made = Sandboxes(call_s=2, search_s=1.5)
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


@pytest.mark.parametrize(
    ("name", "returned"),
    [
        ("is_short", True),
        ("score", 0.25),
        ("reasoned", (0.5, "half of P\xe4r\ud800")),
        ("with_context", (False, "Where?")),
        ("with_option", False),
        ("with_named", True),
        ("changes", True),
        ("nothing", None),
    ],
)
def test_a_function_of_a_check_answers(sandbox: Sandbox, name: str, returned: object) -> None:
    """It may score, and receives a context if it has a parameter for one; nothing of a call stays."""
    context = '{"vars": {"city": "Paris"}, "input": "Where?"}'
    for _ in range(2):
        answer = sandbox.check(name, "P\xe4r\ud800", context)
        assert answer == returned
        assert type(answer) is type(returned)


def test_checks_call_functions_in_the_sandbox(sandbox: Sandbox) -> None:
    """From the parsed check to its score; a function that is missing decides nothing."""
    raw = [
        {"python": "with_context"},
        {"python": "reasoned", "at_least": 0.5},
        {"python": "loops"},
        {"regex": "^P"},
    ]
    subject = Subject("Paris", input="Where?", vars={"city": "Paris"}, sandbox=sandbox)
    rows = run_deterministic(parse_checks(raw), subject)
    assert [(row.score, row.passed) for row in rows] == [(1.0, True), (0.5, True), (1.0, True), (1.0, True)]
    assert rows[0].reason == "Where?"
    looping = Subject("loop", sandbox=sandbox)
    [row] = run_deterministic(parse_checks([{"python": "loops"}]), looping)
    assert (row.passed, row.detail["error"]) == (False, "timeout")
    with pytest.raises(CheckUnusableError):
        run_deterministic(parse_checks([{"python": "missing"}]), subject)


@pytest.mark.parametrize(("name", "kind"), [("pair", "tuple"), ("thing", "Match")])
def test_nonsense_is_reported_by_its_type(sandbox: Sandbox, name: str, kind: str) -> None:
    """An object that nobody can use comes back as something of a type of this name."""
    assert type(sandbox.call(name, "x")).__name__ == kind


@pytest.mark.parametrize(
    ("name", "text", "reason", "message"),
    [
        ("raises", "good", SandboxReason.EXCEPTION, "ValueError: not good"),
        ("loops", "loop", SandboxReason.TIMEOUT, "no answer within 2 s"),
        ("bomb", "", SandboxReason.TIMEOUT, "no answer within 2 s"),
        ("eats", "", SandboxReason.MEMORY, "eats needs more memory than it may have"),
        ("other", "", SandboxReason.UNKNOWN_VALIDATOR, "the validators file has no function other"),
        ("SEEN", "", SandboxReason.UNKNOWN_VALIDATOR, "the validators file has no function SEEN"),
    ],
)
def test_a_failure_costs_one_call(
    sandbox: Sandbox, name: str, text: str, reason: SandboxReason, message: str
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


def test_bad_patterns_are_distinguished_from_slow_ones(sandbox: Sandbox) -> None:
    """A pattern that is none, and one that never ends, each cost their own search."""
    for pattern, reason in (("(", SandboxReason.BAD_PATTERN), ("(a+)+$", SandboxReason.TIMEOUT)):
        with pytest.raises(SandboxError) as caught:
            sandbox.search(pattern, "a" * 64 + "b")
        assert caught.value.reason is reason
    assert sandbox.search("a", "a") == "a"


def test_the_pipeline_takes_it(sandbox: Sandbox) -> None:
    """Stages 0 and 0.5 of the pipeline call the sandbox and report its reply."""
    case = {"regex_pattern": "^b", "validator": "with_text"}
    assert validate(case, "a\nb", sandbox=sandbox).passed
    slow = validate({"validator": "loops"}, "loop", sandbox=sandbox)
    assert (slow.status, "timed out" in slow.message) == ("failed_custom", True)


@pytest.mark.parametrize("name", ORDINARY)
def test_what_the_policy_takes_the_sandbox_runs(boxes: Sandboxes, name: str) -> None:
    """An ordinary validator is never failed for what its process lacks, such as an import."""
    with boxes.batch(ORDINARY[name]) as sandbox:
        failure = None
        try:
            sandbox.call("is_valid_python" if "document" in name else "v", "x")
        except SandboxError as error:
            failure = error
    message = "" if failure is None else failure.message
    assert failure is None or failure.reason is SandboxReason.EXCEPTION, message
    assert not message.startswith(("Import", "ModuleNotFound", "Permission", "OSError", "Lookup"))


@pytest.mark.parametrize(
    ("source", "reason", "message"),
    [
        (
            "1 / 0",
            SandboxReason.EXCEPTION,
            "the validators file cannot be loaded: ZeroDivisionError: division by zero",
        ),
        ("import re\nre.no", SandboxReason.EXCEPTION, "the validators file cannot be loaded: AttributeError"),
        (
            "while True: pass",
            SandboxReason.TIMEOUT,
            "the validators file cannot be loaded: no answer within 2 s",
        ),
        (
            "x = 'x' * 10 ** 12",
            SandboxReason.MEMORY,
            "the validators file cannot be loaded: the validators file needs",
        ),
        ("x = 1", SandboxReason.UNKNOWN_VALIDATOR, "the validators file has no function v"),
    ],
)
def test_a_broken_file_is_not_the_models_fault(
    boxes: Sandboxes, source: str, reason: SandboxReason, message: str
) -> None:
    """What would fail for every output passes through the pipeline as an error, not as a failed case."""
    with boxes.batch(source) as sandbox, pytest.raises(CheckUnusableError, match=message) as caught:
        validate({"validator": "v"}, "x", sandbox=sandbox)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes, made in this line
    assert isinstance(again, UnusableError)
    assert (again.reason, again.message, again.hint) == (reason, caught.value.message, caught.value.hint)
    assert again.hint


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
