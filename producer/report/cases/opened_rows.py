"""Opens the stored rows of a cases run: the item, its result, and why there is no verdict."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from shared.codecs.item_rows import POISON_CODE, POISON_ERROR, ItemRow
from shared.contracts.case_run import CasePayload, decode_case
from shared.contracts.unjudged_case import without_verdict
from shared.names import Outcome

CHECK_UNAVAILABLE: Final = "check_unavailable"
"""Code of an answer of which a check could not be asked."""
_decode = msgspec.json.decode


class OpenedCase(NamedTuple):
    """A row with its item and its result."""

    row: ItemRow
    """As it is stored."""
    item: CasePayload
    """The input of the case, and what a good answer looks like."""
    result: dict[str, Any] | None
    """As the item's line has it; None when the run ended before its model was called."""
    code: str
    """Error code; empty when it has a verdict."""
    message: str
    """What the error says, or the verdict."""

    @property
    def is_answered(self) -> bool:
        """Whether its model answered, so that the call has tokens and a cost; a check may be unavailable."""
        return self.result is not None and self.code in {"", CHECK_UNAVAILABLE}

    @property
    def total_tokens(self) -> int:
        """Tokens of the call; 0 where they are unknown."""
        usage = (self.result or {}).get("token_usage") or {}
        return int(usage.get("total_tokens") or 0)


def opened(rows: Iterable[ItemRow]) -> Iterator[OpenedCase]:
    """Opens rows one by one."""
    for row in rows:
        item = decode_case(row.payload)
        if row.code == POISON_CODE:
            yield OpenedCase(row, item, without_verdict(item), *POISON_ERROR)
        elif row.outcome is Outcome.ERROR:
            line = _decode(row.line)
            error = line["error"]
            yield OpenedCase(row, item, line["result"], str(error["code"]), str(error["message"]))
        else:
            result = _decode(row.line) if row.code else None
            yield OpenedCase(row, item, result, "", str(result["message"]) if result else "")


def poisoned(row: ItemRow) -> tuple[str, str, Any]:
    """Returns code, message and result of a case that no worker survived."""
    [case] = opened([row])
    return case.code, case.message, case.result
