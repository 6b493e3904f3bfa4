"""Reads tests from the rows of a table: `__expected` columns are assertions in one text, others variables."""

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import structs, to_builtins

from producer.cases.bench_files import ROW_BYTES
from producer.convert.promptfoo.written import (
    WrittenAssertion,
    WrittenCsvPrompt,
    WrittenRow,
    WrittenTest,
    read,
)
from producer.load.problems import Place
from shared.errors import WrongInput

_NAMES: Final = (
    "is-valid-openai-function-call|is-valid-openai-tools-call|trajectory:tool-args-match"
    "|trajectory:tool-sequence|model-graded-factuality|trajectory:goal-success|conversation-relevance"
    "|is-valid-function-call|model-graded-closedqa|trajectory:step-count|context-faithfulness"
    "|trajectory:tool-used|trace-span-duration|context-relevance|similar:euclidean|trace-error-spans"
    "|answer-relevance|perplexity-score|trace-span-count|context-recall|similar:cosine|contains-html"
    "|contains-json|finish-reason|icontains-all|icontains-any|search-rubric|agent-rubric|contains-all"
    "|contains-any|contains-sql|contains-xml|tool-call-f1|levenshtein|similar:dot|starts-with|classifier"
    "|factuality|guardrails|is-refusal|javascript|llm-rubric|moderation|perplexity|skill-used|word-count"
    "|icontains|contains|is-html|is-json|latency|rouge-n|similar|webhook|equals|g-eval|is-sql|is-xml"
    "|meteor|python|regex|bleu|cost|gleu|ruby|pi"
)
"""The longest first, of which one may be the beginning of another."""
TYPES: Final = frozenset(_NAMES.split("|"))
"""The types of assertions, but for those of sets and of comparisons between answers."""
_TEXT: Final = re.compile(rf"(not-)?({_NAMES})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL)
_SCORED: Final = frozenset(
    {"answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance", "cost"}
    | {"latency", "levenshtein", "perplexity-score", "perplexity", "rouge-n", "similar", "starts-with"}
)
"""Types whose text has a threshold, or gets one."""
_LISTS: Final = frozenset({"contains-all", "contains-any", "icontains-all", "icontains-any"})
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_CONFIG: Final = re.compile(r"__config:__expected(\d*):threshold")
_STARTS: Final[Mapping[str, str]] = {
    "javascript:": "javascript",
    "fn:": "javascript",
    "eval:": "javascript",
    "grade:": "llm-rubric",
    "llm-rubric:": "llm-rubric",
    "python:": "python",
}
_CODE: Final = re.compile(r"file://.*\.(?:js|cjs|mjs|ts|cts|mts)(?::\w+)?", re.DOTALL)
_PYTHON: Final = re.compile(r"file://.*\.py(?::\w+)?", re.DOTALL)


def rows_of(text: str, place: Place) -> Iterator[tuple[Place, dict[str, str]]]:
    """Yields the rows of a table, by its first line, with their places.

    Raises:
        InputError: it is no table.
    """
    csv.field_size_limit(ROW_BYTES)
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        names = next(reader, [])
        line = reader.line_num + 1
        for cells in reader:
            here = Place(place.file, line=line)
            line = reader.line_num + 1
            if not any(cells):
                continue
            if len(cells) != len(names):
                raise here.error(
                    f"{len(cells)} cells in a table of {len(names)} columns", "quote cells with commas"
                )
            yield here, dict(zip((name.strip() for name in names), cells, strict=True))
    except csv.Error as error:
        raise Place(place.file, line=reader.line_num).error(
            f"no CSV: {error}", "quote cells with commas"
        ) from None


def prompts_of(text: str, place: Place) -> list[tuple[str, str | None]]:
    """Returns the prompts of a table, with their labels."""
    if "," not in text:
        lines = [line for line in text.splitlines() if line.strip()]
        return [(line, None) for line in lines[lines[:1] == ["prompt"] :]]
    rows = [{key.strip(): value.strip() for key, value in row.items()} for _, row in rows_of(text, place)]
    found = [read(WrittenCsvPrompt, row) for row in rows]
    return [(each.prompt, each.label) for each in found if each.prompt]


def test_of_row(row: Mapping[str, str]) -> WrittenTest:
    """Returns the test that a row writes.

    Raises:
        WrongInput: a column of settings is broken.
    """
    cells = {name: cell for name, cell in row.items() if cell.strip() or not name.startswith("__")}
    special = read(
        WrittenRow, {name.removeprefix("__"): cell for name, cell in cells.items() if name[:2] == "__"}
    )
    texts = [cell.strip() for name, cell in cells.items() if name.startswith("__expected")]
    thresholds = dict(_thresholds(cells))
    last = [each for at, each in sorted(thresholds.items()) if at < len(texts)][-1:]
    options = {"prefix": special.prefix, "suffix": special.suffix}
    threshold = special.threshold and special.threshold.strip()
    return WrittenTest(
        description=special.description,
        vars={name: cell for name, cell in cells.items() if not name.startswith("__")},
        assertions=[
            to_builtins(_of_row(text, special.metric, thresholds.get(at))) for at, text in enumerate(texts)
        ],
        threshold=threshold if threshold and _NUMBER.fullmatch(threshold) else None,
        options={name: cell for name, cell in options.items() if cell},
        metadata={**dict(_metadata(cells)), **dict(zip(["threshold"], last, strict=False))},
        provider_output=special.provider_output,
    )


def _of_row(text: str, metric: str | None, threshold: float | None) -> WrittenAssertion:
    """The assertion of a cell with the settings of its row."""
    found = structs.replace(assertion_of_text(text), metric=metric)
    return found if threshold is None else structs.replace(found, threshold=threshold)


def _metadata(cells: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """The facts of a row; those of columns that end with [] are lists."""
    for name, cell in cells.items():
        key = name.removeprefix("__metadata:")
        if key == name:
            continue
        if key.endswith("[]"):
            yield key[:-2], [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", cell)]
        else:
            yield key, cell


def _thresholds(cells: Mapping[str, str]) -> Iterator[tuple[int, float]]:
    """The thresholds of a row's assertions, by their positions."""
    for name, cell in cells.items():
        if not name.startswith("__config:"):
            continue
        found = _CONFIG.fullmatch(name)
        if found is None or not _NUMBER.fullmatch(cell.strip()):
            raise WrongInput(f"the column {name} is no threshold", "write __config:__expected1:threshold")
        yield int(found[1] or 1) - 1, float(cell)


def assertion_of_text(text: str) -> WrittenAssertion:
    """Returns the assertion that a text writes.

    >>> found = assertion_of_text("similar(0.9): Paris")
    >>> found.type, found.value, found.threshold
    ('similar', 'Paris', 0.9)
    >>> assertion_of_text("not-icontains-any: a, b").value, assertion_of_text("Paris").type
    (['a', 'b'], 'equals')
    """
    for start, kind in _STARTS.items():
        if text.startswith(start):
            value = text.removeprefix(start)
            return WrittenAssertion(kind, value if kind == "llm-rubric" else value.strip())
    if _CODE.fullmatch(text) or _PYTHON.fullmatch(text):
        return WrittenAssertion("javascript" if _CODE.fullmatch(text) else "python", text)
    found = _TEXT.fullmatch(text)
    if found is None:
        return WrittenAssertion("equals", text)
    negated, kind, written, value = found.groups()
    threshold = None
    if kind in _SCORED:
        threshold = float(written) if written else 0.8 if kind == "similar" else 0.75
    if kind in _LISTS and value:
        return WrittenAssertion(f"{negated or ''}{kind}", split_texts(value))
    return WrittenAssertion(f"{negated or ''}{kind}", value and value.strip(), threshold)


def split_texts(text: str) -> list[str]:
    r"""Splits a text at its commas, but for those in quotes.

    Raises:
        WrongInput: a quotation mark is not closed.

    >>> split_texts('a, "b, c",, d')
    ['a', 'b, c', 'd']
    """
    found, at = list[str](), 0
    part = re.compile(r'[\s,]*(?:"((?:[^"\\]|\\.|"")*)"\s*(?=,|$)|([^,"][^,]*))', re.DOTALL)
    while at < len(text) and text[at:].strip(" \t\r\n,"):
        matched = part.match(text, at)
        if matched is None:
            raise WrongInput(f"a quotation mark in {text[:40]!r} is not closed", "close it, or write a list")
        quoted, plain = matched.groups()
        found.append(
            plain.strip() if quoted is None else re.sub(r'\\(["\\])|""', lambda m: m[1] or '"', quoted)
        )
        at = matched.end()
    return found
