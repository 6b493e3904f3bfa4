"""Reads the texts that a comparison shows from result lines, and keeps them on disk until they are shown."""

import json
from array import array
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any, Final

import msgspec

from producer.aggregate.compared_items import CaseLine, ComparedCase, Line, QueryLine, TurnLine
from producer.queries.report.check_reasons import FAILED, PASSED, failures, word_of
from producer.queries.results import AskedQuery
from producer.report.cells import Size
from producer.report.shown_item import without_quote
from producer.report.transcript import answer_text, as_read, as_text
from shared.contracts.checks import finding
from shared.contracts.prompts import SYSTEM_ROLES
from shared.contracts.query_vocabulary import CHECKS

_PASSES: Final = {PASSED: True, FAILED: False}
SUMMARY: Final = ("arc", "active", "parked", "decisions", "next")
"""Fields of a summary of a thread, in the order in which people read them."""


class CheckText(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One check of an item."""

    name: str
    passed: bool | None
    """None if it was not run, or does not apply."""
    score: float | None = None
    reason: str = ""


class ItemTexts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What people read of an item."""

    asked: str
    """What was asked; empty where the report does not contain it."""
    answer: str
    reason: str
    """Why it did not pass; empty where it did."""
    left: int = 0
    """Characters of the answer that are not kept."""
    system: str = ""
    """The system message that was sent."""
    checks: list[CheckText] = []
    """What its checks found."""
    item: str = ""
    """Its id in its run; empty where the report does not contain it."""


class TextStore:
    """Keeps texts on disk; memory holds one offset for each.

    Args:
        read: returns the texts of a line.

    >>> from producer.aggregate.compared_items import ComparedLine
    >>> store = TextStore(lambda line: ItemTexts("", line.result, ""))
    >>> places = [store.add(ComparedLine(outcome="passed", result=text)) for text in ("one", "two")]
    >>> [store.read(place).answer for place in places], store.read(-1).answer
    (['one', 'two'], '')
    >>> store.close()
    """

    def __init__(self, read: Callable[[Line], ItemTexts]) -> None:
        self._read = read
        self._file = TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._ends = array("q", [0])
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(ItemTexts).decode

    def add(self, line: Line) -> int:
        """Keeps the texts of a line, and returns where they are."""
        kept = self._encode(self._read(line))
        self._file.write(kept)
        self._ends.append(self._ends[-1] + len(kept))
        return len(self._ends) - 2

    def read(self, place: int) -> ItemTexts:
        """Returns the texts of a place; empty ones if it is negative."""
        if place < 0:
            return NO_TEXTS
        start, end = self._ends[place], self._ends[place + 1]
        self._file.seek(start)
        return self._decode(self._file.read(end - start))

    def close(self) -> None:
        """Deletes the file."""
        self._file.close()


NO_TEXTS: Final = ItemTexts("", "", "")


def texts_of_item(line: Line) -> ItemTexts:
    """Returns the result of an item as JSON."""
    result = line.result
    answer = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=1)
    return _texts(line, line.message, "" if result is None else answer)


def texts_of_case(line: CaseLine) -> ItemTexts:
    """Returns what was asked, a model's answer, and why it did not pass.

    >>> result = ComparedCase(model="m", case_index=0, raw_output="No", message="no match")
    >>> messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Yes?"}]
    >>> found = texts_of_case(CaseLine(outcome="failed", result=result, messages=messages))
    >>> found.system, found.asked, found.answer, found.reason
    ('Be brief.', 'Yes?', 'No', 'no match')
    """
    result, messages = line.result, list(line.messages or ())
    if result is None:
        return _texts(line, line.message, "")
    system = messages.pop(0) if messages and messages[0]["role"] in SYSTEM_ROLES else None
    spoken = list(as_read(messages))
    is_plain = len(spoken) == 1 and messages[0]["role"] == "user"
    found = _texts(
        line,
        spoken[0].text if is_plain else as_text(spoken),
        answer_text(result.raw_output, result.refusal, result.tool_calls or ()),
        "" if result.passed else case_reason(result),
    )
    told = _kept(as_text(as_read([system])).partition(": ")[2]) if system else ""
    checks = [
        CheckText(row.name, row.passed, row.score, _kept(row.reason or "")) for row in result.checks or ()
    ]
    return msgspec.structs.replace(found, system=told, checks=checks)


def case_reason(result: ComparedCase) -> str:
    """Returns why a case did not pass; the answer, which stands beside it, is not quoted again.

    >>> pattern = 'pattern "^Yes" is nowhere in the output, which begins: No'
    >>> case_reason(ComparedCase(model="m", case_index=0, message=pattern))
    'pattern "^Yes" is nowhere in the output'
    >>> from producer.aggregate.compared_items import CheckOfCase
    >>> checks = [CheckOfCase(name, False, 0.0, "not there") for name in ("contains: 14 days", "brief")]
    >>> case_reason(ComparedCase(model="m", case_index=0, message="1 of 1 checks failed: …", checks=checks))
    'contains: 14 days: not there; brief: not there'
    """
    failed_checks = [row for row in result.checks or () if row.passed is False]
    found = [finding(row.name, row.reason or "", None) for row in failed_checks]
    reasons = found or [result.message or ""]
    return "; ".join(filter(None, (without_quote(text) for text in reasons)))


def texts_of_query(line: QueryLine) -> ItemTexts:
    """Returns the answer of an API, and what its checks found."""
    query = AskedQuery(line.result or {})
    answer, asked = query.answer if isinstance(query.answer, str) else "", str(query.query)
    if query.is_failed:
        return _texts(line, asked, answer, str(query.error or ""))
    found = _texts(line, asked, answer, "" if query.passed else "; ".join(failures(query)))
    words = {name: word_of(query.check(name)) for name in CHECKS}
    checks = [CheckText(name, _PASSES.get(word)) for name, word in words.items()]
    return msgspec.structs.replace(found, checks=checks)


def texts_of_turn(line: TurnLine) -> ItemTexts:
    """Returns what was decided of a turn and why, with the answer and the summary of the thread."""
    result = line.result
    if result is None:
        return _texts(line, line.message, "")
    parts = [] if result.response is None else [result.response]
    if result.reason:
        parts.append(": ".join(filter(None, (result.decision, result.reason))))
    if result.memento and result.summary_updated:
        parts += [f"{name}: {_listed(result.memento[name])}" for name in SUMMARY if result.memento.get(name)]
    return _texts(line, line.message, "\n".join(parts))


def _texts(line: Line, asked: str | None, answer: str, reason: str = "") -> ItemTexts:
    """Shortens texts; the message of an error is the reason."""
    why = reason if line.error is None else line.error.message or line.error.code
    left = max(0, len(answer) - Size.WHOLE)
    return ItemTexts(_kept(asked or ""), _kept(answer), _kept(why), left, item=line.item_id)


def _kept(text: str) -> str:
    """Shortens a text, and replaces lone surrogates, which cannot be encoded."""
    return text[: Size.WHOLE].encode(errors="replace").decode()


def _listed(value: Any) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)
