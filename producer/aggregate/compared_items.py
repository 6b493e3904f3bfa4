"""What two runs are compared by: each item's stable identity, its outcome and its scores; pure."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from sys import intern
from typing import Any, Final, NamedTuple

from producer.aggregate.compared_lines import (
    CaseLine,
    ComparedCase,
    ComparedLine,
    ComparedTurn,
    QueryLine,
    R,
    TurnLine,
)
from producer.queries.results import AskedQuery
from shared.contracts.case_hashes import HASH_BYTES, hash_of
from shared.contracts.prompts import SYSTEM_ROLES
from shared.names import Outcome

Line = ComparedLine[Any]
Scores = Mapping[str, float]
Names = tuple[str, ...]


class PackedScores(Mapping[str, float]):
    """Scores of an item in a third of the memory of a dict: a comparison holds those of all items.

    Args:
        names: of the scores; items with the same ones share them.
        values: in the same order.

    >>> scores = PackedScores(("score", "latency_ms"), [1, 250.0])
    >>> scores["latency_ms"], scores.get("rouge_l"), dict(scores)
    (250.0, None, {'score': 1.0, 'latency_ms': 250.0})
    """

    __slots__ = ("_names", "_values")

    def __init__(self, names: Names, values: Iterable[float]) -> None:
        self._names = names
        self._values = array("d", values)

    def __getitem__(self, name: str) -> float:
        """Returns a score."""
        try:
            return self._values[self._names.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        """Yields the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Counts the scores."""
        return len(self._names)


class Inputs(NamedTuple):
    """Hashes of what an item was asked and how it was judged; empty ones are not known."""

    asked: bytes = b""
    """Of its messages, but for the system message."""
    system: bytes = b""
    """Of its own system message."""
    instructed: bytes = b""
    """Of the system message that was sent, be it its own or the run's."""
    given: bytes = b""
    """Of what its messages are rendered from: variables, and what no template replaces."""
    recorded: bytes = b""
    """Of its recorded output."""
    expected: bytes = b""
    """Of its criteria."""
    sent: bytes = b""
    """Of all that was sent, with endpoint and options."""
    judged: bytes = b""
    """Of all that decided the verdict, with the judges."""

    @property
    def packed(self) -> bytes:
        """One value for all, since a comparison holds those of all items.

        >>> inputs = Inputs(asked=b"12345678")
        >>> Inputs.of(inputs.packed) == inputs, Inputs().packed
        (True, b'')
        """
        return b"".join(each.ljust(HASH_BYTES, _UNKNOWN) for each in self) if any(self) else b""

    @classmethod
    def of(cls, packed: bytes) -> "Inputs":
        """Reads what was packed."""
        parts = (packed[at : at + HASH_BYTES] for at in range(0, len(packed), HASH_BYTES))
        return cls(*(b"" if not part.strip(_UNKNOWN) else part for part in parts))


_UNKNOWN: Final = b"\0"


class Known(NamedTuple):
    """What is known of an item of a run, beside the line of its result."""

    inputs: Inputs
    """What it was asked and how it was judged."""
    weight: float = 1.0
    """How much it counts in means."""


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
    tags: Sequence[str] = ()
    """What it is marked with: tags of a case, the category of a query."""
    place: int = -1
    """Where its texts are kept; -1 where they are not."""
    inputs: bytes = b""
    """Hashes of what was asked and how it was judged (`Inputs`)."""
    weight: float = 1.0
    """How much it counts in means."""


class Items(NamedTuple):
    """The items of a run that were judged."""

    items: list[ComparedItem]
    """In input order."""
    skipped: int
    """Those without a result."""


_NO_SCORES: Final[Scores] = {}
KEY_PARTS: Final = {"model": 1, "prompt": 2}
"""Where the identity of a case has its model and its prompt."""
CHECK_PREFIX: Final = "check:"
"""Before the name of a check, as a score of a case."""


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
        tag: only cases with this tag.
        keep: keeps the texts of a line, and returns where.
    """
    found, skipped, layouts = list[ComparedItem](), 0, dict[Names, Names]()
    identify = comparing.identify()
    for line, known in lines:
        if tag is not None and not (
            isinstance(line.result, ComparedCase) and tag in (line.result.tags or ())
        ):
            continue
        if line.result is None or line.outcome == Outcome.SKIPPED:
            skipped += 1
            continue
        unit, key = identify(line.result)
        unit, key = intern(unit), tuple(map(intern, key))  # one text for A and B and all items that share it
        inputs, weight = known or Known(_inputs(comparing, line), getattr(line.result, "weight", 1.0))
        found.append(
            ComparedItem(
                key=key,
                unit=unit,
                outcome=line.outcome,
                word=comparing.word(line),
                scores=_scores(comparing, line, layouts),
                tags=tuple(map(intern, comparing.tags(line))),
                place=keep(line),
                inputs=inputs.packed,
                weight=weight,
            )
        )
    return Items(found, skipped)


def _inputs(comparing: "Comparing", line: Line) -> Inputs:
    """Returns as much as a report contains of what was asked."""
    asked, found = comparing.asked(line), Inputs()
    if line.messages:
        found = inputs_of_messages(line.messages)
    if asked is not None:
        found = found._replace(asked=hash_of(asked))
    return found if line.expected is None else found._replace(expected=hash_of(line.expected))


def inputs_of_messages(messages: Sequence[Mapping[str, Any]]) -> Inputs:
    """Hashes what was sent, the system message by itself.

    >>> told, asked = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}
    >>> inputs_of_messages([asked]).asked == inputs_of_messages([told, asked]).asked
    True
    """
    is_told = bool(messages) and messages[0]["role"] in SYSTEM_ROLES
    text = messages[0]["content"] if is_told else ""
    return Inputs(asked=hash_of(messages[1:] if is_told else messages), instructed=hash_of(text))


def _scores(comparing: "Comparing", line: Line, layouts: dict[Names, Names]) -> Scores:
    """Collects what was measured of an item; `layouts` has the names of earlier ones."""
    if line.outcome == Outcome.ERROR:
        return _NO_SCORES
    found = {name: number for name, number in comparing.scores(line).items() if number is not None}
    names = tuple(found)
    return PackedScores(layouts.setdefault(names, names), found.values())


def split_by(side: Items, by: str) -> dict[str, Items]:
    """Parts the cases of a run by prompt or by model, so that the parts can be compared.

    Args:
        side: the cases of a run.
        by: `prompt` or `model`.

    Returns:
        The cases of each prompt or model in their order, without its name in their identities.
    """
    at = KEY_PARTS[by]
    parts: dict[str, list[ComparedItem]] = {}
    for item in side.items:
        parts.setdefault(item.key[at], []).append(item)
    return {name: _without(Items(items, 0), at) for name, items in parts.items()}


def one_each(a: Items, b: Items, by: str) -> tuple[Items, Items, tuple[str, str] | None]:
    """Pairs cases by everything but their model, where each run has a single model and not the same one.

    Args:
        a: the run before.
        b: the run after.
        by: `model`, or `prompt` for the same with prompts.

    Returns:
        The items, and the two names if they were left out of the identities.
    """
    at = KEY_PARTS[by]
    names = [{item.key[at] for item in side.items} for side in (a, b)]
    if any(len(found) != 1 for found in names) or names[0] == names[1]:
        return a, b, None
    [one], [other] = names
    return _without(a, at), _without(b, at), (one, other)


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


def _without(side: Items, at: int) -> Items:
    """Takes a part out of the identities."""
    return side._replace(
        items=[item._replace(key=(*item.key[:at], "", *item.key[at + 1 :])) for item in side.items]
    )


Identify = Callable[[Any], tuple[str, Names]]


def _identify_query() -> Identify:
    """Makes a function that identifies a query by its id, and repeats of it by their order."""
    seen = Counter[str]()

    def identify(result: dict[str, Any]) -> tuple[str, Names]:
        name = str(result["id"])
        seen[name] += 1
        return name, (name, f"#{seen[name]}")

    return identify


def _identify_case() -> Identify:
    """Makes a function that names a case by its id, else its number, with model, prompt and repeat."""

    def identify(result: ComparedCase) -> tuple[str, Names]:
        name = f"case {result.case_index + 1}" if result.case_id is None else str(result.case_id)
        return name, (name, result.model, result.prompt_id or "", f"#{(result.repeat_index or 0) + 1}")

    return identify


def _identify_turn() -> Identify:
    """Makes a function that identifies a turn by thread, message, and the order of messages with one id."""
    occurrences = Counter[tuple[str, str]]()

    def identify(result: ComparedTurn) -> tuple[str, Names]:
        pair = (result.thread_id, result.message_id)
        occurrences[pair] += 1
        return pair[0], (*pair, f"#{occurrences[pair]}")

    return identify


def _by_position() -> Identify:
    """Makes a function that names an item by its place in the input."""
    positions = count()

    def identify(_result: Any) -> tuple[str, Names]:
        name = f"item {next(positions)}"
        return name, (name,)

    return identify


def _asked(line: Line) -> str | None:
    return line.asked or line.message


def _asked_query(line: QueryLine) -> str:
    return str(AskedQuery(line.result or {}).query)


def _no_tags(_line: Line) -> Sequence[str]:
    return ()


def _case_tags(line: CaseLine) -> Sequence[str]:
    return _result(line).tags or ()


def _category(line: QueryLine) -> Sequence[str]:
    found = AskedQuery(line.result or {}).category
    return [] if found is None else [str(found)]


def _outcome(line: Line) -> str:
    return line.outcome


def _decision(line: TurnLine) -> str:
    return _result(line).decision or line.outcome


def _latency(line: Line) -> float | None:
    """Returns how long an answer took; that of an answer from the cache was another item's."""
    return None if line.cached else line.latency_ms


def _item_scores(line: Line) -> Mapping[str, float | None]:
    return {"cost_usd": line.cost_usd, "latency_ms": _latency(line)}


def _case_scores(line: CaseLine) -> Mapping[str, float | None]:
    """Collects what was measured of a case, its checks one by one."""
    result = _result(line)
    checks = {f"{CHECK_PREFIX}{row.name}": row.score for row in result.checks or ()}
    rouge_l = result.metrics.rouge_l if result.metrics else None
    return {**_item_scores(line), "rouge_l": rouge_l, "score": result.score, **checks}


def _turn_scores(line: TurnLine) -> Mapping[str, float | None]:
    """Collects what was measured of a turn that a model answered."""
    return {} if _result(line).response is None else _item_scores(line)


def _query_scores(line: QueryLine) -> Mapping[str, float | None]:
    query = AskedQuery(line.result or {})
    keywords = query.check("must_contain")
    wanted = keywords.number("total")
    return {
        "cost_usd": line.cost_usd,
        "keywords_found": keywords.number("matched") / wanted if wanted else None,
        "latency_ms": query.latency_ms,
    }


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
    identify: Callable[[], Identify]
    """Makes a function that names the unit of an item, and the item in any run of the same input."""
    line: type[Line] = ComparedLine[Any]
    """Type of its lines."""
    word: Callable[[Line], str] = _outcome
    """What became of an item, as a change of it is written."""
    scores: Callable[[Line], Mapping[str, float | None]] = _item_scores
    """What was measured of an item without an error."""
    tags: Callable[[Line], Sequence[str]] = _no_tags
    """What an item is marked with."""
    tag: str = "tag"
    """What such a mark is called."""
    asked: Callable[[Line], str | None] = _asked
    """What was asked; None where the line does not contain it."""
    good: str = "passed"
    """What an item did that ended well."""
    good_rate: str = "Pass rate"
    """What the share of such items is called, at the beginning of a sentence."""
    names_model: bool = False
    """Whether items are named as cases are (`KEY_PARTS`), so that models and prompts can be compared."""


COMPARED_ITEMS: Final = Comparing("item", "item", _by_position)
COMPARED_TURNS: Final = Comparing(
    "thread",
    "turn",
    _identify_turn,
    TurnLine,
    word=_decision,
    scores=_turn_scores,
    good="decided",
    good_rate="Decided",
)
COMPARED_CASES: Final = Comparing(
    "case", "answer", _identify_case, CaseLine, scores=_case_scores, tags=_case_tags, names_model=True
)
COMPARED_QUERIES: Final = Comparing(
    "query",
    "answer",
    _identify_query,
    QueryLine,
    scores=_query_scores,
    tags=_category,
    tag="category",
    asked=_asked_query,
)
