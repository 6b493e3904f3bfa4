"""Finds what failed in the newest run of the same file, for `--last-failed`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from producer.load.source import FILE_KEY, Source, file_key
from producer.options import CaseItem, SubmitOptions, case_key
from shared.contracts.case_run import decode_case
from shared.kinds import Kind
from shared.names import Outcome
from shared.runs import RunInfo, RunStore

LOOKED_AT: Final = 2_000
"""Runs that are looked through, newest first."""


class _Query(msgspec.Struct):
    id: str


class EarlierRun(NamedTuple):
    """The newest run of a file, with what failed in it."""

    info: RunInfo
    failed: Sequence[bytes]
    """Inputs of the items that failed or ended in error."""


def earlier_run(store: RunStore, kind: Kind, source: Source) -> EarlierRun | None:
    """Returns the newest run of a file; None when there is none.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    key = file_key(source)
    newest = (info for info in store.list(limit=LOOKED_AT, kind=kind) if info.snapshot.get(FILE_KEY) == key)
    info = next(newest, None)
    if info is None:
        return None
    failed = list[bytes]()
    for page in store.item_pages(info.run):
        at = [str(row.index) for row in page if row.outcome in (Outcome.FAILED, Outcome.ERROR)]
        failed += [payload for payload in store.inputs(info.run, at) if payload is not None] if at else []
    return EarlierRun(info, failed)


def only_cases(options: SubmitOptions, inputs: Sequence[bytes], _option: str) -> SubmitOptions:
    """Limits a run of cases to combinations of case, model and prompt."""
    items = [decode_case(payload) for payload in inputs]
    only = frozenset(
        CaseItem(case_key(each.case, each.id), each.model, each.prompt_id or "") for each in items
    )
    return replace(options, cases=replace(options.cases, only=only))


def only_queries(options: SubmitOptions, inputs: Sequence[bytes], option: str) -> SubmitOptions:
    """Limits a run of queries to some; reports name the option that does."""
    ids = frozenset(msgspec.json.decode(payload, type=_Query).id for payload in inputs)
    return replace(options, query_choice=replace(options.query_choice, ids=ids, ids_from=option))
