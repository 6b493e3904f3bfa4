r"""How the result of a case or a query is stored: a header line, which is enough for counting, and its JSON.

    p|1760000000000|1760000000412|1|398|-\n{"id":"Q-01",…}
    code | started ms | finished ms | attempts | latency ms | cost in USD, or -

A **code** is the outcome: `p`assed, `f`ailed, or `x` for an error, whose line is
`{"error":{"code","message"},"result":{…}}`; then flags: `c` answered from the cache, `j` a judge was needed
and could not be reached, `p` poisoned: no worker survived it, so there is no line of its own and readers put
the item's input in its place.
"""

from typing import Final, NamedTuple

from shared.names import Outcome

POISON_VALUE: Final = b"poison"
"""Value that the ledger's poison rule writes in place of a result."""
POISON_CODE: Final = "xp"
"""Code of an item that no worker survived."""
POISON_ERROR: Final = ("poison", "no worker survived it")
"""Error code and message that readers put in the place of its result."""
CACHED: Final = "c"
"""Flag of a result that came from the cache."""
UNJUDGED: Final = "j"
"""Flag of a result without the judge that it needed: `retry` evaluates it again."""
ABSENT: Final = "-"
CODE_OF_OUTCOME: Final = {Outcome.PASSED: "p", Outcome.FAILED: "f", Outcome.ERROR: "x"}
OUTCOME_OF_CODE: Final = {code: outcome for outcome, code in CODE_OF_OUTCOME.items()}


class ItemRow(NamedTuple):
    """The result of one case or query, or the lack of one."""

    index: int  # type: ignore[assignment] # hides tuple.index, which is not used
    """Position in the input, from 0."""
    code: str
    """How it ended, as above; empty for an item that the run ended without."""
    line: bytes
    """The stored JSON; of a poisoned item, and of one without a result, its input."""
    started_ms: int = 0
    """When its first attempt began, epoch milliseconds; 0 without a result."""
    finished_ms: int = 0
    """When it was judged; 0 without a result."""
    attempts: int = 0
    """How often it was sent."""
    latency_ms: int | None = None
    """How long the answer took; None without one."""
    cost_usd: float | None = None
    """What it cost; None when that is not known."""
    payload: bytes = b""
    """The item's input, if requested."""

    @property
    def outcome(self) -> Outcome:
        """How it ended, as a word.

        >>> ItemRow(0, "", b"").outcome.value, ItemRow(0, "xp", b"").outcome.value
        ('skipped', 'error')
        """
        return OUTCOME_OF_CODE[self.code[0]] if self.code else Outcome.SKIPPED


def pack_item(row: ItemRow) -> bytes:
    r"""Writes what is stored of a result; its position is the name of the field.

    >>> pack_item(ItemRow(3, "p", b"{}", 5, 7, 1, 2))
    b'p|5|7|1|2|-\n{}'
    """
    latency = ABSENT if row.latency_ms is None else row.latency_ms
    cost = ABSENT if row.cost_usd is None else repr(row.cost_usd)
    head = f"{row.code}|{row.started_ms}|{row.finished_ms}|{row.attempts}|{latency}|{cost}\n"
    return head.encode() + row.line


def unpack_item(index: int, value: bytes) -> ItemRow:
    r"""Reads what is stored of a result.

    >>> unpack_item(3, b'p|5|7|1|2|0.25\n{}')[3:8]
    (5, 7, 1, 2, 0.25)
    >>> unpack_item(3, b'poison').code
    'xp'
    """
    if value == POISON_VALUE:
        return ItemRow(index, POISON_CODE, b"")
    head, _, line = value.partition(b"\n")
    code, started, finished, attempts, latency, cost = head.decode().split("|")
    return ItemRow(
        index,
        code,
        line,
        int(started),
        int(finished),
        int(attempts),
        None if latency == ABSENT else int(latency),
        None if cost == ABSENT else float(cost),
    )
