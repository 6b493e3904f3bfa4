"""Reads checks as people write them: a name with an argument and options, or a bare word."""

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from shared.contracts.case_vocabulary import why_not_json
from shared.contracts.checks import MAX_NAME_CHARS, Check
from shared.contracts.transform_config import TransformConfig
from shared.errors import ConfigError, WrongInput
from worker.validation.checks.graded import FROM_OUTPUT
from worker.validation.checks.kind import CheckKind, Held, Path
from worker.validation.checks.table import CHECK_KINDS
from worker.validation.display import show
from worker.validation.json_path import compile_path

Change: TypeAlias = Callable[[CheckKind, Any, Path], Any]
"""Changes the argument of a check that holds none; receives its kind and its path."""
Render: TypeAlias = Callable[[str, Path], str]
"""Renders a template that stands at a path of the checks."""

MAX_CHECKS: Final = 200
"""Checks of one case, inner ones included."""
MAX_PATH: Final = 30
"""Steps to the innermost check: `all`, `any` and `not` may stand in each other."""
SHOWN_NAMES: Final = 30


def _compiles(path: str) -> str:
    """Refuses what is no JSONPath."""
    compile_path(path)
    return path


COMMON_OPTIONS: Final[Mapping[str, Any]] = {
    "at_least": Annotated[float, Field(strict=True, ge=0, le=1)],
    "weight": Annotated[float, Field(strict=True, ge=0, le=1_000_000)],
    "name": Annotated[str, Field(strict=True, min_length=1, max_length=MAX_NAME_CHARS)],
    "json_path": Annotated[str, Field(strict=True), AfterValidator(_compiles)],
    "transform": Annotated[TransformConfig, AfterValidator(attrgetter("stored"))],
}
"""Options that every check has."""
OPTION_EXAMPLES: Final[Mapping[str, str]] = {
    "at_least": "0.8",
    "weight": "2",
    "name": "polite",
    "ignore_case": "true",
    "normalize": "true",
    "tolerance": "5%",
    "unit": "words",
    "order": "any",
    "model": "openai/gpt-4o-mini",
    "models": "[openai/gpt-4o, openai/gpt-4o-mini]",
    "prompt": "'Is this polite? {{ output }}'",
    "choices": "{good: 1, fair: 0.5, bad: 0}",
    "scores": "{superset: 0.6}",
    "config": "{limit: 100}",
    "transform": "{json_pointer: /answer}",
}
"""What the hints of errors show."""


def parse_checks(raw: Any) -> tuple[Check, ...]:
    """Reads a list of checks.

    Args:
        raw: as YAML or JSON has it; templates are rendered, schemas inlined.

    Raises:
        WrongInput: there is something wrong with one of them.

    >>> [check] = parse_checks([{"contains": "Paris", "ignore_case": True, "weight": 2}])
    >>> check.check, check.argument, check.weight, check.options
    ('contains', 'Paris', 2.0, {'ignore_case': True})
    >>> parse_checks([{"contain": "Paris"}])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    shared.errors.WrongInput: /0: unknown check 'contain' (did you mean 'contains'?)
    """
    if not isinstance(raw, list):
        raise WrongInput(f"expected a list of checks, found {show(raw)}", "write `- contains: Paris`")
    problem = why_not_json(raw)
    if problem is not None:
        raise WrongInput(problem)
    return _Parser().checks(raw, ())


def render_checks(raw: Any, render: Render) -> Any:
    """Renders the templates in the arguments of checks.

    Args:
        raw: a list of checks as YAML has it; what is no list of checks is returned as it is.
        render: renders one text; receives it with its path.

    >>> render_checks([{"contains": "{{ city }}"}, {"regex": "{{ city }}"}], lambda text, path: "Paris")
    [{'contains': 'Paris'}, {'regex': '{{ city }}'}]
    """

    def change(kind: CheckKind, value: Any, path: Path) -> Any:
        kept = () if kind.transform is None else FROM_OUTPUT
        return _rendered(value, render, path, kept) if kind.is_template else value

    if not isinstance(raw, list):
        return raw
    return [map_check(entry, change, (at,)) for at, entry in enumerate(raw)]


def map_check(entry: Any, change: Change, path: Path = ()) -> Any:
    """Changes the arguments of a check as it is written, and of those that it holds, however deep.

    Args:
        entry: a check as YAML has it; what the parser refuses is returned unchanged.
        change: makes the new argument of a check that holds none.
        path: where the check stands.

    >>> map_check({"not": {"contains": "a"}}, lambda kind, value, path: [kind.name, value, path])
    {'not': {'contains': ['contains', 'a', ('not', 'contains')]}}
    """
    if not isinstance(entry, dict) or len(path) > MAX_PATH:
        return entry
    return {
        key: _mapped(CHECK_KINDS[key], value, change, (*path, key)) if key in CHECK_KINDS else value
        for key, value in entry.items()
    }


def _mapped(kind: CheckKind, value: Any, change: Change, path: Path) -> Any:
    """Changes an argument, or those of the checks in it."""
    if kind.nested is None:
        return change(kind, value, path)
    try:
        _, checks = kind.nested.split(value)
    except WrongInput:
        return value
    for each in checks:
        place = (*path, *each.path)
        if each.of:
            mapped = _mapped(CHECK_KINDS[each.of], each.raw, change, place)
        else:
            mapped = map_check(each.raw, change, place)
        if mapped is not each.raw:
            value = _replaced(value, each.path, mapped)
    return value


def _replaced(document: Any, path: Path, value: Any) -> Any:
    """A copy of a document with another value at a place."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    copy = document.copy()
    copy[first] = _replaced(document[first], rest, value)
    return copy


class _Parser:
    """Reads the checks of one case, and counts them."""

    def __init__(self) -> None:
        self._count = 0

    def checks(self, raw: list[Any], path: Path, *, is_inner: bool = False) -> tuple[Check, ...]:
        """Reads some checks."""
        return tuple(self.check(entry, (*path, at), is_inner=is_inner) for at, entry in enumerate(raw))

    def check(self, entry: Any, path: Path, *, is_inner: bool = False) -> Check:
        """Reads one check; an inner one of a combination with `at_least` needs none of its own."""
        self._count += 1
        if len(path) > MAX_PATH:
            raise WrongInput("checks stand too deep in each other", path=path[:MAX_PATH])
        if self._count > MAX_CHECKS:
            raise WrongInput(f"more than {MAX_CHECKS} checks", path=path)
        if isinstance(entry, str):
            return self._bare_word(entry, path)
        if not isinstance(entry, dict):
            what = f"a check is a name with an argument, found {show(entry)}"
            raise WrongInput(what, "write `contains: Paris`", path=path)
        kind = _kind_of(entry, path)
        given = {key: value for key, value in entry.items() if key != kind.name}
        options = {key: _option(kind, key, value, path) for key, value in given.items()}
        if {"model", "models"} <= options.keys():
            what = "model and models both stand here"
            raise WrongInput(what, "keep models for a panel, or model for one judge", path=(*path, "models"))
        common = {key: options.pop(key) for key in COMMON_OPTIONS if key in options}
        if not is_inner:
            common = _with_threshold(kind, common, path)
        is_scored_as_whole = is_inner or "at_least" in common
        argument, inner = self._argument(
            kind, entry[kind.name], (*path, kind.name), is_inner=is_scored_as_whole
        )
        return Check(kind.name, argument, **common, options=options, checks=inner)

    def _bare_word(self, word: str, path: Path) -> Check:
        """Reads a check without an argument."""
        kind = CHECK_KINDS.get(word)
        if kind is None:
            raise _unknown(word, path)
        if not kind.takes_bare_word:
            raise WrongInput(f"{word} needs an argument", f"write {kind.example}", path=path)
        return Check(word, **_with_threshold(kind, {}, path))

    def _argument(
        self, kind: CheckKind, value: Any, path: Path, *, is_inner: bool
    ) -> tuple[Any, tuple[Check, ...]]:
        """Reads what a check compares with: an argument, or checks."""
        if kind.nested is None:
            return self._plain_argument(kind, value, path), ()
        try:
            argument, held = kind.nested.split(value)
        except WrongInput as problem:
            hint = problem.hint or f"write {kind.example}"
            raise WrongInput(problem.what, hint, path=(*path, *problem.path)) from None
        is_inner = is_inner and kind.nested.has_own_scores
        return argument, tuple(self._held(each, (*path, *each.path), is_inner=is_inner) for each in held)

    def _held(self, held: Held, path: Path, *, is_inner: bool) -> Check:
        """Reads a check that stands in another."""
        if held.of:
            argument, checks = self._argument(CHECK_KINDS[held.of], held.raw, path, is_inner=False)
            return Check(held.of, argument, checks=checks)
        if held.unnamed and isinstance(held.raw, dict) and not held.raw.keys() & CHECK_KINDS.keys():
            raise WrongInput(held.unnamed.what, held.unnamed.hint, path=path)
        return self.check(held.raw, path, is_inner=is_inner)

    def _plain_argument(self, kind: CheckKind, value: Any, path: Path) -> Any:
        """Reads an argument that is no check."""
        if kind.argument is not None:
            return _converted(kind.argument, value, path, f"write {kind.example}")
        if value is None or value is True:
            return None
        raise WrongInput(f"{kind.name} takes no argument", f"write {kind.example}", path=path)


def _kind_of(entry: Mapping[str, Any], path: Path) -> CheckKind:
    """The kind of a check: exactly one of its keys is one."""
    found = [key for key in entry if key in CHECK_KINDS]
    if len(found) == 1:
        return CHECK_KINDS[found[0]]
    if found:
        what = f"one check is one name, found {' and '.join(found)}"
        raise WrongInput(what, f"write them apart: {'; '.join(f'- {key}: …' for key in found)}", path=path)
    unknown = next((key for key in entry if key not in COMMON_OPTIONS), None)
    if unknown is None:
        what = f"only options, and nothing to check: {', '.join(entry)}" if entry else "nothing to check"
        raise WrongInput(what, "add a check such as `contains: Paris`", path=path)
    raise _unknown(unknown, path)


def _unknown(name: str, path: Path) -> WrongInput:
    """Refuses a name that is no check."""
    return WrongInput(f"unknown check {name!r}", _nearest(name, list(CHECK_KINDS)), path=path)


def _option(kind: CheckKind, key: str, value: Any, path: Path) -> Any:
    """Reads one option."""
    options = {**kind.options, **COMMON_OPTIONS}
    if not kind.reads_text:
        del options["json_path"], options["transform"]
    wanted = options.get(key)
    if wanted is None:
        known = list(options)
        raise WrongInput(f"{kind.name} has no option {key!r}", _nearest(key, known), path=(*path, key))
    example = OPTION_EXAMPLES.get(key)
    return _converted(wanted, value, (*path, key), f"write `{key}: {example}`" if example else "")


def _with_threshold(kind: CheckKind, common: dict[str, Any], path: Path) -> dict[str, Any]:
    """Adds the default of `at_least`, or asks for one."""
    if not kind.is_scored or "at_least" in common:
        return common
    if kind.at_least is None:
        what = f"{kind.name} gives a score and needs at_least, from which it passes"
        raise WrongInput(what, "add `at_least: 0.8`, or 0 to only measure", path=path)
    return {**common, "at_least": kind.at_least}


def _converted(wanted: Any, value: Any, path: Path, hint: str) -> Any:
    """A value of the type that is wanted."""
    try:
        return _adapter(wanted).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        message = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        place = tuple(part for part in first["loc"] if isinstance(part, int) or part in _keys_at(value))
        raise WrongInput(f"{message}, found {show(first['input'])}", hint, path=(*path, *place)) from None
    except ConfigError as error:
        raise WrongInput(error.message, error.hint or hint, path=path) from None


def _keys_at(value: Any) -> list[str]:
    """The keys of a mapping; pydantic also names the types of a union in its places."""
    return list(value) if isinstance(value, dict) else []


@cache
def _adapter(wanted: Any) -> TypeAdapter[Any]:
    """What reads values of a type."""
    return TypeAdapter(wanted)


def _nearest(word: str, known: list[str]) -> str:
    """What was probably meant, else what there is."""
    close = get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known[:SHOWN_NAMES])}"


def _rendered(value: Any, render: Render, path: Path, kept: Collection[str] = ()) -> Any:
    """Renders all texts in a value, but for those under keys that are kept."""
    if isinstance(value, str):
        return render(value, path)
    if isinstance(value, list):
        return [_rendered(inner, render, (*path, at), kept) for at, inner in enumerate(value)]
    if isinstance(value, dict):
        return {
            key: inner if key in kept else _rendered(inner, render, (*path, key), kept)
            for key, inner in value.items()
        }
    return value
