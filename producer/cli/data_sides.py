"""Compares the cases of benches, data files and runs, and prints how they differ."""

import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from producer.cases.bench_config import read_bench
from producer.cases.data_difference import HashedCase, cases_of_bench, cases_of_items, compare_cases
from producer.cli.run_lookup import find_run
from producer.cli.session import Session
from producer.load.detect import kind_of
from producer.load.source import Source
from producer.report.cells import plain
from producer.text import count, plural
from shared.contracts.case_run import decode_case
from shared.errors import InputError, UnknownRunError, UsageError
from shared.kinds import CASES


def compare_data(session: Session, a: str, b: str, first: int) -> int:
    """Prints what differs, up to `first` cases a list, and returns the exit code.

    Raises:
        InputError: a file breaks the contract, or a run did not store what cases are compared by.
        UsageError: one has no cases.
        UnknownRunError: there is no such file and no such run.
    """
    found, output = compare_cases(_cases(session, a), _cases(session, b)), session.output
    if session.options.json:
        output.document(found)
        return found.exit
    lines = [
        f"{letter} {plain(side.name)}: {plural(side.cases, 'case')}"
        for letter, side in (("A", found.a), ("B", found.b))
    ]
    for title, names in (
        ("added", found.added),
        ("removed", found.removed),
        ("input changed", found.input_changed),
        ("expectation changed", found.expectation_changed),
    ):
        if names:
            lines += ["", output.paint(f"{title} ({len(names):,})", "bold")]
            lines += [f"  {plain(name)}" for name in names[:first]]
            lines += [f"  {len(names) - first:,} more"] if len(names) > first else []
    same = f"{count(found.unchanged)} unchanged" if found.exit else "the cases are the same"
    output.data("\n".join([*lines, "", same]))
    return found.exit


def _cases(session: Session, named: str) -> tuple[str, Sequence[HashedCase]]:
    """Reads the cases of one side, and returns what it is called with them."""
    path = Path(named)
    if path.is_file():
        return named, _of_file(Source(named), allow_code=session.settings.allow_code)
    try:
        info = find_run(session, named)
    except UnknownRunError as error:
        raise UnknownRunError(f"{error.message}, and no file", hint=error.hint, run=error.run) from None
    if info.kind is not CASES:
        raise UsageError(f"{info.run} has {info.kind}", hint="data diff compares cases")
    pages = session.access.store.item_pages(info.run, with_payload=True)
    cases = cases_of_items(decode_case(row.payload) for page in pages for row in page)
    if not all(case.hashes.input for case in cases):
        what = f"{info.run}: an earlier version submitted it, and stored no hashes of its cases"
        raise InputError(what, hint="name the bench it was made of, or run it again")
    return info.run, cases


def _of_file(source: Source, *, allow_code: bool) -> Sequence[HashedCase]:
    """Reads a bench, or a file of cases as `test_cases_file` names it."""
    kind = kind_of(source.head())
    if kind not in {None, CASES}:
        raise UsageError(f"{source.name} has {kind}", hint="data diff compares cases")
    if kind is None:  # rows without a bench: the file of cases of one without anything else
        file = Path(source.name)
        prompts = [{"user": "-"}]  # so that cases need no input
        bench = {"name": "data", "prompts": prompts, "models": ["echo"], "test_cases_file": file.name}
        source = Source(file.parent / "data.yaml", stdin=BytesIO(json.dumps(bench).encode()))
    return cases_of_bench(read_bench(source, allow_code=allow_code))
