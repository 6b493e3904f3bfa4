"""Reads entries of the dead set as the scripts write them."""

from shared.ledger.types import DeadItem


def unpack_dead(value: bytes) -> DeadItem:
    r"""Reads one value of the hash `dead:items`.

    >>> unpack_dead(b"cases|0|17|3|poison|2\n{}")
    DeadItem(kind='cases', generation=0, at_ms=17, attempts=3, code='poison', payload=b'{}', result=b'')
    """
    head, _, body = value.partition(b"\n")
    kind, generation, at_ms, attempts, code, size = head.decode().split("|")
    cut = int(size)
    return DeadItem(kind, int(generation), int(at_ms), int(attempts), code, body[:cut], body[cut:])
