"""Reads `bench.config.yaml` with all it names: cases, validators, schema; all is checked before it is used.

read, bounded  →  YAML or JSON  →  the contract  →  files it names  →  what only the whole can tell

Longer than 500 lines, because each step needs the places of the one before.
"""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import chain
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, Final, Self, TypeVar

import msgspec
from msgspec.structs import replace

from producer.cases.bench_cases import BenchCase, BenchCases, expanded
from producer.cases.bench_code import BenchCode
from producer.cases.bench_files import (
    CONFIG_BYTES,
    SCHEMA_BYTES,
    VALIDATORS_BYTES,
    Images,
    TextFile,
    check_validators,
    data_files,
    read_beside,
    read_bytes_beside,
    read_source,
)
from producer.cases.bench_prompts import BenchPrompt, read_prompts
from producer.cases.checks import CheckModels, CheckReader, models_of, places_of_model
from producer.cases.data_rows import Columns, as_written, cases_of_rows, read_rows
from producer.load.contracts import broken_members, checked
from producer.load.problems import MOST_CASES, InputRow, Place, Problems, nearest
from producer.load.source import Source
from producer.load.strict_json import parse_json, why_broken
from producer.load.yaml_text import parse_yaml
from producer.text import shown
from shared.code.code_file import CodeFile
from shared.contracts.case_config import (
    BenchConfig,
    CaseEntry,
    ColumnTarget,
    ModelEntry,
    RepeatRule,
    RunSettings,
    quorum_of,
    times_of,
)
from shared.contracts.case_run import Validators
from shared.contracts.checks import Check, Transform
from shared.contracts.code_config import CaseSource
from shared.errors import ConfigError, InputError, WrongInput
from shared.plugins import JAVASCRIPT
from shared.templates.template_texts import names_in_templates
from shared.upstream.model_target import ModelTarget


def check_schema(name: str, schema: Any) -> None:
    """Compiles a schema, as workers will.

    Raises:
        ConfigError: it is no JSON schema, or names another document.
    """
    from worker.validation.schema import SchemaError, SchemaValidator  # noqa: PLC0415 - only for runs with a schema

    try:
        SchemaValidator(schema)
    except SchemaError as error:
        raise ConfigError(f"{name}: {error.message}", hint=error.hint or "correct the schema") from None


T = TypeVar("T")

MOST_PARAMETERS: Final = 2
"""Functions of checks are called with an output, and with a context if they take one."""
_STAND_IN: Final[Mapping[str, str]] = {"input": "-"}
"""A case in the place of a broken one, so that the others keep their positions."""
_OTHERS_KEYS: Final = frozenset({"providers", "targets", "tests", "scenarios", "defaultTest"})
"""Keys of promptfoo's configurations."""
_OWN_KEYS: Final = frozenset({"models", "test_cases", "test_cases_file", "system_prompt"})
_SHAPE: Final = "write name, system_prompt, models and test_cases, each at the start of a line"


@dataclass(frozen=True, slots=True)
class Bench:
    """A configuration with everything it names."""

    config: BenchConfig
    """As it is written."""
    settings: RunSettings
    """Settings of the run: those of the command line above the written ones."""
    root: Place
    """Where it is written."""
    cases: BenchCases
    """Those of files first."""
    code: BenchCode
    """What makes prompts; its processes live until it is closed."""
    prompts: Sequence[BenchPrompt] = ()
    """Templates of what is sent; empty: cases are sent as they are."""
    images: Mapping[str, bytes] = field(default_factory=dict)
    """The images of the cases by their hashes, as workers read them."""
    schema: Any = None
    """The JSON schema; None for none."""
    validators: Validators | None = None
    """The validators' source, checked."""
    warnings: Sequence[str] = field(default_factory=tuple)
    """What is probably not meant."""
    has_outputs: bool = False
    """Whether recorded outputs stand with cases."""
    variables: Sequence[str] = ()
    """Columns of data files that are variables because they are nothing else."""
    needs_stream: bool = False
    """Whether a check looks at when pieces of an answer came."""
    compares: bool = False
    """Whether a check compares the answers of models and prompts."""
    is_partial: bool = False
    """Whether some models are not asked with some prompts and cases."""
    model_code: Mapping[str, CodeFile] = field(default_factory=dict)
    """The files of code that are called as models, by model."""
    transforms: Mapping[str, Transform] = field(default_factory=dict)
    """How the answers of a model are changed before they are checked, by model."""
    lacking: InputError | None = None
    """What workers in this environment lack to run it."""
    extras: frozenset[str] = frozenset()
    """What workers need beside plug-ins."""

    def target(self, model: str, tier: str | None = None) -> ModelTarget:
        """Returns where a model is called, as `BenchConfig.target`; that of code has its text."""
        target, file = self.config.target(model, tier), self.model_code.get(model)
        return target if file is None else replace(target, api_base=file.place, code=file)

    def judge(self, model: str) -> ModelTarget:
        """Returns where a model is called that judges, likewise."""
        target, file = self.config.judge(model), self.model_code.get(model)
        return target if file is None else replace(target, api_base=file.place, code=file)

    def asked_of(self, models: Iterable[str], at: int, prompt: str) -> list[str]:
        """Returns which of some models are sent a case with a prompt."""
        if not self.is_partial:
            return list(models)
        case = self.cases[at]
        if case.only_prompts and prompt not in case.only_prompts:
            return []
        return [
            model
            for model in models
            if (not case.only_models or model in case.only_models)
            and (not (own := self.config.config_of(model).prompts) or prompt in own)
        ]

    def only_checked(self) -> frozenset[str]:
        """Returns the variables that checks name and nothing that is sent: they decide no answer.

        Code may look at any of them.
        """
        if self.model_code or any(each.make for each in self.prompts):
            return frozenset()
        checked = names_in_templates(self.config.default_checks) | self.cases.named_in_checks
        sent = [*((each.system, each.turns) for each in self.prompts), self.config.configured]
        return checked - names_in_templates(sent)


def read_bench(
    source: Source,
    *,
    validators_file: str | None = None,
    above: RunSettings | None = None,
    allow_code: bool = False,
) -> Bench:
    """Reads a configuration.

    Args:
        source: its file, or standard input.
        validators_file: another one than the configuration names.
        above: settings that go before its own.
        allow_code: whether code beside it may run.

    Raises:
        InputError: it, or a file that it names, breaks the contract.
        ConfigError: the schema is none.
        ValidatorSecurityError: the validators file does what validators may not.
    """
    file = read_source(source, CONFIG_BYTES)
    problems = Problems()
    config, broken = _config(file, _document(file), problems)
    beside = _Beside(file, source.path)
    code = BenchCode.of(beside.root, config, source.path, beside.text, is_allowed=allow_code)
    prompts = problems.attempt(partial(read_prompts, config.prompts or [], beside.root, beside.text, code))
    model_code = _model_code(beside.root, config, code, problems)
    validators = _validators(beside, config, validators_file, problems)
    schema = problems.attempt(partial(_schema_of, config, beside))
    settings = config.settings if above is None else config.settings.under(above)
    columns = _columns(config)
    is_fixed = above is not None and "repeat" in above.model_fields_set
    reading = _Cases.of(beside, config, settings, validators, prompts=prompts or [], is_repeat_fixed=is_fixed)
    of_files = _of_data_files(beside, config, columns, code, problems)
    written = chain(of_files, _of_config(beside.root, config, broken))
    problems.attempt(partial(reading.add_all, written, problems))
    transforms = _transforms(beside.root, config, reading.checks, problems)
    _compile(reading, problems)
    problems.raise_found()
    return Bench(
        config,
        settings,
        beside.root,
        reading.cases,
        code,
        prompts or [],
        reading.images.files,
        schema,
        validators,
        [*_warnings(file.name, config, reading.cases.asked), *reading.warnings],
        reading.has_outputs,
        list(columns.variables),
        reading.checks.needs_stream,
        reading.checks.compares,
        reading.is_partial,
        model_code,
        transforms,
        reading.lacking,
        frozenset({JAVASCRIPT} if reading.checks.scripts else ()),
    )


def _columns(config: BenchConfig) -> Columns:
    """Returns what the columns of data files are."""
    renamed = {name: named for name, to in config.columns.items() if (named := ColumnTarget.named(to))}
    return Columns(renamed, needs_input=config.prompts is None)


def _model_code(root: Place, config: BenchConfig, code: BenchCode, problems: Problems) -> dict[str, CodeFile]:
    """Reads the files that are called as models, by the names of these."""
    entries = {each.name: at for at, each in enumerate(config.models) if isinstance(each, ModelEntry)}
    found = dict[str, CodeFile]()
    for model, own in config.configured.items():
        place = root.at("models", entries[model]) if model in entries else root.at("model_configs", model)
        if own.named and (file := problems.attempt(partial(code.file, place, own))):
            found[model] = file
    return found


def _config(
    file: TextFile, document: dict[str, Any], problems: Problems
) -> tuple[BenchConfig, frozenset[int]]:
    """Checks a configuration against the contract.

    Problems of single cases do not keep the rest from being read: they are added, and the positions of these
    cases are returned with the configuration.

    Raises:
        InputError: something else than cases breaks the contract.
    """
    place = Place(file.name, file.text)
    try:
        return checked(BenchConfig, document, place), frozenset()
    except InputError as error:
        problems.add(error)
    broken = broken_members(BenchConfig, document, "test_cases")
    if not broken:
        problems.raise_found()
    written = [_STAND_IN if at in broken else case for at, case in enumerate(document["test_cases"])]
    return checked(BenchConfig, {**document, "test_cases": written}, place), broken


def _schema_of(config: BenchConfig, beside: "_Beside") -> Any:
    """Returns the schema that a configuration contains or names; None for none."""
    if isinstance(config.schema_, dict):
        check_schema(f"{beside.root.at('schema')}: schema", config.schema_)
        return config.schema_
    if config.schema_file is None:
        return None
    key = "schema_path" if config.schema_path else "schema"
    return beside.schema(beside.root.at(key), config.schema_file)


@dataclass(slots=True)
class _Cases:
    """Gives each case what it takes from the bench."""

    config: BenchConfig
    root: Place
    checks: CheckReader
    images: Images
    validators: Sequence[str] | None
    """Names in the validators file; None without one."""
    cases: BenchCases
    repeat: int | RepeatRule
    """How often cases are asked that say nothing themselves."""
    is_repeat_fixed: bool = False
    """Whether that goes before what they say."""
    has_outputs: bool = False
    is_partial: bool = False
    """Whether a case is not put to all models with all prompts."""
    prompts: Sequence[str] = ()
    """Ids of the prompts."""
    warnings: list[str] = field(default_factory=list)
    lacking: InputError | None = None
    """What workers in this environment lack to run it."""

    @classmethod
    def of(
        cls,
        beside: "_Beside",
        config: BenchConfig,
        settings: RunSettings,
        validators: Validators | None,
        *,
        prompts: Sequence[BenchPrompt],
        is_repeat_fixed: bool,
    ) -> Self:
        """Prepares to read the cases of a bench, of which there are none yet.

        Raises:
            InputError: a model names a prompt that is not there.
        """
        ids = [each.id for each in prompts]
        for model, own in config.configured.items():
            _check_names(beside.root.at("model_configs", model, "prompts"), own.prompts, ids)
        functions = check_functions(validators.source) if validators else None
        models = CheckModels(settings.embedding_model, settings.judges)
        return cls(
            config,
            beside.root,
            CheckReader(models, functions, beside.schema, beside.script, config.code_checks),
            Images(beside.binary),
            sorted(validator_names(validators.source)) if validators else None,
            BenchCases(beside.root),
            settings.repeat,
            is_repeat_fixed=is_repeat_fixed,
            is_partial=any(own.prompts for own in config.configured.values()),
            prompts=ids,
        )

    def add_all(self, written: Iterable[tuple[Place, CaseEntry]], problems: Problems) -> None:
        """Adds cases; combinations of variables are cases of their own.

        Args:
            written: as they are written, with their places.
            problems: what is wrong with single cases is added here.

        Raises:
            InputError: a file is none of cases, or there are none.
        """
        for number, (place, entry) in enumerate(written, 1):
            named = replace(place, case=entry.id or "")
            for case in problems.attempt(partial(expanded, entry, named, number)) or ():
                here = named if case is entry else replace(place, case=case.id or "")
                if len(self.cases) == MOST_CASES:
                    raise here.error(f"more than {MOST_CASES:,} cases", "split them into several runs")
                found = problems.attempt(partial(self._resolved, here, case))
                problems.attempt(partial(self.cases.add, found or BenchCase(here, case.id)))
        if not (len(self.cases) or problems.found):
            what = f"{self.root.file}: no test cases in it"
            raise InputError(what, hint="write test_cases, or name a test_cases_file")

    def _resolved(self, place: Place, entry: CaseEntry) -> BenchCase:
        """Resolves one case."""
        problems = Problems()
        problems.attempt(partial(self._check_validator, entry.validator, place.at("validator")))
        found = self._checks(place, entry, problems)
        repeat = self.repeat if self.is_repeat_fixed else entry.repeat or self.repeat
        criteria = {name: value for name, value in entry.criteria.items() if name != "checks"}
        if transform := problems.attempt(partial(self._transform, place, entry)):
            criteria["transform"] = msgspec.to_builtins(transform)
        resolved = BenchCase(
            place,
            entry.id,
            entry.input,
            None if entry.messages is None else [message.as_sent for message in entry.messages],
            entry.system_prompt,
            entry.vars or {},
            found,
            entry.paid_checks or self.config.paid_checks,
            criteria,
            problems.attempt(partial(self.images.add, entry.images, place.at("images"))) or (),
            entry.tags,
            entry.metadata or {},
            1.0 if entry.weight is None else entry.weight,
            entry.outputs,
            times_of(repeat),
            quorum_of(repeat),
            *((entry.only.models, entry.only.prompts) if entry.only else ()),
        )
        if entry.only is not None:
            self.is_partial, at = True, place.at("only")
            models = (at.at("models"), entry.only.models, self.config.model_names)
            for named in (models, (at.at("prompts"), entry.only.prompts, self.prompts)):
                problems.attempt(partial(_check_names, *named))
        if entry.at_least is not None and not found and not problems.found:
            what = "at_least is the mean score of checks, and the case has none"
            problems.add(place.at("at_least").error(what, "add checks, or remove it"))
        problems.raise_found()
        self._note(place, entry, found)
        return resolved

    def _transform(self, place: Place, entry: CaseEntry) -> Transform | None:
        """Makes the transform of a case ready, else that of the bench."""
        written, at = (entry, place) if entry.transform else (self.config, self.root)
        if written.transform is None:
            return None
        return self.checks.transform(written.transform.stored, at.at("transform"))

    def _checks(self, place: Place, entry: CaseEntry, problems: Problems) -> tuple[Check, ...]:
        """Reads the checks of the bench and of a case; what is wrong with them is added to problems."""
        config = self.config
        if not (config.default_checks or entry.checks):
            return ()
        values = {**config.vars, **(entry.vars or {})}
        values |= {} if entry.input is None else {"input": entry.input}
        of_bench = [] if entry.default_checks is False else config.default_checks
        defaults = replace(self.root, path=("default_checks",), case=place.case)
        found = problems.attempt(partial(self.checks.read, of_bench, defaults, values)) or ()
        if entry.checks:
            self.cases.named_in_checks |= names_in_templates(entry.checks)
            read = partial(self.checks.read, entry.checks, place.at("checks"), values)
            found += problems.attempt(read) or ()
        return found

    def _note(self, place: Place, entry: CaseEntry, found: Sequence[Check]) -> None:
        """Keeps which models are asked, and warns of the first text that looks like a template."""
        self.has_outputs = self.has_outputs or entry.outputs is not None
        for model in models_of(found) if found else ():
            if model not in self.cases.asked:
                at = next(places_of_model(entry.checks or [], place.at("checks"), model), None)
                self.cases.asked[model] = at
        if self.warnings or self.config.prompts is not None:
            return
        texts = ((self.root, "system_prompt", self.config.system_prompt), (place, "input", entry.input))
        for at, key, text in texts:
            if text and "{{" in text and "}}" in text:
                what = "{{ }} is sent as it is: only prompts are templates"
                self.warnings.append(at.at(key).error(what).message)
                return

    def _check_validator(self, name: str | None, place: Place) -> None:
        """Refuses a validator that the validators file does not have."""
        if name is None:
            return
        if self.validators is None:
            what = f"{shown(name)} is asked for, and there is no validators_file"
            raise place.error(what, 'add validators_file: "validators.py"')
        if name not in self.validators:
            what = f"the validators file has no function {shown(name)}"
            raise place.error(what, nearest(name, list(self.validators)))


def _document(file: TextFile) -> dict[str, Any]:
    """Reads YAML or JSON, and proves that it is a mapping."""
    if not file.text.strip():
        raise InputError(f"{file.name}: is empty", hint=_SHAPE)
    try:
        document = parse_yaml(file.text)
    except WrongInput as error:
        raise Place(file.name, line=error.line).error(error.what, error.hint) from None
    if not isinstance(document, dict):
        raise InputError(f"{file.name}: not a configuration ({shown(document)})", hint=_SHAPE)
    if _OTHERS_KEYS & document.keys() and not _OWN_KEYS & document.keys():
        raise InputError(
            f"{file.name}: this looks like a promptfoo configuration",
            hint="docs/coming-from.md says what its keys are called in a bench",
        )
    return document


@dataclass(frozen=True, slots=True)
class _Beside:
    """Reads the files that a configuration names; errors begin with the place of their name."""

    file: TextFile
    config: Path | None

    @property
    def root(self) -> Place:
        """The configuration."""
        return Place(self.file.name, self.file.text)

    def text(self, place: Place, written: str, most: int) -> TextFile:
        """Reads a text."""
        return read_beside(self.config, place, written, most)

    def binary(self, place: Place, written: str, most: int) -> bytes:
        """Reads bytes."""
        return read_bytes_beside(self.config, place, written, most)

    def schema(self, place: Place, written: str) -> Any:
        """Reads and compiles a JSON schema."""
        return _schema(self.text(place, written, SCHEMA_BYTES))

    def script(self, place: Place, written: str) -> str:
        """Reads a script."""
        return self.text(place, written, VALIDATORS_BYTES).text


def _transforms(
    root: Place, config: BenchConfig, checks: CheckReader, problems: Problems
) -> dict[str, Transform]:
    """Makes the transforms of models ready, by their names."""
    found = dict[str, Transform]()
    for model, own in config.configured.items():
        if own.transform is not None:
            place = root.at("model_configs", model, "transform")
            ready = problems.attempt(partial(checks.transform, own.transform.stored, place))
            found |= {} if ready is None else {model: ready}
    return found


def _check_names(place: Place, named: Sequence[str], known: Sequence[str]) -> None:
    """Refuses a name of a model or prompt that the bench does not have."""
    for at, name in enumerate(named):
        if name not in known:
            raise place.at(at).error(f"{shown(name)} is not in the bench", nearest(name, list(known)))


def _compile(reading: _Cases, problems: Problems) -> None:
    """Compiles the scripts that were read; adds those that are none to the problems."""
    scripts = reading.checks.scripts
    if not scripts:
        return
    from worker.validation.script_syntax import script_problems  # noqa: PLC0415 - only for benches with JavaScript

    for found in script_problems(scripts):
        error = scripts[found.script].error(found.what, found.hint)
        if found.is_certain:
            problems.add(error)
            continue
        reading.warnings.append(f"{error.message} ({error.hint})")
        if found.is_lacking:
            reading.lacking = error


def _of_config(
    root: Place, config: BenchConfig, broken: Collection[int]
) -> Iterator[tuple[Place, CaseEntry]]:
    """Yields the cases of a configuration that are not broken."""
    for at, case in enumerate(config.test_cases):
        if at not in broken:
            yield root.at("test_cases", at), case


def _of_data_files(
    beside: _Beside, config: BenchConfig, columns: Columns, code: BenchCode, problems: Problems
) -> Iterator[tuple[Place, CaseEntry]]:
    """Yields the cases of files of their own, then those that code makes."""
    place, written = beside.root.at("test_cases_file"), config.test_cases_file or []
    placed = [(place.at(at) if len(written) > 1 else place, each) for at, each in enumerate(written)]
    paths = [(here, each) for here, each in placed if isinstance(each, str)]
    files = problems.attempt(partial(data_files, beside.config, paths)) or ()
    found = [read_rows(file, columns, problems) for file in files]
    for here, each in placed:
        if isinstance(each, CaseSource) and each.returns == "promptfoo":
            found.append(_of_promptfoo(beside, config, each.threshold, code.rows(here, each)))
        elif isinstance(each, CaseSource):
            found.append(cases_of_rows(str(each.named), code.rows(here, each), as_written, columns, problems))
    for cases in found:
        try:
            yield from cases
        except InputError as error:
            problems.add(error)
    problems.attempt(partial(columns.refuse_unused, beside.root.at("columns")))


def _of_promptfoo(
    beside: _Beside, config: BenchConfig, threshold: float | None, rows: Iterator[InputRow]
) -> Iterator[tuple[Place, CaseEntry]]:
    """Yields the cases that tests of promptfoo are."""
    from producer.convert.promptfoo.translating import cases_of  # noqa: PLC0415 - only for such tests

    return cases_of(beside.config or Path("bench.yaml"), rows, threshold, config.default_checks or ())


def _validators(
    beside: _Beside, config: BenchConfig, override: str | None, problems: Problems
) -> Validators | None:
    """Reads and checks the validators file; workers get its text, since they may share no disk.

    Raises:
        UsageError: the file is no Python, or cannot be read, so that its names are not known.
    """
    source = problems.attempt(partial(_validators_source, beside, config, override))
    if source is None:
        if override is not None or config.validators_file is not None:
            problems.raise_found()
        return None
    problems.attempt(partial(check_validators, source))
    try:
        ast.parse(source.text)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        problems.raise_found()
    return Validators(source.text, sha256(source.text.encode()).hexdigest())


def _validators_source(beside: _Beside, config: BenchConfig, override: str | None) -> TextFile | None:
    """Reads the validators file; None where none is named."""
    if override is not None:
        path = beside.config
        return read_beside(path, Place("--validators-file"), _from_folder(path, override), VALIDATORS_BYTES)
    if config.validators_file is None:
        return None
    return beside.text(beside.root.at("validators_file"), config.validators_file, VALIDATORS_BYTES)


def _from_folder(config: Path | None, written: str) -> str:
    """A path of the command line: counted from the configuration's folder, else from the current one."""
    folder = config.parent if config is not None else Path()
    try:
        is_here = not (folder / written).exists() and Path(written).exists()
    except (OSError, ValueError):
        return written
    return str(Path(written).resolve()) if is_here else written


def validator_names(source: str) -> set[str]:
    r"""Names what may be called as a validator: functions, and whatever a name was given to.

    >>> sorted(validator_names("import re\ndef is_code(text): return True\nis_text = lambda text: True"))
    ['is_code', 'is_text']
    """
    return {name for name, _ in _definitions(source)}


def check_functions(source: str) -> dict[str, str | None]:
    r"""Names what a check may call, those that cannot be called with their parameters.

    >>> check_functions("def f(output, *, context): ...\ndef g(output, context=None): ...\nh = len")
    {'f': 'output, *, context', 'g': None, 'h': None}
    """
    found = dict[str, str | None]()
    for name, parameters in sorted(_definitions(source), key=itemgetter(0)):
        if parameters is None or _is_callable(parameters):
            found[name] = None  # of several definitions, one is enough
        else:
            found.setdefault(name, ast.unparse(parameters))
    return found


def _is_callable(parameters: ast.arguments) -> bool:
    """Whether a function can be called with an output, or with an output and a context."""
    positional = [*parameters.posonlyargs, *parameters.args]
    required = len(positional) - len(parameters.defaults)
    takes_any = bool(positional) or parameters.vararg is not None
    return takes_any and required <= MOST_PARAMETERS and None not in parameters.kw_defaults


def _definitions(source: str) -> Iterator[tuple[str, ast.arguments | None]]:
    """Yields the public names that a file defines, those of plain functions with their parameters."""
    waiting: list[ast.AST] = list(ast.parse(source).body)
    while waiting:
        node = waiting.pop()
        found: list[tuple[str, ast.arguments | None]] = []
        match node:
            case ast.FunctionDef(name=name, args=parameters, decorator_list=decorators):
                found = [(name, None if decorators else parameters)]
            case ast.Assign(targets=targets, value=value):
                of_lambda = value.args if isinstance(value, ast.Lambda) else None
                found = [(each.id, of_lambda) for each in targets if isinstance(each, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                found = [(name, None)]
            case ast.If() | ast.Try() | ast.With() | ast.ExceptHandler():
                waiting += ast.iter_child_nodes(node)
            case _:
                pass
        yield from (each for each in found if not each[0].startswith("_"))


def _schema(file: TextFile) -> Any:
    """Reads a schema, in JSON or YAML, and compiles it."""
    try:
        is_yaml = PurePath(file.name).suffix.lower() in (".yaml", ".yml")
        schema = parse_yaml(file.text) if is_yaml else parse_json(file.text)
    except WrongInput as error:
        raise Place(file.name, line=error.line).error(error.what, error.hint) from None
    except (ValueError, RecursionError) as error:
        place = Place(file.name, line=getattr(error, "lineno", 1))
        raise place.error(why_broken(error), "a schema is one JSON document") from None
    check_schema(file.name, schema)
    return schema


def _warnings(name: str, config: BenchConfig, asked_by_checks: Iterable[str]) -> Iterable[str]:
    """Names what the contract allows but is probably a mistake."""
    models = config.model_names
    for model in dict.fromkeys(model for model in models if models.count(model) > 1):
        yield f"{name}: models: {shown(model)} stands twice and is asked once"
    judges = config.settings.judges
    used = {*models, *judges, *asked_by_checks, config.settings.embedding_model}
    used |= {config.pairwise.model} if config.pairwise else set()
    if len(judges) % 2 == 0 and judges:
        yield f"{name}: judge_models: {len(judges)} judges can be of two minds, and a tie is no PASS"
    for model in config.model_configs:
        if model not in used:
            meant = nearest(model, models)
            yield f"{name}: model_configs: {shown(model)} is none of the models; {meant}"
