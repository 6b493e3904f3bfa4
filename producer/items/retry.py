"""Retries cases or queries: those that ended in error, and those that a run cut short never sent.

Old results are kept until the new ones are committed.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from secrets import token_hex
from typing import Final, NamedTuple, Protocol

from producer.cases.report import opened_rows as case_rows
from producer.load.chunks import chunk_size
from producer.options import Publishes
from producer.queries.report import opened_rows as query_rows
from producer.turns.retry import Retried
from shared.codecs.item_rows import UNJUDGED, ItemRow
from shared.contracts.case_run import CaseRun, Quorum, decode_case
from shared.errors import ConfigError, RunStateError, UsageError
from shared.ledger import ChunkPlan
from shared.ledger.ledger import Ledger
from shared.names import Outcome, RunState
from shared.runs import RunStore
from shared.upstream.failure_reasons import FailureReason

MOST_ITEMS: Final = 100_000
"""Items of one retry: they travel in one call of the ledger. What is left is for the next retry."""
NOT_ASKED: Final = frozenset(
    {ConfigError.code, *(reason.api_code for reason in FailureReason if reason.ends_queries)}
)
"""Error codes of a query that ended its run: nothing reached the API, so that resuming sends it again."""


class Unfinished(Protocol):
    """Returns whether an item with a result is put back to work."""

    def __call__(self, row: ItemRow, *, errors: bool) -> bool:
        """`errors`: also items that ended in error."""


Groups = Callable[[RunStore, str, Sequence[int]], Sequence[Sequence[int]]]
"""Groups the items of a run that are wanted, in order."""


class RetriedKind(NamedTuple):
    """What differs between kinds in a retry."""

    pages: Callable[[RunStore, str], Iterator[Sequence[ItemRow]]]
    """Yields the rows of a run, with what `is_unfinished` reads."""
    is_unfinished: Unfinished
    chunk_name: Callable[[bytes], str]
    """Names a chunk after the input of its first item."""
    groups: Groups
    """Puts items that belong together into groups, which stay in one chunk, with what their retry needs."""


def retry_items(
    kind: RetriedKind,
    ledger: Ledger,
    publisher: Publishes,
    store: RunStore,
    run: str,
    *,
    indexes: Collection[int] | None = None,
    errors: bool = True,
    is_anew: bool = False,
) -> Retried:
    """Puts items of a run back to work.

    Args:
        kind: of the run.
        ledger: where the run is.
        publisher: wakes workers.
        store: reads the run.
        run: its id.
        indexes: exactly these items, whatever became of them.
        errors: without `indexes`: also those that ended in error, not only those that were never sent or
            lack a judge or a check.
        is_anew: whether models are asked again, whatever answers are stored.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: the run is loading or being cancelled.
        UsageError: there is nothing to retry, or no such item.
    """
    info = store.info(run)
    if info.state in (RunState.LOADING, RunState.CANCELLING):
        raise RunStateError(f"run {run} is {info.state} and cannot be retried now", hint="wait for its end")
    unknown = sorted(index for index in indexes or () if not 0 <= index < info.total)
    if unknown:
        raise UsageError(f"run {run} has no item {unknown[0]}", hint=f"its items are 0 to {info.total - 1}")
    wanted = sorted(indexes) if indexes is not None else list(_unfinished(kind, store, run, errors=errors))
    groups = kind.groups(store, run, wanted)
    if not groups:
        hint = "every item has an answer; `proctor run FILE --last-failed` asks again for those that failed"
        raise UsageError(f"run {run} has nothing to retry", hint=hint)
    sizes = accumulate(map(len, groups))
    chosen = [group for group, size in zip(groups, sizes, strict=True) if size <= MOST_ITEMS]
    wakes = ledger.retry(
        run,
        f"retry-{token_hex(8)}",
        chunks=_chunks(kind, store, run, chosen),
        generation=info.generation,
        is_anew=is_anew,
    )
    publisher.publish(wakes)
    return Retried(sum(map(len, chosen)), sum(map(len, groups[len(chosen) :])))


def _unfinished(kind: RetriedKind, store: RunStore, run: str, *, errors: bool) -> Iterator[int]:
    """Finds the items to retry."""
    for page in kind.pages(store, run):
        for row in page:
            if not row.code or kind.is_unfinished(row, errors=errors):
                yield row.index


def is_item_unfinished(row: ItemRow, *, errors: bool) -> bool:
    """Returns whether an item ended in error, and such items are retried."""
    return errors and row.outcome is Outcome.ERROR


def is_query_unfinished(row: ItemRow, *, errors: bool) -> bool:
    """Returns whether a query has no final answer."""
    [query] = query_rows.opened([row])
    return bool(query.code) and (errors or query.code in NOT_ASKED)


def is_case_unfinished(row: ItemRow, *, errors: bool) -> bool:
    """Returns whether a case has no final verdict, or one without a judge or check that it needed.

    The latter has its answer, so that only the judge or the check is asked, also where a run goes on that its
    cost cap has ended.
    """
    [case] = case_rows.opened([row])
    return UNJUDGED in row.code or (errors and bool(case.code))


def item_groups(_store: RunStore, _run: str, wanted: Sequence[int]) -> Sequence[Sequence[int]]:
    """Puts each item into a group of its own."""
    return [[index] for index in wanted]


def case_groups(store: RunStore, run: str, wanted: Sequence[int]) -> Sequence[Sequence[int]]:
    """Puts the answers to a case into a group.

    Answers that were not needed are asked for with them, as soon as the verdict is not certain by the answers
    that stand; workers leave them out again where it becomes so.
    """
    if not CaseRun.from_snapshot(store.info(run).snapshot).has_quorums:
        return item_groups(store, run, wanted)
    chosen, found = frozenset(wanted), list[Sequence[int]]()
    rows = (row for page in store.item_pages(run, with_payload=True) for row in page)
    for quorum, answers in answers_by_case(rows):
        again = [row.index for row in answers if row.index in chosen]
        if quorum is None:
            found += [[index] for index in again]
            continue
        kept = Counter(row.outcome for row in answers if row.index not in chosen)
        if quorum.left(kept[Outcome.PASSED], kept[Outcome.FAILED]):
            unneeded = [row.index for row in answers if row.outcome is Outcome.SKIPPED and row.code]
            again = sorted({*again, *unneeded})
        found += [again] if again else []
    return found


def answers_by_case(rows: Iterable[ItemRow]) -> Iterator[tuple[Quorum | None, Sequence[ItemRow]]]:
    """Yields the answers to each case by each model and prompt, with the quorum of the case.

    Args:
        rows: all of a run, with their inputs.
    """
    opened = ((row, decode_case(row.payload)) for row in rows)
    for _, group in groupby(opened, key=lambda each: (each[1].model, each[1].prompt_id, each[1].case)):
        answers = list(group)
        yield answers[0][1].quorum, [row for row, _ in answers]


def _chunks(kind: RetriedKind, store: RunStore, run: str, groups: Sequence[Sequence[int]]) -> list[ChunkPlan]:
    """Packs items into chunks, each named after its first item."""
    size, parts = chunk_size(sum(map(len, groups))), list[list[str]]()
    for group in groups:
        names = [str(index) for index in group]
        if parts and len(parts[-1]) + len(names) <= size:
            parts[-1] += names
        else:
            parts.append(names)
    firsts = store.inputs(run, [some[0] for some in parts])
    return [
        ChunkPlan(kind.chunk_name(payload) if payload else "", some)
        for payload, some in zip(firsts, parts, strict=True)
    ]
