"""The two hashes of a case: of what decides its answer, and of what decides its verdict; pure.

They are of the case alone, so that two files can be compared whatever their runs do with them: the system
prompt and the templates of a bench, options, models and judges are settings, which a run stores apart.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from shared.contracts.checks import Check

HASH_BYTES: Final = 8
"""Enough to tell the cases of two files apart."""
JUDGES: Final = frozenset({"model", "models"})
"""Options of checks that name who judges, and not what is expected."""
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class CaseHashes(NamedTuple):
    """What two versions of a case are compared by."""

    input: str
    """Of what decides its answer, as hexadecimal digits; empty: not known."""
    expectation: str
    """Of what decides its verdict."""


NO_HASHES: Final = CaseHashes("", "")
"""Of a case of a run that did not store them."""


def hash_of(*values: Any) -> bytes:
    """Hashes values that JSON has; the order of keys does not count.

    >>> hash_of({"a": 1, "b": 2}) == hash_of({"b": 2, "a": 1}), hash_of("a") == hash_of("b")
    (True, False)
    """
    return blake2b(_encode(values), digest_size=HASH_BYTES).digest()


def hashes_of_case(asked: Sequence[Any], criteria: Mapping[str, Any], checks: Sequence[Check]) -> CaseHashes:
    """Hashes a case.

    Args:
        asked: what decides its answer.
        criteria: what a good answer looks like.
        checks: among these, rendered.

    >>> one, other = (hashes_of_case(["Hi"], {}, [Check("rubric", options={"model": name})]) for name in "ab")
    >>> one == other, one == hashes_of_case(["Hi"], {}, [Check("rubric", "Polite?")])
    (True, False)
    """
    return CaseHashes(hash_of(*asked).hex(), hash_of(criteria, list(map(_without_judges, checks))).hex())


def _without_judges(check: Check) -> Check:
    """Leaves out who judges."""
    if not (check.checks or check.written or JUDGES & check.options.keys()):
        return check
    options = {name: value for name, value in check.options.items() if name not in JUDGES}
    return msgspec.structs.replace(
        check, options=options, checks=tuple(map(_without_judges, check.checks)), written=""
    )
