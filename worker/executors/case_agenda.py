"""Decides which answers to cases are asked for: none that cannot change the verdict on its case any more.

All answers to a case with a quorum lie in one chunk, as a rule. Never more are under way than are needed at
the least before the verdict can be certain: the calls are those that would be made one after the other.

Nothing is stored for this. Answers that another claim has committed are read from their results, each of
which is written once, so that retries, crashes and repeated executions count none twice. A claim that does
not know an answer, because another worker commits it at this moment, makes a call that was not needed, and
never leaves out one that was.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from shared.contracts.case_run import Quorum, decode_case
from shared.names import Outcome, RunState
from worker.executors.items import Item, ItemResult

Outcomes = Callable[[Sequence[int]], Mapping[int, Outcome]]
"""Reads how some items of the run ended."""


@dataclass(slots=True)
class _Case:
    """The answers to one case by one model and prompt."""

    quorum: Quorum
    passed: int = 0
    failed: int = 0
    under_way: int = 0
    waiting: deque[Item] = field(default_factory=deque)
    """Items of the claim that have not begun."""

    @property
    def left(self) -> int:
        """After how many further answers the verdict may be certain; 0: it is."""
        return self.quorum.left(self.passed, self.failed)

    def add(self, outcome: Outcome | None) -> None:
        """Counts how an answer ended."""
        self.passed += outcome is Outcome.PASSED
        self.failed += outcome is Outcome.FAILED


class CaseAgenda:
    """The agenda of a claim of cases.

    Args:
        items: of the claim.
        outcomes: reads how items of other claims ended.
        asks_all: whether also answers are asked for that cannot change a verdict.
        fail_fast: whether the first case that failed ends the run.
    """

    def __init__(self, items: Sequence[Item], outcomes: Outcomes, *, asks_all: bool, fail_fast: bool) -> None:
        self._asks_all, self._fail_fast = asks_all, fail_fast
        self._others, self._cases = list[Item](), dict[int, _Case]()
        self._case_of = dict[str, _Case]()
        for item in items:
            payload = decode_case(item.payload)
            if payload.quorum is None:
                self._others.append(item)
                continue
            case = self._cases.setdefault(int(item.claimed.index) - payload.repeat, _Case(payload.quorum))
            self._case_of[item.claimed.index] = case
            if payload.recorded is None:
                case.waiting.append(item)
            else:  # nothing is asked
                self._others.append(item)
                case.under_way += 1
        self._add_committed(outcomes)

    def due(self) -> Sequence[Item]:
        """Returns the items to begin with now."""
        found, self._others = self._others, []
        for case in self._cases.values():
            most = len(case.waiting) if self._asks_all else case.left - case.under_way
            begun = [case.waiting.popleft() for _ in range(min(most, len(case.waiting)))]
            case.under_way += len(begun)
            found += begun
        return found

    def ended(self, item: Item, outcome: Outcome | None, /) -> RunState | None:
        """Takes how an answer ended, None: without a verdict; returns how its run is to end."""
        case = self._case_of.get(item.claimed.index)
        if case is None:
            return None
        case.under_way -= 1
        case.add(outcome)
        has_failed = outcome is Outcome.FAILED and case.quorum.verdict(case.passed, case.failed) is False
        return RunState.INCOMPLETE if has_failed and self._fail_fast else None

    def settled(self) -> Sequence[tuple[Item, ItemResult]]:
        """Returns the items of cases whose verdict is certain without them."""
        found = list[tuple[Item, ItemResult]]()
        for case in self._cases.values():
            if not case.left and case.waiting and not self._asks_all:
                reason = case.quorum.reason(case.passed, case.failed)
                result = ItemResult(Outcome.SKIPPED, msgspec.json.encode({"reason": reason}))
                found += [(item, result) for item in case.waiting]
                case.waiting.clear()
        return found

    def _add_committed(self, outcomes: Outcomes) -> None:
        """Counts the answers to these cases that are not in the claim."""
        elsewhere = {
            index: case
            for first, case in self._cases.items()
            for index in range(first, first + case.quorum.times)
            if str(index) not in self._case_of
        }
        for index, outcome in outcomes([*elsewhere]).items():
            elsewhere[index].add(outcome)
