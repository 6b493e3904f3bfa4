"""Reads checks as people write them: a name with an argument and options, or a bare word."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from shared.contracts.case_vocabulary import pointer, why_not_json
from shared.contracts.checks import MAX_NAME_CHARS, Check
from shared.errors import ConfigError
from worker.validation.checks.kind import CheckKind
from worker.validation.checks.table import CHECK_KINDS
from worker.validation.display import show
from worker.validation.json_path import compile_path

Path = tuple[str | int, ...]
Render = Callable[[str, Path], str]
"""Renders a template that stands at a path of the checks."""

MAX_CHECKS: Final = 200
"""Checks of one case, inner ones included."""
MAX_PATH: Final = 30
"""Steps to the innermost check: `all`, `any` and `not` may stand in each other."""
NO_CALL: Final = "none"
"""The argument of `tool_call` that asks for an answer without calls."""
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
}
"""What the hints of errors show."""


class CheckProblem(ValueError):  # noqa: N818 - it is what is wrong with a file, and read as that
    """Something is wrong with a check.

    Args:
        path: where, from the list of checks on, such as `(0, "any", 1)`.
        what: what is wrong.
        hint: how to mend it; may be empty.
    """

    def __init__(self, path: Path, what: str, hint: str = "") -> None:
        super().__init__(f"checks{pointer(path)}: {what}" + (f" ({hint})" if hint else ""))
        self.path, self.what, self.hint = path, what, hint


def parse_checks(raw: Any) -> tuple[Check, ...]:
    """Reads a list of checks.

    Args:
        raw: as YAML or JSON has it; templates are rendered, schemas inlined.

    Raises:
        CheckProblem: there is something wrong with one of them.

    >>> [check] = parse_checks([{"contains": "Paris", "ignore_case": True, "weight": 2}])
    >>> check.check, check.argument, check.weight, check.options
    ('contains', 'Paris', 2.0, {'ignore_case': True})
    >>> parse_checks([{"contain": "Paris"}])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    worker...CheckProblem: checks/0: unknown check 'contain' (did you mean 'contains'?)
    """
    if not isinstance(raw, list):
        raise CheckProblem((), f"expected a list of checks, found {show(raw)}", "write `- contains: Paris`")
    problem = why_not_json(raw)
    if problem is not None:
        raise CheckProblem((), problem)
    return _Parser().checks(raw, ())


def render_checks(raw: Any, render: Render) -> Any:
    """Renders the templates in the arguments of checks.

    Args:
        raw: a list of checks as YAML has it; what is no list of checks is returned as it is.
        render: renders one text; receives it with its path.

    >>> render_checks([{"contains": "{{ city }}"}, {"regex": "{{ city }}"}], lambda text, path: "Paris")
    [{'contains': 'Paris'}, {'regex': '{{ city }}'}]
    """
    return (
        [_render_check(entry, render, (at,)) for at, entry in enumerate(raw)]
        if isinstance(raw, list)
        else raw
    )


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
            raise CheckProblem(path[:MAX_PATH], "checks stand too deep in each other")
        if self._count > MAX_CHECKS:
            raise CheckProblem(path, f"more than {MAX_CHECKS} checks")
        if isinstance(entry, str):
            return self._bare_word(entry, path)
        if not isinstance(entry, dict):
            what = f"a check is a name with an argument, found {show(entry)}"
            raise CheckProblem(path, what, "write `contains: Paris`")
        kind = _kind_of(entry, path)
        given = {key: value for key, value in entry.items() if key != kind.name}
        options = {key: _option(kind, key, value, path) for key, value in given.items()}
        if {"model", "models"} <= options.keys():
            what = "model and models both stand here"
            raise CheckProblem((*path, "models"), what, "keep models for a panel, or model for one judge")
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
            raise CheckProblem(path, f"{word} needs an argument", f"write {kind.example}")
        return Check(word)

    def _argument(
        self, kind: CheckKind, value: Any, path: Path, *, is_inner: bool
    ) -> tuple[Any, tuple[Check, ...]]:
        """Reads what a check compares with: an argument, or checks."""
        match kind.name:
            case "all" | "any":
                if not isinstance(value, list) or not value:
                    what = f"{kind.name} takes a list of checks, found {show(value)}"
                    raise CheckProblem(path, what, f"write {kind.example}")
                return None, self.checks(value, path, is_inner=is_inner)
            case "not":
                return None, (self.check(value, path, is_inner=is_inner),)
            case "tool_call":
                return self._tool_call(value, path)
            case "tool_calls":
                if not isinstance(value, list):
                    what = f"tool_calls takes a list of calls, found {show(value)}"
                    raise CheckProblem(path, what, f"write {kind.example}")
                calls = (
                    self._tool_call(each, (*path, at), may_be_none=False) for at, each in enumerate(value)
                )
                return None, tuple(Check("tool_call", name, checks=checks) for name, checks in calls)
            case _:
                return self._plain_argument(kind, value, path), ()

    def _plain_argument(self, kind: CheckKind, value: Any, path: Path) -> Any:
        """Reads an argument that is no check."""
        if kind.argument is not None:
            return _converted(kind.argument, value, path, f"write {kind.example}")
        if value is None or value is True:
            return None
        raise CheckProblem(path, f"{kind.name} takes no argument", f"write {kind.example}")

    def _tool_call(
        self, value: Any, path: Path, *, may_be_none: bool = True
    ) -> tuple[str | None, tuple[Check, ...]]:
        """Reads the name of a tool, with checks of its arguments perhaps; `none` asks for no call."""
        if value == NO_CALL and may_be_none:
            return None, ()
        call = {"name": value} if isinstance(value, str) else value
        name = call.get("name") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(name, str) or not name:
            what = f"a call has the name of a tool, found {show(value)}"
            raise CheckProblem(path, what, f"write {CHECK_KINDS['tool_call'].example}")
        unknown = next((key for key in call if key not in ("name", "arguments")), None)
        if unknown is not None:
            raise CheckProblem(
                (*path, unknown), f"a call has no {unknown!r}", "it has `name` and `arguments`"
            )
        if "arguments" not in call:
            return name, ()
        place, checks = (*path, "arguments"), call["arguments"]
        if isinstance(checks, list):
            return name, self.checks(checks, place)
        if isinstance(checks, dict) and not checks.keys() & CHECK_KINDS.keys():
            what = f"arguments are checked by a check, found {show(checks)}"
            raise CheckProblem(place, what, "write `arguments: {json_equals: {…}}`")
        return name, (self.check(checks, place),)


def _kind_of(entry: Mapping[str, Any], path: Path) -> CheckKind:
    """The kind of a check: exactly one of its keys is one."""
    found = [key for key in entry if key in CHECK_KINDS]
    if len(found) == 1:
        return CHECK_KINDS[found[0]]
    if found:
        what = f"one check is one name, found {' and '.join(found)}"
        raise CheckProblem(path, what, f"write them apart: {'; '.join(f'- {key}: …' for key in found)}")
    unknown = next((key for key in entry if key not in COMMON_OPTIONS), None)
    if unknown is None:
        what = f"only options, and nothing to check: {', '.join(entry)}" if entry else "nothing to check"
        raise CheckProblem(path, what, "add a check such as `contains: Paris`")
    raise _unknown(unknown, path)


def _unknown(name: str, path: Path) -> CheckProblem:
    """Refuses a name that is no check."""
    return CheckProblem(path, f"unknown check {name!r}", _nearest(name, list(CHECK_KINDS)))


def _option(kind: CheckKind, key: str, value: Any, path: Path) -> Any:
    """Reads one option."""
    options = {**kind.options, **COMMON_OPTIONS}
    if not kind.reads_text:
        del options["json_path"]
    wanted = options.get(key)
    if wanted is None:
        known = list(options)
        raise CheckProblem((*path, key), f"{kind.name} has no option {key!r}", _nearest(key, known))
    example = OPTION_EXAMPLES.get(key)
    return _converted(wanted, value, (*path, key), f"write `{key}: {example}`" if example else "")


def _with_threshold(kind: CheckKind, common: dict[str, Any], path: Path) -> dict[str, Any]:
    """Adds the default of `at_least`, or asks for one."""
    if not kind.is_scored or "at_least" in common:
        return common
    if kind.at_least is None:
        what = f"{kind.name} gives a score and needs at_least, from which it passes"
        raise CheckProblem(path, what, "add `at_least: 0.8`, or 0 to only measure")
    return {**common, "at_least": kind.at_least}


def _converted(wanted: Any, value: Any, path: Path, hint: str) -> Any:
    """A value of the type that is wanted."""
    try:
        return _adapter(wanted).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        message = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
        place = tuple(part for part in first["loc"] if isinstance(part, int) or part in _keys_at(value))
        raise CheckProblem((*path, *place), f"{message}, found {show(first['input'])}", hint) from None
    except ConfigError as error:
        raise CheckProblem(path, error.message, error.hint or hint) from None


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


def _render_check(entry: Any, render: Render, path: Path) -> Any:
    """Renders the argument of one check."""
    if not isinstance(entry, dict):
        return entry
    return {key: _render_argument(key, value, render, (*path, key)) for key, value in entry.items()}


def _render_argument(name: str, value: Any, render: Render, path: Path) -> Any:
    """Renders what a check compares with; options stay as they are."""
    kind = CHECK_KINDS.get(name)
    if kind is None or not kind.is_template:
        return value
    if name in ("all", "any") and isinstance(value, list):
        return [_render_check(each, render, (*path, at)) for at, each in enumerate(value)]
    if name == "not":
        return _render_check(value, render, path)
    if name == "tool_call":
        return _render_call(value, render, path)
    if name == "tool_calls" and isinstance(value, list):
        return [_render_call(each, render, (*path, at)) for at, each in enumerate(value)]
    return _rendered(value, render, path)


def _render_call(value: Any, render: Render, path: Path) -> Any:
    """Renders the checks of a call's arguments."""
    if not isinstance(value, dict) or "arguments" not in value:
        return value
    checks, place = value["arguments"], (*path, "arguments")
    if isinstance(checks, list):
        rendered: Any = [_render_check(each, render, (*place, at)) for at, each in enumerate(checks)]
    else:
        rendered = _render_check(checks, render, place)
    return {**value, "arguments": rendered}


def _rendered(value: Any, render: Render, path: Path) -> Any:
    """Renders all texts in a value."""
    if isinstance(value, str):
        return render(value, path)
    if isinstance(value, list):
        return [_rendered(inner, render, (*path, at)) for at, inner in enumerate(value)]
    if isinstance(value, dict):
        return {key: _rendered(inner, render, (*path, key)) for key, inner in value.items()}
    return value
