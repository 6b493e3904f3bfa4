"""Checks a file without sending anything, and prints its problems or its contents."""

from collections.abc import Sequence

from msgspec import UNSET

from producer import kinds
from producer.cli.preflight import SHOWN
from producer.cli.service_documents import FileCounts, ValidateDocument
from producer.cli.session import Session
from producer.cli.submission import Submission
from producer.load.live_calls import calls_of
from producer.load.problems import MOST_PROBLEMS, PlacedError
from producer.text import count, plural
from shared.errors import InputError, UsageError
from shared.kinds import Storage


def print_counts(session: Session, submission: Submission) -> int:
    """Checks a whole file and prints what it contains.

    Raises:
        InputError: the file cannot be read, or breaks its contract; the error lists every problem.
    """
    try:
        return _print_counts(session, submission)
    except UsageError as error:
        raise (_all_of(error.problems) if error.problems else error) from None


def _print_counts(session: Session, submission: Submission) -> int:
    source, kind = submission.source, submission.kind()
    handled = kinds.of(kind)
    if source.repeatable and (problems := handled.problems(source)):  # a stream is read once
        raise _all_of(problems)
    options = submission.options()
    code = handled.dry_run(session, source, options)
    if code is not None:
        return code
    items, chunks, threads, calls = 0, 0, set[str](), 0
    has_threads = kind.storage is Storage.MAILBOXES
    for chunk in handled.load(source, options).chunks:
        chunks += 1
        items += chunk.item_count
        if options.live is not None:
            calls += calls_of(chunk.content, options.live.live)
        if has_threads:
            threads.update(part[1] for part in chunk.plan.parts)
    if session.options.json:
        counts = FileCounts(
            total=items,
            chunks=chunks,
            threads=len(threads) if has_threads else UNSET,
            calls=UNSET if options.live is None else calls,
        )
        session.output.document(ValidateDocument(file=source.name, kind=kind.name, counts=counts))
        return 0
    text = f"{source.name}: {plural(items, kind.noun)}"
    if has_threads:
        text += f" in {plural(len(threads), 'thread')}"
    text += f", {plural(chunks, 'chunk')} of work"
    if options.live is not None:
        text += f", about {plural(calls, 'call')} of the model"
    session.output.data(f"{text}; nothing was sent")
    return 0


def _all_of(problems: Sequence[UsageError]) -> UsageError:
    """Makes one error of many: a line for each, with how to fix it; equal ones share a line."""
    groups = dict[object, list[UsageError]]()
    for each in problems:
        alike = each.problem.alike if isinstance(each, PlacedError) else (each.message, each.hint)
        groups.setdefault(alike, []).append(each)
    if len(groups) == 1:
        [same] = groups.values()
        return InputError(_line_of(same), hint=same[0].hint)
    lines = [f"{_line_of(same)}{same[0].hint and '; '}{same[0].hint}" for same in groups.values()]
    if len(problems) >= MOST_PROBLEMS:
        lines.append("there may be more: only so many are listed")
    return InputError("\n".join([plural(len(problems), "problem"), *lines]))


def _line_of(same: Sequence[UsageError]) -> str:
    r"""Writes equal problems as one line: the first in full, of the others the lines.

    >>> from producer.load.problems import Place
    >>> _line_of([Place("a.jsonl", line=line).at("id").error("is empty") for line in (3, 7, 8)])
    'a.jsonl:3: id: is empty (and 2 more: lines 7, 8)'
    """
    first, *others = same
    if not others:
        return first.message
    found = [each.problem.place.found_line for each in same if isinstance(each, PlacedError)]
    lines = [str(line) for line in list(dict.fromkeys(filter(None, found)))[1:]]
    some = ", ".join([*lines[:SHOWN], "…"] if len(lines) > SHOWN else lines)
    where = f": {'lines' if len(lines) > 1 else 'line'} {some}" if lines else ""
    return f"{first.message} (and {count(len(others))} more{where})"
