r"""How the result of a case or a query is stored, and read back in input order, a page at a time.

The first line is a header, which is enough for counting; after it comes the JSON:

    p|1760000000000|1760000000412|1|398|-\n{"id":"Q-01",…}
    code | started ms | finished ms | attempts | latency ms | cost in USD, or -

A **code** is the outcome: `p`assed, `f`ailed, `x` for an error, whose line is
`{"error":{"code","message"},"result":{…}}`, or `n` for an item that was not needed, whose line is
`{"reason":"…"}`; then flags: `c` answered from the cache, `j` a judge was needed
and could not be reached, `p` poisoned: no worker survived it, so there is no line of its own and readers put
the item's input in its place.

The JSON may be packed (`shared.codecs.packing`); the header never is, because the ledger's scripts read it.

Each item has one field, named by its position, and a retry replaces its value. Therefore a page is a range of
positions, and nothing is sorted or merged.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from shared.codecs.packing import PLAIN, Packing
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
CODE_OF_OUTCOME: Final = {
    Outcome.PASSED: "p",
    Outcome.FAILED: "f",
    Outcome.ERROR: "x",
    Outcome.SKIPPED: "n",
}
OUTCOME_OF_CODE: Final = {code: outcome for outcome, code in CODE_OF_OUTCOME.items()}
PAGE_ITEMS: Final = 200
"""Results fetched in one round trip; an answer may be large."""
Fetch = Callable[[Sequence[str]], Sequence[bytes | None]]
"""Reads the values of some fields, in order."""


class ItemRow(NamedTuple):
    """The result of one case or query, or the lack of one."""

    index: int  # type: ignore[assignment] # hides tuple.index, which is not used
    """Position in the input, from 0."""
    code: str
    """How it ended, as above; empty for an item that the run ended without."""
    line: bytes
    """The stored JSON; of a poisoned item, and of one without a result, its input."""
    started_ms: int = 0
    """Start of its first attempt, epoch milliseconds; 0 without a result."""
    finished_ms: int = 0
    """End of its evaluation, epoch milliseconds; 0 without a result."""
    attempts: int = 0
    """How often it was sent."""
    latency_ms: int | None = None
    """How long the answer took; None without one."""
    cost_usd: float | None = None
    """Cost of the answer and its judges; None when that is not known."""
    payload: bytes = b""
    """The item's input, if requested."""

    @property
    def outcome(self) -> Outcome:
        """How it ended, as a word.

        >>> ItemRow(0, "", b"").outcome.value, ItemRow(0, "xp", b"").outcome.value
        ('skipped', 'error')
        """
        return OUTCOME_OF_CODE[self.code[0]] if self.code else Outcome.SKIPPED


def pack_item(row: ItemRow, packing: Packing = PLAIN) -> bytes:
    r"""Writes what is stored of a result; its position is the name of the field.

    >>> pack_item(ItemRow(3, "p", b"{}", 5, 7, 1, 2))
    b'p|5|7|1|2|-\n{}'
    """
    latency = ABSENT if row.latency_ms is None else row.latency_ms
    cost = ABSENT if row.cost_usd is None else repr(row.cost_usd)
    head = f"{row.code}|{row.started_ms}|{row.finished_ms}|{row.attempts}|{latency}|{cost}\n"
    return head.encode() + packing.pack(row.line)


def unpack_item(index: int, value: bytes, packing: Packing = PLAIN) -> ItemRow:
    r"""Reads what is stored of a result.

    >>> unpack_item(3, b'p|5|7|1|2|0.25\n{}')[3:8]
    (5, 7, 1, 2, 0.25)
    >>> unpack_item(3, b'poison').code
    'xp'
    """
    head, _, line = value.partition(b"\n")
    return _unpacked(index, head, packing.unpack(line))


def unpack_head(index: int, value: bytes) -> ItemRow:
    r"""Reads what stands before the JSON of a result, in a quarter of the time.

    >>> unpack_head(3, b'p|5|7|1|2|0.25\n{}')[1:4]
    ('p', b'', 5)
    """
    return _unpacked(index, value.partition(b"\n")[0], b"")


def _unpacked(index: int, head: bytes, line: bytes) -> ItemRow:
    if head == POISON_VALUE:
        return ItemRow(index, POISON_CODE, b"")
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


def outcome_of(value: bytes) -> Outcome:
    r"""Returns how an item ended by its stored field, which begins with its generation.

    >>> outcome_of(b'0|p|5|7|1|2|-\n{}').value, outcome_of(b'1|poison').value
    ('passed', 'error')
    """
    result = value.partition(b"|")[2]
    return Outcome.ERROR if result == POISON_VALUE else OUTCOME_OF_CODE[chr(result[0])]


class _NotNeeded(msgspec.Struct):
    reason: str


_read_reason: Final = msgspec.json.Decoder(_NotNeeded).decode


def reason_of(row: ItemRow) -> str:
    """Returns why an item was skipped; empty where the run ended before it.

    >>> reason_of(ItemRow(0, "n", b'{"reason":"verdict certain"}')), reason_of(ItemRow(0, "", b"{}"))
    ('verdict certain', '')
    """
    return _read_reason(row.line).reason if row.code else ""


class ItemReader:
    """Turns positions into pages of rows.

    Args:
        results: reads result fields.
        items: reads inputs; called only for items without a result and for poisoned ones.
        with_open: whether items without a result get a row, as in a run that has ended.
        with_payload: whether rows contain the item's input.
        packing: of the run.
    """

    def __init__(
        self,
        results: Fetch,
        items: Fetch,
        *,
        with_open: bool,
        with_payload: bool = False,
        packing: Packing = PLAIN,
    ) -> None:
        self._results = results
        self._items = items
        self._packing = packing
        self._with_open = with_open
        self._with_payload = with_payload

    def pages(self, total: int, *, first: int = 0) -> Iterator[list[ItemRow]]:
        """Yields the rows of a run in input order.

        Args:
            total: its items.
            first: the position to begin with.
        """
        for start in range(first, total, PAGE_ITEMS):
            rows = self.rows(range(start, min(start + PAGE_ITEMS, total)))
            if rows:
                yield rows

    def heads(self, indexes: Sequence[int]) -> list[ItemRow]:
        """Returns the rows of some positions without their lines and inputs."""
        return self._read(indexes, unpack_head)

    def rows(self, indexes: Sequence[int]) -> list[ItemRow]:
        """Returns the rows of some positions."""
        rows = self._read(indexes, partial(unpack_item, packing=self._packing))
        if self._with_payload and rows:
            inputs = self._inputs([str(row.index) for row in rows])
            rows = [row._replace(payload=value or b"{}") for row, value in zip(rows, inputs, strict=True)]
        return self._with_inputs(rows)

    def _read(self, indexes: Sequence[int], unpack: Callable[[int, bytes], ItemRow]) -> list[ItemRow]:
        names = list(map(str, indexes))
        found = zip(indexes, self._results(names) if names else (), strict=True)
        return [
            ItemRow(index, "", b"") if value is None else unpack(index, value.partition(b"|")[2])
            for index, value in found
            if value is not None or self._with_open
        ]

    def _with_inputs(self, rows: list[ItemRow]) -> list[ItemRow]:
        """Puts the input into rows that have no line of their own."""
        bare = [str(row.index) for row in rows if row.code in ("", POISON_CODE)]
        if not bare:
            return rows
        inputs = dict(zip(bare, self._inputs(bare), strict=True))
        return [row._replace(line=inputs.get(str(row.index)) or row.line) for row in rows]

    def _inputs(self, names: Sequence[str]) -> list[bytes]:
        """Reads the inputs of some items; empty of one that has none."""
        return [self._packing.unpack(value or b"") for value in self._items(names)]
