"""Translates a promptfoo configuration into a bench."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final

from pydantic import ValidationError

from producer.convert.nunjucks import Variables, is_nunjucks, to_jinja
from producer.convert.promptfoo.checks import Check, Context, PerCase, to_check
from producer.convert.promptfoo.models import model_name
from producer.convert.promptfoo.prompts import to_prompt
from producer.convert.promptfoo.reading import read_suite
from producer.convert.promptfoo.suite import Assertion, Suite, Test
from producer.convert.report import Conversion, ForeignFile, Left
from producer.load.problems import MOST_CASES, Place
from producer.load.problems import Path as DocumentPath
from shared.contracts.case_config import BenchConfig, CaseEntry, RunSettings
from shared.contracts.prompts import Prompt
from shared.errors import WrongInput
from shared.templates.template_rendering import render

_PLACEHOLDER: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ROUNDS: Final = 5
"""How often variables that name variables are filled in."""
ECHO: Final = "echo"


def convert(file: ForeignFile) -> Conversion:
    """Translates a configuration.

    Raises:
        InputError: it, or a file that it names, is broken, missing or outside of its folder.
    """
    suite, left = read_suite(file)
    return _Translation(suite, left).conversion(file)


@dataclass(frozen=True, slots=True)
class _Combination:
    """One test with one value for each of its variables."""

    test: Test
    vars: Mapping[str, Any]
    """As templates have them: defaults included, variables in variables filled in."""
    own: Mapping[str, Any]
    """Those that are not the bench's."""


@dataclass(slots=True)
class _Translation:
    """Translates one configuration."""

    suite: Suite
    left: list[Left]
    comments: dict[DocumentPath, tuple[str, ...]] = field(default_factory=dict)

    def leave(self, place: Place, what: str, reason: str, at: DocumentPath = ()) -> None:
        """Lists something that benches do not have, once."""
        if (found := Left(place, what, reason, at)) not in self.left:
            self.left.append(found)

    def conversion(self, file: ForeignFile) -> Conversion:
        """Translates all."""
        suite = self.suite
        models = self._models()
        combinations = [each for test in suite.tests for each in self._combinations(test)]
        variables = Variables([each.vars for each in combinations])
        prompts = self._prompts(variables)
        defaults = self._default_checks(variables)
        cases = [self._case(each, at, is_whole=defaults is None) for at, each in enumerate(combinations)]
        given: dict[str, Any] = {"name": self._name(file), "models": models, "prompts": prompts}
        given |= (
            {"description": suite.description}
            if suite.description and suite.description != given["name"]
            else {}
        )
        given |= {"vars": self._bench_vars()} if self._bench_vars() else {}
        given |= {"default_checks": defaults} if defaults else {}
        given |= {"config": RunSettings(**self._settings())} if self._settings() else {}
        bench = BenchConfig(**given, test_cases=[each for each in cases if each is not None])
        return Conversion(bench, self.left, self.comments)

    def _name(self, file: ForeignFile) -> str:
        """What the bench is called."""
        description = (self.suite.description or "").strip()
        if description and "\n" not in description and len(description) <= 80:  # noqa: PLR2004 - a name fits on a line
            return description
        folder = file.path.resolve().parent.name
        return folder if file.path.stem.startswith("promptfooconfig") and folder else file.path.stem

    def _settings(self) -> dict[str, Any]:
        """How it is run."""
        options = self.suite.options
        settings = dict[str, Any]()
        if (repeat := options.get("repeat")) and repeat != 1:
            settings["repeat"] = int(repeat)
        if concurrency := options.get("maxConcurrency"):
            settings["concurrency"] = min(int(concurrency), 100)
        if options.get("cache") is False:
            settings["cache"] = False
        return settings

    def _models(self) -> list[str]:
        """The models."""
        models = list[str]()
        for provider in self.suite.providers:
            name = model_name(provider.id)
            if name is None:
                self.leave(
                    provider.place, f"provider {provider.id}", "it is no model that is called by a name"
                )
            elif name not in models:
                models.append(name)
        if not models:
            models.append(ECHO)
            self.comments["models",] = ("none of the providers has a counterpart: name a model here",)
        return models

    def _prompts(self, variables: Variables) -> list[Prompt]:
        """The prompts."""
        prompts = list[Prompt]()
        for each in self.suite.prompts:
            try:
                prompts.append(to_prompt(each, variables, {prompt.id or "" for prompt in prompts}))
            except WrongInput as error:
                self.leave(each.place, f"prompt {each.label or each.raw}", error.args[0])
        if not prompts:
            prompts.append(Prompt(id="empty", user="-"))
            self.comments["prompts",] = ("none of the prompts has a counterpart: write one here",)
        return prompts

    def _bench_vars(self) -> dict[str, Any]:
        """Variables that all cases have alike."""
        values = self.suite.default.vars
        return {} if any(map(_is_several, values.values())) or _names_variables(values) else dict(values)

    def _combinations(self, test: Test) -> list[_Combination]:
        """The cases of a test: one for each combination of its lists."""
        merged = {**self.suite.default.vars, **test.vars}
        options = {**self.suite.default.options, **test.options}
        several = (
            {} if options.get("disableVarExpansion") else {k: v for k, v in merged.items() if _is_several(v)}
        )
        if not several:
            return [self._combined(test, merged)]
        choices = product(*several.values())
        found = list[_Combination]()
        for chosen in choices:
            found.append(self._combined(test, {**merged, **dict(zip(several, chosen, strict=True))}))
            if len(found) > MOST_CASES:
                raise test.place.error(
                    f"more than {MOST_CASES:,} combinations of variables", "write fewer values"
                )
        return found

    def _combined(self, test: Test, values: Mapping[str, Any]) -> _Combination:
        """One case, with variables in variables filled in."""
        filled = self._filled(test, values)
        shared = self._bench_vars()
        own = {key: value for key, value in filled.items() if key not in shared or shared[key] != value}
        return _Combination(test, filled, own)

    def _filled(self, test: Test, written: Mapping[str, Any]) -> dict[str, Any]:
        """Fills in variables that stand in variables."""
        values = {
            key: each.removesuffix("\n") if isinstance(each, str) else each for key, each in written.items()
        }
        if not _names_variables(values):
            return values
        for _ in range(_ROUNDS):
            for key, value in values.items():
                found = _PLACEHOLDER.search(value) if isinstance(value, str) else None
                if found and found[1] in values:
                    values[key] = value.replace(found[0], _printed(values[found[1]]), 1)
        variables = Variables([values])
        for key, value in values.items():
            if isinstance(value, str) and is_nunjucks(value):
                try:
                    values[key] = render(to_jinja(value, variables), values)
                except WrongInput as error:
                    self.leave(test.place.at("vars", key), f"variable {key}", error.args[0])
        return values

    def _default_checks(self, variables: Variables) -> list[Check] | None:
        """The checks of all cases; None if they have to be made for each of them."""
        default = self.suite.default
        context = self._context(default, variables, None)
        try:
            found = [check for each in default.assertions if (check := to_check(each, context))]
        except PerCase:
            return None
        self._note(context)
        return found

    def _context(self, test: Test, variables: Variables, values: Mapping[str, Any] | None) -> Context:
        options = {**self.suite.default.options, **test.options}
        return Context(variables, values, None, None, options.get("rubricPrompt"))

    def _note(self, context: Context, at: DocumentPath = ()) -> None:
        for assertion, what, reason in context.left:
            self.leave(assertion.place, what, reason, at)

    def _case(self, case: _Combination, at: int, *, is_whole: bool) -> CaseEntry | None:
        """One case; a whole one has the checks of all cases among its own."""
        test, default = case.test, self.suite.default
        context = self._context(test, Variables([case.vars]), case.vars)
        is_without = bool(test.options.get("disableDefaultAsserts"))
        assertions: list[Assertion] = list(default.assertions) if is_whole and not is_without else []
        checks = [check for each in (*assertions, *test.assertions) if (check := to_check(each, context))]
        self._note(context, ("test_cases", at))
        threshold = default.threshold if test.threshold is None else test.threshold
        given: dict[str, Any] = {}
        given |= {"vars": dict(case.own)} if case.own else {}
        given |= (
            {"metadata": {**default.metadata, **test.metadata}} if default.metadata or test.metadata else {}
        )
        given |= {"default_checks": False} if is_without and default.assertions else {}
        given |= {"checks": checks} if checks else {}
        if threshold is not None and (checks or (not is_whole and default.assertions)):
            given["at_least"] = threshold
        if test.description:
            self.comments["test_cases", at] = (test.description,)
        try:
            return CaseEntry(**given)
        except ValidationError as error:
            self.leave(test.place, "test", error.errors()[0]["msg"])
            return None


def _is_several(value: Any) -> bool:
    """Whether a variable stands for several cases."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def _names_variables(values: Mapping[str, Any]) -> bool:
    return any(isinstance(value, str) and is_nunjucks(value) for value in values.values())


def _printed(value: Any) -> str:
    """A value as JavaScript prints it."""
    return render(to_jinja("{{ value }}", Variables([{"value": value}])), {"value": value})
