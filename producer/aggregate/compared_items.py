"""What two runs are compared by: each item's stable identity, its outcome and its scores; pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from producer import kinds
from producer.aggregate.queries import latency_ms
from shared.contracts.query_vocabulary import failed
from shared.kinds import Kind
from shared.names import Outcome

Line = Mapping[str, Any]
Scores = Mapping[str, float]


class ComparedItem(NamedTuple):
    """One item of a run."""

    key: tuple[str, ...]
    """What it is in any run of the same input."""
    unit: str
    """The case, query or thread it belongs to: items of one unit are related, units are not."""
    outcome: str
    """How it ended."""
    word: str
    """The decision of a turn; of other kinds the outcome."""
    scores: Scores
    """What was measured of it."""


class Items(NamedTuple):
    """The items of a run that were judged."""

    items: list[ComparedItem]
    """In input order."""
    skipped: int
    """Those without a result."""


_NO_SCORES: Final[Scores] = {}


def items_of(kind: Kind, lines: Iterable[Mapping[str, Any]]) -> Items:
    """Reads what `proctor results --format jsonl` prints.

    Args:
        kind: what the lines are.
        lines: parsed, in input order.
    """
    found, skipped = list[ComparedItem](), 0
    comparing = kinds.of(kind).comparing.load()
    identify = comparing.identify()
    for line in lines:
        result = line["result"]
        if result is None or line["outcome"] == Outcome.SKIPPED:
            skipped += 1
            continue
        unit, key = identify(result)
        found.append(ComparedItem(key, unit, line["outcome"], comparing.word(line), _scores(comparing, line)))
    return Items(found, skipped)


def _scores(comparing: "Comparing", line: Line) -> Scores:
    """Collects what was measured of an item."""
    if line["outcome"] == Outcome.ERROR:
        return _NO_SCORES
    return {name: float(number) for name, number in comparing.scores(line).items() if number is not None}


def lines_of_results(results: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Puts results of the evaluation harness document into the form of lines."""
    for result in results:
        word = Outcome.PASSED if result["overall_pass"] else Outcome.FAILED
        yield {"outcome": Outcome.ERROR.value if failed(result) else word.value, "result": result}


def one_model_each(a: Items, b: Items) -> tuple[Items, Items, tuple[str, str] | None]:
    """Lets cases meet whatever model answered them, when each run asked one model and not the same.

    Returns:
        The items, and the names of the two models if they were left out of the identities.
    """
    models = [{item.key[1] for item in side.items} for side in (a, b)]
    if any(len(names) != 1 for names in models) or models[0] == models[1]:
        return a, b, None
    [one], [other] = models
    return _without_model(a), _without_model(b), (one, other)


def label(key: tuple[str, ...]) -> str:
    """Writes an identity for people.

    >>> label(("Q-07", "#1")), label(("Q-07", "#2")), label(("c", "openai/gpt-4o", "#1"))
    ('Q-07', 'Q-07 #2', 'c · openai/gpt-4o')
    """
    *names, last = key
    if not last.startswith("#"):
        return " · ".join(key)
    text = " · ".join(name for name in names if name)
    return text if last == "#1" else f"{text} {last}"


def _without_model(side: Items) -> Items:
    """Takes the model out of the identities."""
    return side._replace(items=[item._replace(key=(item.key[0], "", item.key[2])) for item in side.items])


Identify = Callable[[Mapping[str, Any]], tuple[str, tuple[str, ...]]]


def _identify_query() -> Identify:
    """Makes a function that tells a query by its id, and repeats of it by their order."""
    asked = Counter[str]()

    def identify(result: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        name = str(result["id"])
        asked[name] += 1
        return name, (name, f"#{asked[name]}")

    return identify


def _identify_case() -> Identify:
    """Makes a function that tells a case by its id, else its number, its model and its repeat."""

    def identify(result: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        number = f"case {result['case_index'] + 1}"
        name = str(number if result["case_id"] is None else result["case_id"])
        return name, (name, str(result["model"]), f"#{(result['repeat_index'] or 0) + 1}")

    return identify


def _identify_turn() -> Identify:
    """Makes a function that tells a turn by thread and message, and messages with one id by their order."""
    said = Counter[tuple[str, str]]()

    def identify(result: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        pair = (str(result["threadId"]), str(result["messageId"]))
        said[pair] += 1
        return pair[0], (*pair, f"#{said[pair]}")

    return identify


def _by_position() -> Identify:
    """Makes a function that names an item by its place in the input."""
    positions = count()

    def identify(result: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        del result
        name = f"item {next(positions)}"
        return name, (name,)

    return identify


def _outcome(line: Line) -> str:
    """Compares items by their outcome."""
    return str(line["outcome"])


def _decision(line: Line) -> str:
    """Compares turns by their decision, where they have one."""
    return str(line["result"]["decision"] or line["outcome"])


def _item_scores(line: Line) -> dict[str, Any]:
    """Collects what was measured; the time of an answer from the cache was another item's."""
    return {
        "cost_usd": line.get("cost_usd"),
        "latency_ms": None if line.get("cached") else line.get("latency_ms"),
        "rouge_l": (line["result"].get("metrics") or {}).get("rouge_l"),
    }


def _turn_scores(line: Line) -> dict[str, Any]:
    """Collects what was measured of a turn that a model answered."""
    return {} if line["result"].get("response") is None else _item_scores(line)


def _query_scores(line: Line) -> dict[str, Any]:
    """Collects what was measured of a query."""
    result = line["result"]
    check = result["checks"].get("must_contain", {})
    return {
        "cost_usd": line.get("cost_usd"),
        "keywords_found": check["matched"] / check["total"] if check.get("total") else None,
        "latency_ms": latency_ms(result),
    }


class Comparing(NamedTuple):
    """How the items of two runs of one kind are compared."""

    unit: str
    """What the tests count: items of one unit are related, units are not."""
    identify: Callable[[], Identify]
    """Makes a function that names the unit of an item, and the item in any run of the same input."""
    word: Callable[[Line], str] = _outcome
    """What became of an item, as a change of it is written."""
    scores: Callable[[Line], Mapping[str, Any]] = _item_scores
    """What was measured of an item without an error."""
    names_model: bool = False
    """Whether the model stands second in an item's name, so that runs of two models can be compared."""


COMPARED_ITEMS: Final = Comparing("item", _by_position)
COMPARED_TURNS: Final = Comparing("thread", _identify_turn, word=_decision, scores=_turn_scores)
COMPARED_CASES: Final = Comparing("case", _identify_case, names_model=True)
COMPARED_QUERIES: Final = Comparing("query", _identify_query, scores=_query_scores)
