"""Every loader and parser reads any bytes to a value, or to an error of ours that names file and place."""

from time import process_time
from typing import Final

import pytest
from hypothesis import given, settings

from tests.support.fuzz_targets import TARGETS, read
from tests.support.mutations import ODD, broken

EXAMPLES: Final = 40
"""Of each parser; all of them together cost some seconds."""
LONG: Final = 40_000
"""Bytes of a long document."""
SECONDS: Final = 2.0
"""Of processor time that reading one document may take, however hostile it is."""


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_end_in_a_value_or_in_an_error_of_ours(name: str) -> None:
    """Good documents are read; broken ones end in the parser's own errors, soon."""
    target = TARGETS[name]

    @settings(max_examples=max(EXAMPLES, settings().max_examples // 3))
    @given(broken(target.seeds))
    def explore(data: bytes) -> None:
        """Reads one document."""
        began = process_time()
        read(target, data)
        assert process_time() - began < SECONDS

    explore()


@pytest.mark.parametrize("name", TARGETS)
def test_long_documents_are_read_in_proportion(name: str) -> None:
    """A document that repeats an odd word, or a part of itself, takes no more than its length deserves."""
    target, seed = TARGETS[name], TARGETS[name].seeds[0]
    for word in filter(None, (*ODD[::2], seed[: len(seed) // 2], seed + b"\n")):
        began = process_time()
        read(target, seed + word * (LONG // len(word)))
        assert process_time() - began < SECONDS, word[:40]
