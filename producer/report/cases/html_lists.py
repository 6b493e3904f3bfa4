"""The lists of the HTML report of a cases run: failures and passes, or outputs prompt by prompt."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol

from producer.report.cases.html_case import status_of, told
from producer.report.cases.opened_rows import OpenedCase
from producer.report.html.page import chunked, fill, text_limit
from producer.report.html.spool import Spool
from producer.text import plural
from shared.contracts.case_run import CaseRun
from shared.contracts.case_vocabulary import CaseStatus
from shared.names import Outcome

TEMPLATE: Final = "cases/page.html.j2"
MOST_CASES: Final = 20_000
"""Results that a page shows: a browser opens so many without pain."""


class CaseList(Protocol):
    """Keeps on disk what the page shows of cases, and writes it when the rows have gone by."""

    def add(self, case: OpenedCase) -> None:
        """Takes a case."""

    def pieces(self, models: Sequence[str], run: str) -> Iterator[bytes]:
        """Yields the lists, piece by piece; called once."""


class ByVerdict:
    """Failures first, then what passed.

    Args:
        items: how many cases will come.
        run: the settings of the run.
    """

    def __init__(self, items: int, run: CaseRun) -> None:
        self._run = run
        self._limit = text_limit(min(items, MOST_CASES))
        self._kept = {False: Spool(), True: Spool()}
        self._seen, self._statuses = Counter[bool](), Counter[str]()

    def add(self, case: OpenedCase) -> None:
        """Takes a case."""
        is_passed = case.row.outcome is Outcome.PASSED
        self._seen[is_passed] += 1
        self._statuses[status_of(case)] += 1
        if self._seen[is_passed] <= MOST_CASES:
            self._kept[is_passed].add(0, fill(TEMPLATE, "case", told(case, self._limit)))

    def pieces(self, models: Sequence[str], run: str) -> Iterator[bytes]:
        """Yields both lists."""
        ordered = sorted(self._statuses.most_common(), key=lambda each: each[0] == CaseStatus.FAILED_CHECKS)
        statuses = [(status, f"{status} ({number:,})") for status, number in ordered]
        room, total = MOST_CASES, self._seen.total()
        note = notes(self._limit, total - room, run)
        yield fill(TEMPLATE, "cases", statuses, models, self._run.prompts, note)
        for is_passed, name in ((False, "Failures"), (True, "Passed")):
            yield fill(TEMPLATE, "list", name, self._seen[is_passed])
            yield from chunked(piece for _, piece in self._kept[is_passed].pieces(room))
            yield fill(TEMPLATE, "list_end")
            room -= min(room, self._seen[is_passed])
            self._kept[is_passed].close()
        yield fill(TEMPLATE, "cases_end")


class ByPrompt:
    """What each model said, prompt by prompt.

    Args:
        items: how many outputs will come.
        run: the settings of the run.
    """

    def __init__(self, items: int, run: CaseRun) -> None:
        self._limit = text_limit(min(items, MOST_CASES))
        self._each = max(1, len(run.models)) * run.repeat
        self._spool = Spool()
        self._prompt_ids = list(run.prompts)
        self._prompts = set[int]()
        self._seen = 0

    def add(self, case: OpenedCase) -> None:
        """Takes an output; the first of a prompt brings the prompt along."""
        prompts = self._prompt_ids
        at = prompts.index(case.item.prompt_id) if case.item.prompt_id in prompts else 0
        number = case.item.case * max(1, len(prompts)) + at
        self._seen += 1
        is_new = number not in self._prompts
        if is_new and len(self._prompts) >= max(1, MOST_CASES // self._each):
            return
        shown = told(case, self._limit)
        head = fill(TEMPLATE, "prompt", shown) if is_new else b""
        self._prompts.add(number)
        self._spool.add(number, head + fill(TEMPLATE, "output", shown))

    def pieces(self, models: Sequence[str], run: str) -> Iterator[bytes]:
        """Yields the prompts, each with the outputs of all models side by side."""
        said = notes(self._limit, self._seen - len(self._spool), run)
        yield fill(TEMPLATE, "prompts", len(self._prompts), models, said)
        for _, group in groupby(self._spool.pieces(), key=itemgetter(0)):
            for _, piece in group:
                yield piece
            yield fill(TEMPLATE, "prompt_end")
        yield fill(TEMPLATE, "list_end")
        self._spool.close()


def notes(limit: int, left: int, run: str) -> tuple[str, str]:
    """Says what the page leaves out, and the command that has all of it.

    >>> notes(1000, 5, "r1")[0]
    'Texts longer than 1,000 characters are cut, and 5 cases are not shown. Whole:'
    """
    told = f"Texts longer than {limit:,} characters are cut"
    if left > 0:
        told += f", and {plural(left, 'case')} {'is' if left == 1 else 'are'} not shown"
    return f"{told}. Whole:", f"proctor results {run} --format jsonl"


def list_of(items: int, run: CaseRun, *, is_freeform: bool) -> CaseList:
    """Chooses the list by the mode of the run."""
    return ByPrompt(items, run) if is_freeform else ByVerdict(items, run)
