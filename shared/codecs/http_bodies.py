r"""Reads JSON and text out of the body of an HTTP reply, in whatever character set it came.

A byte order mark goes before the declared character set (`Content-Type: …; charset=…`), which goes before
what the first bytes look like. Halves of surrogate pairs become U+FFFD: no file and no request can hold them.

>>> json_of_body(b'\xef\xbb\xbf{"a": 1}')
{'a': 1}
>>> json_of_body('{"a": "ü"}'.encode("latin-1"), "iso-8859-1")
{'a': 'ü'}
>>> json_of_body(rb'["\ud83d\ude00", "\ud83d"]')
['😀', '\ufffd']
"""

import codecs
import json
import math
import re
from typing import Any, Final

import msgspec

_UTF_8: Final = frozenset({"utf-8", "ascii"})
"""Character sets that are read as UTF-8."""
_REFUSED: Final = frozenset(
    {"idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7", "undefined"}
)
"""Codecs of Python that are no character sets of the web; some take quadratic time."""
_MARK: Final = "\ufeff"
_HALVES: Final = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
"""Escaped backslashes and whole pairs, which stay (group 1), or half of a pair."""
_REPLACEMENT: Final = rb"\ufffd"
_NUMBERS: Final = re.compile(
    rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")|NaN|-?Infinity|-?\d++(?:\.\d++)?[eE]\+?\d{3,}+', re.DOTALL
)
"""Texts, which stay (group 1), or numbers that may be too large or none at all."""


def json_of_body(body: bytes, charset: str | None = "") -> Any:
    """Reads a body as JSON.

    Args:
        body: all of it.
        charset: as the reply declares it; an unknown one counts as not declared.

    Raises:
        ValueError: it is no JSON.
    """
    codec = _codec_of(body, charset)
    try:
        data = body if codec in _UTF_8 else body.decode(codec).removeprefix(_MARK).encode()
        try:
            return msgspec.json.decode(data)
        except msgspec.MsgspecError:
            repaired = _HALVES.sub(lambda found: found[1] or _REPLACEMENT, data)
            if repaired == data:
                raise
            return msgspec.json.decode(repaired)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None


def with_finite_numbers(body: bytes) -> bytes:
    """Replaces numbers that JSON does not have, or no machine can hold, by null, as some servers write them.

    >>> with_finite_numbers(b'{"text": "NaN", "usage": [NaN, -Infinity, 1e400, 1e200]}')
    b'{"text": "NaN", "usage": [null, null, null, 1e200]}'
    """
    return _NUMBERS.sub(
        lambda found: found[1] or (found[0] if math.isfinite(float(found[0])) else b"null"), body
    )


def without_half_pairs(text: str) -> str:
    r"""Replaces halves of surrogate pairs, which can be written nowhere.

    >>> without_half_pairs("a\ud800b")
    'a\ufffdb'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def text_of_body(body: bytes, charset: str | None = "") -> str:
    r"""Reads a body as text; bytes that are none are replaced.

    >>> text_of_body("für".encode("latin-1"), "latin1"), text_of_body(b"\xff\xfeh\0i\0")
    ('für', 'hi')
    >>> text_of_body(b"\xff!", "no-such-set")
    '\ufffd!'
    """
    return body.decode(_codec_of(body, charset), errors="replace").removeprefix(_MARK)


def _codec_of(body: bytes, charset: str | None) -> str:
    """Names the codec that a body is to be read with."""
    found = json.detect_encoding(body)
    if found in {"utf-8-sig", "utf-16", "utf-32"}:  # a byte order mark
        return found
    try:
        declared = codecs.lookup(charset or "utf-8").name
        b"-".decode(declared, "replace")  # a LookupError where it makes no text
    except (LookupError, ValueError):
        return found
    if declared in _REFUSED or declared in _UTF_8:
        return found
    return declared
