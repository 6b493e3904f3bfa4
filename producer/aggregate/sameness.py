"""Counts whether a judge judges the same output of the same case the same way, over repeats; pure."""

from collections import Counter
from typing import Any

from producer.aggregate.statistics import wilson


class Sameness:
    """Takes verdicts answer by answer: repeats of one come one after the other, so nothing grows.

    >>> sameness = Sameness()
    >>> for output, verdict in ((b"x", "pass"), (b"x", "pass"), (b"y", "pass"), (b"y", "fail")):
    ...     sameness.add(("model", 0), "judge", output, verdict)
    >>> found = sameness.summary("judge")
    >>> found["n"], found["same"]["value"], sameness.summary("other")
    (2, 0.5, None)
    """

    def __init__(self) -> None:
        self._answer = ("", -1)
        self._open: dict[tuple[str, bytes], Counter[str]] = {}
        self._ended = Counter[tuple[str, bool]]()

    def add(self, answer: tuple[str, int], judge: str, output: bytes, verdict: str) -> None:
        """Counts one verdict.

        Args:
            answer: model and case.
            judge: who says it; empty for all of them together.
            output: stands for what was judged.
            verdict: what it says.
        """
        if answer != self._answer:
            self._ended, self._open, self._answer = self._counted(), {}, answer
        self._open.setdefault((judge, output), Counter())[verdict] += 1

    def summary(self, judge: str) -> dict[str, Any] | None:
        """Returns how many outputs were judged more than once, and the share judged the same each time."""
        counted = self._counted()
        same, other = counted[judge, True], counted[judge, False]
        if not same + other:
            return None
        return {"n": same + other, "same": wilson(same, same + other).as_document()}

    def _counted(self) -> Counter[tuple[str, bool]]:
        """Returns outputs that were judged more than once, by judge and sameness, the open ones included."""
        repeated = ((judge, said) for (judge, _), said in self._open.items() if said.total() > 1)
        return self._ended + Counter((judge, len(said) == 1) for judge, said in repeated)
