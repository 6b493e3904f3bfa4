"""Makes checks ready to travel: inlines schemas, renders templates, names models, verifies them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from producer.load.problems import Place, Problems, nearest
from producer.text import shown
from shared.contracts.checks import Check, Snippet, Transform
from shared.contracts.transform_config import script_of, with_source
from shared.errors import WrongInput
from shared.plugins import plugin_key
from shared.templates.template_rendering import render
from shared.templates.template_texts import is_template

PLUGIN: Final = "plugin."
"""Beginning of the names of checks that packages have registered."""
MAX_CHECKS: Final = 200
"""Checks of a list."""

ReadSchema = Callable[[Place, str], Any]
"""Reads and compiles the schema that stands at a place."""
ReadScript = Callable[[Place, str], str]
"""Reads the script that is named at a place."""


@dataclass(frozen=True, slots=True)
class CheckModels:
    """Models of checks that name none."""

    embedding: str | None = None
    """Of those that ask for embeddings."""
    judges: Sequence[str] = ()
    """Of those that ask judges."""


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
        read_script: reads the file of a script.
    """

    models: CheckModels
    functions: Mapping[str, str | None] | None
    read_schema: ReadSchema
    read_script: ReadScript
    code: frozenset[str] = frozenset()
    """Models that are code with the role of a check."""
    scripts: dict[Snippet, Place] = field(default_factory=dict)
    """The scripts that were read, each with its first place."""
    needs_stream: bool = False
    """Whether a check that was read looks at when pieces of an answer came."""
    compares: bool = False
    """Whether a check that was read compares the answers of models and prompts."""
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
        from worker.validation import checks  # noqa: PLC0415 - start-up: only benches with checks need it

        def inlined(kind: checks.CheckKind, value: Any, path: Sequence[str | int]) -> Any:
            is_file = kind.may_be_file and isinstance(value, str)
            return self.read_schema(place.at(*path), value) if is_file else value

        def with_text(kind: checks.CheckKind, value: Any, path: Sequence[str | int]) -> Any:
            read = partial(self.read_script, place.at(*path[1:], "file"))
            return with_source(value, read) if kind.is_script else value

        def rendered(text: str, path: Sequence[str | int]) -> str:
            try:
                return render(text, values)
            except WrongInput as problem:
                raise place.at(*path[1:]).error(problem.what, problem.hint) from None

        try:
            [ready] = checks.render_checks([checks.map_check(raw, inlined)], rendered)
            [check] = checks.parse_checks([checks.map_check(ready, with_text, (0,))])  # a file is no template
            check = checks.with_models(check, self.models.embedding, self.models.judges)
            check = checks.with_transforms(check, lambda written, key: self.transform(written, place.at(key)))
        except WrongInput as problem:
            raise place.at(*problem.path[1:]).error(problem.what, problem.hint) from None
        for each in walk([check]):
            kind = checks.CHECK_KINDS[each.check]
            self.needs_stream = self.needs_stream or kind.needs_stream
            self.compares = self.compares or kind.compares
            if kind.is_script:
                self.scripts.setdefault(script_of(each.argument), place)
            if kind.calls_function:
                self._verify_function(each.check, str(each.argument), place)
            self._verify_asked(each, place, asks_code=kind.asks_code)
        return checks.as_written(check, raw) if is_template(json.dumps(raw)) else check

    def _verify_asked(self, check: Check, place: Place, *, asks_code: bool) -> None:
        """Refuses a judge where code says whether answers pass, and such code as a judge."""
        for model in check.models:
            if (model in self.code) is not asks_code:
                is_what = "is no code with role: check" if asks_code else "has role: check, and is no judge"
                how = f"model_configs: {{{shown(model)}: {{python: checks.py, role: check}}}}"
                raise place.error(f"{check.check}: {shown(model)} {is_what}", f"write verdict, and {how}")

    def transform(self, transform: Transform, place: Place) -> Transform:
        """Makes a transform ready to travel: its file is read, its function and its code are verified.

        Raises:
            InputError: it cannot be run.
        """
        if transform.python is not None:
            self._verify_function("transform", transform.python, place.at("python"))
        if transform.javascript is None:
            return transform
        place = place.at("javascript")
        try:
            code = with_source(transform.javascript, partial(self.read_script, place.at("file")))
        except WrongInput as problem:
            raise place.error(problem.what, problem.hint) from None
        self.scripts.setdefault(script_of(code), place)
        return Transform(javascript=code)

    def _verify_function(self, kind: str, name: str, place: Place) -> None:
        """Refuses a function that the validators file does not have."""
        if self.functions is None:
            what = f"{kind}: {shown(name)} is asked for, and there is no validators_file"
            raise place.error(what, 'add validators_file: "validators.py"')
        if name not in self.functions:
            what = f"{kind}: the validators file has no function {shown(name)}"
            raise place.error(what, nearest(name, sorted(self.functions)))
        parameters = self.functions[name]
        if parameters is not None:
            what = f"{kind}: {name}({parameters}) cannot be called with an output and a context"
            raise place.error(what, f"write def {name}(output, context):")


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
    return list(dict.fromkeys(model for check in walk(checks) for model in check.models))


def plugins_of(checks: Sequence[Check]) -> set[str]:
    """Names the plug-ins that checks need.

    >>> plugins_of([Check("not", checks=(Check("plugin.polite"),)), Check("json")])
    {'checks:polite'}
    """
    kinds = (each.check for each in walk(checks))
    return {plugin_key("checks", kind.removeprefix(PLUGIN)) for kind in kinds if kind.startswith(PLUGIN)}


_NAMES_MODEL: Final = frozenset({"model", "judge_model", "embedding_model"})
"""Keys that name a model."""
_NAME_MODELS: Final = (("models",), ("judge_models",))
"""Keys that name several."""


def places_of_model(raw: Any, place: Place, model: str) -> Iterator[Place]:
    """Yields the places inside a document where a model is named."""
    members = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in members:
        inside = place.at(key)
        if value == model and (key in _NAMES_MODEL or place.path[-1:] in _NAME_MODELS):
            yield inside
        else:
            yield from places_of_model(value, inside, model)


def labels_of(checks: Sequence[Check]) -> list[str]:
    """Names what checks are called, each name once."""
    if not checks:
        return []
    from worker.validation.checks import label  # noqa: PLC0415 - as above

    return list(dict.fromkeys(map(label, checks)))
