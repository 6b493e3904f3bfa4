"""Makes checks ready to travel: inlines schemas, renders templates, names models, verifies them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from producer.load.case_prompts import render
from producer.load.problems import Place, Problems, nearest
from producer.load.templates import TemplateProblem, is_template
from producer.text import shown
from shared.contracts.checks import Check

INNER: Final = ("all", "any", "not")
"""Checks whose arguments are checks."""
SCHEMA: Final = "json_schema"
HAVE_SCHEMAS: Final = frozenset({*INNER, SCHEMA, "tool_call", "tool_calls"})
"""Checks in which a schema can stand."""
MAX_CHECKS: Final = 200
"""Checks of a list."""
FUNCTION: Final = "python"
"""The check that calls a function of the validators file."""
EMBEDDING: Final = "similar"
RUBRIC: Final = "rubric"
MODEL: Final = "model"
PANEL: Final = "models"

ReadSchema = Callable[[Place, str], Any]
"""Reads and compiles the schema that stands at a place."""


@dataclass(frozen=True, slots=True)
class CheckModels:
    """Models of checks that name none."""

    embedding: str | None = None
    """Of `similar`."""
    judges: Sequence[str] = ()
    """Of `rubric`."""


class _Written(NamedTuple):
    """A check as it is written, which is kept so that no other object gets its identity."""

    raw: Any
    text: str
    """As JSON."""


@dataclass(slots=True)
class CheckReader:
    """Reads the checks of all cases of a bench.

    Args:
        models: those of checks that name none.
        functions: names in the validators file, with the parameters of those that cannot be called; None:
            there is none.
        read_schema: reads the file of a schema.
    """

    models: CheckModels
    functions: Mapping[str, str | None] | None
    read_schema: ReadSchema
    _constant: dict[str, Check] = field(default_factory=dict)
    _read_before: dict[int, "_Written"] = field(default_factory=dict)

    def read(self, raw: Sequence[Any], place: Place, values: Mapping[str, Any]) -> tuple[Check, ...]:
        """Reads a list of checks; those without templates are read once for all cases.

        Args:
            raw: as it is written.
            place: where the list stands.
            values: the variables of the case.

        Raises:
            InputError: one of them breaks the contract.
        """
        problems = Problems()
        read = [problems.attempt(partial(self._read, each, place, at, values)) for at, each in enumerate(raw)]
        problems.raise_found()
        found = tuple(check for check in read if check is not None)
        if len(found) > MAX_CHECKS:
            raise place.error(
                f"{len(found)} checks, at most {MAX_CHECKS} are allowed", "combine some of them"
            )
        return found

    def _read(self, raw: Any, place: Place, at: int, values: Mapping[str, Any]) -> Check:
        """Reads the check at a position of a list."""
        known = self._read_before.get(id(raw))
        written = known.text if known is not None else json.dumps(raw)
        if written in self._constant:
            return self._constant[written]
        check = self._parsed(raw, place.at(at), values)
        if not is_template(written):
            self._constant[written] = check
        if known is None and len(self._read_before) < MAX_CHECKS:
            self._read_before[id(raw)] = _Written(raw, written)
        return check

    def _parsed(self, raw: Any, place: Place, values: Mapping[str, Any]) -> Check:
        """Reads one check with the variables of a case."""
        from worker.validation.checks import (  # noqa: PLC0415 - start-up: only benches with checks need it
            CheckProblem,
            parse_checks,
            render_checks,
        )

        def rendered(text: str, path: Sequence[str | int]) -> str:
            try:
                return render(text, values)
            except TemplateProblem as problem:
                raise place.at(*path[1:]).error(problem.what, problem.hint) from None

        try:
            [check] = parse_checks(render_checks([self._inlined(raw, place)], rendered))
        except CheckProblem as problem:
            raise place.at(*problem.path[1:]).error(problem.what, problem.hint) from None
        check = self._with_model(check)
        self._verify(check, place)
        return as_written(check, raw)

    def _inlined(self, raw: Any, place: Place) -> Any:
        """Puts schemas in the place of their files' names."""
        if not isinstance(raw, dict) or not raw.keys() & HAVE_SCHEMAS:
            return raw
        inlined = dict(raw)
        if isinstance(raw.get(SCHEMA), str):
            inlined[SCHEMA] = self.read_schema(place.at(SCHEMA), raw[SCHEMA])
        for name in INNER:
            inner = raw.get(name)
            if isinstance(inner, list):
                inlined[name] = [self._inlined(each, place.at(name, at)) for at, each in enumerate(inner)]
            elif isinstance(inner, dict):
                inlined[name] = self._inlined(inner, place.at(name))
        for call, at in _tool_calls(raw):
            if isinstance(call.get("arguments"), dict):
                arguments = self._inlined(call["arguments"], place.at(*at, "arguments"))
                inlined = _replaced(inlined, (*at, "arguments"), arguments)
        return inlined

    def _with_model(self, check: Check) -> Check:
        """Adds the default model to a check that names none."""
        options = dict(check.options)
        if check.check == EMBEDDING and MODEL not in options and self.models.embedding:
            options[MODEL] = self.models.embedding
        if check.check == RUBRIC and not {MODEL, PANEL} & options.keys() and self.models.judges:
            judges = list(self.models.judges)
            options |= {MODEL: judges[0]} if len(judges) == 1 else {PANEL: judges}
        inner = tuple(self._with_model(each) for each in check.checks)
        if options == check.options and inner == check.checks:
            return check
        return msgspec.structs.replace(check, options=options, checks=inner)

    def _verify(self, check: Check, place: Place) -> None:
        """Refuses functions that do not exist, and paid checks without a model."""
        for each in walk([check]):
            if each.check == FUNCTION:
                self._verify_function(str(each.argument), place)
            if each.check in (EMBEDDING, RUBRIC) and not models_of([each]):
                key = "embedding_model" if each.check == EMBEDDING else "judge_model"
                what = f"{each.check} asks a model, and none is named"
                raise place.error(what, f"add model to the check, or {key} to config")

    def _verify_function(self, name: str, place: Place) -> None:
        """Refuses a function that the validators file does not have."""
        if self.functions is None:
            what = f"{FUNCTION}: {shown(name)} is asked for, and there is no validators_file"
            raise place.error(what, 'add validators_file: "validators.py"')
        if name not in self.functions:
            what = f"{FUNCTION}: the validators file has no function {shown(name)}"
            raise place.error(what, nearest(name, sorted(self.functions)))
        parameters = self.functions[name]
        if parameters is not None:
            what = f"{FUNCTION}: {name}({parameters}) cannot be called with an output and a context"
            raise place.error(what, f"write def {name}(output, context):")


def as_written(check: Check, raw: Any) -> Check:
    """Names a check, and those inside of it, by their templates.

    >>> as_written(Check("contains", "Paris"), {"contains": "{{ city }}"}).label
    'contains: {{ city }}'
    >>> inner = Check("not", checks=(Check("contains", "Paris"),))
    >>> as_written(inner, {"not": {"contains": "{{ city }}"}}).label
    'not contains: {{ city }}'
    """
    if not isinstance(raw, dict) or not is_template(json.dumps(raw)):
        return check
    value = raw[check.check]
    if check.check in INNER:
        written = value if isinstance(value, list) else [value]
        inner = tuple(as_written(each, of) for each, of in zip(check.checks, written, strict=True))
        named = msgspec.structs.replace(check, checks=inner)
    elif check.checks:  # of the arguments of tool calls, which are in no name
        return check
    else:
        inner, named = check.checks, msgspec.structs.replace(check, argument=value)
    template, rendered = (msgspec.structs.replace(each, name="").rendered for each in (named, check))
    return check if template == rendered else msgspec.structs.replace(check, checks=inner, written=template)


def walk(checks: Sequence[Check]) -> Iterator[Check]:
    """Yields checks with all that are inside of them.

    >>> [check.check for check in walk([Check("not", checks=(Check("refusal"),)), Check("json")])]
    ['not', 'refusal', 'json']
    """
    for check in checks:
        yield check
        yield from walk(check.checks)


def models_of(checks: Sequence[Check]) -> list[str]:
    """Names the models that checks ask, each once.

    >>> models_of([Check("rubric", options={"model": "a"}), Check("rubric", options={"models": ["b", "a"]})])
    ['a', 'b']
    """
    found = list[str]()
    for check in checks:
        if check.options:
            for named in (check.options.get(MODEL), check.options.get(PANEL)):
                found += [named] if isinstance(named, str) else named or []
        if check.checks:
            found += models_of(check.checks)
    return list(dict.fromkeys(found)) if found else found


def _tool_calls(raw: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], tuple[str | int, ...]]]:
    """Yields the tool calls that a check describes, with their places."""
    if isinstance(raw.get("tool_call"), dict):
        yield raw["tool_call"], ("tool_call",)
    calls = raw.get("tool_calls")
    for at, call in enumerate(calls if isinstance(calls, list) else []):
        if isinstance(call, dict):
            yield call, ("tool_calls", at)


def _replaced(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of a document with another value at a place."""
    if not path:
        return value
    first, *rest = path
    if isinstance(document, list):
        return [
            _replaced(each, tuple(rest), value) if at == first else each for at, each in enumerate(document)
        ]
    return {**document, first: _replaced(document[first], tuple(rest), value)}
