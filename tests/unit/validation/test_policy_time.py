"""Tests that the static policy takes time in proportion to the file, whatever is in it."""

import sys
from collections.abc import Callable
from time import process_time
from typing import Final

import pytest

from worker.validation.policy import first_problem
from worker.validation.policy_vocabulary import MAX_SOURCE_CHARS

GROWING: Final[dict[str, Callable[[int], str]]] = {
    "names of a function around": lambda n: (
        "def f():\n" + "".join(f" a{i}=1\n" for i in range(n)) + " lambda: 0\n" * n
    ),
    "attributes of attributes": lambda n: f"x{'.a' * 100}\n" * (n // 50),
    "members of members": lambda n: f"import re\n{'re.a' + '.b' * 100 + chr(10)}" * (n // 50),
    "formats of one name": lambda n: "t = 'x'\n" * n + "t.format(1)\n" * n,
    "comprehensions in lambdas": lambda n: f"x = {'lambda: [(' * 30}1{') for i in y]' * 30}\n" * (n // 50),
    "functions in functions": lambda n: (
        "".join(f"{' ' * i}def f{i}(a{i}):\n" for i in range(90)) + f"{' ' * 90}{'a = 1;' * n}\n"
    ),
    "names of a class": lambda n: (
        "class A:\n" + "".join(f" a{i} = 1\n def f{i}(self): pass\n" for i in range(n))
    ),
}
"""Files that grow; each took time with the square of its length in an earlier version, or nearly did."""


def steps(source: str) -> int:
    """How many functions are called while a file is checked, those that are built in included."""
    found = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal found
        found += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        first_problem(source)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("name", GROWING)
def test_the_check_is_linear(name: str) -> None:
    """Four times the file takes at most about four times the steps."""
    short, long = (steps(GROWING[name](n)) for n in (100, 400))
    assert long < 5 * short


@pytest.mark.slow
@pytest.mark.parametrize("name", GROWING)
def test_the_largest_file_is_checked_in_seconds(name: str) -> None:
    """A file of the greatest length that is read takes less than ten seconds of processor time."""
    n = 100
    while len(GROWING[name](2 * n)) <= MAX_SOURCE_CHARS:
        n *= 2
    began = process_time()
    first_problem(GROWING[name](n))
    assert process_time() - began < 10
