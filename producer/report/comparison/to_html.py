"""Writes a comparison as one page: the verdict, A and B, counts, and both answers of each pair."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from producer.aggregate.comparison import GOOD
from producer.cases.report.reasons import GAP, Reason, Wordings
from producer.load.source import NO_FILE
from producer.report.cells import Size
from producer.report.comparison.contents import Contents, Shown, SideFigures
from producer.report.comparison.item_texts import CheckText
from producer.report.comparison.word_difference import (
    MOST_STEPS,
    Stretch,
    TextDifference,
    compare_lines,
    compare_words,
)
from producer.report.comparison.wording import LISTS, headline, noun, score_table, sentences
from producer.report.figures import Table
from producer.report.html.head import tables
from producer.report.html.rendering import fill, text_limit
from producer.report.html.viewer import (
    Chip,
    Group,
    Head,
    Letter,
    Metric,
    Page,
    PageRow,
    Rows,
    begin,
    end,
    tools,
)
from producer.text import latency, many, plural
from shared.names import Outcome

FOLDER: Final = "report/comparison"
TEMPLATE: Final = "report/comparison/page.html.j2"
MOST_TEXTS: Final = 2_000
"""Pairs with the same outcome and another answer that are shown; the others are counted."""
PAGE_STEPS: Final = 200_000_000
"""Pairs of equal words that are compared for all rows of a page."""
LEAST_STEPS: Final = 20_000
FOLDED: Final = 400
"""Characters that are the same in both answers, from which they are folded."""
AROUND: Final = 120
"""Of these, characters that stay in sight on each side."""
MOST_LINES: Final = 400
"""Lines of a setting's difference."""
SORTS: Final = (*LISTS, "text")
NOTES: Final = {
    "same": "the answers are the same",
    "spaces": "only white space differs",
    "rewritten": "fully rewritten",
    "lines": "long answers: whole lines are marked",
    "long": "long answers: all between what both begin and end with is marked",
}
"""On pairs, what their answers do not show by themselves."""
_VALUES: Final = re.compile(r'"[^"]*"|\'[^\']*\'|\d[\d.,:/-]*')
"""What differs between reasons of one kind."""
_CODE: Final = re.compile(r"\s*(?:[{\[]|\w+\(|```)")


class AnswerSide(NamedTuple):
    """One answer of a pair, as the template shows it."""

    outcome: Letter
    word: str
    """What became of it."""
    took: str
    reason: str
    parts: Sequence[tuple[str, str]]
    """Stretches with `changed`, `far` (folded) or nothing."""
    tag: str
    """The element of what changed."""
    is_code: bool
    left: int
    nothing: str
    """What stands in the place of an answer that is not there."""


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair, as the template shows it."""

    id: str
    title: str
    name: str
    about: str
    tags: Sequence[str]
    notes: Sequence[str]
    asked: str
    system: str
    before: AnswerSide
    after: AnswerSide
    checks: Sequence[tuple[str, CheckText | None, CheckText | None]]
    """Each check with what it found in A and in B."""
    again: str
    """The command that asks B again."""
    pages: Sequence[tuple[str, str]]
    """Letters of the sides, and where their items have pages."""

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Why sides did not pass."""
        return [(name, side.reason) for name, side in (("A", self.before), ("B", self.after)) if side.reason]


class PairsFilter(NamedTuple):
    """The filter of a page that a server writes; in a file, only the search of the page itself works."""

    action: str
    """Where a filter is sent."""
    words: Mapping[str, str | Sequence[str]]
    """What is sent with it."""
    where: str = ""
    problem: str = ""
    """Why it cannot be read."""
    chosen: Sequence[Collection[str]] | None = None
    """Ids of the items of A and of B that meet it, of which a pair needs one; None: all do."""


@dataclass(slots=True)
class _Spooled:
    """The rows that are on disk, and what was counted of them."""

    rows: Rows
    limit: int
    """Characters of a text."""
    steps: int
    """Pairs of words that are compared at most for one row."""
    texts: int = 0
    """Pairs with the same outcome and another answer."""
    unchosen: int = 0
    """Pairs of which no answer meets the filter."""
    errors: set[str] = field(default_factory=set)
    """Kinds of reasons that are errors."""
    wordings: Wordings = field(default_factory=Wordings)
    """Kinds of reasons in words."""


def comparison_page(
    contents: Contents, links: Sequence[tuple[str, str]] = (), form: PairsFilter | None = None
) -> Iterator[bytes]:
    """Yields the page of a comparison piece by piece; rows are on disk until then.

    Args:
        contents: the comparison.
        links: texts and addresses of pages beside it.
        form: the filter of its pairs; None: it cannot be filtered by a server.
    """
    found, item = contents.found, noun(contents.found)
    names = [side.title.rsplit("/", 1)[-1] for side in contents.sides]
    facets = ("became", "reason", *contents.groups)
    groups = [
        *(Group(f"{name} {item}", f"{name} {many(item)}") for name in LISTS),
        *(Group(*(f"{each} with the same outcome, but another text" for each in (item, many(item)))),),
    ]
    written = _spooled(contents, Rows(facets=facets, groups=groups), form.chosen if form else None)
    try:
        yield begin(replace(_page(contents, names, links), has_form=form is not None))
        settings = [
            (setting.name, _diff_lines(setting.before, setting.after))
            for setting in contents.settings or ()
            if setting.is_long
        ]
        cards = [_card(contents, side) for side in contents.figures]
        yield fill(TEMPLATE, "sides", *cards, contents.differences, settings)
        yield _became(contents, written.texts)
        if form:
            yield fill(TEMPLATE, "filter", form, len(written.rows))
        if len(written.rows):
            yield _tools(item, written, facets)
            heads = [Metric(f"{letter} {name}", "") for letter, name in zip("AB", names, strict=True)]
            yield from written.rows.pieces(
                Head(columns=2, metrics=heads, title=item.capitalize(), label="Pairs that differ")
            )
        yield fill(TEMPLATE, "left", " ".join(_left(found.counts.unchanged, written, item)))
    finally:
        written.rows.close()
    words = (found.comparing.good.capitalize(), many(found.comparing.unit), many(item).capitalize())
    yield fill(TEMPLATE, "more", score_table(found), contents.groups.items(), words, contents.command)
    facts = [
        (letter, " · ".join(filter(None, (side.name, side.source, side.began))))
        for letter, side in zip("AB", contents.sides, strict=True)
    ]
    yield end(facts, folder=FOLDER, row=item, cell="side", about="About this comparison")


def _left(unchanged: int, written: _Spooled, item: str) -> Iterator[str]:
    """Yields sentences on the pairs that are not shown."""
    same, more = unchanged - written.texts, written.texts - MOST_TEXTS
    if same:
        yield f"{plural(same, item)} not shown: the same in both runs."
    if written.unchosen:
        yield f"{plural(written.unchosen, item)} not shown: no answer meets the filter."
    if more > 0:
        yield f"{plural(more, item)} more with another text and the same outcome: not shown."


def table_page(verdict: str, table: Table, sides: Sequence[tuple[str, str]], tone: str) -> Iterator[bytes]:
    """Yields the page of a comparison whose sides share no item.

    Args:
        verdict: its first sentence.
        table: what is compared.
        sides: letters, and what each side is.
        tone: of the verdict.
    """
    yield begin(Page("Comparison", table.title.lower(), "A → B", tone, verdict, folder=FOLDER))
    yield tables([table])
    yield end(sides, folder=FOLDER, row="turn", cell="", about="About this comparison")


def _page(contents: Contents, names: Sequence[str], links: Sequence[tuple[str, str]]) -> Page:
    """Returns the head of the page: verdict, and sentences on it."""
    found = contents.found
    inputs = (side.bench if side.source == NO_FILE and side.bench else side.source for side in contents.sides)
    sources = dict.fromkeys(filter(None, inputs))
    why = [text.replace(" %", "\u00a0%") for text in (contents.other_input, *sentences(found)) if text]
    tone = {"better": "p", "worse": "f"}.get(found.verdict, "")
    title, titles = (
        " and ".join(sources) or "two runs",
        " → ".join(map(" ".join, zip("AB", names, strict=True))),
    )
    return Page("Comparison", title, titles, tone, headline(found), why, links=links, folder=FOLDER)


def _diff_lines(before: str, after: str) -> list[tuple[str, str]]:
    """Returns lines of a difference as the template takes them."""
    words = {"-": "del", "+": "add", " ": ""}
    lines = [(words[mark], line) for mark, line in compare_lines(before, after)]
    left = len(lines) - MOST_LINES
    return lines if left <= 0 else [*lines[:MOST_LINES], ("", f"… {plural(left, 'line')} more")]


def _card(contents: Contents, side: SideFigures) -> dict[str, object]:
    """Returns the title and the two lines of figures of one side."""
    found = contents.found
    figures = (
        plural(side.errors, "error") if side.errors else "",
        f"{side.skipped:,} skipped" if side.skipped else "",
        f"P95 {side.p95}" if side.p95 else "",
        side.cost,
    )
    good = f"{side.good:,} of {plural(side.total, noun(found))} {found.comparing.good}"
    return {
        "letter": side.letter,
        "word": contents.sides[0].by or {"A": "before", "B": "after"}[side.letter],
        "heading": side.heading,
        "when": f"{side.began} UTC" if side.began else "",
        "run": side.run if side.heading != side.run else "",
        "source": side.source if side.source != side.heading else "",
        "rate": f"{good}: {side.rate.replace('(', '(95% interval ')}",
        "facts": [figure for figure in figures if figure],
    }


def _became(contents: Contents, texts: int) -> bytes:
    """Counts what became of the pairs: broken and fixed with their marks, the others in words."""
    found, item, good = contents.found, noun(contents.found), contents.found.comparing.good
    counts, rest = found.counts, list[str]()
    if bool(counts.broken) != bool(counts.fixed):
        rest.append(f"nothing {'fixed' if counts.broken else 'broken'}")
    if counts.changed:
        rest.append(f"{counts.changed:,} changed")
    if counts.unchanged:
        as_good = sum(number for word, number in found.unchanged.items() if word in GOOD)
        left = counts.unchanged - as_good
        kept = f"{as_good:,} {good}, {left:,} not" if left else f"all {good}"
        rest.append(f"{counts.unchanged:,} with the same outcome ({kept})")
    if texts:
        rest.append(f"{texts:,} of them with another text")
    title = f"{plural(counts.pairs, item)}, by outcome"
    return fill(TEMPLATE, "became", title, counts.broken, counts.fixed, rest)


def _tools(item: str, written: _Spooled, facets: Sequence[str]) -> bytes:
    """Writes search, chips, choices and reasons."""
    labels = ("✗ Broken", "✓ Fixed", "Changed", "Text changed")
    counts = written.rows.answers("reason")
    reasons = [
        Chip("reason", kind, written.wordings.of(kind), "e" if kind in written.errors else "f")
        for kind in counts
    ]
    return tools(
        written.rows,
        nouns=(item, many(item)),
        search="Search names and answers",
        chips=[Chip("became", sort, label) for sort, label in zip(SORTS, labels, strict=True)],
        choices=[(facet, facet.capitalize()) for facet in facets[2:]],
        reasons=reasons if counts.total() > 1 else (),
        lead="Broken because:",
    )


def _spooled(contents: Contents, rows: Rows, chosen: Sequence[Collection[str]] | None) -> _Spooled:
    """Writes the rows to disk, of the chosen items."""
    counts = contents.found.counts
    number = counts.pairs - counts.unchanged + min(MOST_TEXTS, counts.unchanged)
    steps = max(LEAST_STEPS, min(MOST_STEPS, PAGE_STEPS // max(1, number)))
    written = _Spooled(rows, text_limit(number), steps)
    for at, shown in enumerate(contents.pairs()):
        if shown.sort == "text":
            written.texts += 1
            if written.texts > MOST_TEXTS:
                continue
        if chosen and not (shown.before.item in chosen[0] or shown.after.item in chosen[1]):
            written.unchosen += 1
            continue
        rows.add(_row(contents, written, at, shown), group=SORTS.index(shown.sort))
    return written


def _row(contents: Contents, written: _Spooled, at: int, shown: Shown) -> PageRow:
    """Writes a pair."""
    texts, limit = (shown.before, shown.after), written.limit
    difference = compare_words(*(each.answer[:limit] for each in texts), most_steps=written.steps)
    name, *about = shown.pair.after.names
    found = [{check.name: check for check in each.checks} for each in texts]
    row = PairRow(
        id=f"p{at + 1}",
        title=shown.name,
        name=name,
        about=" · ".join(about),
        tags=shown.pair.after.tags,
        notes=_notes(shown, difference),
        asked=shown.after.asked or shown.before.asked,
        system=_system(shown),
        before=_answer(shown, 0, difference.before, "del", limit),
        after=_answer(shown, 1, difference.after, "ins", limit),
        checks=[(name, found[0].get(name), found[1].get(name)) for name in found[0] | found[1]],
        again=contents.again(shown),
        pages=contents.pages(shown),
    )
    html = fill(TEMPLATE, "pair", row)
    return PageRow(row.id, html, row.before.outcome + row.after.outcome, _facets(contents, written, shown))


def _facets(contents: Contents, written: _Spooled, shown: Shown) -> dict[str, list[str]]:
    """Returns what a pair is filtered by."""
    after = shown.pair.after
    facets: dict[str, list[str]] = {"became": [shown.sort]}
    for facet, value in contents.facets(after):
        if facet in contents.groups:
            facets.setdefault(facet, []).append(value)
    if shown.sort == "broken":
        reason = (shown.reason or "no reason given").partition("; ")[0]
        kind = _VALUES.sub(GAP, reason)[: Size.NAME]
        facets["reason"] = [kind]
        written.wordings.add(Reason(reason, kind, reason if GAP in kind else kind))
        if after.outcome == Outcome.ERROR:
            written.errors.add(kind)
    return facets


def _system(shown: Shown) -> str:
    """Returns the system message; where B was sent another one, both."""
    before, after = shown.before.system, shown.after.system
    if before == after or not before:
        return after
    return f"A: {before}\n\nB: {after or '(no system message)'}"


def _notes(shown: Shown, difference: TextDifference) -> list[str]:
    """Returns notes on a pair that its answers do not show by themselves."""
    notes = shown.edits
    if shown.sort == "broken" and shown.pair.after.outcome == Outcome.ERROR:
        notes.append("may be the API and not the change")
    if shown.before.answer and shown.after.answer and difference.sort in NOTES:
        notes.append(NOTES[difference.sort])
    return notes


def _answer(shown: Shown, at: int, parts: Sequence[Stretch], tag: str, limit: int) -> AnswerSide:
    """Prepares one side of a pair."""
    item, texts = shown.pair[at], (shown.before, shown.after)[at]
    ms, answer, reason = item.scores.get("latency_ms"), texts.answer[:limit], texts.reason
    return AnswerSide(
        outcome=Letter.of(Outcome(item.outcome)),
        word=item.word,
        took="" if not ms else latency(ms),
        reason=reason if len(reason) <= Size.TEXT else f"{reason[: Size.TEXT]}…",
        parts=list(_folded(parts)) if answer else [],
        tag=tag,
        is_code=bool(_CODE.match(answer)),
        left=max(0, len(texts.answer) - limit) + texts.left,
        nothing="No answer." if item.outcome == Outcome.ERROR else "The answer is empty.",
    )


def _folded(parts: Sequence[Stretch]) -> Iterator[tuple[str, str]]:
    """Yields stretches of an answer; of long ones without a change, the middle is folded.

    >>> [kind for kind, _ in _folded([Stretch("a" * 900, False), Stretch("b", True), Stretch("c", False)])]
    ['far', '', 'changed', '']
    """
    is_marked = any(part.is_changed for part in parts)
    for at, part in enumerate(parts):
        text = part.text
        if part.is_changed or not is_marked or len(text) < FOLDED or at == len(parts) - 1:
            yield "changed" if part.is_changed else "", text
            continue
        if at:
            yield "", text[:AROUND]
        yield "far", text[AROUND if at else 0 : len(text) - AROUND]
        yield "", text[len(text) - AROUND :]
