"""Runs a program under a system call filter like a container engine's: `syscall_filter.py RULES PROGRAM …`.

RULES is a JSON list of [call number, test, argument index, value, errno]: a call that matches fails with
errno, every other is made. `test` is `any`, `eq` (the argument equals the value), `bits` (it has some of
these bits) or `all` (it has all of them). It is run inside containers as `python -c`, so it imports the
standard library only.
"""

import ctypes
import json
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, AND, JUMP_IF_EQUAL, JUMP_IF_BITS, RETURN = 0x20, 0x54, 0x15, 0x45, 0x06
Rule = tuple[int, str, int, int, int]
FAIL, ALLOW = 0x00050000, 0x7FFF0000
CALL_AT, ARGUMENTS_AT = 0, 16


def instructions(rules: list[Rule]) -> list[tuple[int, int, int, int]]:
    """Translates rules into the kernel's instructions: (code, jump if true, jump if false, value)."""
    program = [(LOAD, 0, 0, CALL_AT)]
    for number, test, argument, value, errno in rules:
        if test == "any":
            program += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, FAIL | errno)]
            continue
        jump = {"eq": JUMP_IF_EQUAL, "all": JUMP_IF_EQUAL, "bits": JUMP_IF_BITS}[test]
        rule = [
            (LOAD, 0, 0, ARGUMENTS_AT + 8 * argument),
            *([(AND, 0, 0, value)] if test == "all" else []),
            (jump, 0, 1, value),
            (RETURN, 0, 0, FAIL | errno),
            (LOAD, 0, 0, CALL_AT),
        ]
        program += [(JUMP_IF_EQUAL, 0, len(rule), number), *rule]
    return [*program, (RETURN, 0, 0, ALLOW)]


def install(rules: list[Rule]) -> None:
    """Puts this process, and all that it starts, under the rules.

    Raises:
        OSError: the kernel refuses the filter.
    """
    code = b"".join(struct.pack("HBBI", *each) for each in instructions(rules))
    text = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("HP", len(code) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter was refused")


if __name__ == "__main__":
    install([tuple(rule) for rule in json.loads(sys.argv[1])])
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - the program is the caller's
