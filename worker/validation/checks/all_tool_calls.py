"""The check `tool_calls`: the model makes exactly these calls, in this order or in any."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Inner, Score, Subject, no, yes
from worker.validation.checks.tool_call import called, matches, name_of
from worker.validation.display import cut


def tool_calls(check: Check, subject: Subject, inner: Inner) -> Score:
    """Compares all calls; with `order: any` each expected one is paired with a call of its own."""
    calls, wanted = subject.answer.tool_calls, check.checks
    names = ", ".join(each.argument for each in wanted)
    if len(calls) != len(wanted):
        return no(f"expected {len(wanted)} calls ({names}), found {len(calls)}: {called(calls)}")
    table = [[matches(each, call, subject, inner) for call in calls] for each in wanted]
    if check.options.get("order", "strict") == "strict":
        wrong = [(at, table[at][at]) for at in range(len(wanted)) if not _is_match(table[at][at])]
        if not wrong:
            return yes(f"the calls are {names}, in this order")
        at, score = wrong[0]
        found = f"call {at + 1} is {cut(name_of(calls[at]), 60)}({{…}}): {score.reason}"
        return no(f"{found}; expected {names} in this order, found {called(calls)}")
    if paired([[_is_match(score) for score in row] for row in table]) == len(wanted):
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


def _is_match(score: Score) -> bool:
    """Whether a call is the expected one."""
    return bool(score.value) if score.passed is None else score.passed
