"""The check `tool_calls`: the model makes exactly these calls, in this order or in any."""

from collections.abc import Sequence

from shared.contracts.checks import Check
from worker.validation.checks.kind import Inner, Score, Subject, no, undecided, yes
from worker.validation.checks.tool_call import called, matches, name_of
from worker.validation.display import cut


def tool_calls(check: Check, subject: Subject, inner: Inner) -> Score:
    """Compares all calls; with `order: any` each expected one is paired with a call of its own."""
    calls, wanted = subject.answer.tool_calls, check.checks
    if len(calls) != len(wanted):
        return no(f"expected {len(wanted)} calls ({_names(wanted)}), found {len(calls)}: {called(calls)}")
    is_strict = check.options.get("order", "strict") == "strict"
    return (_in_order if is_strict else _in_any_order)(wanted, subject, inner)


def _in_order(wanted: Sequence[Check], subject: Subject, inner: Inner) -> Score:
    """Compares each call with the one that is expected at its place."""
    calls, names = subject.answer.tool_calls, _names(wanted)
    found = [matches(each, call, subject, inner) for each, call in zip(wanted, calls, strict=True)]
    wrong = next(
        ((at, score) for at, score in enumerate(found, 1) if not (_is_match(score) or score.unavailable)),
        None,
    )
    named = ((each, score) for each, score in zip(wanted, found, strict=True))
    if open_score := undecided(named, is_settled=wrong is not None):
        return open_score
    if wrong is None:
        return yes(f"the calls are {names}, in this order")
    at, score = wrong
    why = f"call {at} is {cut(name_of(calls[at - 1]), 60)}({{…}}): {score.reason}"
    return no(f"{why}; expected {names} in this order, found {called(calls)}")


def _in_any_order(wanted: Sequence[Check], subject: Subject, inner: Inner) -> Score:
    """Compares each call with all that are expected."""
    calls, names = subject.answer.tool_calls, _names(wanted)
    table = [[matches(each, call, subject, inner) for call in calls] for each in wanted]
    is_paired = paired([[_is_match(score) for score in row] for row in table]) == len(wanted)
    every = ((each, score) for each, row in zip(wanted, table, strict=True) for score in row)
    if open_score := undecided(every, is_settled=is_paired):
        return open_score
    if is_paired:
        return yes(f"the calls are {names}")
    return no(f"expected {names} in any order, found {called(calls)}")


def paired(matches_of: list[list[bool]]) -> int:
    """How many rows can have a column of their own (Kuhn's augmenting paths).

    >>> paired([[True, True], [True, False]]), paired([[True, False], [True, False]])
    (2, 1)
    """
    owner: dict[int, int] = {}

    def find(row: int, tried: set[int]) -> bool:
        for column, is_match in enumerate(matches_of[row]):
            if is_match and column not in tried:
                tried.add(column)
                if column not in owner or find(owner[column], tried):
                    owner[column] = row
                    return True
        return False

    return sum(find(row, set()) for row in range(len(matches_of)))


def _names(wanted: Sequence[Check]) -> str:
    return ", ".join(each.argument for each in wanted)


def _is_match(score: Score) -> bool:
    """Whether a call is the expected one."""
    return bool(score.value) if score.passed is None else score.passed
