"""Checks a file without sending anything: every problem, or what is in it."""

import json
from itertools import islice
from typing import Any, Final

from producer.cli.checking_cases import tell_cases
from producer.cli.context import Session
from producer.cli.errors import SCHEMA_VERSION
from producer.cli.estimate import calls_of
from producer.cli.submission import Submission
from producer.load.detect import loader_for
from producer.load.turns import problems_in
from producer.text import count, plural
from shared.errors import InputError
from shared.kinds import CASES, TURNS, Kind

SHOWN: Final = 20
"""Problems that are listed; a file with more has one cause."""


def tell_counts(session: Session, submission: Submission) -> int:
    """Checks all of a file and tells what is in it.

    Raises:
        InputError: the file cannot be read, or breaks its contract; every problem is told.
    """
    source, kind = submission.source, submission.kind()
    read = loader_for(kind, source.name)
    if kind == TURNS and source.repeatable:  # a stream is read once, so it ends at its first problem
        _, problems = problems_in(source)
        if problems:
            raise _all_of(source.name, problems)
    options = submission.options()
    if kind == CASES:
        return tell_cases(session, source, options)
    items, chunks, threads, calls = 0, 0, set[str](), 0
    for chunk in read(source, options).chunks:
        chunks += 1
        items += chunk.turns
        if options.live is not None:
            calls += calls_of(chunk.content, options.live.live)
        if kind == TURNS:
            threads.update(part[1] for part in chunk.plan.parts)
    counts = {"total": items, "chunks": chunks} | ({"threads": len(threads)} if kind == TURNS else {})
    if options.live is not None:
        counts["calls"] = calls
    _tell(session, source.name, kind, counts)
    return 0


def _tell(session: Session, name: str, kind: Kind, counts: dict[str, int]) -> None:
    """Tells what is in a good file."""
    if session.options.json:
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "file": name,
            "kind": kind.name,
            "counts": counts,
        }
        session.output.data(json.dumps(document | {"exit": 0}))
        return
    items = plural(counts["total"], kind.noun)
    threads = f" in {plural(counts['threads'], 'thread')}" if "threads" in counts else ""
    chunks = plural(counts["chunks"], "chunk")
    calls = f", about {plural(counts['calls'], 'call')} of the model" if "calls" in counts else ""
    session.output.data(f"{name}: {items}{threads}, {chunks} of work{calls}; nothing was sent")


def _all_of(name: str, problems: list[InputError]) -> InputError:
    """Makes one error of many: the first in full, the others line by line."""
    first, *others = problems
    if not others:
        return first
    lines = [first.message, *(problem.message for problem in islice(others, SHOWN - 1))]
    rest = len(problems) - len(lines)
    if rest > 0:
        lines.append(f"{name}: and {count(rest)} more")
    return InputError("\n".join(lines), hint=first.hint)
