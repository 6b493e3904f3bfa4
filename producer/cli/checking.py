"""Checks a file without sending anything, and prints its problems or its contents."""

import json
from itertools import islice
from typing import Any, Final

from producer import kinds
from producer.cli.error_exit import SCHEMA_VERSION
from producer.cli.session import Session
from producer.cli.submission import Submission
from producer.text import count, plural
from shared.contracts.turn_vocabulary import Live, Role
from shared.errors import InputError
from shared.kinds import Kind, Storage
from worker.breakpoint.live_decisions import CALLED_DECISIONS
from worker.breakpoint.memento import FROM_REQUEST
from worker.breakpoint.orchestrator import accepted_signals, decide
from worker.breakpoint.turn_wire import decode_turns

SHOWN: Final = 20
"""Problems that are listed; a file with more has one cause."""


def print_counts(session: Session, submission: Submission) -> int:
    """Checks a whole file and prints what it contains.

    Raises:
        InputError: the file cannot be read, or breaks its contract; the error lists every problem.
    """
    source, kind = submission.source, submission.kind()
    handled = kinds.of(kind)
    if handled.problems and source.repeatable:  # a stream is read once, so it ends at its first problem
        _, problems = handled.problems.load()(source)
        if problems:
            raise _all_of(source.name, problems)
    options = submission.options()
    if handled.dry_run:
        return handled.dry_run.load()(session, source, options)
    items, chunks, threads, calls = 0, 0, set[str](), 0
    has_threads = kind.storage is Storage.MAILBOXES
    for chunk in handled.loader.load()(source, options).chunks:
        chunks += 1
        items += chunk.turns
        if options.live is not None:
            calls += calls_of(chunk.content, options.live.live)
        if has_threads:
            threads.update(part[1] for part in chunk.plan.parts)
    counts = {"total": items, "chunks": chunks} | ({"threads": len(threads)} if has_threads else {})
    if options.live is not None:
        counts["calls"] = calls
    _print(session, source.name, kind, counts)
    return 0


def _print(session: Session, name: str, kind: Kind, counts: dict[str, int]) -> None:
    """Prints the contents of a valid file."""
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


def calls_of(lines: bytes, live: Live) -> int:
    r"""Counts the turns for which the model will be called.

    Exact except for signals of mementos that are ignored, repeated requests and stale tokens.

    Args:
        lines: checked turns, one a line.
        live: which decisions are worth a call.

    >>> calls_of(b'{"threadId":"t","message":"Rome?"}\n{"threadId":"t","message":"ok"}', Live.SHOULD)
    1
    """
    called_decisions = CALLED_DECISIONS[live]
    return sum(
        decide(turn, accepted_signals(turn, FROM_REQUEST)).decision in called_decisions
        for turn in decode_turns(lines)
        if turn is not None and turn.role is Role.USER and turn.model_shape is None
    )
