"""Runs the sandbox's system call filter in small, for both processor families, whichever the tests run on."""

import struct
from typing import Final

import pytest

from worker.sandbox import lockdown
from worker.sandbox.lockdown import AARCH64, ALLOW, DENY, KILL, X86_64, Machine, filter_program

PAGES: Final = (lockdown.PROT_READ, lockdown.PROT_READ | lockdown.PROT_WRITE)
BOTH: Final = pytest.mark.parametrize("machine", [X86_64, AARCH64], ids=["x86_64", "aarch64"])
MOST_CALLS: Final = 700
"""Above the number of every system call there is."""


def verdict(machine: Machine, audit: int, number: int, third: int = 0) -> int:
    """What the kernel would be told of a system call: follows the instructions as the kernel does."""
    seccomp_data = struct.pack("IIQ6Q", number, audit, 0, 0, 0, third, 0, 0, 0)
    program = list(struct.iter_unpack("HBBI", filter_program(machine)))
    place = word = 0
    while True:
        code, if_so, if_not, value = program[place]
        place += 1
        if code == lockdown.RETURN:
            return int(value)
        if code == lockdown.LOAD:
            (word,) = struct.unpack_from("I", seccomp_data, value)
            continue
        holds = {
            lockdown.JUMP_IF: word == value,
            lockdown.JUMP_FROM: word >= value,
            lockdown.JUMP_BITS: bool(word & value),
        }[code]
        place += if_so if holds else if_not


@BOTH
def test_only_calls_of_the_list_are_made(machine: Machine) -> None:
    """Of all numbers, those of the list and the two that ask for memory are allowed, the others denied."""
    said = {number: verdict(machine, machine.audit, number) for number in range(MOST_CALLS)}
    allowed = {number for number, what in said.items() if what == ALLOW}
    assert allowed == {*machine.allowed, machine.mmap, machine.mprotect}
    assert {what for number, what in said.items() if number not in allowed} == {DENY}


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
            assert verdict(machine, machine.audit, number, pages | lockdown.PROT_EXEC) == DENY


@BOTH
def test_other_ways_of_calling_end_the_process(machine: Machine) -> None:
    """Numbers of another processor family, or of x32, are never looked up in this one's list."""
    other = AARCH64 if machine is X86_64 else X86_64
    first = machine.allowed[0]
    assert verdict(machine, other.audit, first) == KILL
    assert verdict(machine, machine.audit, lockdown.X32_CALLS | first) == KILL
