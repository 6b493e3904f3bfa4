"""Opens the stored rows of a cases run: the item, its result, and why there is no verdict."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from producer.cases.results import CaseResult
from shared.codecs.item_rows import POISON_CODE, POISON_ERROR, ItemRow, reason_of
from shared.contracts.case_run import CasePayload, decode_case
from shared.contracts.unjudged_case import without_verdict
from shared.names import Outcome

CHECK_UNAVAILABLE: Final = "check_unavailable"
"""Code of an answer of which a check could not be asked."""
SKIPPED: Final = Outcome.SKIPPED.value
"""Status of a case that was not sent."""


class _Problem(Struct):
    code: str
    message: str


class _ErrorLine(Struct):
    error: _Problem
    result: CaseResult | None


_decode_result: Final = msgspec.json.Decoder(CaseResult).decode
_decode_error: Final = msgspec.json.Decoder(_ErrorLine).decode


def _no_verdict(item: CasePayload) -> CaseResult:
    return msgspec.convert(without_verdict(item), CaseResult)


class OpenedCase(NamedTuple):
    """A row with its item and its result."""

    row: ItemRow
    """As it is stored."""
    item: CasePayload
    """The input of the case, and what a good answer looks like."""
    result: CaseResult | None
    """As the item's line has it; None when the run ended before its model was called."""
    code: str
    """Error code; empty when it has a verdict."""
    message: str
    """What the error says, or the verdict, or why no answer was needed."""

    @property
    def answer(self) -> CaseResult:
        """The result; one without an answer where there is none."""
        return self.result or _no_verdict(self.item)

    @property
    def status(self) -> str:
        """How it ended in one word of the pipeline, or of the error."""
        return self.code or str((self.result and self.result.status) or SKIPPED)

    @property
    def is_not_needed(self) -> bool:
        """Whether it was not asked, because the verdict on its case was certain."""
        return self.row.outcome is Outcome.SKIPPED and bool(self.row.code)

    @property
    def is_answered(self) -> bool:
        """Whether its model answered, so that the call has tokens and a cost; a check may be unavailable."""
        return self.result is not None and self.code in {"", CHECK_UNAVAILABLE}

    @property
    def total_tokens(self) -> int:
        """Tokens of the call; 0 where they are unknown."""
        return 0 if self.result is None else self.result.usage.total_tokens or 0


def opened(rows: Iterable[ItemRow]) -> Iterator[OpenedCase]:
    """Opens rows one by one."""
    for row in rows:
        item = decode_case(row.payload)
        if row.code == POISON_CODE:
            yield OpenedCase(row, item, _no_verdict(item), *POISON_ERROR)
        elif row.outcome is Outcome.ERROR:
            line = _decode_error(row.line)
            yield OpenedCase(row, item, line.result, line.error.code, line.error.message)
        elif row.outcome is Outcome.SKIPPED:
            yield OpenedCase(row, item, None, "", reason_of(row))
        else:
            result = _decode_result(row.line)
            yield OpenedCase(row, item, result, "", result.message)


def poisoned(row: ItemRow) -> tuple[str, str, Any]:
    """Returns code, message and result of a case that no worker survived."""
    return *POISON_ERROR, without_verdict(decode_case(row.payload))
