"""Makes broken documents of good ones, for tests of parsers: bytes cut, swapped, put in between."""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st

ODD: Final = (
    b"",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    b"\r",
    b"\n",
    b"\t",
    b'"',
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"#",
    b"&a",
    b"*a",
    b"<<",
    b"!!",
    b"- ",
    b"|",
    b"%",
    b"@",
    b"?",
    b"null",
    b"true",
    b"NaN",
    b"1e999",
    b"-0",
    b"1" * 5_000,
    b"0.5",
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"  ",
    b"data:",
    "\u0661".encode(),
    "\u2028".encode(),
    "\u202e".encode(),
    "\U0001f600".encode(),
    b"9999-99-99",
    b"://",
)  # fmt: skip - a list of words
"""What is put into documents."""


@st.composite
def mutated(draw: st.DrawFn, documents: Sequence[bytes], edits: int = 4) -> bytes:
    """Draws a document with some edits."""
    document = draw(st.sampled_from(documents))
    for _ in range(draw(st.integers(0, edits))):
        start = draw(st.integers(0, len(document)))
        end = min(len(document), start + draw(st.integers(0, 8)))
        document = document[:start] + draw(st.sampled_from(ODD) | st.binary(max_size=4)) + document[end:]
    return document


def broken(documents: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Draws broken documents, and now and then bytes of no document at all."""
    return mutated(documents) | st.binary(max_size=64)


def broken_text(documents: Sequence[bytes]) -> st.SearchStrategy[str]:
    """The same as text, with everything a Python text may hold."""
    return broken(documents).map(lambda data: data.decode(errors="surrogateescape")) | st.text(max_size=40)
