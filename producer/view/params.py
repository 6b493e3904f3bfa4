"""What addresses ask for, typed: the parts of their paths, and what stands behind the question mark."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, NamedTuple, Self, TypeVar

import msgspec

from producer.row_filter import ANSWERS, FilterError, FilterTable, RowFilter, parse_filter
from shared.errors import UsageError

T = TypeVar("T", bound=msgspec.Struct)


class PathParams(msgspec.Struct, frozen=True):
    """The parts of a path."""

    run: str = ""
    position: int = 0
    item: str = ""
    """As `item_id` names it, such as `case-7`."""
    action: str = ""
    name: str = ""
    """Of a file."""


class QueryParams(msgspec.Struct, frozen=True):
    """What stands behind the question mark; what is not known is not read."""

    q: str = ""
    kind: str = ""
    standing: str = ""
    name: str = ""
    page: int = 1
    number: int = 1
    """Of the first row, from 1."""
    where: str = ""
    """A filter of rows, as `results --where` takes it."""
    part: bool = False
    """Whether a part is wanted, without the page around it."""
    topic: str = ""
    before: Annotated[str, msgspec.Meta(pattern="^([0-9]+-[0-9]+)?$")] = ""
    """Name of a page of a stream; empty: the newest."""
    baseline: str = ""
    """The run that others are compared with; empty: the earliest."""
    view: Literal["", "answers", "cases"] = ""
    """What of a comparison: answer beside answer of two runs, or all cases of several."""
    show: Literal["", "broken", "fixed", "changed", "text"] = ""
    of: str = ""


class GivenFilter(NamedTuple):
    """The filter of an address."""

    text: str
    wanted: RowFilter | None = None
    """None: without a filter, or with one that cannot be read."""
    problem: str = ""
    """Why it cannot be read."""

    @classmethod
    def of(cls, text: str, table: FilterTable = ANSWERS) -> Self:
        """Reads a filter.

        >>> GivenFilter.of("scor < 1").problem
        "filter, column 1: no field is called 'scor'; did you mean 'score'?"
        """
        text = text.strip()
        try:
            return cls(text, parse_filter(text, table) if text else None)
        except FilterError as error:
            return cls(text, problem=f"{error.message}; {error.hint}")


NO_FILTER: Final = GivenFilter("")


def typed(params: Mapping[str, str], kind: type[T]) -> T:
    """Reads parameters.

    Raises:
        UsageError: one does not fit.

    >>> typed({"page": "2", "more": "x"}, QueryParams).page
    2
    """
    try:
        return msgspec.convert({name: value for name, value in params.items() if value}, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"the address does not fit: {error}") from None
