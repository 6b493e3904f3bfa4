"""Translates a promptfoo configuration into a bench: models, prompts, cases with their checks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
from typing import Any, Final

from pydantic import ValidationError

from producer.convert.nunjucks import KnownVariables, is_nunjucks, to_jinja
from producer.convert.promptfoo.checks import (
    DEFAULT_GRADER,
    Check,
    CheckContext,
    PerCase,
    is_graded_by_default,
    to_check,
)
from producer.convert.promptfoo.functions import Functions, to_transform
from producer.convert.promptfoo.named_files import FILE
from producer.convert.promptfoo.prompt_templates import PromptWriter, late_messages, parsed_messages
from producer.convert.promptfoo.providers import to_model
from producer.convert.promptfoo.reading import GENERATOR, read_suite
from producer.convert.promptfoo.suite import Assertion, Provider, Suite, Test
from producer.convert.promptfoo.written import (
    WrittenModelConfig,
    WrittenRunOptions,
    WrittenTestOptions,
    first_problem,
    read,
    unknown,
)
from producer.convert.report import Conversion, ForeignFile, Left
from producer.load.problems import MOST_CASES, Place
from producer.load.problems import Path as DocumentPath
from producer.load.yaml_text import comments_above
from shared.contracts.case_config import BenchConfig, CaseEntry, ModelEntry, RunSettings
from shared.contracts.cases import MAX_ID_CHARS
from shared.contracts.prompts import Prompt
from shared.errors import WrongInput
from shared.templates.template_rendering import render

ECHO: Final = "echo"
PREFIX: Final = "prompt_prefix"
SUFFIX: Final = "prompt_suffix"
"""KnownVariables with what a test writes before and behind prompts."""
MOST_CONCURRENCY: Final = 100
_PLACEHOLDER: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ROUNDS: Final = 5
"""How often variables that name variables are filled in."""
_NAME_CHARS: Final = 80
_KEYS: Final[Mapping[str, DocumentPath]] = {
    "description": (),
    "providers": ("models",),
    "targets": ("models",),
    "prompts": ("prompts",),
    "defaultTest": ("default_checks",),
    "tests": ("test_cases",),
}
"""Keys of the first level, with the places in a bench that their comments belong to."""


def convert(file: ForeignFile) -> Conversion:
    """Translates a configuration.

    Raises:
        InputError: it, or a file that it names, is broken, missing or outside of its folder.
    """
    suite, left = read_suite(file)
    functions = Functions(file)
    translation = _Translation(suite, left, functions=functions)
    bench = translation.bench(_name(suite, file))
    places = {(): suite.place, **translation.places}
    return Conversion(bench, translation.left, translation.comments, functions.files(), places)


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
    comments: dict[DocumentPath, Sequence[str]] = field(default_factory=dict)
    places: dict[DocumentPath, Place] = field(default_factory=dict)
    functions: Functions = field(default_factory=Functions)
    """Functions of the validators file."""
    labels: dict[str, str] = field(default_factory=dict)
    """Models by the names that tests have for them."""
    known: set[Left] = field(default_factory=set)
    """All that is left, to list each once."""
    ids: set[str] = field(default_factory=set)
    """Ids of cases."""

    def leave(self, place: Place, what: str, reason: str, at: DocumentPath = ()) -> None:
        """Lists something that benches do not have, once."""
        found = Left(place, what, reason, at)
        if found not in self.known:
            self.known.add(found)
            self.left.append(found)

    def bench(self, name: str) -> BenchConfig:
        """Translates all."""
        suite = self.suite
        models = self._models()
        combinations = [each for test in self._tests() for each in self._combinations(test)]
        affixed = self._affixed(combinations)
        variables = KnownVariables([each.vars for each in affixed])
        late = [each for each in suite.prompts if late_messages(each)]
        is_late = len(late) == len(suite.prompts) == 1
        prompts, images = ([], set()) if is_late else self._prompts(variables, combinations)
        defaults = self._default_checks(variables)
        chats = {id(each): self._chat(late[0], each) for each in affixed} if is_late else {}
        cases = [
            case
            for at, each in enumerate(affixed)
            if (case := self._case(each, at, defaults, chats.get(id(each)), images))
        ]
        given: dict[str, Any] = {"name": name, "models": models}
        given |= {"prompts": prompts} if prompts else {"system_prompt": ""}
        description = (suite.description or "").strip()
        given |= {"description": description} if description not in {"", name} else {}
        given |= {"vars": self._bench_vars()} if self._bench_vars() else {}
        given |= {"transform": each} if (each := self._transform(suite.default)) else {}
        given |= {"default_checks": defaults} if defaults else {}
        given |= {"validators_file": next(iter(files))} if (files := self.functions.files()) else {}
        settings = self._settings()
        if is_graded_by_default([*(defaults or []), *(each for case in cases for each in case.checks or [])]):
            settings["judge_model"] = DEFAULT_GRADER
        given |= {"config": RunSettings(**settings)} if settings else {}
        self._keep_comments()
        return BenchConfig(**given, test_cases=cases)

    def _keep_comments(self) -> None:
        """Takes over the comments above what has a counterpart, each once."""
        whole = self.suite.place
        try:
            comments = comments_above(whole.text)
        except WrongInput:
            return  # JSON that is no YAML
        for path, texts in comments.items():
            comments[path] = [each for each in texts if not each.startswith("yaml-language-server")]
        top = {bench: Place(whole.file, whole.text, (key,)) for key, bench in _KEYS.items()}
        for bench, place in {**top, **self.places}.items():
            found = comments.pop(place.path, None) if place.file == whole.file else None
            if found:
                self.comments[bench] = (*found, *self.comments.get(bench, ()))

    def _tests(self) -> list[Test]:
        """The tests, but for those that a program writes."""
        found = list[Test]()
        for test in self.suite.tests:
            if GENERATOR in test.options:
                what = f"tests {test.options[GENERATOR]}"
                reason = "tests of code: write its cases with `test_cases_file: {python: file.py:function}`"
                self.leave(test.place, what, f"{reason}, in the keys of cases")
            else:
                found.append(test)
        return found or [Test(self.suite.place)]

    def _settings(self) -> dict[str, Any]:
        """How it is run."""
        options = read(WrittenRunOptions, self.suite.options)
        settings = dict[str, Any]()
        if _whole(options.repeat) > 1:
            settings["repeat"] = _whole(options.repeat)
        if _whole(options.max_concurrency):
            settings["concurrency"] = min(_whole(options.max_concurrency), MOST_CONCURRENCY)
        if options.cache is False:
            settings["cache"] = False
        if isinstance(options.timeout_ms, int | float) and options.timeout_ms > 0:
            settings["timeout_s"] = options.timeout_ms / 1_000
        place = self.suite.place.at("evaluateOptions")
        for key in unknown(WrittenRunOptions, self.suite.options):
            self.leave(place.at(key), f"evaluateOptions.{key}", "runs have no such setting")
        for provider in self.suite.providers:
            if provider.delay_ms:
                pace = f"--rpm {max(1, int(60_000 / provider.delay_ms))}"
                self.leave(provider.place, f"delay of {provider.id}", f"`proctor limits set MODEL {pace}`")
        return settings

    def _models(self) -> list[str | ModelEntry]:
        """The models, each once."""
        models = dict[str, str | ModelEntry]()
        for provider in self.suite.providers:
            model = self._model(provider)
            if model is None:
                continue
            name = model if isinstance(model, str) else model.name
            if provider.prompts is not None:
                reason = "a bench asks all models with all prompts: write this provider into a second bench"
                self.leave(
                    provider.place.at("prompts"), f"prompts of {provider.label or provider.id}", reason
                )
            self.labels |= {provider.id: name, provider.label or provider.id: name}
            if name not in models:
                self.places["models", len(models)] = provider.place
                models[name] = model
            elif models[name] != model:
                reason = "a bench has one configuration for a model: use a second bench"
                self.leave(provider.place, f"provider {provider.label or provider.id}", reason)
            if provider.label and provider.label != name:
                at = ("models", list(models).index(name))
                self.comments[at] = (*self.comments.get(at, ()), provider.label)
        if not models:
            self.comments["models",] = ("none of the providers has a counterpart: name a model here",)
            return [ECHO]
        return list(models.values())

    def _model(self, provider: Provider) -> str | ModelEntry | None:
        """The model of a provider."""
        try:
            model = to_model(provider, partial(self.leave, provider.place))
            if not provider.transform:
                return model
            name = model if isinstance(model, str) else model.name
            transform = {"transform": to_transform(provider.transform, self.functions)}
            own = {} if isinstance(model, str) else model.model_dump(exclude_unset=True, by_alias=True)
            return ModelEntry(**{"name": name, **own, **transform})
        except WrongInput as error:
            self.leave(provider.place, f"provider {provider.id}", error.args[0])
            return None

    def _prompts(
        self, variables: KnownVariables, combinations: Sequence[_Combination]
    ) -> tuple[list[Prompt], set[str]]:
        """The prompts, and the variables that are images in them."""
        affixes = {self._affixes(each.test) for each in combinations}
        before, behind = (
            next(iter(affixes)) if len(affixes) == 1 else (f"{{{{ {PREFIX} }}}}", f"{{{{ {SUFFIX} }}}}")
        )
        writer = PromptWriter(variables, before, behind)
        prompts = list[Prompt]()
        for each in self.suite.prompts:
            try:
                prompts.append(writer.prompt(each))
                self.places["prompts", len(prompts) - 1] = each.place
            except WrongInput as error:
                self.leave(each.place, f"prompt {each.label or each.raw}", error.args[0])
        if not prompts:
            prompts.append(Prompt(id="empty", user="-"))
            self.comments["prompts",] = ("none of the prompts has a counterpart: write one here",)
        return prompts, writer.images

    def _affixes(self, test: Test) -> tuple[str, str]:
        """What stands before and behind prompts."""
        own, default = (read(WrittenTestOptions, each.options) for each in (test, self.suite.default))
        return str(own.prefix or default.prefix or ""), str(own.suffix or default.suffix or "")

    def _affixed(self, combinations: Sequence[_Combination]) -> list[_Combination]:
        """The cases, with what stands before and behind prompts as variables where that differs."""
        if len({self._affixes(each.test) for each in combinations}) == 1:
            return list(combinations)
        found = list[_Combination]()
        for each in combinations:
            before, behind = (self._rendered(each, text) for text in self._affixes(each.test))
            added = {PREFIX: before, SUFFIX: behind}
            found.append(_Combination(each.test, {**each.vars, **added}, {**each.own, **added}))
        return found

    def _rendered(self, case: _Combination, text: str) -> str:
        """A text with the variables of a case."""
        if not is_nunjucks(text):
            return text
        try:
            return render(to_jinja(text, KnownVariables([case.vars])), case.vars)
        except WrongInput as error:
            self.leave(case.test.place, text, error.args[0])
            return text

    def _chat(self, prompt: Any, case: _Combination) -> list[dict[str, Any]] | None:
        """The messages of a case whose prompt is a conversation only once it is rendered."""
        try:
            return parsed_messages(self._rendered(case, prompt.raw))
        except WrongInput as error:
            self.leave(prompt.place, f"prompt {prompt.label or prompt.raw}", error.args[0])
            return None

    def _bench_vars(self) -> dict[str, Any]:
        """KnownVariables that all cases have alike."""
        values = self.suite.default.vars
        return {} if any(map(_is_special, values.values())) else dict(values)

    def _combinations(self, test: Test) -> list[_Combination]:
        """The cases of a test: one for each combination of its lists."""
        merged = {**self.suite.default.vars, **test.vars}
        is_fixed = self._options(test).disable_var_expansion
        several = {} if is_fixed else {key: value for key, value in merged.items() if _is_several(value)}
        if prod(map(len, several.values())) > MOST_CASES:
            what = f"more than {MOST_CASES:,} combinations of variables"
            raise test.place.error(what, "write fewer values")
        return [
            self._combined(test, {**merged, **dict(zip(several, chosen, strict=True))})
            for chosen in product(*several.values())
        ]

    def _combined(self, test: Test, values: Mapping[str, Any]) -> _Combination:
        """One case, with variables in variables filled in."""
        filled, shared = self._filled(test, values), self._bench_vars()
        own = {key: value for key, value in filled.items() if key not in shared or shared[key] != value}
        return _Combination(test, filled, own)

    def _filled(self, test: Test, written: Mapping[str, Any]) -> dict[str, Any]:
        """Fills in variables that stand in variables."""
        values = {
            key: each.removesuffix("\n") if isinstance(each, str) else each for key, each in written.items()
        }
        for _ in range(_ROUNDS):
            for key, value in values.items():
                found = _PLACEHOLDER.search(value) if isinstance(value, str) else None
                if found and found[1] in values and found[1] != key:
                    values[key] = value.replace(found[0], _printed(values[found[1]]), 1)
        named = KnownVariables([values])
        for key, value in values.items():
            if isinstance(value, str) and is_nunjucks(value):
                try:
                    values[key] = render(to_jinja(value, named), values)
                except WrongInput as error:
                    self.leave(test.place.at("vars", key), f"variable {key}", error.args[0])
        return values

    def _default_checks(self, variables: KnownVariables) -> list[Check] | None:
        """The checks of all cases; None if they have to be made for each of them."""
        default = self.suite.default
        context = self._context(default, variables, None)
        try:
            return self._checks(default.assertions, context, ("default_checks",))
        except PerCase:
            return None

    def _transform(self, test: Test) -> dict[str, Any] | None:
        """What changes the answers to a test before they are checked."""
        options = read(WrittenTestOptions, test.options)
        written = options.transform or options.postprocess
        if not written:
            return None
        try:
            return to_transform(written, self.functions)
        except WrongInput as error:
            self.leave(test.place.at("options", "transform"), f"transform {written}", error.args[0])
            return None

    def _options(self, test: Test) -> WrittenTestOptions:
        """The options of a test, with those of all."""
        return read(WrittenTestOptions, {**self.suite.default.options, **test.options})

    def _context(
        self, test: Test, variables: KnownVariables, values: Mapping[str, Any] | None
    ) -> CheckContext:
        """What the assertions of a test are translated with."""
        options = self._options(test)
        threshold = self.suite.default.threshold if test.threshold is None else test.threshold
        return CheckContext(
            variables,
            values,
            options.provider,
            options.rubric_prompt,
            [each for provider in self.suite.providers for each in _tools(provider)],
            self.functions,
            is_averaged=threshold is not None,
        )

    def _checks(
        self, assertions: Sequence[Assertion], context: CheckContext, path: DocumentPath
    ) -> list[Check]:
        """Translates assertions into the checks at a place, and lists what is left of them."""
        checks = list[Check]()
        for each in assertions:
            check = to_check(each, context)
            if check is not None:
                self.places[*path, len(checks)] = each.place
                checks.append(check)
        for assertion, what, reason in context.left:
            self.leave(assertion.place, what, reason, path[:2] if path[0] == "test_cases" else ())
        return checks

    def _case(
        self,
        case: _Combination,
        at: int,
        defaults: Sequence[Check] | None,
        messages: Sequence[Any] | None,
        images: set[str],
    ) -> CaseEntry | None:
        """One case."""
        test, default = case.test, self.suite.default
        context = self._context(test, KnownVariables([case.vars]), case.vars)
        is_without = bool(read(WrittenTestOptions, test.options).disable_default_asserts)
        before: Sequence[Assertion] = default.assertions if defaults is None and not is_without else ()
        checks = self._checks((*before, *test.assertions), context, ("test_cases", at, "checks"))
        given: dict[str, Any] = {}
        self.places["test_cases", at] = test.place
        name = self._id(test)
        given |= {"id": name} if name else {}
        vars_ = {key: value for key, value in case.own.items() if key not in images}
        given |= {"vars": vars_} if vars_ else {}
        given |= {"messages": messages} if messages else {}
        files = [str(case.vars[key]).removeprefix(FILE) for key in sorted(images) if case.vars.get(key)]
        given |= {"images": files} if files else {}
        metadata = {**default.metadata, **test.metadata}
        given |= {"metadata": metadata} if metadata else {}
        repeat = self._options(test).repeat
        given |= {"repeat": _whole(repeat)} if _whole(repeat) > 0 else {}
        given |= {"transform": each} if (each := self._transform(test)) else {}
        given |= {"default_checks": False} if is_without and defaults else {}
        given |= {"checks": checks} if checks else {}
        threshold = default.threshold if test.threshold is None else test.threshold
        if threshold is not None and (checks or (defaults and not is_without)):
            given["at_least"] = threshold
        given |= (
            {"outputs": dict.fromkeys(self.labels.values(), _text(test.output))}
            if test.output is not None
            else {}
        )
        self._leave_rest(test)
        try:
            return CaseEntry(**given)
        except ValidationError as error:
            location, message = first_problem(error)
            what = ".".join(str(part) for part in location)
            self.leave(test.place, f"test {name or at + 1}", f"{what}: {message}")
            return None

    def _id(self, test: Test) -> str | None:
        """The id of a case: what the test is called, if no other has it."""
        description = " ".join((test.description or "").split())[:MAX_ID_CHARS]
        if not description or description in self.ids:
            return None
        self.ids.add(description)
        return description

    def _leave_rest(self, test: Test) -> None:
        """Lists what cases do not have."""
        whole = "a bench asks all models with all prompts: write these tests into a second bench"
        for key, named in (("prompts", test.prompts), ("providers", test.providers)):
            if named is not None:
                self.leave(test.place.at(key), f"{key} of a test", whole)
        for key in unknown(WrittenTestOptions, test.options):
            self.leave(test.place.at("options", key), f"options.{key}", "cases have no such option")


def _name(suite: Suite, file: ForeignFile) -> str:
    """What the bench is called."""
    description = (suite.description or "").strip()
    if description and "\n" not in description and len(description) <= _NAME_CHARS:
        return description
    folder = file.path.resolve().parent.name
    return folder if file.path.stem.startswith("promptfooconfig") and folder else file.path.stem


def _tools(provider: Provider) -> list[Any]:
    """The tools that a provider is offered."""
    config = read(WrittenModelConfig, provider.config)
    tools = config.tools or config.functions
    return tools if isinstance(tools, list) else []


def _whole(value: Any) -> int:
    """A whole number; 0 for anything else."""
    return int(value) if isinstance(value, int | float | str) and str(value).isdigit() else 0


def _text(output: Any) -> str:
    """A recorded answer as a text."""
    return output if isinstance(output, str) else _printed(output)


def _is_several(value: Any) -> bool:
    """Whether a variable stands for several cases."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def _is_special(value: Any) -> bool:
    """Whether a variable is not the same in all cases."""
    return _is_several(value) or (isinstance(value, str) and (is_nunjucks(value) or value.startswith(FILE)))


def _printed(value: Any) -> str:
    """A value as JavaScript prints it."""
    return render(to_jinja("{{ value }}", KnownVariables([{"value": value}])), {"value": value})
