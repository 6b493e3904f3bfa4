"""What two runs are compared by, read from lines of results: identities, outcomes and scores; pure."""

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from sys import intern
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from producer.cases.results import RepeatOf
from producer.queries.results import AskedQuery
from shared.contracts.case_hashes import hash_of
from shared.contracts.case_run import Quorum
from shared.contracts.query_vocabulary import CHECKS, failed
from shared.names import Outcome
from worker.validation.case_verdict import StageOutcome

R = TypeVar("R")
Scores = Mapping[str, float]
Names = tuple[str, ...]
Verdicts = tuple[tuple[str, bool], ...]
"""Names of checks, each with whether an item passed it; checks that were not asked are left out."""
KEY_PARTS: Final = {"model": 1, "prompt": 2}
"""Where the identity of a case has its model and its prompt."""
_DECIDED: Final = frozenset((StageOutcome.PASS, StageOutcome.FAIL))
CHECK_PREFIX: Final = "check:"
"""Before the name of a check, as a score of a case."""


class LineError(Struct, frozen=True):
    """Why an item has no answer that could be judged."""

    code: str = ""
    message: str = ""


class ComparedLine(Struct, Generic[R], frozen=True, kw_only=True):
    """A line as `proctor results --format jsonl` prints it; what else is in it does not matter."""

    outcome: str
    result: R | None
    item_id: str = ""
    started_at: str | None = None
    cached: bool = False
    latency_ms: float | None = None
    cost_usd: float | None = None
    error: LineError | None = None
    reason: str = ""
    """Why it was not needed."""
    message: str | None = None
    """Text of a turn."""
    messages: list[dict[str, Any]] | None = None
    """What the model was sent."""
    input_hash: str = ""
    expectation_hash: str = ""


class CheckOfCase(Struct, frozen=True):
    """What a check found."""

    name: str
    passed: bool | None = None
    score: float | None = None
    reason: str | None = None


class StageOfCase(Struct, frozen=True):
    """What a stage found."""

    stage: str
    outcome: str


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
    stages: list[StageOfCase] = []
    checks: list[CheckOfCase] | None = None
    score: float | None = None
    weight: float = 1.0
    repeat: RepeatOf | None = None


class ComparedTurn(Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of a turn."""

    thread_id: str
    message_id: str
    decision: str | None = None
    reason: str = ""
    response: str | None = None
    memento: dict[str, Any] | None = None
    summary_updated: bool = False


Line = ComparedLine[Any]
CaseLine = ComparedLine[ComparedCase]
TurnLine = ComparedLine[ComparedTurn]
QueryLine = ComparedLine[dict[str, Any]]


class PackedScores(Mapping[str, float]):
    """Scores of an item in a third of the memory of a dict: a comparison holds those of all items.

    >>> scores = PackedScores(("score", "latency_ms"), [1, 250.0])
    >>> scores["latency_ms"], scores.get("rouge_l"), dict(scores)
    (250.0, None, {'score': 1.0, 'latency_ms': 250.0})
    """

    __slots__ = ("names", "numbers")

    def __init__(self, names: Names, values: Iterable[float]) -> None:
        self.names = names
        self.numbers = array("d", values)

    def __getitem__(self, name: str) -> float:
        """Returns a score."""
        if name not in self.names:
            raise KeyError(name)
        return self.numbers[self.names.index(name)]

    def __contains__(self, name: object) -> bool:
        """Returns whether there is a score of that name."""
        return name in self.names

    def pairs(self, other: "PackedScores") -> Iterator[tuple[str, float, float]]:
        """Yields the scores that another item has as well: name, value, and that of the other item."""
        for name, number in zip(self.names, self.numbers, strict=True):
            if name in other.names:
                yield name, number, other.numbers[other.names.index(name)]

    def __iter__(self) -> Iterator[str]:
        """Yields the names."""
        return iter(self.names)

    def __len__(self) -> int:
        """Counts the scores."""
        return len(self.names)


class Known(NamedTuple):
    """What is known of the input of an item; empty hashes are not known."""

    asked: bytes = b""
    """Hash of what decides its answer."""
    expects: bytes = b""
    """Hash of what decides its verdict."""


class ComparedItem(NamedTuple):
    """One item of a run."""

    key: Names
    """What it is in any run of the same input; the last part is the number of its repetition, as `#1`."""
    unit: str
    """The case, query or thread it belongs to: items of one unit are related, units are not."""
    outcome: str
    word: str
    """The decision of a turn; of other kinds the outcome."""
    scores: PackedScores
    tags: Sequence[str]
    """What it is marked with: tags of a case, the category of a query."""
    place: int
    """Where its texts are kept."""
    known: Known
    weight: float
    """How much it counts in means."""
    answer: int = 0
    """Hash of its answer, in this process."""
    verdicts: Verdicts = ()
    """What its checks found; one tuple for all items of which they found the same."""
    tries: tuple[int, int] | None = None
    """Of answers that count together, how many passed, and of how many; None for a single answer."""

    @property
    def names(self) -> list[str]:
        """What people call it: its unit first, then model, prompt and number.

        >>> ComparedItem(("c", "openai/gpt-4o", "", "#2"), "c", *[None] * 7).names
        ['c', 'openai/gpt-4o', '#2']
        """
        *names, last = self.key
        return [name for name in names if name] + ([] if last == "#1" else [last])

    @property
    def label(self) -> str:
        """These in one text."""
        *names, last = self.names
        return f"{' · '.join(names)} {last}" if last.startswith("#") else " · ".join([*names, last])

    def without(self, at: int) -> "ComparedItem":
        """Takes a part out of its identity."""
        return self._replace(key=(*self.key[:at], "", *self.key[at + 1 :]))


class Items(NamedTuple):
    """The items of a run that were judged."""

    items: list[ComparedItem]
    """In input order."""
    skipped: int
    """Those without a result."""

    def without(self, by: str) -> "Items":
        """Takes the model or the prompt out of all identities."""
        return self._replace(items=[item.without(KEY_PARTS[by]) for item in self.items])

    def parts(self, by: str) -> "dict[str, Items]":
        """Parts them by model or by prompt, which their identities lose; of cases only."""
        found: dict[str, list[ComparedItem]] = {}
        for item in self.items:
            found.setdefault(item.key[KEY_PARTS[by]], []).append(item)
        return {name: Items(items, 0).without(by) for name, items in found.items()}


def items_of(
    comparing: "Comparing",
    lines: Iterable[tuple[Line, Known | None]],
    *,
    tag: str | None = None,
    keep: Callable[[Line], int] = lambda _: -1,
) -> Items:
    """Reads the lines of results.

    Args:
        comparing: how the items of their kind are compared.
        lines: in input order, each with what else is known of the item; None: what the line says.
        tag: only items with this one.
        keep: keeps the texts of a line, and returns where.
    """
    quorums, verdicts = dict[Names, Quorum](), dict[Verdicts, Verdicts]()
    found, skipped, seen, layouts = list[ComparedItem](), 0, Counter[Names](), dict[Names, Names]()
    for at, (line, known) in enumerate(lines):
        if tag is not None and (line.result is None or tag not in comparing.tags(line)):
            continue
        if line.result is None or line.outcome == Outcome.SKIPPED:
            skipped += not line.reason
            continue
        names = tuple(map(intern, comparing.names(line.result, at)))  # one text for all items that share it
        seen[names] += 1
        key = names if comparing.are_cases else (*names, intern(f"#{seen[names]}"))
        measured = comparing.scores(line) if line.outcome != Outcome.ERROR else {}
        scores = {name: number for name, number in measured.items() if number is not None}
        layout, checked = tuple(scores), comparing.verdicts(line)
        found.append(
            ComparedItem(
                key=key,
                unit=key[0],
                outcome=line.outcome,
                word=comparing.word(line),
                scores=PackedScores(layouts.setdefault(layout, layout), scores.values()),
                tags=tuple(map(intern, comparing.tags(line))),
                place=keep(line),
                known=known or comparing.known(line),
                weight=getattr(line.result, "weight", 1.0),
                answer=hash(comparing.answer(line)),
                verdicts=verdicts.setdefault(checked, checked),
            )
        )
        if isinstance(line.result, ComparedCase) and (repeat := line.result.repeat):
            quorums[key[:-1]] = Quorum(repeat.needed, repeat.times)
    return Items(by_verdict(found, quorums) if quorums else found, skipped)


def by_verdict(items: Iterable[ComparedItem], quorums: Mapping[Names, Quorum]) -> list[ComparedItem]:
    """Puts the answers to each case that count together into one item, with their verdict and mean scores.

    Args:
        items: in input order.
        quorums: of cases, by their identity without the number of a repetition.
    """
    found, answers = list[ComparedItem](), dict[Names, list[ComparedItem]]()
    for item in items:
        case = item.key[:-1]
        if case not in quorums:
            found.append(item)
        elif case in answers:
            answers[case].append(item)
        else:
            answers[case] = [item]
    cases = [_together(some, quorums[case]) for case, some in answers.items()]
    return [
        *found,
        *(case for case in cases if case.outcome != Outcome.SKIPPED),
    ]  # those the run ended before


def _together(answers: Sequence[ComparedItem], quorum: Quorum) -> ComparedItem:
    """Makes one item of the answers to a case; its texts are those of the first answer with the verdict."""
    outcome = quorum.outcome(Counter(Outcome(each.outcome) for each in answers))
    shown = next((each for each in answers if each.outcome == outcome), answers[0])
    scores = {
        name: fmean(each.scores[name] for each in answers if name in each.scores)
        for name in dict.fromkeys(name for each in answers for name in each.scores)
    }
    return shown._replace(
        key=(*shown.key[:-1], "#1"),
        outcome=outcome.value,
        word=outcome.value,
        scores=PackedScores(tuple(scores), scores.values()),
        tries=(sum(each.outcome == Outcome.PASSED for each in answers), len(answers)),
    )


def one_each(a: Items, b: Items, by: str) -> tuple[Items, Items, tuple[str, str] | None]:
    """Pairs cases by everything but their model, or prompt, where each run has a single one, another.

    Returns:
        The items, and the two names if they were left out of the identities.
    """
    names = [{item.key[KEY_PARTS[by]] for item in side.items} for side in (a, b)]
    if any(len(found) != 1 for found in names) or names[0] == names[1]:
        return a, b, None
    [one], [other] = names
    return a.without(by), b.without(by), (one, other)


def lines_of_results(results: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Puts results of the evaluation harness document into the form of lines."""
    for result in results:
        word = Outcome.PASSED if result["overall_pass"] else Outcome.FAILED
        yield {"outcome": Outcome.ERROR.value if failed(result) else word.value, "result": result}


def _case_names(case: ComparedCase, _at: int) -> Names:
    name = f"case {case.case_index + 1}" if case.case_id is None else str(case.case_id)
    return name, case.model, case.prompt_id or "", f"#{(case.repeat_index or 0) + 1}"


def _latency(line: Line) -> float | None:
    """Returns how long an answer took; that of an answer from the cache was another item's."""
    return None if line.cached else line.latency_ms


def _item_scores(line: Line) -> Mapping[str, float | None]:
    return {"cost_usd": line.cost_usd, "latency_ms": _latency(line)}


def _case_scores(line: CaseLine) -> Mapping[str, float | None]:
    result = _result(line)
    checks = {f"{CHECK_PREFIX}{row.name}": row.score for row in result.checks or ()}
    rouge_l = result.metrics.rouge_l if result.metrics else None
    return {**_item_scores(line), "rouge_l": rouge_l, "score": result.score, **checks}


def _case_answer(line: CaseLine) -> Hashable:
    result = _result(line)
    return result.raw_output, result.refusal, str(result.tool_calls or "")


def _case_verdicts(line: CaseLine) -> Verdicts:
    result = _result(line)
    decided = (row for row in result.stages if row.outcome in _DECIDED)
    stages = ((row.stage, row.outcome == StageOutcome.PASS) for row in decided)
    checks = ((row.name, row.passed) for row in result.checks or () if row.passed is not None)
    return (*stages, *checks)


def _turn_scores(line: TurnLine) -> Mapping[str, float | None]:
    return {} if _result(line).response is None else _item_scores(line)


def _query_scores(line: QueryLine) -> Mapping[str, float | None]:
    query = AskedQuery(line.result or {})
    keywords = query.check("must_contain")
    wanted = keywords.number("total")
    found = keywords.number("matched") / wanted if wanted else None
    return {"cost_usd": line.cost_usd, "keywords_found": found, "latency_ms": query.latency_ms}


def _query_verdicts(line: QueryLine) -> Verdicts:
    query = AskedQuery(line.result or {})
    if query.is_failed:
        return ()
    found = ((name, query.check(name)) for name in CHECKS)
    return tuple((name, check.passed) for name, check in found if check.is_applicable)


def _turn_answer(line: TurnLine) -> Hashable:
    result = _result(line)
    return result.response, result.reason, str(result.memento)


def _category(line: QueryLine) -> Sequence[str]:
    found = AskedQuery(line.result or {}).category
    return [] if found is None else [str(found)]


def _result(line: ComparedLine[R]) -> R:
    """Returns the result of a line that has one."""
    assert line.result is not None  # noqa: S101 - lines without a result are counted, not read
    return line.result


class Comparing(NamedTuple):
    """How the items of two runs of one kind are compared."""

    unit: str
    """What the tests count: items of one unit are related, units are not."""
    item: str
    """What one pair is, as people count it."""
    names: Callable[[Any, int], Names]
    """Names an item of any run of the same input, by its result and its position; its unit first."""
    line: type[Line] = ComparedLine[Any]
    """Type of its lines."""
    word: Callable[[Line], str] = lambda line: line.outcome
    """What became of an item, as a change of it is written."""
    scores: Callable[[Line], Mapping[str, float | None]] = _item_scores
    """What was measured of an item without an error."""
    answer: Callable[[Line], Hashable] = lambda line: str(line.result)
    """What was answered, to tell whether two answers are the same."""
    verdicts: Callable[[Line], Verdicts] = lambda _: ()
    """What its checks found."""
    tags: Callable[[Line], Sequence[str]] = lambda _: ()
    """What an item is marked with."""
    tag: str = "tag"
    """What such a mark is called."""
    known: Callable[[Line], Known] = lambda _: Known()
    """What a line says of the item's input."""
    good: str = "passed"
    """What an item did that ended well."""
    good_rate: str = "Pass rate"
    """What the share of such items is called, at the beginning of a sentence."""
    are_cases: bool = False
    """Whether identities have a model, a prompt (`KEY_PARTS`) and the number of the repetition."""


COMPARED_ITEMS: Final = Comparing("item", "item", lambda _, at: (f"item {at}",))
COMPARED_TURNS: Final = Comparing(
    "thread",
    "turn",
    lambda turn, _: (turn.thread_id, turn.message_id),
    TurnLine,
    word=lambda line: _result(line).decision or line.outcome,
    scores=_turn_scores,
    answer=_turn_answer,
    good="decided",
    good_rate="Decided",
)
COMPARED_CASES: Final = Comparing(
    "case",
    "answer",
    _case_names,
    CaseLine,
    scores=_case_scores,
    answer=_case_answer,
    verdicts=_case_verdicts,
    tags=lambda line: _result(line).tags or (),
    known=lambda line: Known(bytes.fromhex(line.input_hash), bytes.fromhex(line.expectation_hash)),
    are_cases=True,
)
COMPARED_QUERIES: Final = Comparing(
    "query",
    "answer",
    lambda result, _: (str(result["id"]),),
    QueryLine,
    scores=_query_scores,
    answer=lambda line: str(AskedQuery(line.result or {}).answer),
    verdicts=_query_verdicts,
    tags=_category,
    tag="category",
    known=lambda line: Known(hash_of(AskedQuery(line.result or {}).query)),
)
