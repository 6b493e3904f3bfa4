"""Reads a promptfoo configuration with the files that it names; nothing of them is executed."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any, Final, TypeVar

from msgspec import Struct

from producer.cases.bench_files import DataFile
from producer.convert.promptfoo.csv_rows import prompts_of, rows_of, test_of_row
from producer.convert.promptfoo.named_files import (
    CODE,
    EXECUTED,
    FILE,
    FILE_BYTES,
    NOT_COPIED,
    PATTERN,
    NamedFiles,
    is_code,
    is_prompt_file,
)
from producer.convert.promptfoo.suite import Assertion, PromptTemplate, Provider, Suite, Test
from producer.convert.promptfoo.written import (
    WrittenAssertion,
    WrittenPrompt,
    WrittenProvider,
    WrittenRunOptions,
    WrittenScenario,
    WrittenSuite,
    WrittenTest,
    ignored,
    mapping,
    number,
    read,
    unknown,
)
from producer.convert.report import CaseCount, ForeignFile, Left
from producer.load.problems import InputRow, Place
from producer.load.yaml_text import parse_yaml
from producer.text import shown
from shared.errors import WrongInput

T = TypeVar("T")
ENV: Final = "env"
_KEYS: Final = frozenset({"providers", "targets", "prompts", "tests", "scenarios", "defaultTest"})
_IGNORED: Final = {
    "$schema",
    "outputPath",
    "sharing",
    "tags",
    *("metadata", "author"),
    "envPath",
}
"""Keys that change neither prompts nor verdicts."""
_ATTACKS: Final = ("redteam", "plugins", "strategies")
_UNUSUAL: Final[Mapping[str, str]] = {
    "extensions": "code that is run around tests: do its work before `proctor run`",
    **dict.fromkeys(_ATTACKS, "attacks are made by tools of their own (garak)"),
    "tracing": "traces are not recorded",
    "derivedMetrics": "metrics computed of others are not in reports: compute them from `proctor results`",
}
_KNOWN: Final = frozenset({*_IGNORED, *_UNUSUAL})


def fits(file: ForeignFile) -> bool:
    """Returns whether a file is a configuration of promptfoo."""
    if file.path.suffix.lower() not in {".yaml", ".yml", ".json"}:
        return False
    document = file.document
    return isinstance(document, dict) and len(_KEYS & document.keys()) > 0 and "test_cases" not in document


def read_suite(file: ForeignFile) -> tuple[Suite, list[Left]]:
    """Reads a configuration, and what of it has no meaning for benches.

    Raises:
        InputError: it, or a file that it names, is broken, missing or outside of its folder.
    """
    reader = _Reader(file)
    return reader.suite(), reader.left


def read_tests(file: ForeignFile, rows: Iterable[InputRow]) -> tuple[list[Test], list[Left]]:
    """Reads tests that a program wrote, and what of them has no meaning for benches.

    Raises:
        InputError: a file that they name is broken, missing or outside of the folder.
    """
    reader = _Reader(file)
    return list(reader.counted(reader.test(row.value, row.place) for row in rows)), reader.left


class _Reader:
    """Reads one configuration."""

    def __init__(self, file: ForeignFile) -> None:
        self._named = NamedFiles(file)
        self._root = file.place
        self._written = file.mapping
        self._count = CaseCount()
        self._notes = list[str]()
        self._left = list[Left]()

    @property
    def left(self) -> list[Left]:
        """What benches do not have."""
        unread = self._named.unread.items()
        return [*self._left, *(Left(place, f"env.{name}", NOT_COPIED) for name, place in unread)]

    def leave(self, place: Place, what: str, reason: str) -> None:
        """Lists something that benches do not have."""
        self._left.append(Left(place, what, reason))

    def _ignore(self, form: type[Struct], written: Mapping[str, Any], of: str = "") -> None:
        """Notes keys that promptfoo does not have."""
        self._notes += [ignored(f"key {key}{of}") for key in unknown(form, written)]

    def suite(self) -> Suite:
        """Reads all."""
        document = self._named.dereferenced(self._written, self._root, ())
        env = {key: str(value) for key, value in mapping(document.get(ENV)).items() if value is not None}
        self._named.env = self._named.with_env(env, self._root.at(ENV))
        document = self._named.with_env({**document, ENV: {}}, self._root)
        place, written = self._root, read(WrittenSuite, document)
        is_tested = bool(written.tests or written.scenarios)
        for key in (each for each in document if each in _UNUSUAL):
            if key in _ATTACKS and is_tested:  # which `promptfoo eval` does not make
                self._notes.append(f"{key}: {_UNUSUAL[key]}")
            else:
                self.leave(place.at(key), key, _UNUSUAL[key])
        options = {**mapping(written.evaluate_options), **mapping(written.command_line_options)}
        self._ignore(WrittenRunOptions, options, " of evaluateOptions")
        self._ignore(WrittenSuite, {key: each for key, each in document.items() if key not in _KNOWN})
        default, here = written.default_test, place.at("defaultTest")
        default = self._named.loaded(default, here) if isinstance(default, str) else default
        tests = list(self._tests(written.tests, place.at("tests")))
        scenarios = list(self._scenarios(written.scenarios, place.at("scenarios")))
        targets = "targets" if "targets" in document else "providers"
        return Suite(
            place,
            str(written.description or ""),
            list(
                self._providers(
                    written.providers if written.targets is None else written.targets, place.at(targets)
                )
            ),
            list(self._prompts(written.prompts, place.at("prompts"))),
            [*tests, *scenarios] or [Test(place)],
            self.test(mapping(default), here),
            self._named.env,
            options,
            mapping(written.nunjucks_filters),
            list(dict.fromkeys(self._notes)),
        )

    # Providers

    def _providers(self, written: Any, place: Place) -> Iterator[Provider]:
        """Who is asked."""
        for at, each in enumerate(_listed(written)):
            here = place.at(at) if isinstance(written, list) else place
            if isinstance(each, str) and each.startswith(FILE) and not is_code(each):
                loaded = self._named.loaded(each, here)
                for one in loaded if isinstance(loaded, list) else [loaded]:
                    yield from self._provider(one, here)
            else:
                yield from self._provider(each, here)

    def _provider(self, entry: Any, place: Place) -> Iterator[Provider]:
        """One provider."""
        if isinstance(entry, str):
            yield Provider(place, entry)
            return
        if not isinstance(entry, dict) or not entry:
            self.leave(place, f"provider {json.dumps(entry)[:40]}", "it is neither a name nor a mapping")
            return
        written = read(WrittenProvider, entry)
        if written.id is None:
            name, entry = next(iter(entry.items()))
            written = read(WrittenProvider, {"id": name, **mapping(entry)})
        self._ignore(WrittenProvider, mapping(entry), " of providers")
        yield Provider(
            place,
            str(written.id),
            _name(written.label),
            self._named.resolved(mapping(written.config), place),
            [str(each) for each in written.prompts] if isinstance(written.prompts, list) else None,
            number(written.delay) or 0,
            written.transform,
        )

    # Prompts

    def _prompts(self, written: Any, place: Place) -> Iterator[PromptTemplate]:
        """What is sent."""
        if written is None:
            yield PromptTemplate(place, "{{prompt}}")
        elif isinstance(written, dict) and "raw" not in written and "id" not in written:
            for path, label in written.items():
                yield from self._prompt(path, place.at(path), label=str(label))
        else:
            for at, each in enumerate(_listed(written)):
                yield from self._prompt(each, place.at(at) if isinstance(written, list) else place)

    def _prompt(self, written: Any, place: Place, label: str | None = None) -> Iterator[PromptTemplate]:
        """One prompt, or those of a file."""
        config: Mapping[str, Any] = {}
        if isinstance(written, dict):
            given = read(WrittenPrompt, written)
            label = _name(given.label) or (_name(given.id) if given.raw else None)
            config = mapping(given.config)
            written = given.raw or given.id
        if not isinstance(written, str):
            self.leave(place, f"prompt {json.dumps(written)[:40]}", "it is neither a text nor a file")
            return
        if written.startswith("exec:"):
            yield PromptTemplate(place, written, label, config, is_code=True)
        elif is_prompt_file(written):
            yield from self._prompt_files(PromptTemplate(place, written, label, config))
        else:
            yield PromptTemplate(place, written, label, config)

    def _prompt_files(self, prompt: PromptTemplate) -> Iterator[PromptTemplate]:
        """The prompts of a file, or of several."""
        path, _, function = prompt.raw.removeprefix(FILE).partition(":")
        if PurePath(path).suffix.lower() in EXECUTED and "*" not in path:
            yield replace(prompt, raw=prompt.raw.removeprefix(FILE), is_code=True)
            return
        for file in self._named.files(path, prompt.place):
            suffix = PurePath(file.name).suffix.lower()
            if suffix in EXECUTED:
                written = file.written + (f":{function}" if function else "")
                yield replace(prompt, raw=written, is_code=True)
                continue
            for raw, label in self._raw_prompts(file, suffix, prompt.place):
                yield replace(prompt, raw=raw, label=label or prompt.label, file=file.written)

    def _raw_prompts(self, file: DataFile, suffix: str, place: Place) -> list[tuple[str, str | None]]:
        """The templates of a file by its suffix, with their labels."""
        text = self._named.with_env(file.text(FILE_BYTES), Place(file.name))
        match suffix:
            case ".txt":
                lines = text.replace("\r\n", "\n").split("\n")
                parts = "\n".join("\0" if line.strip() == "---" else line for line in lines).split("\0")
                return [(part.strip(), None) for part in parts if part.strip()]
            case ".jsonl":
                return [(line, None) for line in text.splitlines() if line]
            case ".csv":
                return prompts_of(text, Place(file.name))
            case ".yaml" | ".yml" | ".json":
                try:
                    return [(_json(self._named.resolved(parse_yaml(text), place)), None)]
                except WrongInput:
                    return [(text, None)]  # it is JSON or YAML only once it is rendered
            case _:
                return [(text, None)]

    # Tests

    def counted(self, tests: Iterable[Test]) -> Iterator[Test]:
        """Yields tests, of which there may be as many as cases in a bench."""
        for test in tests:
            self._count.add(1, test.place)
            yield test

    def _tests(self, written: Any, place: Place) -> Iterator[Test]:
        """The tests of a list or of files."""
        for at, each in enumerate(written if isinstance(written, list) else [written] if written else []):
            here = place.at(at) if isinstance(written, list) else place
            test = read(WrittenTest, each)
            path = each if isinstance(each, str) else test.path
            if isinstance(path, str) and test.vars is None:
                yield from self.counted(self._tests_of(path, here, mapping(test.config)))
            elif isinstance(each, dict):
                yield from self.counted([self.test(each, here)])
            else:
                raise here.error(f"a test is a mapping or a file, found {shown(each)}", "write - vars: {…}")

    def _tests_of(
        self, written: str, place: Place, config: Mapping[str, Any] | None = None
    ) -> Iterator[Test]:
        """The tests of a file, or of several."""
        if re.match(r"https?://|huggingface://|az://", written):
            self.leave(place, f"tests {written}", "data of the network: save it as a file, and name that")
        elif is_code(written):
            yield Test(place, options=config or {}, code=written.removeprefix(FILE))
        else:
            for file in self._named.files(written.partition("#")[0], place):
                yield from self._tests_in(file, place)

    def _tests_in(self, file: DataFile, place: Place) -> Iterator[Test]:
        """The tests of one file."""
        suffix = PurePath(file.name).suffix.lower()
        if suffix in CODE:
            yield Test(place, code=file.written)
        elif suffix == ".csv":
            whole = Place(file.name)
            for row_place, row in rows_of(self._named.with_env(file.text(FILE_BYTES), whole), whole):
                yield self._read_test(_placed(partial(test_of_row, row), row_place), row_place)
        elif suffix == ".jsonl":
            for line_number, line in enumerate(file.lines(), 1):
                if line.strip():
                    here = Place(file.name, line=line_number)
                    found = _placed(partial(parse_yaml, line), here)
                    yield self.test(self._named.resolved(found, place), here)
        elif suffix in {".yaml", ".yml", ".json"}:
            loaded = self._named.parsed(file, place)
            whole = Place(file.name, file.text(FILE_BYTES))
            for at, each in enumerate(loaded if isinstance(loaded, list) else [loaded]):
                yield self.test(mapping(each), whole.at(at) if isinstance(loaded, list) else whole)
        else:
            self.leave(place, f"tests {file.name}", f"files of the kind {suffix or 'unknown'} are not read")

    def test(self, entry: Mapping[str, Any], place: Place) -> Test:
        """One test."""
        self._ignore(WrittenTest, entry, " of tests")
        return self._read_test(read(WrittenTest, entry), place)

    def _read_test(self, written: WrittenTest, place: Place) -> Test:
        """One test, with the files that it names."""
        if written.assert_scoring_function:
            what = "code that scores a whole test"
            self.leave(place.at("assertScoringFunction"), what, "scores are weighted means: use weights")
        names = written.providers
        own = list(self._providers(written.provider, place.at("provider")))
        return Test(
            place,
            None if written.description is None else str(written.description),
            self._vars(written.vars, place.at("vars")),
            tuple(self._assertions(written.assertions, place.at("assert"))),
            number(written.threshold),
            self._named.resolved(mapping(written.options), place.at("options")),
            mapping(written.metadata),
            [str(each) for each in names] if isinstance(names, list) else None,
            own[0] if own else None,
            [str(each) for each in written.prompts] if isinstance(written.prompts, list) else None,
            written.provider_output,
        )

    def _vars(self, written: Any, place: Place) -> dict[str, Any]:
        """The variables of a test; those that are files are read."""
        if isinstance(written, str) or (
            isinstance(written, list) and all(isinstance(each, str) for each in written)
        ):
            merged = dict[str, Any]()
            for each in [written] if isinstance(written, str) else written:
                loaded = self._named.loaded(each, place)
                for one in loaded if isinstance(loaded, list) else [loaded]:
                    merged |= mapping(one)
            written = merged
        return {name: self._var(value, place.at(name)) for name, value in mapping(written).items()}

    def _var(self, value: Any, place: Place) -> Any:
        """The value of a variable; one that names files is their content."""
        if isinstance(value, list) and value and isinstance(value[0], str):
            return [self._var(each, place.at(at)) for at, each in enumerate(value)]
        if not isinstance(value, str) or not value.startswith(FILE):
            return _as_javascript(value)
        if is_code(value):
            return value
        if not self._named.is_there(value):
            reason = "there is no such file, so that it is empty: promptfoo ends the test in an error"
            self.leave(place, f"variable {value.removeprefix(FILE)}", reason)
            return ""
        found = [self._var_file(each, place) for each in self._named.files(value, place)]
        return found if PATTERN.search(value) and len(found) > 1 else found[0]

    def _var_file(self, file: DataFile, place: Place) -> str:
        """The content of a file as a variable has it."""
        suffix = PurePath(file.name).suffix.lower()
        if suffix in {".yaml", ".yml"}:
            return _json(self._named.parsed(file, place))
        if suffix in _IMAGES:
            return f"{FILE}{file.written}"
        if suffix in _MEDIA:
            self.leave(place, f"variable {file.written}", "sounds, films and PDF files are not sent")
            return ""
        return file.text(FILE_BYTES).strip()

    def _scenarios(self, written: Any, place: Place) -> Iterator[Test]:
        """The tests of scenarios: each of their configurations with each of their tests."""
        if isinstance(written, str):
            written = self._named.loaded(written, place)
        for at, scenario in enumerate(_listed(written)):
            here = place.at(at)
            if isinstance(scenario, str):
                scenario = self._named.loaded(scenario, here)  # noqa: PLW2901 - the same scenario, read
            for one in _listed(scenario):
                found = read(WrittenScenario, one)
                settings = found.config
                if isinstance(settings, str):
                    settings = self._named.loaded(settings, here)
                tests = list(self._tests(found.tests, here.at("tests"))) or [Test(here)]
                settings = settings if isinstance(settings, list) and settings else [{}]
                self._count.add(len(tests) * (len(settings) - 1), here)
                for position, each in enumerate(settings):
                    data = self.test(mapping(each), here.at("config", position))
                    yield from (_merged(data, test) for test in tests)

    # Assertions

    def _assertions(self, written: Any, place: Place) -> Iterator[Assertion]:
        """What answers have to be."""
        if isinstance(written, str) and written.startswith(FILE):
            written = self._named.loaded(written, place)
        for at, each in enumerate(written if isinstance(written, list) else [written] if written else []):
            yield self._assertion(each, place.at(at))

    def _assertion(self, entry: Any, place: Place) -> Assertion:
        """One assertion, with the files that it names."""
        written = read(WrittenAssertion, entry)
        if not isinstance(written.type, str):
            raise place.error(f"an assertion has a type, found {shown(entry)}", "write - type: contains")
        value, rubric = written.value, written.rubric_prompt
        if _is_file(value):
            value = self._member(value, place.at("value"))
        elif isinstance(value, list):
            value = [self._member(each, place) for each in value]
        return Assertion(
            place,
            written.type,
            _as_javascript(value),
            number(written.threshold),
            number(written.weight),
            written.metric,
            written.provider,
            self._named.loaded(rubric, place) if _is_file(rubric) else rubric,
            written.transform,
            written.context_transform,
            mapping(written.config),
            tuple(self._assertions(written.inner, place.at("assert"))),
        )

    def _member(self, value: Any, place: Place) -> Any:
        """A member of a list that an assertion compares with."""
        if not _is_file(value):
            return value
        loaded = self._named.loaded(value, place)
        return loaded.strip() if isinstance(loaded, str) else loaded


_IMAGES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_MEDIA: Final = frozenset(
    {".mp3", ".wav", ".mp4", ".webm", ".mov", ".pdf", ".ogg", ".m4a", ".flac", ".avi", ".mkv"}
)


def _merged(data: Test, test: Test) -> Test:
    """A test of a scenario with the values of a configuration."""
    return replace(
        test,
        vars={**data.vars, **test.vars},
        assertions=(*data.assertions, *test.assertions),
        options={**data.options, **test.options},
        metadata={**data.metadata, **test.metadata},
        threshold=data.threshold if test.threshold is None else test.threshold,
        description=test.description or data.description,
    )


def _listed(value: Any) -> list[Any]:
    """A list; one of a single value, and none of nothing."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _name(value: Any) -> str | None:
    """What something is called; None for what is no text or number."""
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def _as_javascript(value: Any) -> Any:
    """A value as JavaScript has it: there, 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_as_javascript(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_javascript(each) for key, each in value.items()}
    return value


def _json(value: Any) -> str:
    """A value as JavaScript writes it as JSON."""
    return json.dumps(_as_javascript(value), ensure_ascii=False, separators=(",", ":"))


def _placed(function: Callable[[], T], place: Place) -> T:
    """What a function reads; what is wrong there has a place."""
    try:
        return function()
    except WrongInput as error:
        raise place.error(error.what, error.hint) from None


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(FILE) and not is_code(value)
