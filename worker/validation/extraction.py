"""Finds the JSON object in the answer of a model: the JSON grammar ends it, and nothing is ever repaired.

An output that is JSON but for a missing bracket is a failed output; completing it would turn it into a
pass. The whole text comes first, then fenced blocks, tagged ones before others. Time is linear in the text.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, Literal, NamedTuple

import msgspec

from shared.contracts.case_vocabulary import MAX_DEPTH, MAX_OUTPUT_CHARS
from worker.validation.display import cut

MAX_CANDIDATES: Final = 64
"""Places that are tried; each failed try looks at the whole text before it to count lines."""
JSON_TAGS: Final = frozenset({"json", "json5", "jsonc", "jsonl", "application/json"})
"""Tags of blocks that say that they are JSON."""
OTHER_TAGS: Final = frozenset({"", "js", "javascript", "text", "txt", "plaintext"})
"""Tags of blocks that may be JSON."""

_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_OPENING: Final = re.compile(r"[{\[]")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HALF: Final = "a text in it holds half of a surrogate pair"
_BOM: Final = "\ufeff"
_TOO_DEEP: Final = f"the JSON is nested deeper than {MAX_DEPTH}"

Source = Literal["whole text", "fenced block", "prose"]


class ExtractionError(ValueError):
    """There is no JSON object; the text says why, and where.

    Args:
        message: why.
        begins: the beginning of a text that has no JSON at all.
    """

    def __init__(self, message: str, begins: str = "") -> None:
        super().__init__(message)
        self._begins = begins

    def after(self, what: str) -> str:
        """Ends a sentence on what was not found, and where.

        >>> ExtractionError("there is no JSON", "Hi").after("no JSON in the output")
        'no JSON in the output, which begins: Hi'
        >>> ExtractionError("the output is empty").after("no JSON in the output")
        'no JSON in the output: the output is empty'
        """
        return f"{what}, which begins: {self._begins}" if self._begins else f"{what}: {self}"


class Extracted(NamedTuple):
    """A value with the place it was found in."""

    value: Any
    """The object, or what else was looked for."""
    source: Source
    """Place in the output where it stood."""
    blocks: int
    """How many there were to choose from; the first was taken."""


Accept = Callable[[Any], Any]
"""Returns the value if it is one that is looked for, and raises `ExtractionError` else."""


class _Candidate(NamedTuple):
    """A fenced block that may hold JSON."""

    start: int
    """Position of its first bracket."""
    is_tagged: bool
    """Whether it says that it is JSON."""
    fence: str
    """The fence that closes it."""


def _refuse(word: str) -> Any:
    """Refuses the words that Python reads as numbers and JSON does not have."""
    raise ExtractionError(f"{word} is not JSON")


_DECODER: Final = JSONDecoder(parse_constant=_refuse)


def extract_json_object(text: str, *, lenient: bool = False) -> dict[str, Any]:
    r"""Returns the JSON object in a text.

    Args:
        text: the answer of the model.
        lenient: whether an object amid prose, outside of any fence, counts too.

    Raises:
        ExtractionError: there is none.

    >>> extract_json_object('Sure!\n```json\n{"code": "```"}\n```\nAnything else?')
    {'code': '```'}
    >>> extract_json_object('[1]')
    Traceback (most recent call last):
        ...
    worker.validation.extraction.ExtractionError: the JSON is a list, not an object
    >>> extract_json_object('It is {"a": 1}.', lenient=True)
    {'a': 1}
    """
    value: dict[str, Any] = extract(text, lenient=lenient).value
    return value


def extract(text: str, *, lenient: bool = False) -> Extracted:
    """Finds the object and says where it was.

    Args:
        text: the answer of the model.
        lenient: whether an object amid prose, outside of any fence, counts too.

    Raises:
        ExtractionError: there is none.
    """
    return _extract(text, lenient=lenient, accept=_object)


def extract_json(text: str, *, lenient: bool = False) -> Extracted:
    """Finds any JSON value: the whole text, or the object or list in a fenced block.

    Args:
        text: the answer of the model.
        lenient: whether an object or a list amid prose, outside of any fence, counts too.

    Raises:
        ExtractionError: there is none.

    >>> extract_json("[1, 2]").value, extract_json(" 4.5 ").value
    ([1, 2], 4.5)
    >>> extract_json("It is [1, 2].", lenient=True).source
    'prose'
    """
    return _extract(text, lenient=lenient, accept=_anything)


def _extract(text: str, *, lenient: bool, accept: Accept) -> Extracted:
    """Looks in the whole text, then in fenced blocks, then amid prose."""
    if len(text) > MAX_OUTPUT_CHARS:
        raise ExtractionError(
            f"{len(text):,} characters are more than the {MAX_OUTPUT_CHARS:,} that are read"
        )
    text = text.strip().lstrip(_BOM).strip()
    if not text:
        raise ExtractionError("the output is empty")
    try:
        return Extracted(accept(_decode(text)), "whole text", 1)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        pass  # not JSON as a whole; the reason is found below, if nothing better is
    found, error = _in_fences(text, accept)
    if found is None and lenient:
        found = _in_prose(text, accept)
    if found is not None:
        return found
    raise error or _why_not_whole(text)


def _decode(text: str) -> Any:
    """Parses strictly; the depth is bounded, however deep the caller already stands in the stack.

    Raises:
        ExtractionError: it is nested too deep.
        msgspec.DecodeError: it is not JSON, or holds a number that no float can carry.
        RecursionError: it is nested far too deep.
        UnicodeEncodeError: it holds half of a surrogate pair.
    """
    value = msgspec.json.decode(text)
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_too_deep(value):
        raise ExtractionError(_TOO_DEEP)
    return value


def _is_too_deep(value: Any) -> bool:
    """Whether containers stand in each other more than the bound allows."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        inner = [child for outer in level for child in (outer.values() if type(outer) is dict else outer)]
        level = [child for child in inner if type(child) is dict or type(child) is list]
        if not level:
            return False
    return True


def _object(value: Any) -> dict[str, Any]:
    """The value, if it is an object."""
    if not isinstance(value, dict):
        kind = {list: "a list", str: "text", bool: "true or false", type(None): "null"}.get(
            type(value), "a number"
        )
        raise ExtractionError(f"the JSON is {kind}, not an object")
    return value


def _anything(value: Any) -> Any:
    """The value, whatever it is."""
    return value


def _in_fences(text: str, accept: Accept) -> tuple[Extracted | None, ExtractionError | None]:
    """Tries the fenced blocks; without a value, says what was wrong with the most likely one."""
    objects: list[tuple[bool, Any]] = []
    errors: list[tuple[bool, ExtractionError]] = []
    for is_tagged, found in _blocks(text, accept):
        if isinstance(found, ExtractionError):
            errors.append((is_tagged, found))
        else:
            objects.append((is_tagged, found))
    if objects:
        best = next((value for is_tagged, value in objects if is_tagged), objects[0][1])
        return Extracted(best, "fenced block", len(objects)), None
    if errors:
        return None, next((error for is_tagged, error in errors if is_tagged), errors[0][1])
    return None, None


def _blocks(text: str, accept: Accept) -> Iterator[tuple[bool, Any]]:
    """Yields what is in each block that may hold JSON, and whether it says that it does."""
    position = tries = 0
    for match in _FENCE.finditer(text):
        if match.start() < position:
            continue
        tries += 1
        if tries > MAX_CANDIDATES:
            return
        candidate = _candidate(text, match)
        end: int | None = None
        if candidate is not None:
            try:
                value, end = _block(text, candidate, accept)
                yield candidate.is_tagged, value
            except ExtractionError as error:
                yield candidate.is_tagged, error
        position = _after_block(text, match) if end is None else end


def _candidate(text: str, match: re.Match[str]) -> _Candidate | None:
    """Reads what stands after a fence: a tag, and a bracket on this line or at the start of the next."""
    line_end = text.find("\n", match.end())
    line_end = len(text) if line_end < 0 else line_end
    bracket = _OPENING.search(text, match.end(), line_end)
    tag = text[match.end() : bracket.start() if bracket else line_end].strip().lower()
    word = tag.split(maxsplit=1)[0] if tag else ""
    if word not in JSON_TAGS and word not in OTHER_TAGS:
        return None
    start = bracket.start() if bracket else _after_space(text, line_end)
    if start >= len(text) or text[start] not in "{[":
        return None
    return _Candidate(start, word in JSON_TAGS, match.group()[:3])


def _block(text: str, candidate: _Candidate, accept: Accept) -> tuple[Any, int]:
    """Parses a block to its closing fence; brackets and backticks inside of texts end nothing.

    Raises:
        ExtractionError: it is not what is looked for, or something else follows it.
    """
    value, end = _parse_at(text, candidate.start)
    rest = _after_space(text, end)
    if rest < len(text) and not text.startswith(candidate.fence, rest):
        raise ExtractionError(f"after the JSON the block goes on: {cut(text[rest : rest + 41], 40)}")
    return accept(value), rest + 3


def _parse_at(text: str, start: int) -> tuple[Any, int]:
    """Parses one JSON value that begins here; returns it and where it ends.

    Raises:
        JSONDecodeError: within `ExtractionError` as its cause: the grammar is broken.
        ExtractionError: it is not JSON, for whatever reason.
    """
    try:
        _, end = _DECODER.raw_decode(text, start)
        return _decode(text[start:end]), end
    except JSONDecodeError as error:
        raise ExtractionError(f"broken JSON: {error}") from error
    except RecursionError:
        raise ExtractionError(_TOO_DEEP) from None
    except UnicodeEncodeError:
        raise ExtractionError(f"not JSON: {_HALF}") from None
    except msgspec.DecodeError as error:  # stricter than Python's json about numbers and surrogate pairs
        is_half = _ESCAPED_SURROGATE.search(text, start) is not None
        raise ExtractionError(f"not JSON: {_HALF if is_half else error}") from None
    except ExtractionError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise ExtractionError(f"not JSON: {cut(str(error), 80)}") from None


def _in_prose(text: str, accept: Accept) -> Extracted | None:
    """The first value that is not part of something bigger; broken JSON is passed over as a whole."""
    start = 0
    for _ in range(MAX_CANDIDATES):
        bracket = _OPENING.search(text, start)
        if bracket is None:
            return None
        try:
            value, start = _parse_at(text, bracket.start())
        except ExtractionError as error:
            if not isinstance(error.__cause__, JSONDecodeError):
                return None
            start = max(error.__cause__.pos, bracket.end())
        else:
            with suppress(ExtractionError):
                return Extracted(accept(value), "prose", 1)
    return None


def _why_not_whole(text: str) -> ExtractionError:
    """Why the text as a whole is no JSON object."""
    if text[0] not in "{[":
        return ExtractionError("there is no JSON in it", cut(text, 60))
    try:
        _, end = _parse_at(text, 0)
    except ExtractionError as error:
        return error
    return ExtractionError(f"after the JSON the text goes on: {cut(text[_after_space(text, end) :], 60)}")


def _after_space(text: str, position: int) -> int:
    """The next place that is no JSON white space."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _after_block(text: str, match: re.Match[str]) -> int:
    """Where the block that a fence opens is closed again, as Markdown reads it."""
    line_end = text.find("\n", match.end())
    if line_end < 0:
        return len(text)
    closing = text.find("\n" + match.group(), line_end)
    return len(text) if closing < 0 else closing + 1 + len(match.group())
