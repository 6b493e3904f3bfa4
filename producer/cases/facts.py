"""What filters look at in the rows of a cases run: as little of the stored line is read as they need."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from producer.cases.doubt import disagreement, nearness
from producer.cases.results import JudgeVote
from producer.items.facts import HEAD, head_of
from producer.row_filter import RowFacts
from shared.codecs.item_rows import CACHED, OUTCOME_OF_CODE, POISON_CODE, POISON_ERROR, ItemRow

_ERROR: Final = "x"
_PASSED: Final = "p"


class _Result(Struct, gc=False):
    """A stored result; what few filters look at is found, and read only for them."""

    model: str = ""
    case_id: str | None = None
    case_index: int = 0
    prompt_id: str | None = None
    repeat_index: int = 0
    status: str | None = None
    message: str = ""
    tags: tuple[str, ...] = ()
    """No list: the garbage collector would visit those of all rows that are kept."""
    score: float | None = None
    metadata: Raw = Raw(b"{}")
    vars: Raw = Raw(b"{}")
    stages: Raw = Raw(b"[]")
    checks: Raw = Raw(b"[]")
    metrics: Raw = Raw(b"{}")
    raw_output: Raw = Raw(b"null")


class _Problem(Struct, gc=False):
    code: str = ""
    message: str = ""


class _ErrorLine(Struct, gc=False):
    error: _Problem
    result: _Result | None = None


class _Input(Struct):
    """An item that has no result."""

    model: str = ""
    case: int = 0
    id: str | None = None
    prompt_id: str | None = None
    repeat: int = 0
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    vars: dict[str, Any] = {}


class _Check(Struct, gc=False):
    name: str
    passed: bool | None
    score: float | None = None
    at_least: float | None = None


class _Votes(Struct):
    """What judges said; a single one has a verdict and no votes."""

    votes: list[JudgeVote] | None = None
    verdict: str | None = None


class _Detail(_Votes):
    """What judges said, also on rubrics within a check."""

    judged: list[_Votes] = []


class _Judged(Struct):
    """A stage or a check."""

    detail: _Detail


class _Metrics(Struct, gc=False):
    first_token_ms: float | None = None


_input: Final = msgspec.json.Decoder(_Input).decode
_result: Final = msgspec.json.Decoder(_Result).decode
_error: Final = msgspec.json.Decoder(_ErrorLine).decode
_map: Final = msgspec.json.Decoder(dict[str, Any]).decode
_checks: Final = msgspec.json.Decoder(list[_Check]).decode
_metrics: Final = msgspec.json.Decoder(_Metrics | None).decode
_text: Final = msgspec.json.Decoder(str | None).decode
_judged: Final = msgspec.json.Decoder(list[_Judged]).decode
_words: Final = {code: outcome.value for code, outcome in OUTCOME_OF_CODE.items()}


def facts_of_cases(fields: Collection[str]) -> Callable[[ItemRow], RowFacts]:
    """Returns what reads the facts of a row.

    Args:
        fields: the facts that are looked at.

    >>> row = ItemRow(0, "f", b'{"model":"m","status":"failed_regex","message":"no match","tags":["a"]}')
    >>> facts = facts_of_cases(["status"])(row)
    >>> facts.status, facts.reason, facts.tags, facts.id
    ('failed_regex', 'no match', ('a',), '1')
    """
    if HEAD.issuperset(fields):
        return head_of
    more = [add for field, add in _MORE.items() if field in fields]

    def read(row: ItemRow) -> RowFacts:
        if not row.code or row.code == POISON_CODE:
            return _without_result(row)
        letter, problem = row.code[0], _NO_PROBLEM
        if letter == _ERROR:
            line = _error(row.line)
            problem, result = line.error, line.result or _NO_RESULT
        else:
            result = _result(row.line)
        facts = RowFacts(
            status=result.status or _words[letter],
            outcome=_words[letter],
            reason=problem.message or ("" if letter == _PASSED else result.message),
            error=problem.code,
            model=result.model,
            id=result.case_id or str(result.case_index + 1),
            prompt=result.prompt_id or "",
            tags=result.tags,
            score=result.score,
            latency_ms=row.latency_ms,
            cost_usd=row.cost_usd,
            attempts=row.attempts,
            repeat=result.repeat_index + 1,
            is_cached=CACHED in row.code,
        )
        for add in more:
            add(facts, result)
        return facts

    return read


_NO_PROBLEM: Final = _Problem()
_NO_RESULT: Final = _Result()


def _add_metadata(facts: RowFacts, result: _Result) -> None:
    facts.metadata = _map(result.metadata)


def _add_vars(facts: RowFacts, result: _Result) -> None:
    facts.vars = _map(result.vars)


def _add_output(facts: RowFacts, result: _Result) -> None:
    facts.output = _text(result.raw_output) or ""


def _add_failed_checks(facts: RowFacts, result: _Result) -> None:
    facts.failed_checks = tuple(check.name for check in _checks(result.checks) if check.passed is False)


def _add_first_token(facts: RowFacts, result: _Result) -> None:
    metrics = _metrics(result.metrics)
    facts.first_token_ms = metrics.first_token_ms if metrics else None


def _add_disagreement(facts: RowFacts, result: _Result) -> None:
    facts.disagreement = max(map(disagreement, _votes(result)), default=None)


def _add_doubt(facts: RowFacts, result: _Result) -> None:
    doubts = [disagreement(votes) for votes in _votes(result)]
    doubts += [nearness(check.score, check.at_least) for check in _checks(result.checks)]
    facts.doubt = max(doubts, default=None)


def _votes(result: _Result) -> Iterator[Sequence[JudgeVote]]:
    """Yields the votes of judges wherever they were asked, in stages and checks."""
    told = [
        rows
        for rows in map(bytes, (result.stages, result.checks))
        if b'"verdict"' in rows or b'"votes"' in rows
    ]
    for entry in chain.from_iterable(map(_judged, told)):
        for detail in (entry.detail, *entry.detail.judged):
            if detail.votes or detail.verdict:
                yield detail.votes or ()


_MORE: Final[dict[str, Callable[[RowFacts, _Result], None]]] = {
    "metadata": _add_metadata,
    "vars": _add_vars,
    "output": _add_output,
    "failed_checks": _add_failed_checks,
    "first_token_ms": _add_first_token,
    "disagreement": _add_disagreement,
    "doubt": _add_doubt,
}
"""What is read only for filters that look at it."""


def _without_result(row: ItemRow) -> RowFacts:
    """Reads an item that no worker survived, or that the run ended without."""
    item, facts = _input(row.line), head_of(row)
    if row.code:
        facts.error, facts.reason = POISON_ERROR
    facts.model, facts.id, facts.prompt = item.model, item.id or str(item.case + 1), item.prompt_id or ""
    facts.repeat, facts.tags, facts.metadata, facts.vars = (
        item.repeat + 1,
        item.tags,
        item.metadata,
        item.vars,
    )
    return facts
