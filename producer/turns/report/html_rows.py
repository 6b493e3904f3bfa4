"""Makes the rows of the HTML report of a turns run: message, affect, decision, and the memento after it."""

from collections.abc import Mapping
from typing import Any, Final

from producer.report.cells import Size
from producer.report.html.rendering import fill
from producer.report.html.viewer import PageRow
from producer.turns.report.html_affect import rail
from producer.turns.report.html_threads import Step, ThreadOfPage, changes, deltas, item_of
from producer.turns.report.opened_rows import withheld_text
from producer.turns.report.run_report import RULES
from producer.turns.report.turn_records import ERROR, FIELDS, SKIPPED, TurnRecord, short

TEMPLATE: Final = "turns/report/page.html.j2"
FACETS: Final = ("decision", "rule", "freeze", "summary", "code", "thread")
ORDERS: Final = ("index", "affect", "rule")
FROZEN: Final = "frozen"
CHANGED: Final = "changed"
DISCARDED: Final = "discarded"
_TIME: Final = slice(11, 16)
"""Hours and minutes in a time."""
_DATE: Final = slice(0, 10)


def row_of(run: str, step: Step, thread: ThreadOfPage, place: str) -> PageRow:
    """Makes the row of a turn.

    Args:
        run: its run, which commands name.
        step: the turn between its neighbours.
        thread: its thread.
        place: names the thread on the page.
    """
    record = step.record
    shown = _shown(step, thread, place)
    shown["command"] = f"proctor results {run} --item {item_of(record)} --format json"
    shown["head"] = _head(thread) if step.number == 1 else None
    html = fill(TEMPLATE, "turn", shown)
    summary = [CHANGED] if record.is_updated else []
    if record.is_discarded:
        summary.append(DISCARDED)
    facets = {
        "decision": [record.decision],
        "rule": [f"{record.rule} {RULES[str(record.rule)]}"] if record.rule else [],
        "freeze": [FROZEN] if record.is_frozen else [],
        "summary": summary,
        "code": [short(record.code, Size.NAME)] if record.code else [],
        "thread": [place],
    }
    orders = {
        "index": record.index,
        "affect": record.mood.level if record.mood.phase else None,
        "rule": record.rule or None,
    }
    return PageRow(item_of(record), html, "e" if record.decision == ERROR else "n", facets, orders)


def _head(thread: ThreadOfPage) -> dict[str, Any]:
    """Returns what stands above a conversation."""
    span = thread.span()
    counts = [(f"{thread.decisions[word]:,}", word, "") for word in ("must", "should", "skip", SKIPPED)]
    counts += [(f"{thread.freezes:,}", FROZEN, "c"), (f"{thread.errors:,}", "failed", "e")]
    return {
        "span": f"over {span}" if span else "",
        "counts": [each for each in counts if each[0] != "0"],
        "chart": thread.drawn(),
    }


def _shown(step: Step, thread: ThreadOfPage, place: str) -> dict[str, Any]:
    """Returns what the template shows of a turn."""
    record = step.record
    message_id = short(record.message_id, Size.NAME)
    lines, more = deltas(step) if record.is_updated else ([], 0)
    date = record.ts[_DATE]
    text = withheld_text(record.chars) if record.is_withheld else record.text
    return {
        "id": item_of(record),
        "title": f"{thread.name} · turn {step.number}",
        "role": record.role or "turn",
        "thread": thread.name,
        "place": place,
        "message_id": message_id,
        "time": record.ts[_TIME],
        "date": date if date and (step.before is None or step.before.ts[_DATE] != date) else "",
        "ts": record.ts,
        "rail": rail(
            step.before.mood if step.before else None, record.mood, step.after.mood if step.after else None
        ),
        "mood": _mood(record),
        "text": text,
        "left": 0 if record.is_withheld else record.chars - len(record.text),
        "is_withheld": record.is_withheld,
        "response": record.response,
        "decision": record.decision,
        "is_error": record.decision == ERROR,
        "is_frozen": record.is_frozen,
        "rule": record.rule,
        "rule_words": RULES.get(str(record.rule), ""),
        "reason": record.reason,
        "code": short(record.code, Size.NAME),
        "deltas": lines,
        "more": more,
        "summary_change": _summary_change(step),
        "details": _details(step),
    }


def _mood(record: TurnRecord) -> str:
    """Writes the affect after a turn."""
    mood = record.mood
    if not mood.phase:
        return ""
    label = f", {short(mood.label, Size.NAME)}" if mood.label else ""
    return f"affect {mood.level:.2f}, {mood.phase}{label}"


def _summary_change(step: Step) -> str:
    """Names what became of the summary, in a few words."""
    record = step.record
    if record.decision in (ERROR, SKIPPED):
        return ""
    if record.is_repeated:
        return "repeated request, first answer again"
    if record.is_updated:
        is_same = step.start is not None and step.start == record.memento
        return "summary replaced by an equal one" if is_same else "" if step.start else "summary updated"
    if record.is_discarded:
        return f"summary kept{'' if record.is_frozen else ' (policy)'}, proposal discarded"
    return "summary kept" if record.is_frozen else "summary unchanged"


def _details(step: Step) -> Mapping[str, Any]:
    """Returns what the panel shows of a turn."""
    record, before = step.record, step.before
    is_shown = record.decision != SKIPPED and bool(record.message_id)
    is_whole = is_shown and (not step.kept_by or (record.proposed is not None))
    fields = [(name, changes(step, name)) for name in FIELDS] if is_whole else []
    mood = before.mood if before else None
    was = "not measured" if mood is None or not mood.phase else f"{mood.phase}, {mood.level:.2f}"
    now = f"{record.mood.phase}, {record.mood.level:.2f}" if record.mood.phase else ""
    version = f"{record.etag - 1} → {record.etag}" if _moves_thread(record) else f"{record.etag}"
    affect = [("before the turn", was), ("after it", now), ("label", short(record.mood.label, Size.NAME))]
    return {
        "fields": fields,
        "kept_by": step.kept_by if is_shown else "",
        "is_shown": is_shown,
        "note": _note(step),
        "at_peak": record.decision == "must"
        and mood is not None
        and mood.phase == "peak"
        and record.is_updated,
        "affect": [each for each in affect if each[1]] if now else [],
        "technical": [("thread version (etag)", version), ("memento taken from", record.source)],
        "is_avoided": record.is_avoided,
        "call": record.call,
        "trace": record.trace,
        "is_long": len(record.text) > LONG_CHARS,
    }


LONG_CHARS: Final = 600
"""Characters of a message that the panel repeats, since the row shows only its beginning."""


def _moves_thread(record: TurnRecord) -> bool:
    """Whether a turn moved its thread on."""
    return record.decision not in (ERROR, SKIPPED) and not record.is_repeated


def _note(step: Step) -> str:
    """Describes how to read the memento of a turn."""
    record = step.record
    notes = (
        (record.decision == ERROR, "Unchanged: the turn failed, and the thread stays where it was."),
        (record.is_repeated, "As after the first request: a repeated one decides nothing."),
        (
            step.start is None,
            "After the turn. Turns of other runs stand before it, so changes are not marked.",
        ),
        (record.proposed is not None, "Kept as before; what was proposed and discarded is marked."),
        (record.is_discarded, "Kept as before; the model's proposal was discarded and is not stored."),
        (record.is_frozen, "Kept as before: the peak guardrail was active."),
        (step.start == record.memento, "Unchanged by this turn."),
    )
    return next((text for holds, text in notes if holds), "Before and after, in one: removed and added.")
