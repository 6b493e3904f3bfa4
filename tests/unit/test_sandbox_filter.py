"""Runs the sandbox's system call filter in small, for both processor families, whichever the tests run on."""

import struct
from typing import Final

import pytest

from worker.sandbox import filters
from worker.sandbox.filters import (
    AARCH64,
    ALLOW,
    DENY,
    KILL,
    PLAIN_FORK,
    X86_64,
    Machine,
    filter_program,
    template_program,
)
from worker.sandbox.probes import PROT_READ, PROT_WRITE

PAGES: Final = (PROT_READ, PROT_READ | PROT_WRITE)
BOTH: Final = pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=["x86_64", "aarch64"])
MOST_CALLS: Final = 700
"""Above the number of every system call there is."""


def verdict(
    machine: Machine, audit: int, number: int, third: int = 0, *, first: int = 0, is_template: bool = False
) -> int:
    """The verdict on a system call: follows the instructions as the kernel does."""
    seccomp_data = struct.pack("IIQ6Q", number, audit, 0, first, 0, third, 0, 0, 0)
    instructions = (template_program if is_template else filter_program)(machine)
    program = list(struct.iter_unpack("HBBI", instructions))
    place = word = 0
    while True:
        code, if_so, if_not, value = program[place]
        place += 1
        if code == filters.RETURN:
            return int(value)
        if code == filters.LOAD:
            (word,) = struct.unpack_from("I", seccomp_data, value)
            continue
        holds = {
            filters.JUMP_IF: word == value,
            filters.JUMP_FROM: word >= value,
            filters.JUMP_BITS: bool(word & value),
        }[code]
        place += if_so if holds else if_not


@BOTH
def test_only_calls_of_the_list_are_made(machine: Machine) -> None:
    """Of all numbers, those of the list and the two that ask for memory are allowed, the others denied."""
    verdicts = {number: verdict(machine, machine.audit, number) for number in range(MOST_CALLS)}
    allowed = {number for number, what in verdicts.items() if what == ALLOW}
    assert allowed == {*machine.allowed, machine.mmap, machine.mprotect}
    assert {what for number, what in verdicts.items() if number not in allowed} == {DENY}


@BOTH
def test_what_the_self_test_tries_is_not_on_the_list(machine: Machine) -> None:
    """Files, sockets, processes and the rest of the self-test's calls are denied by their own numbers."""
    assert {verdict(machine, machine.audit, number) for number in machine.probes.values()} == {DENY}


@BOTH
def test_memory_never_holds_new_code(machine: Machine) -> None:
    """Memory may be asked for and changed to be read or written; with execution the call is denied."""
    for number in (machine.mmap, machine.mprotect):
        for pages in PAGES:
            assert verdict(machine, machine.audit, number, pages) == ALLOW
            assert verdict(machine, machine.audit, number, pages | filters.PROT_EXEC) == DENY


@BOTH
def test_other_ways_of_calling_end_the_process(machine: Machine) -> None:
    """Numbers of another processor family, or of x32, are never looked up in this one's list."""
    other = AARCH64 if machine is X86_64 else X86_64
    first = machine.allowed[0]
    assert verdict(machine, other.audit, first) == KILL
    assert verdict(machine, machine.audit, filters.X32_CALLS | first) == KILL


@BOTH
def test_a_template_can_fork_and_little_else(machine: Machine) -> None:
    """Beside the strict list it has pipes, the end of a case and its own lock."""
    verdicts = {
        number: verdict(machine, machine.audit, number, is_template=True) for number in range(MOST_CALLS)
    }
    allowed = {number for number, what in verdicts.items() if what == ALLOW}
    strict = {*machine.allowed, machine.mmap, machine.mprotect}
    assert allowed == strict | {*machine.template, machine.clone, machine.limits}
    reached = {name for name, number in machine.probes.items() if number in allowed}
    assert reached <= {"clone", "fork", "prctl"}


@BOTH
def test_a_template_forks_plainly(machine: Machine) -> None:
    """No thread, shared memory, namespace or other signal at the end: each such bit alone is denied."""

    def fork(flags: int) -> int:
        return verdict(machine, machine.audit, machine.clone, first=flags, is_template=True)

    assert fork(PLAIN_FORK) == ALLOW
    for bit in range(32):
        assert fork(1 << bit) == (ALLOW if 1 << bit & PLAIN_FORK else DENY)
        assert fork(PLAIN_FORK | 1 << bit) == (ALLOW if 1 << bit & PLAIN_FORK else DENY)


@BOTH
def test_a_template_limits_only_itself(machine: Machine) -> None:
    """Limits of another process, whatever its id, are out of reach."""
    for other in (1, 2, 4711, 1 << 31):
        assert verdict(machine, machine.audit, machine.limits, first=other, is_template=True) == DENY
    assert verdict(machine, machine.audit, machine.limits, first=0, is_template=True) == ALLOW
