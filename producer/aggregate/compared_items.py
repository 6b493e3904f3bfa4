"""What two runs are compared by: each item's stable identity, its outcome and its scores; pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from producer.aggregate.queries import latency_ms
from shared.contracts.query_vocabulary import failed
from shared.kinds import CASES, QUERIES, TURNS, Kind
from shared.names import Outcome

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
    identify = _IDENTIFIERS[kind]()
    for line in lines:
        result = line["result"]
        if result is None or line["outcome"] == Outcome.SKIPPED:
            skipped += 1
            continue
        unit, key = identify(result)
        word = str(result["decision"]) if kind is TURNS and result["decision"] else line["outcome"]
        found.append(ComparedItem(key, unit, line["outcome"], word, _scores(kind, line, result)))
    return Items(found, skipped)


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


_IDENTIFIERS: Final[Mapping[Kind, Callable[[], Identify]]] = {
    QUERIES: _identify_query,
    CASES: _identify_case,
    TURNS: _identify_turn,
}


def _scores(kind: Kind, line: Mapping[str, Any], result: Mapping[str, Any]) -> Scores:
    """Collects what was measured of an item; the time of an answer from the cache was another item's."""
    if line["outcome"] == Outcome.ERROR or (kind is TURNS and result.get("response") is None):
        return _NO_SCORES
    found: dict[str, Any] = {"cost_usd": line.get("cost_usd")}
    if kind is QUERIES:
        check = result["checks"].get("must_contain", {})
        found["keywords_found"] = check["matched"] / check["total"] if check.get("total") else None
        found["latency_ms"] = latency_ms(result)
    else:
        found["latency_ms"] = None if line.get("cached") else line.get("latency_ms")
        found["rouge_l"] = (result.get("metrics") or {}).get("rouge_l")
    return {name: float(number) for name, number in found.items() if number is not None}
