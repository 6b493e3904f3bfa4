"""Writes a comparison as one page: the verdict, A and B, counts, and both answers of each pair."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from producer.aggregate.compared_items import ComparedItem
from producer.aggregate.comparison import GOOD, PASS_RATE
from producer.cases.report.reasons import GAP, Reason, Wordings
from producer.report.cells import Size
from producer.report.comparison.contents import Contents, Shown, SideFacts, facets_of
from producer.report.comparison.item_texts import CheckText, ItemTexts
from producer.report.comparison.side_figures import SideFigures, side_figures
from producer.report.comparison.word_difference import (
    MOST_STEPS,
    Stretch,
    TextDifference,
    compare_lines,
    compare_words,
)
from producer.report.comparison.wording import (
    LISTS,
    TONES,
    headline,
    listed_transitions,
    noun,
    reason_of,
    score_table,
    sentences,
)
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
METHODS: Final = {"bca": "BCa bootstrap", "normal": "normal", "bonett-price": "Bonett-Price"}
"""How intervals were made."""
NO_SYSTEM: Final = "(no system message)"
SORTS: Final = (*LISTS, "text")
_VALUES: Final = re.compile(r'"[^"]*"|\'[^\']*\'|\d[\d.,:/-]*')
"""What differs between reasons of one kind."""
_CODE: Final = re.compile(r"\s*(?:[{\[]|\w+\(|```)")


class TextWords(NamedTuple):
    """What pairs are called of which only the text is another."""

    chip: str
    heading: str
    counted: str


OTHER_TEXT: Final = TextWords("Text changed", "the same outcome, but another text", "another text")
TEXT_WORDS: Final = {
    "turn": TextWords(
        "Decision the same",
        "the same decision, but another reason or summary",
        "another reason or summary",
    )
}


class AnswerSide(NamedTuple):
    """One answer of a pair, as the template shows it."""

    outcome: Letter
    """Its letter."""
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
    again: Sequence[tuple[str, str]]
    """The commands that ask for A and for B again."""
    pages: Sequence[tuple[str, str]]
    """The pages of the runs, where they are known."""

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Why sides did not pass."""
        return [(name, side.reason) for name, side in (("A", self.before), ("B", self.after)) if side.reason]


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
    errors: set[str] = field(default_factory=set)
    """Kinds of reasons that are errors."""
    wordings: Wordings = field(default_factory=Wordings)
    """Kinds of reasons in words."""


def comparison_page(contents: Contents) -> Iterator[bytes]:
    """Yields the page of a comparison piece by piece; rows are on disk until then."""
    found, item = contents.found, noun(contents.found)
    facets = ("became", "reason", *contents.groups)
    text = TEXT_WORDS.get(item, OTHER_TEXT).heading
    groups = [
        *(Group(f"{name} {item}", f"{name} {many(item)}") for name in LISTS),
        Group(f"{item} with {text}", f"{many(item)} with {text}"),
    ]
    written = _spooled(contents, Rows(facets=facets, groups=groups))
    try:
        yield begin(_page(contents))
        yield _sides(contents)
        yield _became(contents, written.texts)
        names = [_shortened(side.title) for side in contents.sides]
        heads = [Metric(f"A {names[0]}", ""), Metric(f"B {names[1]}", "")]
        if len(written.rows):
            yield _tools(contents, written, facets)
            yield from written.rows.pieces(
                Head(columns=2, metrics=heads, title=item.capitalize(), label="Pairs that differ")
            )
        yield from _omissions(contents, written)
    finally:
        written.rows.close()
    words = (found.comparing.good.capitalize(), many(found.comparing.unit), many(item).capitalize())
    tables = contents.groups.items()
    yield fill(TEMPLATE, "more", score_table(found), tables, words, contents.command, contents.swapped)
    yield end(_facts(contents), folder=FOLDER, row=item, cell="side", about="About this comparison")


def _page(contents: Contents) -> Page:
    """Returns the head of the page: verdict, and sentences on it."""
    found = contents.found
    names = " → ".join(
        f"{letter} {_shortened(side.title)}" for letter, side in zip("AB", contents.sides, strict=True)
    )
    sources = dict.fromkeys(side.source for side in contents.sides if side.source)
    other = contents.other_input()
    lead = [other] if other else []
    why = [text.replace(" %", "\u00a0%") for text in (*lead, *sentences(found), *_doubts(contents))]
    tone = TONES.get(found.verdict, "")
    return Page(
        "Comparison", " and ".join(sources) or "two runs", names, tone, headline(found), why, folder=FOLDER
    )


def _doubts(contents: Contents) -> list[str]:
    """Returns a sentence on whether the verdict rests on one model, or on all of them together."""
    found, models = contents.found, contents.groups.get("model", ())
    if len(models) < 2 or found.verdict == "no significant difference":  # noqa: PLR2004 - of one there is no other
        return []
    alone = [split.name for split in models if split.p_value <= found.test.level]
    if not alone:
        return ["No model changed significantly by itself; together they did."]
    return [f"Of the models, only {alone[0]} changed significantly by itself."] if len(alone) == 1 else []


def _sides(contents: Contents) -> bytes:
    """Writes A and B, and what differs between their configurations."""
    cards = [
        _card(contents, side, facts)
        for side, facts in zip(side_figures(contents), contents.facts, strict=True)
    ]
    settings = [
        (setting.name, _diff_lines(setting.before, setting.after))
        for setting in contents.settings or ()
        if setting.is_long
    ]
    return fill(TEMPLATE, "sides", *cards, contents.differences(), settings)


def _diff_lines(before: str, after: str) -> list[tuple[str, str]]:
    """Returns lines of a difference as the template takes them."""
    words = {"-": "del", "+": "add", " ": ""}
    lines = [(words[mark], line) for mark, line in compare_lines(before, after)]
    left = len(lines) - MOST_LINES
    return lines if left <= 0 else [*lines[:MOST_LINES], ("", f"… {plural(left, 'line')} more")]


def _card(contents: Contents, side: SideFigures, facts: SideFacts) -> dict[str, Any]:
    """Returns the title and the two lines of figures of one side."""
    found = contents.found
    errors, skipped = (facts.outcomes.get(word, 0) for word in (Outcome.ERROR, Outcome.SKIPPED))
    rate = f"{side.rate.replace('(', '(95% interval ')}"
    figures = (
        plural(errors, "error") if errors else "",
        f"{skipped:,} skipped" if skipped else "",
        f"P95 {side.p95}" if side.p95 else "",
        side.cost,
    )
    source = contents.sides[0 if side.letter == "A" else 1].source
    return {
        "letter": side.letter,
        "word": contents.sides[0].by or {"A": "before", "B": "after"}[side.letter],
        "heading": side.heading,
        "when": ", ".join(filter(None, [f"{side.began} UTC" if side.began else "", side.later])),
        "run": side.run if side.heading != side.run else "",
        "source": source if source != side.heading else "",
        "rate": f"{facts.good:,} of {plural(facts.total, noun(found))} {found.comparing.good}: {rate}",
        "facts": [figure for figure in figures if figure],
    }


def _became(contents: Contents, texts: int) -> bytes:
    """Counts what became of the pairs: broken and fixed with their marks, the others in words."""
    found, item, good = contents.found, noun(contents.found), contents.found.comparing.good
    counts, rest = found.counts, list[str]()
    if bool(counts.broken) != bool(counts.fixed):
        rest.append(f"nothing {'fixed' if counts.broken else 'broken'}")
    if counts.changed:
        became = "" if counts.broken or counts.fixed else f" ({listed_transitions(found)})"
        rest.append(f"{counts.changed:,} changed{became}")
    if counts.unchanged:
        as_good = sum(number for word, number in found.unchanged.items() if word in GOOD)
        left = counts.unchanged - as_good
        kept = f"{as_good:,} {good}, {left:,} not" if left else f"all {good}"
        rest.append(f"{counts.unchanged:,} with the same outcome ({kept})")
    if texts:
        rest.append(f"{texts:,} of them with {TEXT_WORDS.get(item, OTHER_TEXT).counted}")
    title = f"{plural(counts.pairs, item)}, by outcome"
    return fill(TEMPLATE, "became", title, counts.broken, counts.fixed, rest)


def _tools(contents: Contents, written: _Spooled, facets: Sequence[str]) -> bytes:
    """Writes search, chips, choices and reasons."""
    item = noun(contents.found)
    chips = [
        Chip("became", "broken", "✗ Broken"),
        Chip("became", "fixed", "✓ Fixed"),
        Chip("became", "changed", "Changed"),
        Chip("became", "text", TEXT_WORDS.get(item, OTHER_TEXT).chip),
    ]
    counts = written.rows.answers("reason")
    words, errors = written.wordings, written.errors
    reasons = [Chip("reason", kind, words.of(kind), "e" if kind in errors else "f") for kind in counts]
    return tools(
        written.rows,
        nouns=(item, many(item)),
        search=f"Search names and {'decisions' if item == 'turn' else 'answers'}",
        chips=chips,
        choices=[(facet, facet.capitalize()) for facet in facets[2:]],
        reasons=reasons if counts.total() > 1 else (),
        lead="Broken because:",
    )


def _spooled(contents: Contents, rows: Rows) -> _Spooled:
    """Writes the rows to disk."""
    counts = contents.found.counts
    number = counts.pairs - counts.unchanged + min(MOST_TEXTS, counts.unchanged)
    steps = max(LEAST_STEPS, min(MOST_STEPS, PAGE_STEPS // max(1, number)))
    written = _Spooled(rows, text_limit(number), steps)
    for at, shown in enumerate(contents.pairs()):
        if shown.sort == "text":
            written.texts += 1
            if written.texts > MOST_TEXTS:
                continue
        rows.add(_row(contents, written, at, shown), group=SORTS.index(shown.sort))
    return written


def _row(contents: Contents, written: _Spooled, at: int, shown: Shown) -> PageRow:
    """Writes a pair."""
    after = shown.pair[1]
    texts = [texts.answer[: written.limit] for texts in (shown.before, shown.after)]
    difference = compare_words(*texts, most_steps=written.steps)
    before_after = [
        _answer(item, text, parts, tag, written.limit)
        for item, text, parts, tag in zip(
            shown.pair,
            (shown.before, shown.after),
            (difference.before, difference.after),
            ("del", "ins"),
            strict=True,
        )
    ]
    name, *about = _title(after)
    row = PairRow(
        id=f"p{at + 1}",
        title=shown.name,
        name=name,
        about=" · ".join(about),
        tags=after.tags,
        notes=_notes(shown, difference),
        asked=shown.after.asked or shown.before.asked,
        system=_system(shown),
        before=before_after[0],
        after=before_after[1],
        checks=_checks(shown),
        again=_again(contents, shown),
        pages=_pages(contents, shown),
    )
    html = fill(TEMPLATE, "pair", row)
    return PageRow(row.id, html, row.before.outcome + row.after.outcome, _facets(contents, written, shown))


def _facets(contents: Contents, written: _Spooled, shown: Shown) -> dict[str, list[str]]:
    """Returns what a pair is filtered by."""
    after = shown.pair[1]
    facets: dict[str, list[str]] = {"became": [shown.sort]}
    for facet, value in facets_of(contents.found, after):
        facets.setdefault(facet, []).append(value)
    if shown.sort == "broken":
        text, kind = reason_of(shown).partition("; ")[0], reason_kind(shown)
        facets["reason"] = [kind]
        written.wordings.add(Reason(text, kind, text if GAP in kind else kind))
        if after.outcome == Outcome.ERROR:
            written.errors.update(facets["reason"])
    kept = {"became", "reason", *contents.groups}
    return {facet: values for facet, values in facets.items() if facet in kept}


def _system(shown: Shown) -> str:
    """Returns the system message; where B was sent another one, both."""
    before, after = shown.before.system, shown.after.system
    if before == after or not before:
        return after
    return f"A: {before}\n\nB: {after or NO_SYSTEM}"


def _checks(shown: Shown) -> list[tuple[str, CheckText | None, CheckText | None]]:
    """Pairs the checks of both answers by their names."""
    before, after = ({check.name: check for check in each.checks} for each in (shown.before, shown.after))
    return [(name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after])]


def _again(contents: Contents, shown: Shown) -> list[tuple[str, str]]:
    """Returns the commands that ask for an answer again, of A and of B."""
    texts = (shown.before, shown.after)
    commands = [
        (letter, side.again(text.item))
        for letter, side, text in zip("AB", contents.sides, texts, strict=True)
    ]
    return [(letter, command) for letter, command in commands if command]


def _pages(contents: Contents, shown: Shown) -> list[tuple[str, str]]:
    """Returns where the pages of both runs show the item, as far as they are known."""
    found = zip("AB", contents.sides, (shown.before, shown.after), strict=True)
    return [(letter, quote(side.page) + texts.anchor) for letter, side, texts in found if side.page]


def _title(item: ComparedItem) -> list[str]:
    """Names a pair: its unit first, then model, prompt and number."""
    *names, last = item.key
    if not last.startswith("#"):
        return [*item.key]
    return [name for name in names if name] + ([] if last == "#1" else [last])


def reason_kind(shown: Shown) -> str:
    """Returns the kind of a reason: values and numbers are taken out of it."""
    reason = reason_of(shown) or "no reason given"
    return _VALUES.sub("…", reason.partition("; ")[0])[: Size.NAME]


def _notes(shown: Shown, difference: TextDifference) -> list[str]:
    """Returns notes on a pair that its answers do not show by themselves."""
    notes = []
    if shown.sort == "broken" and shown.pair[1].outcome == Outcome.ERROR:
        notes.append("may be the API and not the change")
    if shown.before.answer and shown.after.answer:
        notes += {
            "same": ["the answers are the same"],
            "spaces": ["only white space differs"],
            "rewritten": ["fully rewritten"],
            "lines": ["long answers: whole lines are marked"],
            "long": ["long answers: all between what both begin and end with is marked"],
        }.get(difference.sort, [])
    return notes


def _answer(
    item: ComparedItem, texts: ItemTexts, parts: Sequence[Stretch], tag: str, limit: int
) -> AnswerSide:
    """Prepares one side of a pair."""
    ms = item.scores.get("latency_ms")
    shown = texts.answer[:limit]
    reason = texts.reason
    return AnswerSide(
        outcome=Letter.of(Outcome(item.outcome)),
        word=item.word,
        took="" if not ms else latency(ms),
        reason=reason if len(reason) <= Size.TEXT else f"{reason[: Size.TEXT]}…",
        parts=list(_folded(parts)) if shown else [],
        tag=tag,
        is_code=bool(_CODE.match(shown)),
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


def _omissions(contents: Contents, written: _Spooled) -> Iterator[bytes]:
    """Yields the note on pairs that are not shown."""
    item, omissions = noun(contents.found), list[str]()
    same, more = contents.found.counts.unchanged - written.texts, written.texts - MOST_TEXTS
    if same:
        omissions.append(f"{plural(same, item)} not shown: the same in both runs.")
    if more > 0:
        omissions.append(f"{plural(more, item)} more with another text and the same outcome: not shown.")
    if omissions:
        yield fill(TEMPLATE, "left", " ".join(omissions))


def _shortened(name: str) -> str:
    """Shortens the name of a file to its last part."""
    return name.rsplit("/", 1)[-1]


def _facts(contents: Contents) -> Iterator[tuple[str, str]]:
    """Yields what was compared, for the fold at the foot."""
    found = contents.found
    test, counts, unit = found.test, found.counts, found.comparing.unit
    for letter, side in zip("AB", contents.sides, strict=True):
        yield letter, " · ".join(filter(None, (side.name, side.source, side.began)))
    yield "in both", f"{plural(counts.pairs, noun(found))}; the test counts {plural(test.units, unit)}"
    yield "test", f"McNemar ({test.method}), p {test.p_value:.4g}, exact {test.exact_p:.4g}"
    if rate := found.scores.get(PASS_RATE):
        yield "interval of the rate", f"{METHODS.get(rate.method, rate.method)}, by {unit}"
    yield "level", f"{test.level:g}, for each of what is judged {test.level_each:g}"
    yield "only in A, only in B", f"{counts.only_a:,}, {counts.only_b:,}"
    yield "skipped in A, in B", f"{counts.skipped_a:,}, {counts.skipped_b:,}"
