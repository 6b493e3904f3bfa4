"""What a comparison reads of a line of results; what else is in the line does not matter."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct, convert

from shared.contracts.query_vocabulary import failed
from shared.names import Outcome

R = TypeVar("R")


class LineError(Struct, frozen=True):
    """Why an item has no answer that could be judged."""

    code: str = ""
    message: str = ""


class ComparedLine(Struct, Generic[R], frozen=True, kw_only=True):
    """A line of any kind, as `proctor results --format jsonl` prints it."""

    outcome: str
    result: R | None
    item_id: str = ""
    started_at: str | None = None
    cached: bool = False
    latency_ms: float | None = None
    cost_usd: float | None = None
    error: LineError | None = None
    message: str | None = None
    """Text of a turn."""
    messages: list[dict[str, Any]] | None = None
    """What the model was sent."""
    asked: str | None = None
    expected: Any = None


class CheckOfCase(Struct, frozen=True):
    """What a check found."""

    name: str
    passed: bool | None = None
    score: float | None = None
    reason: str | None = None


class MetricsOfCase(Struct, frozen=True):
    """What is measured of an answer without a verdict."""

    rouge_l: float | None = None


class ComparedCase(Struct, frozen=True, kw_only=True):
    """The result of a test case."""

    model: str
    case_index: int
    case_id: str | int | None = None
    prompt_id: str | None = None
    repeat_index: int | None = None
    passed: bool = False
    message: str | None = None
    raw_output: str | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tags: list[str] | None = None
    metrics: MetricsOfCase | None = None
    checks: list[CheckOfCase] | None = None
    score: float | None = None
    weight: float = 1.0


class ComparedTurn(Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a turn."""

    thread_id: str
    message_id: str
    decision: str | None = None
    reason: str = ""
    response: str | None = None
    memento: dict[str, Any] | None = None
    summary_updated: bool = False


CaseLine = ComparedLine[ComparedCase]
TurnLine = ComparedLine[ComparedTurn]
QueryLine = ComparedLine[dict[str, Any]]


def typed_lines(line: type[ComparedLine[R]], lines: Iterable[Mapping[str, Any]]) -> Iterator[ComparedLine[R]]:
    """Reads parsed lines.

    Raises:
        ValidationError: one is not as Proctor writes it.
    """
    return (convert(each, line) for each in lines)


def lines_of_results(results: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Puts results of the evaluation harness document into the form of lines."""
    for result in results:
        word = Outcome.PASSED if result["overall_pass"] else Outcome.FAILED
        yield {"outcome": Outcome.ERROR.value if failed(result) else word.value, "result": result}
