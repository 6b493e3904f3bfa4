"""Finds the rows of a run that meet a filter, a stretch at a time, and keeps what filters look at."""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event, Lock
from time import monotonic
from typing import Any, Final, NamedTuple

from producer import kinds
from producer.items.facts import HEAD, head_of
from producer.row_filter import RowFacts, RowFilter
from producer.row_reader import RowReader, state_of
from shared.kinds import Storage

MOST_KEPT: Final = 200_000
"""Rows of a run up to which their facts are kept, in some 150 MB; of larger ones only what is found."""
MOST_TABLES: Final = 3
"""Tables of facts that are kept: of a run, what most filters look at, until then what is read fastest, and
apart from these large texts."""
MOST_FINDS: Final = 16
"""Filters whose results are kept."""
BUDGET_S: Final = 0.2
"""How long a request reads or tests further rows; the next one goes on from there."""
STRETCH: Final = 2_000
"""Rows that are read together."""
DERIVED: Final = frozenset({"failed_checks", "first_token_ms", "disagreement", "doubt"})
"""Facts that take longer to read, and are read with the others while nobody waits."""
USUAL: Final = frozenset(RowFacts.__struct_fields__) - DERIVED - {"metadata", "vars", "output"}
"""Facts that are read whatever a filter looks at, so that the next one finds them."""
BREATH_S: Final = 0.001
"""Between two stretches that are read while nobody waits: a search goes first."""


class Found(NamedTuple):
    """What is known of a filter's rows so far."""

    positions: "array[int]"
    searched: int
    """Rows that were tested."""


@dataclass(slots=True)
class _Facts:
    """The facts of a run's rows, from the first one on."""

    fields: frozenset[str]
    positions: "array[int]" = field(default_factory=lambda: array("L"))
    facts: list[RowFacts] = field(default_factory=list)
    read: int = 0
    """Positions that were read."""


@dataclass(slots=True)
class _Find:
    """The rows that meet a filter, as far as they are known."""

    positions: "array[int]" = field(default_factory=lambda: array("L"))
    searched: int = 0
    tested: int = 0
    """Facts of the run that were tested, where they are kept."""


class RowFinder:
    """Finds rows; shared by all requests."""

    def __init__(self) -> None:
        self._facts = OrderedDict[tuple[str, frozenset[str]], _Facts]()
        self._finds = OrderedDict[tuple[str, str], _Find]()
        self._lock, self._closed = Lock(), Event()

    def prepare(self, reader: RowReader) -> None:
        """Reads what most filters look at, of a run that has ended, so that the first search finds it read.

        Args:
            reader: reads the run.
        """
        info, state = reader.info, state_of(reader.info)
        is_read = not info.is_final or info.total > MOST_KEPT
        while not is_read and not self._closed.wait(BREATH_S):
            with self._lock:
                key = state, frozenset[str]()
                facts = self._kept(self._facts, key, lambda: _Facts(USUAL | DERIVED), MOST_TABLES)
                _read_on(facts, reader)
                is_read = facts.read >= info.total

    def close(self) -> None:
        """Ends what is being prepared."""
        self._closed.set()

    def find(self, reader: RowReader, wanted: RowFilter) -> Found:
        """Goes on with a search for some time; a run that has changed is searched anew.

        Args:
            reader: reads the run.
            wanted: which rows.
        """
        state = state_of(reader.info)
        with self._lock:
            until_s = monotonic() + BUDGET_S
            find = self._kept(self._finds, (state, wanted.text), _Find, MOST_FINDS)
            if find.searched >= reader.info.total:
                pass  # its facts may have been dropped meanwhile
            elif reader.info.total <= MOST_KEPT:
                self._among_kept(find, reader, state, wanted, until_s)
            else:
                self._afresh(find, reader, wanted, until_s)
            return Found(find.positions, find.searched)

    def _among_kept(
        self, find: _Find, reader: RowReader, state: str, wanted: RowFilter, until_s: float
    ) -> None:
        info = reader.info
        usual = self._facts.get((state, frozenset()))
        if wanted.fields <= HEAD and (usual is None or usual.read < info.total):
            key, fields = (state, HEAD), HEAD
        else:
            key = state, wanted.fields - USUAL - DERIVED  # large texts are apart from what all filters use
            fields = USUAL | wanted.fields
        facts = self._kept(self._facts, key, lambda: _Facts(fields), MOST_TABLES)
        if not wanted.fields <= facts.fields:
            facts = self._facts[key] = _Facts(facts.fields | wanted.fields)
        while facts.read < info.total and monotonic() < until_s:
            _read_on(facts, reader)
        matches = wanted.matches
        for at in range(find.tested, len(facts.facts)):
            if matches(facts.facts[at]):
                find.positions.append(facts.positions[at])
        # While facts are read anew, with more fields, earlier searches are ahead of them.
        find.tested, find.searched = max(find.tested, len(facts.facts)), max(find.searched, facts.read)

    def _afresh(self, find: _Find, reader: RowReader, wanted: RowFilter, until_s: float) -> None:
        info = reader.info
        while find.searched < info.total and monotonic() < until_s:
            end = min(info.total, find.searched + STRETCH)
            for position, each in _read(reader, find.searched, end, wanted.fields):
                if wanted.matches(each):
                    find.positions.append(position)
            find.searched = end

    @staticmethod
    def _kept(kept: OrderedDict[Any, Any], key: Any, make: Callable[[], Any], most: int) -> Any:
        if key not in kept:
            kept[key] = make()
        kept.move_to_end(key)
        while len(kept) > most:
            kept.popitem(last=False)
        return kept[key]


def _read_on(facts: _Facts, reader: RowReader) -> None:
    """Reads the next stretch."""
    end = min(reader.info.total, facts.read + STRETCH)
    for position, each in _read(reader, facts.read, end, facts.fields):
        facts.positions.append(position)
        facts.facts.append(each)
    facts.read = end


def _read(reader: RowReader, first: int, last: int, fields: frozenset[str]) -> Iterator[tuple[int, RowFacts]]:
    kind = reader.info.kind
    if fields <= HEAD and kind.storage is Storage.LIST:
        return ((row.index, head_of(row)) for row in reader.heads(first, last))
    rows, read = reader.rows(first, last, with_payload=False), kinds.of(kind).facts(fields)
    return ((row.index, read(row)) for row in rows)
