"""Reads from lines of results what a comparison shows of an item, and keeps it on disk until it is shown."""

import json
from array import array
from collections.abc import Callable, Mapping
from tempfile import TemporaryFile
from typing import Any, Final

import msgspec

from producer.report.cases.reasons import without_answer
from producer.report.queries.check_reasons import failures
from producer.report.transcript import answer_text, as_read, as_text
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import decode_case
from shared.contracts.query_vocabulary import failed, json_object

Line = Mapping[str, Any]
MOST_CHARS: Final = 20_000
"""Of one text that are kept."""
SUMMARY: Final = ("arc", "active", "parked", "decisions", "next")
"""Fields of a summary of a thread, in the order in which people read them."""


class ItemTexts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What people read of an item."""

    asked: str
    """What was asked; empty where the report does not contain it."""
    answer: str
    reason: str
    """Why it did not pass; empty where it did."""
    left: int = 0
    """Characters of the answer that are not kept."""


class TextStore:
    """Keeps texts on disk: memory holds one number of each.

    Args:
        read: returns the texts of a line.

    >>> store = TextStore(lambda line: ItemTexts("", line["answer"], ""))
    >>> places = [store.add({"answer": text}) for text in ("one", "two")]
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
        """Returns the texts that are kept there; empty ones for no place."""
        if place < 0:
            return NO_TEXTS
        start, end = self._ends[place], self._ends[place + 1]
        self._file.seek(start)
        return self._decode(self._file.read(end - start))

    def close(self) -> None:
        """Gives the disk back."""
        self._file.close()


NO_TEXTS: Final = ItemTexts("", "", "")


def texts_of_item(line: Line) -> ItemTexts:
    """Returns the result of an item as JSON."""
    result = line["result"]
    answer = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=1)
    return _texts(line, "" if result is None else answer, "")


def texts_of_case(line: Line) -> ItemTexts:
    """Returns a model's answer, and why it did not pass.

    >>> result = {"raw_output": "No", "message": "no match", "passed": False, "checks": []}
    >>> texts_of_case({"result": result, "error": None, "asked": "Yes?"})
    ItemTexts(asked='Yes?', answer='No', reason='no match', left=0)
    """
    result = line["result"]
    return _texts(line, answer_text(result), "" if result.get("passed") else case_reason(result))


def case_reason(result: Line) -> str:
    """Returns why a case did not pass; the answer, which stands beside it, is not quoted again.

    >>> case_reason({"message": 'pattern "^Yes" is nowhere in the output, which begins: No', "checks": []})
    'pattern "^Yes" is nowhere in the output'
    >>> check = {"name": "contains: 14 days", "passed": False, "score": 0.0, "reason": "not there"}
    >>> case_reason({"message": "1 of 1 checks failed: …", "checks": [check, check | {"name": "brief"}]})
    'not there; brief: not there'
    """
    failed_checks = [row for row in result.get("checks") or () if row.get("passed") is False]
    reasons = [_check_reason(row) for row in failed_checks] or [str(result.get("message") or "")]
    return "; ".join(filter(None, (without_answer(text) for text in reasons)))


def _check_reason(row: Line) -> str:
    """Returns what a check found; its name only where that is not made from what it looks for."""
    name, reason = str(row["name"]), str(row.get("reason") or "")
    return reason if reason and ": " in name else f"{name}: {reason}".removesuffix(": ")


def texts_of_query(line: Line) -> ItemTexts:
    """Returns the answer of an API, and what its checks found."""
    result = line["result"]
    answer = json_object(result.get("response")).get("answer")
    if failed(dict(result)):
        reason = str(result.get("error") or "")
    else:
        reason = "" if result["overall_pass"] else "; ".join(failures(result))
    return _texts({"asked": result["query"], **line}, answer if isinstance(answer, str) else "", reason)


def texts_of_turn(line: Line) -> ItemTexts:
    """Returns what was decided of a turn and why, with the answer and the summary of the thread."""
    result = line["result"]
    parts = [result.get("response")] if isinstance(result.get("response"), str) else []
    if result.get("reason"):
        parts.append(": ".join(filter(None, (result["decision"], result["reason"]))))
    memento = result.get("memento")
    if isinstance(memento, dict) and result.get("summaryUpdated"):
        parts += [f"{name}: {_listed(memento[name])}" for name in SUMMARY if memento.get(name)]
    return _texts(line, "\n".join(map(str, parts)), "")


def asked_of_case(row: ItemRow) -> dict[str, str]:
    """Returns from a row of a run what a line of its results does not contain."""
    item = decode_case(row.payload)
    return {"asked": as_text(as_read(item.messages)) if item.messages else item.input}


def _texts(line: Line, answer: str, reason: str) -> ItemTexts:
    """Bounds texts; what an error says is the reason."""
    error = line.get("error")
    why = str(error["message"] or error["code"]) if isinstance(error, dict) else reason
    asked = str(line.get("asked") or line.get("message") or "")
    left = max(0, len(answer) - MOST_CHARS)
    return ItemTexts(_kept(asked), _kept(answer), _kept(why), left)


def _kept(text: str) -> str:
    """Bounds a text, and replaces halves of surrogate pairs, which no encoding has."""
    return text[:MOST_CHARS].encode(errors="replace").decode()


def _listed(value: Any) -> str:
    """Writes a field of a summary."""
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)
