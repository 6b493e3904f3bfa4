"""Translates a promptfoo configuration into a bench: models, prompts, cases with their checks."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from producer.convert.nunjucks import KnownVariables, is_nunjucks, to_jinja
from producer.convert.promptfoo.case_variables import Combination, Combinations, printed
from producer.convert.promptfoo.checks import (
    DEFAULT_GRADER,
    Check,
    CheckContext,
    PerCase,
    is_graded_by_default,
    to_check,
)
from producer.convert.promptfoo.evaluate_options import to_settings, to_sources, whole
from producer.convert.promptfoo.functions import Functions, to_transform
from producer.convert.promptfoo.graders import Graders
from producer.convert.promptfoo.named_files import FILE
from producer.convert.promptfoo.programs import NAME, TEXT, has_programs
from producer.convert.promptfoo.prompt_templates import (
    USUAL,
    PromptWriter,
    Way,
    is_conversation,
    late_messages,
    parsed_messages,
)
from producer.convert.promptfoo.providers import free_name, is_option, name_of, named, to_model, tools_of
from producer.convert.promptfoo.reading import read_suite, read_tests
from producer.convert.promptfoo.suite import (
    Assertion,
    PromptTemplate,
    Provider,
    Suite,
    Test,
    bench_name,
)
from producer.convert.promptfoo.system_prompts import has_system, system_of, with_systems
from producer.convert.promptfoo.written import (
    LEFT_OPTIONS,
    WrittenTestOptions,
    first_problem,
    ignored,
    read,
    unknown,
)
from producer.convert.report import UNWRITTEN, Conversion, ForeignFile, Left
from producer.convert.yaml_comments import comments_above
from producer.load.problems import InputRow, Place
from producer.load.problems import Path as DocumentPath
from shared.contracts.case_config import BenchConfig, CaseEntry, ModelEntry, RunSettings
from shared.contracts.cases import MAX_ID_CHARS
from shared.contracts.prompts import Prompt
from shared.errors import WrongInput
from shared.templates.template_rendering import render

ECHO: Final = "echo"
INPUT: Final = "{{ input }}"
"""A prompt of cases that have their own messages."""
PREFIX: Final = "prompt_prefix"
SUFFIX: Final = "prompt_suffix"
"""Variables with what a test writes before and behind prompts."""
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
    bench = translation.bench(bench_name(suite, file))
    places = {(): suite.place, **translation.places}
    files = {**functions.files(), **({NAME: TEXT} if has_programs(bench) else {})}
    return Conversion(bench, translation.left, translation.comments, files, places)


def cases_of(
    bench: Path, rows: Iterable[InputRow], threshold: float | None = None, checks: Sequence[Any] = ()
) -> Iterator[tuple[Place, CaseEntry]]:
    """Translates tests that a program wrote for a bench.

    Args:
        bench: its file.
        rows: the tests.
        threshold: the mean score from which one passes that has none; None: each assertion must.
        checks: those of all cases.

    Raises:
        InputError: something of them has no counterpart.
    """
    file = ForeignFile(bench, bench.parent)
    tests, left = read_tests(file, rows)
    default = Test(file.place, threshold=threshold)
    suite = Suite(file.place, None, [], [], tests, default, {}, {}, {})
    translation = _Translation(suite, left)
    variables = Combinations(suite, translation.leave)
    for at, each in enumerate(each for test in tests for each in variables.of(test)):
        case = translation.case(each, at, checks)
        for found in left:
            raise found.place.error(f"{found.what}: {found.reason}", "return cases in the keys of benches")
        if case is not None:
            yield each.test.place, case


@dataclass(slots=True)
class _Translation:
    """Translates one configuration."""

    suite: Suite
    left: list[Left]
    comments: dict[DocumentPath, Sequence[str]] = field(default_factory=dict)
    places: dict[DocumentPath, Place] = field(default_factory=dict)
    functions: Functions = field(default_factory=Functions)
    """Functions of the validators file."""
    graders: Graders = field(default_factory=Graders)
    """The judges of the bench."""
    models: list[tuple[Provider, str]] = field(default_factory=list)
    """Providers with the names of their models."""
    prompts: list[tuple[PromptTemplate, str]] = field(default_factory=list)
    """Prompts with their ids."""
    known: set[Left] = field(default_factory=set)  # all that is left, to list each once
    ids: set[str] = field(default_factory=set)
    """Ids of cases."""
    notes: list[str] = field(default_factory=list)
    """What is not taken over of providers because it changes neither prompts nor verdicts."""

    def leave(self, place: Place, what: str, reason: str, at: DocumentPath = ()) -> None:
        """Lists something that benches do not have, once."""
        found = Left(place, what, reason, at)
        if found not in self.known:
            self.known.add(found)
            self.left.append(found)

    def bench(self, name: str) -> BenchConfig:
        """Translates all."""
        suite = self.suite
        tests, sources = to_sources(suite, self.leave)
        case_variables = Combinations(replace(suite, tests=tests), self.leave)
        combinations = [each for test in tests for each in case_variables.of(test)]
        affixed = self._affixed(combinations)
        variables = KnownVariables([] if sources else [each.vars for each in affixed])
        late = [each for each in suite.prompts if late_messages(each)]
        is_late = len(late) == len(suite.prompts) == 1 and not sources
        prompts, images = (
            ([], set()) if is_late else self._prompts(variables, combinations, is_made=bool(sources))
        )
        models = self._models()
        self.graders.taken = {name_of(each): each for each in models}
        prompts, models = self._with_systems(prompts, models, variables)
        self._name_echo()
        defaults = self._default_checks(variables)
        if sources and (defaults is None or late):
            reason = "prompts and assertions that are made for each test need written tests"
            self.leave(suite.place.at("tests"), "tests of code", reason)
        cases = list[CaseEntry]()
        for combination, way in ((each, way) for each in affixed for way in self._ways(each, late)):
            case = self.case(combination, len(cases), defaults, way, images)
            cases += [] if case is None else [case]
        given: dict[str, Any] = {"name": name, "models": models}
        given["prompts"] = prompts or [Prompt(user=INPUT)]
        given |= {"description": said} if (said := suite.described(name)) else {}
        given |= {"vars": case_variables.bench} if case_variables.bench else {}
        given |= {"transform": each} if (each := self._transform(suite.default)) else {}
        given |= {"default_checks": defaults} if defaults else {}
        given |= {"validators_file": next(iter(files))} if (files := self.functions.files()) else {}
        settings = to_settings(suite, self.leave, self.notes.append)
        checks = [*(defaults or []), *(each for case in cases for each in case.checks or [])]
        if sources or is_graded_by_default(checks):
            settings["judge_model"] = DEFAULT_GRADER
        given |= self._asked_by_checks()
        given |= {"config": RunSettings(**settings)} if settings else {}
        self._keep_comments()
        given |= {"test_cases_file": sources} if sources else {}
        given |= {"test_cases": cases} if cases else {}
        return BenchConfig(**given)

    def _asked_by_checks(self) -> dict[str, Any]:
        """What a bench says of the judges and the code of its checks."""
        configs, params = {**self.functions.code, **self.graders.configs}, self.graders.judge_params
        written = {"model_configs": configs or None, "judge_params": params}
        return {key: each for key, each in written.items() if each}

    def _keep_comments(self) -> None:
        """Takes over the comments above what has a counterpart, each once, and names what is ignored."""
        whole = self.suite.place
        try:
            comments = comments_above(whole.text)
        except WrongInput:  # JSON that is no YAML
            comments = {}
        for path, texts in comments.items():
            comments[path] = [each for each in texts if not each.startswith("yaml-language-server")]
        top = [(bench, Place(whole.file, whole.text, (key,))) for key, bench in _KEYS.items()]
        for bench, place in (*top, *self.places.items()):
            found = comments.pop(place.path, None) if place.file == whole.file else None
            if found:
                self.comments[bench] = (*found, *self.comments.get(bench, ()))
        notes = dict.fromkeys((*self.suite.notes, *self.notes, *self.graders.notes))
        self.comments[()] = (*notes, *self.comments.get((), ()))

    def _models(self) -> list[str | ModelEntry]:
        """The models, each once."""
        models = dict[str, str | ModelEntry]()
        extra = list[Provider]()
        for test in (self.suite.default, *self.suite.tests):
            if test.provider and not any(map(test.provider.is_like, (*self.suite.providers, *extra))):
                extra.append(test.provider)
        asked = [*self.suite.providers, *extra]
        found = [(each, model) for each in asked if (model := self._model(each))]
        called = Counter(map(name_of, (model for _, model in found)))
        for provider, model in found:
            label = provider.label if called[name_of(model)] > 1 else None
            name = free_name(name_of(model), label, models)
            chosen = self._chosen(provider.prompts, self.prompts)
            if chosen == ():
                what = f"prompts of {provider.label or provider.id}"
                self.leave(provider.place.at("prompts"), what, "none is called so: promptfoo does not ask it")
                continue
            self.models.append((provider, name))
            self.places["models", len(models)] = provider.place
            if provider.label and not name.endswith(provider.label):
                self.comments["models", len(models)] = (provider.label,)
            models[name] = named(model, name, chosen)
        if not models:
            self.comments["models",] = ("none of the providers has a counterpart: name a model here",)
            return [ECHO]
        return list(models.values())

    def _with_systems(
        self, prompts: list[Prompt], models: list[str | ModelEntry], variables: KnownVariables
    ) -> tuple[list[Prompt], list[str | ModelEntry]]:
        """Prompts and models, where providers have system messages."""
        is_chosen = any(each.prompts for each in self.suite.tests)
        given = [(each, name, system_of(each)) for each, name in self.models]
        systems = {name: to_jinja(system, variables) for _, name, system in given if system}
        if systems and (is_chosen or not prompts or any(map(has_system, prompts))):
            for provider in (each for each, _, system in given if system):
                reason = "its prompts have one of their own, are code, or are chosen by tests"
                self.leave(provider.place, f"system message of {provider.label or provider.id}", reason)
            return prompts, models
        return with_systems(prompts, models, systems) if systems else (prompts, models)

    def _model(self, provider: Provider) -> str | ModelEntry | None:
        """The model of a provider."""
        try:
            model = to_model(provider, partial(self.leave, provider.place), self.notes.append)
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
        self, variables: KnownVariables, combinations: Sequence[Combination], *, is_made: bool
    ) -> tuple[list[Prompt], set[str]]:
        """The prompts, and the variables that are images in them; what cases have is put in their place."""
        affixes = {self._affixes(each.test) for each in combinations} or {self._affixes(self.suite.default)}
        before, behind = (
            next(iter(affixes)) if len(affixes) == 1 else (f"{{{{ {PREFIX} }}}}", f"{{{{ {SUFFIX} }}}}")
        )
        writer = PromptWriter(variables, before, behind)
        prompts = list[Prompt]()
        for each in self.suite.prompts:
            note = partial(self.leave, each.place, f"prompt {each.label or each.raw}")
            is_late = late_messages(each) and not is_made
            try:
                found = writer.prompt(replace(each, raw=INPUT) if is_late else each, note)
                prompts.append(found.model_copy(update={"user": INPUT}) if is_late else found)
                self.prompts.append((each, prompts[-1].id or f"prompt-{len(prompts)}"))
                self.places["prompts", len(prompts) - 1] = each.place
            except WrongInput as error:
                note(error.args[0])
        if not prompts:  # a bench that cannot be run before someone writes the prompt
            prompts.append(UNWRITTEN)
        return prompts, writer.images

    def _chosen(
        self, names: Sequence[str] | None, known: Sequence[tuple[Provider | PromptTemplate, str]]
    ) -> Sequence[str] | None:
        """What of the bench some names mean; None: all of it."""
        if names is None or not known:
            return None
        found = tuple(name for each, name in known if any(map(each.is_called, names)))
        return None if len(found) == len(known) else found

    def _asked(self, test: Test) -> Sequence[str] | None:
        """The models of a test; None: all of the bench."""
        if own := test.provider or self.suite.default.provider:
            names = tuple(name for each, name in self.models if own.is_like(each))[:1]
        else:
            usual = [(each, name) for each, name in self.models if each in self.suite.providers]
            chosen = self._chosen(test.providers, usual)
            names = tuple(name for _, name in usual) if chosen is None else tuple(chosen)
        return None if len(names) == len(self.models) else names

    def _only(self, test: Test, prompts: Sequence[str] | None) -> dict[str, Sequence[str]]:
        """The models and prompts of a test, where it names some."""
        if not self.models and (test.providers or test.prompts):
            self.leave(test.place, "models or prompts of a test", "cases of code are put to all of them")
        chosen = {"models": self._asked(test), "prompts": prompts}
        return {key: each for key, each in chosen.items() if each is not None}

    def _name_echo(self) -> None:
        """Lists the provider `echo` where it is sent conversations."""
        for provider in self.suite.providers:
            if provider.id == ECHO and any(map(is_conversation, self.suite.prompts)):
                reason = "promptfoo's echo answers with all messages as JSON, here with the last of the user"
                self.leave(provider.place, "echo of conversations", reason)

    def _affixes(self, test: Test) -> tuple[str, str]:
        """What stands before and behind prompts."""
        own, default = (read(WrittenTestOptions, each.options) for each in (test, self.suite.default))
        return str(own.prefix or default.prefix or ""), str(own.suffix or default.suffix or "")

    def _affixed(self, combinations: Sequence[Combination]) -> list[Combination]:
        """The cases, with what stands before and behind prompts as variables where that differs."""
        if len({self._affixes(each.test) for each in combinations}) == 1:
            return list(combinations)
        found = list[Combination]()
        for each in combinations:
            before, behind = (self._rendered(each, text) for text in self._affixes(each.test))
            added = {PREFIX: before, SUFFIX: behind}
            found.append(Combination(each.test, {**each.vars, **added}, {**each.own, **added}))
        return found

    def _rendered(self, case: Combination, text: str) -> str:
        """A text with the variables of a case."""
        if not is_nunjucks(text):
            return text
        try:
            return render(to_jinja(text, KnownVariables([case.vars])), case.vars)
        except WrongInput as error:
            self.leave(case.test.place, text, error.args[0])
            return text

    def _chat(self, prompt: PromptTemplate, case: Combination) -> list[dict[str, Any]]:
        """The messages of a case whose prompt is a conversation only once it is rendered."""
        if "_conversation" in prompt.raw:
            reason = "a case has all of its conversation: write the turns before as `messages`"
            self.leave(prompt.place, "_conversation", reason)
        return parsed_messages(self._rendered(case, prompt.raw))

    def _ways(self, case: Combination, late: Sequence[PromptTemplate]) -> list[Way]:
        """How a case is put: by prompts, and by its own messages for those that are late."""
        ids = {id(each): name for each, name in self.prompts}
        if not self.prompts:
            return [Way(self._chat(each, case)) for each in late] or [USUAL]
        usual = tuple(name for each, name in self.prompts if each not in late)
        ways = [Way(None, usual if late else None)] if usual else []
        return [*ways, *(Way(self._chat(each, case), (ids[id(each)],)) for each in late if id(each) in ids)]

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
            [each for provider in self.suite.providers for each in tools_of(provider)],
            self.functions,
            self.graders,
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

    def case(
        self,
        case: Combination,
        at: int,
        defaults: Sequence[Check] | None,
        way: Way = USUAL,
        images: Collection[str] = (),
    ) -> CaseEntry | None:
        """One case; None where none can be made, which is listed."""
        test, default = case.test, self.suite.default
        context = self._context(test, KnownVariables([case.vars]), case.vars)
        is_without = bool(read(WrittenTestOptions, test.options).disable_default_asserts)
        before: Sequence[Assertion] = default.assertions if defaults is None and not is_without else ()
        checks = self._checks((*before, *test.assertions), context, ("test_cases", at, "checks"))
        self.places["test_cases", at] = test.place
        chosen = self._chosen(test.prompts, self.prompts)
        if (prompts := way.narrowed(chosen)) == () != chosen:
            return None  # it is put to other prompts
        only, threshold = self._only(test, prompts), test.threshold
        name, output = self._id(test), test.output
        output = output if output is None or isinstance(output, str) else printed(output)
        threshold = default.threshold if threshold is None else threshold
        is_checked = checks or (defaults and not is_without)
        files = [str(case.vars[key]).removeprefix(FILE) for key in sorted(images) if case.vars.get(key)]
        if () in only.values():
            reason = "it names models or prompts that are not there: it is never run"
            self.leave(test.place, f"test {name or at + 1}", reason)
            return None
        written: dict[str, Any] = {
            "id": name,
            "vars": {key: value for key, value in case.own.items() if key not in images},
            "messages": way.messages,
            "images": files,
            "only": only,
            "metadata": {**default.metadata, **test.metadata},
            "repeat": whole(self._options(test).repeat) or None,
            "transform": self._transform(test),
            "default_checks": False if is_without and defaults else None,
            "checks": checks,
            "at_least": threshold if is_checked else None,
            "outputs": {} if output is None else dict.fromkeys((name for _, name in self.models), output),
        }
        self._leave_rest(test)
        return self._entry(written, test.place, f"test {name or at + 1}")

    def _entry(self, written: Mapping[str, Any], place: Place, what: str) -> CaseEntry | None:
        """A case of what is written in it; None where it is none, which is listed."""
        try:
            return CaseEntry(**{key: each for key, each in written.items() if each not in (None, {}, [])})
        except ValidationError as error:
            location, message = first_problem(error)
            self.leave(place, what, f"{'.'.join(map(str, location))}: {message}")
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
        for key in unknown(WrittenTestOptions, test.options):
            if key in LEFT_OPTIONS or is_option(key):
                reason = LEFT_OPTIONS.get(key, "cases have no such option: name a model with it")
                self.leave(test.place.at("options", key), f"options.{key}", reason)
            else:
                self.notes.append(ignored(f"key {key} of options"))
