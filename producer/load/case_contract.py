"""Checks values against the contract of cases, and words each refusal: place, what, and how to mend it."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from producer.load.problems import Problem, Problems, details_by_place, one_of, shown, translated
from shared.errors import InputError

M = TypeVar("M", bound=BaseModel)

MOST_CASES: Final = 10_000
"""Cases of a run."""
SHOWN_NAMES: Final = 8
"""Names in a hint."""

_HINTS: Final = {
    "blank": "give it a text",
    "surrogate": "take the broken character out",
    "pattern": "patterns are Python's: see the re module; a backslash in double quotes is written twice",
    "not_json": "write what a model can answer in JSON",
    "url": "write http://host:port/v1",
    "variable": "name the variable that holds the key, never the key itself",
}
"""How to mend what the contract's own checks refuse."""


class Row(NamedTuple):
    """A value on its way to a model of the contract."""

    where: str
    """File, and line if known."""
    value: Any
    """What is there."""


def checked(model: type[M], value: Any, place: Callable[[tuple[str | int, ...]], str]) -> M:
    """Checks a value against its contract.

    Args:
        model: the contract.
        value: what was read.
        place: names the place of a location in the value: `FILE:LINE`.

    Raises:
        InputError: it breaks the contract.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        errors = [_refusal(detail, model, value, place) for detail in details_by_place(error)]
        raise one_of(errors) from None


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


def _refusal(
    detail: ErrorDetails,
    model: type[BaseModel],
    value: Any,
    place: Callable[[tuple[str | int, ...]], str],
) -> InputError:
    """Words one problem with its place."""
    problem = _worded(detail, model)
    location = _written(detail, value)
    path = problem.path or (str(location[0]) if location else "")
    path += _case_named(location, value) if path else ""
    text = f"{place(location)}: {path + ': ' if path else ''}{problem.what}"
    return InputError(text, hint=problem.hint)


def _case_named(location: Sequence[str | int], value: Any) -> str:
    """The case that a place of a bench is in, if it has an id.

    >>> _case_named(("test_cases", 0, "checks"), {"test_cases": [{"id": "fr"}]})
    " (case 'fr')"
    """
    if len(location) < 3 or location[0] != "test_cases" or location[2] == "id":  # noqa: PLR2004 - case and key
        return ""
    case = value["test_cases"][location[1]]
    name = case.get("id") if isinstance(case, dict) else None
    return f" (case {shown(name)})" if isinstance(name, str) else ""


def _worded(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    """Finds words for a problem."""
    problem, kind = translated(detail, model, b"{}"), detail["type"]
    if kind == "misplaced":
        what, _, hint = detail["msg"].partition(": ")
        return Problem(str(detail.get("ctx", {}).get("key", "")), what, hint)
    if kind == "variable":  # a key may stand there, and errors are logged
        return Problem(problem.path, "not the name of a variable", _HINTS[kind])
    if kind in _HINTS:
        return problem._replace(hint=_HINTS[kind])
    return problem._replace(hint=_other_hint(problem, kind, detail["input"]))


def _other_hint(problem: Problem, kind: str, given: object) -> str:
    """How to mend a value of the wrong type."""
    if kind == "dict_type" and problem.path.endswith("expected"):
        return "an output is a JSON object: write the keys it must have"
    if kind in ("int_type", "float_type", "bool_type") and isinstance(given, str):
        return f"{problem.hint}, as JSON has it: 5, 0.5, true"
    if kind == "string_type" and isinstance(given, int | float | bool):
        return f'quote it: "{given}"'
    return problem.hint


def _written(detail: ErrorDetails, value: Any) -> tuple[str | int, ...]:
    """The part of a problem's location that is there to be seen, so that it has a line."""
    found: list[str | int] = []
    location = detail["loc"] or ((detail.get("ctx") or {}).get("key"),)
    for part in location:
        is_there = (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        )
        if is_there and part is not None:
            found.append(part)
            value = value[part]
    return tuple(found)


def refuse_twice(names: Iterable[tuple[object, str | None]], what: str) -> None:
    """Refuses a name that was given to two.

    Args:
        names: place and name of each; None where there is none.
        what: what has the names.

    Raises:
        InputError: a name stands twice.
    """
    places, problems = dict[str, object](), Problems()
    for where, name in names:
        if name is not None:
            if name in places:
                text = f"{where}: id: {shown(name)} is the id of another {what}, at {places[name]}"
                problems.add(InputError(text, hint=f"give each {what} its own id"))
            places.setdefault(name, where)
    problems.raise_found()


def nearest(word: str, known: list[str]) -> str:
    """A hint: what was probably meant, else what there is.

    >>> nearest("is_jsn", ["is_json", "is_sql"])
    "did you mean 'is_json'?"
    """
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    some = ", ".join(known[:SHOWN_NAMES]) + (", …" if len(known) > SHOWN_NAMES else "")
    return f"there are: {some}" if known else "there are none"
