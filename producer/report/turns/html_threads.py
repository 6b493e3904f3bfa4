"""What the HTML report of a turns run shows of single turns: threads with traces, the table, the errors."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from producer.report.cells import plain
from producer.report.html.page import chunked, fill
from producer.report.html.spool import Spool
from producer.report.turns.html_strips import MOST_CELLS, strip
from producer.report.turns.html_summary import TEMPLATE
from producer.report.turns.opened_rows import OpenedRow, message_of
from producer.report.turns.to_traces import events
from producer.text import plural
from shared.codecs.turn_batches import ASKED, AVOIDED, CACHED
from shared.names import Outcome

MOST_THREADS: Final = 200
"""Threads that are drawn, the first of the run."""
NAME_CHARS: Final = 80
"""Of the name of a thread or a message."""
WHY_CHARS: Final = 300
"""Of a reason, and of any other line of a trace."""
SKIPPED: Final = "skipped"


class Threads:
    """Keeps the first turns of the first threads: numbers in memory, traces on disk.

    Args:
        run: the run, which the trace events name.
    """

    def __init__(self, run: str) -> None:
        self._run, self._spool = run, Spool()
        self._numbers = dict[str, int]()
        self._cells = list[list[tuple[str, bool]]]()
        self._turns = Counter[int]()
        self._left = set[str]()

    def add(self, turn: OpenedRow, shown: Mapping[str, Any]) -> str:
        """Takes a turn; returns the id of its thread on the page, empty where that is not drawn."""
        if turn.result is None:
            return ""
        name = turn.result.thread_id
        number = self._numbers.get(name)
        if number is None:
            if len(self._numbers) >= MOST_THREADS:
                return ""
            number = self._numbers[name] = len(self._numbers)
            self._cells.append([])
        self._turns[number] += 1
        cells = self._cells[number]
        if len(cells) < MOST_CELLS:
            cells.append((shown["decision"], bool(shown["freeze"])))
            lines = _traced(self._run, turn)
            self._spool.add(number, fill(TEMPLATE, "step", {**shown, "lines": lines}))
        return _id(number)

    def choices(self) -> list[tuple[str, str]]:
        """Names the threads that are drawn, for a choice."""
        return [(_id(number), plain(name, NAME_CHARS) or "-") for name, number in self._numbers.items()]

    def note(self, threads: int, *, is_cut: bool) -> str:
        """Says what is drawn, and what is not.

        Args:
            threads: of the whole run.
            is_cut: whether turns at the end of the run were not looked at.
        """
        told = ["One cell a turn, oldest first; higher is a stronger decision. Open a thread for its trace."]
        if len(self._numbers) < threads:
            told.append(f"The first {len(self._numbers):,} of {threads:,} threads are drawn.")
        if is_cut:
            told.append("Only turns of the table below are in it.")
        return " ".join(told)

    def pieces(self) -> Iterator[bytes]:
        """Yields the threads, those with errors first; called once."""
        names = list(self._numbers)
        traces = Spool()
        for number, group in groupby(self._spool.pieces(), key=itemgetter(0)):
            told = self._told(number, names[number])
            steps = b"".join(piece for _, piece in group)
            rest = self._turns[number] - len(self._cells[number])
            note = f"and {plural(rest, 'more turn')} of this thread" if rest else ""
            piece = fill(TEMPLATE, "thread", told) + steps
            traces.add(not told["errors"], piece + fill(TEMPLATE, "thread_end", note, _id(number)))
        yield from chunked(piece for _, piece in traces.pieces())
        traces.close()
        self._spool.close()

    def _told(self, number: int, name: str) -> dict[str, Any]:
        """What the line of a thread says."""
        cells = self._cells[number]
        decisions = Counter(decision for decision, _ in cells)
        freezes = sum(is_frozen for _, is_frozen in cells)
        figures = [plural(self._turns[number], "turn")]
        figures += [f"{decisions[word]:,} {word}" for word in ("must", "should", "skip") if decisions[word]]
        figures += [plural(freezes, "freeze")] * bool(freezes)
        errors = decisions["error"]
        heard = ", ".join([*figures, *([plural(errors, "error")] * bool(errors))])
        return {
            "id": _id(number),
            "name": plain(name, NAME_CHARS) or "-",
            "errors": plural(errors, "error") if errors else "",
            "figures": figures,
            "strip": strip(cells, heard),
        }


def shown_of(turn: OpenedRow) -> dict[str, Any]:
    """Returns what tables and traces show of a turn."""
    result, error = turn.result, turn.error
    is_error = turn.outcome is Outcome.ERROR
    why = result.reason if result else ""
    return {
        "index": turn.row.index,
        "id": turn.item_id,
        "thread": plain(result.thread_id, NAME_CHARS) if result else "",
        "message": plain(result.message_id, NAME_CHARS) if result else "",
        "said": plain(message_of(turn.row), WHY_CHARS),
        "decision": "error" if is_error else (result.decision or SKIPPED) if result else SKIPPED,
        "tone": "bad" if is_error else "",
        "rule": (result.rule or "") if result else "",
        "code": plain(error.code, NAME_CHARS) if error else "",
        "problem": plain(error.message, WHY_CHARS) if error else "",
        "why": plain(f"{error.code}: {error.message}" if error else why, WHY_CHARS),
        "freeze": "frozen" if result and result.peak_guardrail_active else "",
        "summary": "updated" if result and result.summary_updated else "",
    }


def _id(number: int) -> str:
    """Names a thread on the page."""
    return f"t{number + 1}"


def _traced(run: str, turn: OpenedRow) -> list[str]:
    """Tells the trace events of a turn, and what became of the thread."""
    result, code = turn.result, turn.row.code
    is_live = any(flag in code for flag in (ASKED, CACHED, AVOIDED))
    lines = [_event(event) for event in events(run, [turn.row], all_phases=is_live)]
    if result is None:
        return lines
    became = [f"etag {result.etag}", f"baseline {result.source}"]
    became += ["peak guardrail active, summary frozen"] * result.peak_guardrail_active
    became += [f"summary updated: {plain(result.memento.arc, WHY_CHARS)}"] * result.summary_updated
    became += ["call avoided"] * (AVOIDED in code)
    told = [*lines, " · ".join(became)]
    return told + [f"answer: {plain(result.response, WHY_CHARS)}"] * bool(result.response)


def _event(event: Mapping[str, Any]) -> str:
    """Writes a trace event in one line."""
    words = (event["ts"], event["actor"], event["phase"], event["status"], event["summary"])
    return plain(" · ".join(map(str, words)), WHY_CHARS)


def bad_rows(turns: Sequence[Mapping[str, Any]]) -> bytes:
    """Writes rows of the list of errors, and its end."""
    rows = b"".join(fill(TEMPLATE, "error", turn) for turn in turns)
    return rows + b"</tbody>\n</table></div>\n</section>\n"
