"""The matrix of the HTML report of cases: a row for each case, a cell for each model and prompt."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from producer.cases.report.html_answer import answer_of, asked_of, gist_of
from producer.cases.report.html_images import PageImages
from producer.cases.report.opened_rows import OpenedCase
from producer.cases.report.reasons import Wordings, reason_of
from producer.report.cells import Size, plain
from producer.report.figures import latency_s
from producer.report.html.rendering import Text, fill, markup, readable, text_limit
from producer.report.html.spool import Spool
from producer.report.html.viewer import MOST_VALUES, WORST_FIRST, Group, Letter, PageRow, Rows
from producer.report.transcript import asked_line
from producer.tables import cut_middle
from shared.codecs.item_rows import CACHED
from shared.contracts.case_run import CasePayload, CaseRun, Quorum
from shared.names import Outcome

TEMPLATE: Final = "cases/report/page.html.j2"
MOST_DOTS: Final = 50
"""Answers of a cell that have dots."""
_OUTCOMES: Final = {
    Letter.PASSED: Outcome.PASSED,
    Letter.FAILED: Outcome.FAILED,
    Letter.ERROR: Outcome.ERROR,
}
MOST_ROWS: Final = 100_000
"""Cases that a page shows."""
FACETS: Final = ("tag", "reason", "status")
ORDERS: Final = ("latency", "cost", "case")
CASES_APART: Final = 1 << 24
"""More than a run has cases: a row's sort key is its rank by failures times this, plus its case number."""
MOST_URGENT: Final = 1 << 15
"""Failures or milliseconds of a row that count for its place; more sort as this many."""

Column = tuple[str, str]
"""A model and the id of a prompt; the id is empty where a run has no prompts."""


class KeptLead(msgspec.Struct, array_like=True):
    """What stands before the cells of a row, as it waits on disk."""

    title: str
    input: str
    """The beginning of what was asked."""
    vars: list[tuple[str, str]]
    """The variables that prompts ask about, instead of the input; empty where it is the same for all."""
    tags: list[str]
    messages: str = ""
    """What all cells share, as HTML."""


class KeptAnswer(msgspec.Struct, array_like=True):
    """One answer as it waits on disk."""

    case: int
    column: int
    repeat: int
    letter: Letter
    why: str
    kind: str
    """Of its reason, see `Reason`."""
    status: str
    gist: str
    is_code: bool
    latency_ms: float | None
    is_cached: bool
    """Whether the latency is that of the call whose answer was taken."""
    cost_usd: float | None
    score: float | None
    tags: list[str]
    html: str
    lead: KeptLead | None = None
    """Of the row, with its first answer."""
    quorum: Quorum | None = None
    """Of the case, where its answers count together."""
    is_needed: bool = True
    """Whether it was asked for, as far as the verdict was open."""


class Variables:
    """Finds the variables that have the same value in all cases, of which no row has to show any.

    >>> variables = Variables()
    >>> variables.add({"language": "English", "country": "France"})
    >>> sorted(variables.varying())
    ['country', 'language']
    >>> variables.add({"language": "English", "country": "Spain"})
    >>> sorted(variables.varying())
    ['country']
    """

    def __init__(self) -> None:
        self._cases = 0
        self._firsts: dict[str, Any] = {}
        self._same = Counter[str]()

    def add(self, values: Mapping[str, Any]) -> None:
        """Takes the variables of a case."""
        self._cases += 1
        for name, value in values.items():
            self._same[name] += self._firsts.setdefault(name, value) == value

    def varying(self) -> set[str]:
        """Returns the names that tell cases apart; of a single case all."""
        return {name for name, number in self._same.items() if self._cases == 1 or number < self._cases}


_pack, _unpack = msgspec.msgpack.encode, msgspec.msgpack.Decoder(KeptAnswer).decode


class ShownLead(NamedTuple):
    """What the template shows before the cells of a row."""

    title: str
    gist: str
    tags: Sequence[str]
    messages: str
    """As HTML."""


class ShownRepeat(NamedTuple):
    """One of the answers in a cell."""

    letter: Letter
    repeat: int
    why: str
    html: str


class Dot(NamedTuple):
    """One of several answers, as a dot in their cell."""

    letter: Letter
    repeat: int
    status: str


class ShownCell(NamedTuple):
    """What the template shows in a cell."""

    letter: Letter
    name: str
    repeats: str
    """How many of several answers passed."""
    dots: Sequence[Dot]
    """One for each of several answers, which it opens."""
    why: str
    figures: str
    gist: str
    is_code: bool
    answers: Sequence[ShownRepeat]


class Matrix:
    """Keeps answers on disk until all of a case are known.

    Args:
        run: the settings of the run.
        run_id: its id.
        items: how many answers will come.
        images: of the page.
        is_freeform: whether nothing is checked.
    """

    def __init__(
        self, run: CaseRun, run_id: str, items: int, images: PageImages, *, is_freeform: bool
    ) -> None:
        self._run, self._run_id, self._is_freeform = run, run_id, is_freeform
        self._images = images
        self.limit = text_limit(items)
        self._spool = Spool()
        prompts = list(run.prompts) or [""]
        self._columns: dict[Column, int] = {}
        for model in run.models:
            for prompt in prompts:
                self._columns[model, prompt] = len(self._columns)
        self._seen = set[int]()
        self._variables = Variables()
        self.wordings = Wordings()
        """Names the kinds of reasons."""
        self.error_kinds = set[str]()
        """Kinds of reasons why there is no verdict."""
        self.has_cut = False
        """Whether a text was longer than `limit`."""

    @property
    def columns(self) -> Sequence[Column]:
        """Models and prompts, in the order of the run."""
        return list(self._columns)

    def add(self, case: OpenedCase) -> None:
        """Takes an answer."""
        item, reason = case.item, reason_of(case)
        column = self._columns.setdefault((item.model, item.prompt_id or ""), len(self._columns))
        shown = answer_of(
            case, self._run, self.limit, self._images, run_id=self._run_id, is_freeform=self._is_freeform
        )
        self._note_cuts([message.text for message in (*shown.asked, *shown.answered)])
        self._note_cuts([text for _, text in shown.good])
        letter, (gist, is_code) = shown.letter, gist_of(case, is_freeform=self._is_freeform)
        is_shown = reason is not None and not (self._is_freeform and letter is Letter.NONE)
        answer = KeptAnswer(
            case=item.case,
            column=column,
            repeat=item.repeat,
            letter=letter,
            why=reason.text if reason and is_shown else "",
            kind=reason.kind if reason and is_shown else "",
            status=case.status,
            gist=gist if gist or is_shown else shown.message,
            is_code=is_code,
            latency_ms=case.row.latency_ms,
            is_cached=CACHED in case.row.code,
            cost_usd=case.row.cost_usd,
            score=case.result.score if case.result else None,
            tags=list(item.tags),
            html=fill(TEMPLATE, "answer", shown).decode(),
            lead=None if item.case in self._seen else self._lead(item, case),
            quorum=item.quorum,
            is_needed=not case.is_not_needed,
        )
        self._seen.add(item.case)
        if reason and is_shown:
            self.wordings.add(reason)
        if reason and letter is Letter.ERROR and len(self.error_kinds) < MOST_VALUES:
            self.error_kinds.add(readable(reason.kind))
        self._spool.add(item.case, _pack(answer))

    def rows(self, order: Sequence[Column], *, is_slowest_first: bool = False) -> tuple[Rows, "Pairs"]:
        """Makes the rows; called once.

        Args:
            order: the columns as they are shown.
            is_slowest_first: whether the slowest cases stand first, instead of those with most failures.

        Returns:
            The rows, and how the first two columns differ case by case.
        """
        rows = Rows(facets=FACETS, orders=ORDERS, groups=self._groups(order), most=MOST_ROWS)
        pairs, places, varying = (
            Pairs(),
            [self._columns[column] for column in order],
            self._variables.varying(),
        )
        prompts = {prompt for _, prompt in order}
        names = [name_of(column if len(prompts) > 1 else (column[0], "")) for column in order]
        for case, group in groupby(self._spool.pieces(), key=itemgetter(0)):
            answers = sorted((_unpack(piece) for _, piece in group), key=attrgetter("repeat"))
            cells = [[answer for answer in answers if answer.column == place] for place in places]
            letters = "".join(map(_letter, cells))
            pairs.add(letters[:2])
            lead = _shown_lead(next(answer.lead for answer in answers if answer.lead), varying)
            shown = [_cell(cell, name) for cell, name in zip(cells, names, strict=True)]
            html = fill(TEMPLATE, "row", f"c{case + 1}", lead, shown, _is_short(letters, shown))
            orders = _orders(case, answers)
            failures = 0 if self._is_freeform else sum(letter in "fe" for letter in letters)
            urgency = (orders["latency"] or 0) if is_slowest_first else failures
            rows.add(
                PageRow(f"c{case + 1}", html, letters, _facets(answers), orders),
                group=self._group(letters),
                place=(MOST_URGENT - min(MOST_URGENT, int(urgency))) * CASES_APART + case,
            )
        self._spool.close()
        return rows, pairs

    def _lead(self, item: CasePayload, case: OpenedCase) -> KeptLead:
        """Takes what stands before the cells of a row."""
        values = item.vars if self._run.prompts and not item.messages else {}
        self._variables.add(item.vars)
        asked = [] if self._run.prompts else list(asked_of(case, self._run, self.limit, self._images))
        self._note_cuts([message.text for message in asked])
        return KeptLead(
            title_of(item),
            plain(asked_line(item), Size.REASON),
            [(name, plain(str(value), Size.REASON)) for name, value in values.items()],
            list(item.tags),
            fill(TEMPLATE, "transcript", asked).decode() if asked else "",
        )

    def _note_cuts(self, texts: Iterable[Text]) -> None:
        """Sets `has_cut` when one of some texts was cut."""
        self.has_cut = self.has_cut or any(text.left for text in texts)

    def _groups(self, order: Sequence[Column]) -> Sequence[Group]:
        """Names the groups of rows."""
        if self._is_freeform:
            return ()
        many = "" if len(order) == 1 else " by every model"
        many += " and prompt" if many and len({prompt for _, prompt in order}) > 1 else ""
        many = " with every prompt" if many and len({model for model, _ in order}) == 1 else many
        return (
            Group("case with a failure or an error", "cases with a failure or an error"),
            Group("case without all its answers", "cases without all their answers"),
            Group(f"case passed{many}", f"cases passed{many}"),
        )

    def _group(self, letters: str) -> int:
        """Chooses a row's group."""
        if self._is_freeform:
            return 0
        return 0 if set(letters) & {"f", "e"} else 1 if "n" in letters else 2


class Pairs:
    """Counts the cases that both of the first two columns answered, and those that only one passed."""

    def __init__(self) -> None:
        self.first = self.second = self.both = 0

    def add(self, letters: str) -> None:
        """Counts a case that both answered."""
        if len(letters) == 2 and not set(letters) & {"-", "n"}:  # noqa: PLR2004 - a pair
            self.both += 1
            self.first += letters[0] == "p" != letters[1]
            self.second += letters[1] == "p" != letters[0]


def name_of(column: Column) -> str:
    """Names a column.

    >>> name_of(("acme/quick", "terse")), name_of(("acme/quick", ""))
    ('acme/quick · terse', 'acme/quick')
    """
    return " · ".join(cut_middle(part, Size.NAME) for part in column if part)


def title_of(item: CasePayload) -> str:
    """Names a case by its id, or else by its number."""
    return cut_middle(item.name, Size.NAME)


def _shown_lead(lead: KeptLead, varying: AbstractSet[str]) -> ShownLead:
    """Returns what the template shows before the cells of a row: the variables that tell it from others."""
    values = [f"{name}: {value}" for name, value in lead.vars if name in varying]
    gist = plain(" · ".join(values), Size.REASON) if values else lead.input
    return ShownLead(lead.title, gist, lead.tags, markup(lead.messages))


def _is_short(letters: str, cells: Iterable[ShownCell]) -> bool:
    """Returns whether all answers of a row passed and fit a line, so that its lead should too."""
    return set(letters) <= {"p", "-"} and all(len(cell.gist) <= Size.CELL for cell in cells)


def _letter(answers: Sequence[KeptAnswer]) -> Letter:
    """Returns the letter of a cell: that of its verdict, else of its worst answer."""
    if answers and (quorum := answers[0].quorum):
        outcomes = Counter(_OUTCOMES.get(answer.letter, Outcome.SKIPPED) for answer in answers)
        return Letter.of(quorum.outcome(outcomes))
    letters = {answer.letter for answer in answers}
    return next((letter for letter in WORST_FIRST if letter in letters), Letter.ABSENT)


def _cell(answers: Sequence[KeptAnswer], name: str) -> ShownCell:
    """Returns what the template shows in a cell: of repeats how many passed, and the first that did not."""
    letter = _letter(answers)
    first = next((answer for answer in answers if answer.letter == letter), None)
    asked = sum(answer.is_needed for answer in answers)
    passed = sum(answer.letter is Letter.PASSED for answer in answers)
    is_marked = letter in "pfe" and first is not None
    score = first.score if first is not None and first.score is not None and first.score < 1 else None
    figures = [] if score is None or letter is Letter.FAILED else [f"score {score:.2f}"]
    figures += [] if first is None or first.latency_ms is None else [latency_s(first.latency_ms)]
    if first is not None and first.is_cached:
        figures.append("cached")
    return ShownCell(
        letter=letter,
        name=name,
        repeats=f"{passed} of {asked}" if len(answers) > 1 and is_marked else "",
        dots=[
            Dot(answer.letter, answer.repeat + 1, answer.status)
            for answer in (answers if 1 < len(answers) <= MOST_DOTS and is_marked else ())
        ],
        why=first.why if first else "",
        figures=", ".join(figures),
        gist=first.gist if first else "",
        is_code=bool(first and first.is_code),
        answers=[
            ShownRepeat(answer.letter, answer.repeat + 1, answer.why, markup(answer.html))
            for answer in sorted(answers, key=lambda answer: WORST_FIRST.index(answer.letter))
        ],
    )


def _facets(answers: Sequence[KeptAnswer]) -> Mapping[str, Sequence[str]]:
    """Returns the facets by which a row is filtered."""
    tags = dict.fromkeys(tag for answer in answers for tag in answer.tags)
    kinds = [answer.kind for answer in answers if answer.kind]
    return {"tag": list(tags), "reason": kinds, "status": [answer.status for answer in answers]}


def _orders(case: int, answers: Sequence[KeptAnswer]) -> Mapping[str, float | None]:
    """Returns the keys by which a row is sorted: its slowest answer, its cost, its place."""
    times = [
        answer.latency_ms for answer in answers if answer.latency_ms is not None and not answer.is_cached
    ]
    costs = [answer.cost_usd for answer in answers if answer.cost_usd is not None]
    return {"latency": max(times, default=None), "cost": sum(costs) if costs else None, "case": case + 1}
