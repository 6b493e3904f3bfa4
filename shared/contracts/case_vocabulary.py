"""The words and numbers of the validation specification; needs nothing but Python.

`shared.contracts.cases` holds the same contract as a pydantic model. This file is apart from it so that
reports and a command line can speak of statuses without importing pydantic.
"""

import re
import warnings
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from math import isfinite
from typing import Any, Final, Literal, NamedTuple

CONTENT_FILTER: Final = "content_filter"
"""Why an answer ended that the provider's filter has withheld or cut off (`finish_reason`)."""
MAX_INPUT_CHARS: Final = 1_000_000
"""A longer prompt is an input error."""
MAX_OUTPUT_CHARS: Final = 1 << 20
"""A longer output is not parsed; the worker refuses it before (`output_too_large`)."""
MAX_DEPTH: Final = 500
"""Objects and lists inside each other; Python's own `json` cannot be trusted to read back much more."""
DEFAULT_JUDGE: Final = "gpt-3.5-turbo"
"""The judge where the configuration does not name one."""
MOST_JUDGES: Final = 9
"""Judges of a panel."""
JUDGE_QUESTION: Final = "Are these two JSON objects semantically equivalent?"
"""What the judge is asked, word for word as in the specification."""
Label = Literal["pass", "fail"]
"""A person's verdict on an output."""

PLAIN_DEPTH: Final = 50
"""Levels that are looked through by recursion."""
MAX_SHOWN_PATH: Final = 20
"""Steps of a path that are named in an error."""

_HALF: Final = "text with half of a surrogate pair"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class CaseStatus(StrEnum):
    """How a validated output fared; there is no other word."""

    PASSED = "passed"
    """Every check passed, or the judge found the output equivalent."""
    FAILED_REGEX = "failed_regex"
    """The pattern did not match."""
    FAILED_CUSTOM = "failed_custom"
    """The validator did not accept it, or could not be run."""
    FAILED_JSON_PARSE = "failed_json_parse"
    """There is no JSON object in the output."""
    FAILED_SCHEMA = "failed_schema"
    """The object breaks the schema."""
    FAILED_EQUALITY = "failed_equality"
    """The object is not the expected one, and no judge spoke."""
    FAILED_FUZZY = "failed_fuzzy"
    """The object is not the expected one, and the judge did not find it equivalent."""
    FAILED_CHECKS = "failed_checks"
    """The stages passed, and the checks of the case did not."""


class Stage(StrEnum):
    """The stages of the pipeline, in their order."""

    REGEX = "regex"
    """Stage 0: is the pattern anywhere in the output?"""
    CUSTOM = "custom"
    """Stage 0.5: does the user's own function accept the output?"""
    JSON = "json_parse"
    """Stage 1: is there a JSON object?"""
    SCHEMA = "schema"
    """Stage 2: does the object keep to the schema?"""
    EQUALITY = "equality"
    """Stage 3: is it the expected object, whatever the order?"""
    FUZZY = "fuzzy"
    """Stage 4: does a second model find the two equivalent?"""


class StageRow(NamedTuple):
    """The fixed facts about a stage."""

    number: str
    """Its number in the specification."""
    failure: CaseStatus
    """The status of a case that fails it."""
    title: str
    """What reports call it."""
    meaning: str
    """What its failure means, in the words of reports."""
    keys: tuple[str, ...]
    """It runs if there is one of these: criteria of the case, or `schema`."""


STAGE_TABLE: Final = {
    Stage.REGEX: StageRow(
        "0", CaseStatus.FAILED_REGEX, "regex", "the pattern was not found", ("regex_pattern",)
    ),
    Stage.CUSTOM: StageRow(
        "0.5", CaseStatus.FAILED_CUSTOM, "validator", "the validator did not accept it", ("validator",)
    ),
    Stage.JSON: StageRow(
        "1", CaseStatus.FAILED_JSON_PARSE, "JSON", "no JSON object in the output", ("expected", "schema")
    ),
    Stage.SCHEMA: StageRow(
        "2", CaseStatus.FAILED_SCHEMA, "schema", "the object violates the schema", ("schema",)
    ),
    Stage.EQUALITY: StageRow(
        "3", CaseStatus.FAILED_EQUALITY, "equality", "not the expected object", ("expected",)
    ),
    Stage.FUZZY: StageRow(
        "4",
        CaseStatus.FAILED_FUZZY,
        "judge",
        "not the expected object, and the judge did not accept it",
        ("expected",),
    ),
}
"""All stages, in their order."""


@lru_cache(maxsize=1024)
def pattern_error(pattern: str) -> str | None:
    r"""Describes what keeps a pattern from being one; None when nothing does.

    >>> pattern_error("def add\\(") is None
    True
    >>> pattern_error("def add(")
    'missing ), unterminated subpattern at position 7'
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a later Python will read otherwise is no error today
            re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError) as error:
        return str(error)
    except (RecursionError, MemoryError):
        return "it is nested too deep"
    return None


def pointer(parts: Iterable[str | int]) -> str:
    """Writes a place inside a JSON document as a JSON pointer; the whole document is the empty text.

    >>> pointer(["lines", 2, "a/b"])
    '/lines/2/a~1b'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def why_not_json(document: Any) -> str | None:
    """Describes what in a value no JSON text can carry, and where; None when nothing.

    >>> why_not_json({"a": [1, None, {"b": "c"}]}) is None
    True
    >>> why_not_json({"a": [1, float("nan")]})
    '/a/1: nan is no JSON number'
    >>> why_not_json({1: "one"})
    'the top: key 1 is not text'
    """
    if _is_plain(document):
        return None
    stack: list[tuple[Any, tuple[str | int, ...]]] = [(document, ())]
    while stack:
        value, path = stack.pop()
        problem = _why_not(value)
        if problem is None and isinstance(value, dict):
            problem = next(filter(None, map(_why_no_key, value)), None)
            stack.extend((inner, (*path, key)) for key, inner in value.items())
        elif isinstance(value, list):
            stack.extend((inner, (*path, index)) for index, inner in enumerate(value))
        if len(path) > MAX_DEPTH:
            problem = f"nested deeper than {MAX_DEPTH}"
        if problem is not None:
            where = pointer(path[:MAX_SHOWN_PATH]) or "the top"
            return f"{where}: {problem}"
    return None


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is surely JSON: most are, and not deep, and this is faster than finding out why not."""
    kind = type(value)
    if kind is str:
        return value.isascii() or not _SURROGATE.search(value)
    if kind is dict or kind is list:
        keys, members = (value, value.values()) if kind is dict else ((), value)
        if depth == PLAIN_DEPTH or not all(type(key) is str and key.isascii() for key in keys):
            return False
        return all(_is_plain(member, depth + 1) for member in members)
    return value is None or kind is bool or kind is int or (kind is float and isfinite(value))


def _why_not(value: Any) -> str | None:
    """Describes what is wrong with one value, its inner ones aside; None when nothing is."""
    if isinstance(value, float) and not isfinite(value):
        return f"{value} is no JSON number"
    if isinstance(value, str):
        return _HALF if not value.isascii() and _SURROGATE.search(value) else None
    if value is None or isinstance(value, bool | int | float | dict | list):
        return None
    return f"{type(value).__name__} is no JSON type"


def _why_no_key(key: Any) -> str | None:
    """Describes what is wrong with one key of an object; None when nothing is."""
    if not isinstance(key, str):
        return f"key {key!r} is not text"
    return _HALF if not key.isascii() and _SURROGATE.search(key) else None
