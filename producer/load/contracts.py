"""Checks values against their contracts, and words each refusal: place, what is wrong, and how to mend it.

Wording is apart from reading: it runs for invalid values only, so its speed does not matter.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar, get_args

from msgspec.structs import replace
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from producer.load.problems import Path, Place, PlacedError, Problem, one_of, path_text
from producer.text import SHOWN_CHARS, shown
from shared.errors import InputError
from shared.scrubbing import without_lookalikes

_WRONG_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "string_type": ("not a text", "write it in quotes"),
    "bool_type": ("not a truth value", "write true or false, without quotes"),
    "float_type": ("not a number", "write a number without quotes"),
    "int_type": ("not a whole number", "write a whole number without quotes"),
    "list_type": ("not a list", "write it as […]"),
    "tuple_type": ("not a list", "write it as […]"),
    "dict_type": ("not an object", "write it as {…}"),
    "model_type": ("not an object", "write it as {…}"),
}
"""What a value of the wrong type is not, and how to write it."""

_NOT_SHOWN: Final = frozenset({"url_secret", "variable"})
"""Errors about values that are secrets, or a secret in a wrong place."""
_BRANCH = re.compile(r"^(str-enum|constrained-|literal|function-|union|memento-v)|\[")
_POSITION = re.compile(r"^(?P<what>.*) at line \d+ column (?P<column>\d+)$", re.DOTALL)

M = TypeVar("M", bound=BaseModel)


class _Refusal(NamedTuple):
    """One of pydantic's errors."""

    kind: str
    """Its name for what is wrong."""
    location: tuple[str | int, ...]
    """Where it is, without the parts that name a branch of a union instead of a key."""
    message: str
    given: Any
    """The value that is refused."""
    context: Mapping[str, Any]
    """What was expected, by names that differ by kind."""


_HINTS: Final = {
    "blank": "give it a text",
    "surrogate": "take the broken character out",
    "pattern": "patterns are Python's: see the re module; a backslash in double quotes is written twice",
    "not_json": "write what a model can answer in JSON",
    "url": "write http://host:port/v1",
    "variable": "name the variable that holds the key, never the key itself",
}
"""How to mend what the contract's own checks refuse."""


def checked(model: type[M], value: Any, place: Place, *, below: int = 0) -> M:
    """Checks a value against its contract.

    Args:
        model: the contract.
        value: what was read.
        place: where.
        below: how many of the first keys of the value are not in the file.

    Raises:
        InputError: it breaks the contract.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = [_problem(refusal, model, value, place, below) for refusal in _by_place(error)]
        raise one_of([PlacedError(problem) for problem in found]) from None


def broken_members(model: type[BaseModel], value: Any, key: str) -> frozenset[int]:
    """Returns which members of a list break the contract, if nothing else does; empty otherwise."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        places = [detail["loc"][:2] for detail in error.errors(include_url=False)]
        members = [place[1] for place in places if len(place) > 1 and place[0] == key]
        if len(members) == len(places):
            return frozenset(at for at in members if isinstance(at, int))
    return frozenset()


def unknown_keys(error: ValidationError) -> list[str]:
    """Returns the places of keys that the contract does not have."""
    return [path_text(each.location) for each in _by_place(error) if each.kind == "extra_forbidden"]


def _problem(refusal: _Refusal, model: type[BaseModel], value: Any, place: Place, below: int) -> Problem:
    """Words one problem with its place."""
    problem, kind, location = _translated(refusal, model, b"{}", place), refusal.kind, refusal.location
    if not location and (key := refusal.context.get("key")):
        location = (str(key),)
    at = replace(place.at(*location), case=_case_of(location, value))
    if below:
        at = replace(at, file=str(place.at(*location[below:])), text="")
    if kind == "misplaced":
        what, _, hint = refusal.message.partition(": ")
        return Problem(at, what, hint)
    if kind == "variable":  # a key may stand there, and errors are logged
        return Problem(at, "not the name of a variable", _HINTS[kind])
    return Problem(at, problem.what, _HINTS.get(kind) or _other_hint(problem, kind, refusal.given))


def _case_of(location: Path, value: Any) -> str:
    """The id of the case that a place of a bench is in, if it has one.

    >>> _case_of(("test_cases", 0, "checks"), {"test_cases": [{"id": "fr"}]})
    'fr'
    """
    if len(location) < 3 or location[0] != "test_cases" or location[2] == "id":  # noqa: PLR2004 - case and key
        return ""
    case = value["test_cases"][location[1]]
    name = case.get("id") if isinstance(case, dict) else None
    return name if isinstance(name, str) else ""


def _other_hint(problem: Problem, kind: str, given: object) -> str:
    """How to mend a value of the wrong type."""
    if kind == "dict_type" and problem.place.path[-1:] == ("expected",):
        return "an output is a JSON object: write the keys it must have"
    if kind in ("int_type", "float_type", "bool_type") and isinstance(given, str):
        return f"{problem.hint}, as JSON has it: 5, 0.5, true"
    if kind == "string_type" and isinstance(given, int | float | bool):
        return f'quote it: "{given}"'
    return problem.hint


def _shown_value(value: object) -> str:
    """Quotes a value of an input, without what looks like a secret: logs of builds keep messages."""
    return shown(without_lookalikes(value)) if isinstance(value, str) else without_lookalikes(shown(value))


def described(
    error: ValidationError, model: type[BaseModel], raw: bytes, place: Place, among: str
) -> InputError:
    """Describes what is wrong with a line: an unknown key first, often the cause; others are counted.

    Args:
        error: what validating the line raised.
        model: the model it was validated with.
        raw: the line.
        place: its place.
        among: where the others are, such as ` in this line`.
    """
    found = [_translated(refusal, model, raw, place) for refusal in _by_place(error)]
    return one_of([PlacedError(problem) for problem in found], among=among)


def _by_place(error: ValidationError) -> list[_Refusal]:
    """Returns the first of pydantic's errors for each place; unknown keys come first."""
    refusals = map(_refusal, error.errors(include_url=False))
    found = dict[str, _Refusal]()
    for refusal in sorted(refusals, key=lambda each: each.kind != "extra_forbidden"):
        found.setdefault(path_text(refusal.location), refusal)
    return list(found.values())


def _refusal(detail: ErrorDetails) -> _Refusal:
    """Takes one of pydantic's errors over."""
    kind = detail["type"]
    place = _location(kind, detail["loc"])
    return _Refusal(kind, place, detail["msg"], detail["input"], detail.get("ctx", {}))


def broken_json(what: str, raw: bytes, place: Place) -> Problem:
    """Returns why a line is not JSON: another encoding, a value JSON does not have, or bad syntax."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} of the line is 0x{raw[error.start]:02x}"
        return Problem(
            place, f"not UTF-8 text ({byte})", "save the file as UTF-8: iconv -f FROM -t UTF-8 FILE"
        )
    if not raw.startswith(b"{"):
        start = raw[:SHOWN_CHARS].decode(errors="replace")
        return Problem(place, f"not a JSON object ({shown(start)})", "each line is one JSON object, {…}")
    match = _POSITION.match(what.removeprefix("Invalid JSON: "))
    if match:
        what = f"{match['what']} at column {match['column']}"
    return Problem(place, f"not valid JSON: {what}", "each line is one JSON object on its own")


def _translated(refusal: _Refusal, model: type[BaseModel], raw: bytes, place: Place) -> Problem:
    """Translates one of pydantic's error types."""
    if refusal.kind == "json_invalid":
        return broken_json(refusal.message, raw, place)
    location = refusal.location
    at = place.at(*location)
    if refusal.kind == "extra_forbidden":
        known = sorted(_keys_at(model, location[:-1]) - {str(location[-1])})
        return Problem(at, "unknown key", _nearest(str(location[-1]), known, "known keys"))
    if refusal.given is None and refusal.kind != "missing":
        return Problem(at, "null is not a value here", _instead_of_null(model, location))
    return _wrong(refusal, at) or _measured(refusal, at) or _contract_problem(refusal, at)


def _instead_of_null(model: type[BaseModel], location: tuple[str | int, ...]) -> str:
    """Returns a hint for a null: only optional keys can be left out."""
    if location and isinstance(location[-1], int):
        return "take it out of the list"
    fields = [field for field in _fields_at(model, location[:-1]) if location[-1:] == (field[0],)]
    is_required = any(field.is_required() for _, field in fields)
    return "this key is required: give it a value" if is_required else "leave the key out instead"


def _wrong(refusal: _Refusal, at: Place) -> Problem | None:
    """Messages for values that are missing, of the wrong type, or unknown."""
    kind, value = refusal.kind, refusal.given
    if kind.startswith("union_tag"):
        return _untagged(refusal, at)
    if kind == "missing":
        return Problem(at, "is missing", "this key is required")
    if kind in ("literal_error", "enum"):
        known = re.findall(r"'([^']*)'", str(refusal.context["expected"]))
        return Problem(at, f"unknown value {_shown_value(value)}", _nearest(str(value), known, "one of"))
    if kind in _WRONG_TYPES:
        what, hint = _WRONG_TYPES[kind]
        return Problem(at, f"{what} ({_shown_value(value)})", hint)
    return None


def _untagged(refusal: _Refusal, at: Place) -> Problem:
    """Messages for an object whose discriminator is missing or unknown."""
    context = refusal.context
    at = at.at(str(context["discriminator"]).strip("'"))
    if refusal.kind == "union_tag_not_found":
        return Problem(at, "is missing", "this key is required")
    known = re.findall(r"'([^']*)'", str(context["expected_tags"]))
    tag = context["tag"]
    return Problem(at, f"unknown value {_shown_value(tag)}", _nearest(str(tag), known, "one of"))


def _measured(refusal: _Refusal, at: Place) -> Problem | None:
    """Messages for values of the right type that are too long, too short or out of range."""
    kind, value, limits = refusal.kind, refusal.given, refusal.context
    match kind:
        case "string_too_long" | "too_long":
            unit = "characters" if isinstance(value, str) else "items"
            size, most = f"{len(value):,}", f"{limits['max_length']:,}"
            return Problem(at, f"{size} {unit}, at most {most} are allowed", f"shorten it to {most} {unit}")
        case "string_too_short" | "too_short":
            return Problem(at, f"is empty ({_shown_value(value)})", "give it a value")
        case "less_than_equal":
            return Problem(at, f"{_shown_value(value)} is too much", f"at most {_number(limits['le'])}")
        case "greater_than_equal":
            return Problem(at, f"{_shown_value(value)} is too little", f"at least {_number(limits['ge'])}")
        case "string_pattern_mismatch":
            return _time_problem(at, str(value))
        case _:
            return None


def _number(limit: float) -> str:
    """Writes a limit as people do.

    >>> _number(1e7), _number(0.5)
    ('10,000,000', '0.5')
    """
    return f"{limit:,.0f}" if limit == int(limit) else f"{limit:g}"


def _time_problem(at: Place, value: str) -> Problem:
    """Messages for the only pattern of the contracts: a time in UTC."""
    hint = "times are written in UTC with Z: 2026-02-01T09:30:00Z"
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return Problem(at, f"not a time ({_shown_value(value)})", hint)
    if moment.tzinfo is None:
        return Problem(at, f"time without a zone ({_shown_value(value)})", hint)
    return Problem(at, f"time not written with Z ({_shown_value(value)})", hint)


def _contract_problem(refusal: _Refusal, at: Place) -> Problem:
    """The message of the contract, split into problem and hint at the first colon."""
    text = refusal.message.removeprefix("Value error, ").removeprefix("Input ")
    is_hidden = isinstance(refusal.given, dict | list) or refusal.kind in _NOT_SHOWN
    value = "" if is_hidden else f" ({_shown_value(refusal.given)})"
    what, _, hint = text.partition(": ")
    return Problem(at, what + value, hint or "correct the value")


def _location(kind: str, place: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Where a problem is, without the parts that name a branch of a union instead of a key."""
    *inner, last = place or ("",)
    parts = [part for part in inner if not _is_branch(part)]
    if kind == "extra_forbidden" or (last != "" and not _is_branch(last)):
        parts.append(last)
    return tuple(parts)


def _is_branch(part: str | int) -> bool:
    """Recognises pydantic's names for the branches of a union.

    >>> _is_branch("str-enum[Confidence]"), _is_branch("confidence")
    (True, False)
    """
    return isinstance(part, str) and _BRANCH.search(part) is not None


def _nearest(word: str, known: list[str], label: str) -> str:
    """Suggests what was probably meant, else everything there is."""
    close = get_close_matches(word, known, n=1) or get_close_matches(word.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"{label}: {', '.join(known)}" if known else "remove it"


def _keys_at(model: type[BaseModel], location: tuple[str | int, ...]) -> set[str]:
    """Lists the keys that the model allows at a place inside the document."""
    return {key for key, _ in _fields_at(model, location)}


def _fields_at(model: type[BaseModel], location: tuple[str | int, ...]) -> list[tuple[str, FieldInfo]]:
    """Lists the fields that the model has at a place inside the document, by their keys."""
    models = {model}
    for part in location:
        if isinstance(part, str):
            fields = [field for m in models for key, field in _fields(m) if key == part]
            models = {found for field in fields for found in _models_in(field.annotation)}
    return [pair for m in models for pair in _fields(m)]


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yields the keys of a model as they are spelt in JSON, with what they hold."""
    for name, field in model.model_fields.items():
        yield field.alias or name, field


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yields the models inside a type such as `list[Item] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
