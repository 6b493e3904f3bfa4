"""Reads `bench.config.yaml` with all it names: cases, validators, schema; all is checked before it is used.

read, bounded  →  YAML or JSON  →  the contract  →  files it names  →  what only the whole can tell

Longer than 500 lines, because each step needs the places of the one before.
"""

import ast
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import product
from math import prod
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from producer.cases.bench_files import (
    CONFIG_BYTES,
    DATA_BYTES,
    SCHEMA_BYTES,
    VALIDATORS_BYTES,
    Images,
    TextFile,
    read_beside,
    read_bytes_beside,
    read_case_data,
    read_source,
)
from producer.cases.bench_prompts import BenchPrompt, read_prompts
from producer.cases.checks import CheckModels, CheckReader, models_of
from producer.load.contracts import broken_members, checked
from producer.load.problems import MOST_CASES, Place, Problems, nearest, refuse_twice
from producer.load.source import Source
from producer.load.strict_json import parse_json, why_broken
from producer.load.yaml_text import YamlError, parse_yaml
from producer.text import shown
from shared.contracts.case_config import BenchConfig, CaseEntry, RepeatRule, RunSettings
from shared.contracts.case_hashes import CaseHashes, hashes_of_case
from shared.contracts.case_run import Validators
from shared.contracts.cases import MAX_ID_CHARS, can_fail
from shared.contracts.checks import Check
from shared.errors import ConfigError, InputError
from shared.templates.template_texts import names_in_templates


@dataclass(frozen=True, slots=True)
class BenchCase:
    """One case."""

    entry: CaseEntry
    """As it is written."""
    place: Place
    """Where."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    """Its variables, with those of the bench below them."""
    checks: tuple[Check, ...] = ()
    """The bench's default checks and its own, rendered."""
    paid_checks: str | None = None
    """Its own word, else the bench's."""
    images: tuple[str, ...] = ()
    """The hashes of its images."""
    repeat: int | RepeatRule = 1
    """How often it is asked: as the command line says, else as it says itself, else as the bench does."""

    @property
    def values(self) -> dict[str, Any]:
        """What templates are rendered with."""
        given = {} if self.entry.input is None else {"input": self.entry.input}
        return {**self.vars, **given}

    @property
    def criteria(self) -> dict[str, Any]:
        """What a good answer looks like, as it travels."""
        written = {name: value for name, value in self.entry.criteria.items() if name != "checks"}
        if self.checks:
            written["checks"] = [msgspec.to_builtins(check) for check in self.checks]
            written |= {"paid_checks": self.paid_checks} if self.paid_checks else {}
        return written

    def hashes(self, only_checked: Collection[str]) -> CaseHashes:
        """Returns what another version of it is compared by.

        Args:
            only_checked: variables that checks alone name.
        """
        entry = self.entry
        sent = {name: value for name, value in self.vars.items() if name not in only_checked}
        messages = [message.as_sent for message in entry.messages or ()]
        criteria = {name: value for name, value in self.criteria.items() if name != "checks"}
        asked = (entry.input, messages, entry.system_prompt, sent, self.images)
        return hashes_of_case(asked, criteria, self.checks)

    @property
    def is_freeform(self) -> bool:
        """Whether nothing at all is required of the answer."""
        return not can_fail(self.criteria) and self.entry.reference is None


SHOWN_VALUE_CHARS = 40
"""Characters of a value in an id."""


def expanded(entry: CaseEntry, place: Place, number: int) -> list[CaseEntry]:
    """Returns the cases that an entry stands for: itself, or its combinations.

    Args:
        entry: as it is written.
        place: where.
        number: its position among the entries, from 1, which names one without an id.

    Raises:
        InputError: none of its variables is a list, one is empty, or there are too many combinations.

    >>> entry = CaseEntry(id="fr", expand=True, vars={"country": ["France", "Spain"]})
    >>> [(case.id, case.vars) for case in expanded(entry, Place("bench.yaml"), 1)]
    [('fr[country=France]', {'country': 'France'}), ('fr[country=Spain]', {'country': 'Spain'})]
    """
    if not entry.expand:
        return [entry]
    lists = {name: value for name, value in (entry.vars or {}).items() if isinstance(value, list)}
    if not lists:
        raise place.at("expand").error("none of the case's vars is a list", "write expand only where one is")
    empty = next((name for name, values in lists.items() if not values), None)
    if empty is not None:
        raise place.at("vars", empty).error("is empty, so that nothing is left of the case", "give it values")
    count = prod(map(len, lists.values()))
    if count > MOST_CASES:
        what = f"{count:,} combinations, at most {MOST_CASES:,} cases are allowed"
        raise place.at("expand").error(what, "split them into several runs")
    found = list[CaseEntry]()
    for values in product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        name = f"{entry.id or f'case {number}'}[{_named(chosen)}]"[:MAX_ID_CHARS]
        found.append(entry.model_copy(update={"id": name, "vars": {**(entry.vars or {}), **chosen}}))
    return found


def _named(chosen: Mapping[str, Any]) -> str:
    """Writes a combination as a part of an id.

    >>> _named({"country": "France", "n": 2})
    'country=France,n=2'
    """
    return ",".join(
        f"{name}={' '.join(str(value).split())[:SHOWN_VALUE_CHARS]}" for name, value in chosen.items()
    )


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


def check_validators(file: TextFile) -> None:
    """Proves that a validators file does nothing that validators may not; nothing of it is executed.

    Raises:
        InputError: it is no Python.
        ValidatorSecurityError: it does; says what, where and by which rule.
    """
    from worker.validation.policy import check_validator_source  # noqa: PLC0415 - only for runs with validators

    try:
        check_validator_source(file.text, file.name)
        # Some mistakes, such as a `return` outside of functions, are only found when code is made of it.
        compile(file.text, file.name, "exec", dont_inherit=True)
    except (RecursionError, MemoryError):
        what = f"{file.name}: the code is nested too deeply to be run"
        raise InputError(what, hint="write it flatter") from None
    except SyntaxError as error:
        what = f"{file.name}:{error.lineno or 1}: not valid Python: {error.msg}"
        raise InputError(what, hint="correct it: python -m py_compile FILE") from None


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
    cases: Sequence[BenchCase]
    """Those of the file first."""
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

    def only_checked(self) -> frozenset[str]:
        """Returns the variables that checks name and nothing that is sent: they decide no answer."""
        config = self.config
        checks = [config.default_checks, *(case.entry.checks for case in self.cases if case.entry.checks)]
        sent = [*((each.system, each.turns) for each in self.prompts), config.model_configs]
        return names_in_templates(checks) - names_in_templates(sent)


def read_bench(
    source: Source, *, validators_file: str | None = None, above: RunSettings | None = None
) -> Bench:
    """Reads a configuration.

    Args:
        source: its file, or standard input.
        validators_file: another one than the configuration names.
        above: settings that go before its own.

    Raises:
        InputError: it, or a file that it names, breaks the contract.
        ConfigError: the schema is none.
        ValidatorSecurityError: the validators file does what validators may not.
    """
    file = read_source(source, CONFIG_BYTES)
    problems = Problems()
    config, broken = _config(file, _document(file), problems)
    beside = _Beside(file, source.path)
    prompts = (
        problems.attempt(partial(read_prompts, config.prompts or [], beside.root.at("prompts"), beside.text))
        or []
    )
    entries = problems.attempt(partial(_entries, file, config, beside, broken, problems)) or []
    validators = _validators(beside, config, validators_file, problems)
    problems.attempt(partial(_check_names, entries, validators))
    schema = problems.attempt(partial(_schema_of, config, beside))
    functions = check_functions(validators.source) if validators else None
    settings = config.settings if above is None else config.settings.under(above)
    checks = CheckReader(CheckModels(settings.embedding_model, settings.judges), functions, beside.schema)
    images = Images(beside.binary)
    found = [
        problems.attempt(partial(_resolved, place, entry, config, beside.root, checks, images))
        for place, entry in entries
    ]
    problems.raise_found()
    is_fixed = above is not None and "repeat" in above.model_fields_set
    cases = [
        dataclasses.replace(
            case, repeat=settings.repeat if is_fixed else case.entry.repeat or settings.repeat
        )
        for case in found
        if case is not None
    ]
    warnings = [*_warnings(file.name, config, cases), *_literal_marks(config, cases, beside.root)]
    return Bench(config, settings, beside.root, cases, prompts, images.files, schema, validators, warnings)


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


def _resolved(  # noqa: PLR0917 - one call, above
    place: Place, entry: CaseEntry, config: BenchConfig, root: Place, checks: CheckReader, images: Images
) -> BenchCase:
    """Gives a case what it takes from the bench."""
    case = BenchCase(entry, place, {**config.vars, **(entry.vars or {})})
    values = case.values
    of_bench = [] if entry.default_checks is False else config.default_checks
    defaults = replace(root, path=("default_checks",), case=place.case)
    problems = Problems()
    found = problems.attempt(partial(checks.read, of_bench, defaults, values)) or ()
    if entry.checks:
        found += problems.attempt(partial(checks.read, entry.checks, place.at("checks"), values)) or ()
    resolved = BenchCase(
        entry,
        place,
        case.vars,
        checks=found,
        paid_checks=entry.paid_checks or config.paid_checks,
        images=problems.attempt(partial(images.add, entry.images, place.at("images"))) or (),
    )
    if entry.at_least is not None and not found and not problems.found:
        what = "at_least is the mean score of checks, and the case has none"
        problems.add(place.at("at_least").error(what, "add checks, or remove it"))
    problems.raise_found()
    return resolved


def _document(file: TextFile) -> dict[str, Any]:
    """Reads YAML or JSON, and proves that it is a mapping."""
    if not file.text.strip():
        raise InputError(f"{file.name}: is empty", hint=_SHAPE)
    try:
        document = parse_yaml(file.text)
    except YamlError as error:
        raise Place(file.name, line=error.line).error(error.message, error.hint) from None
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


def _entries(
    file: TextFile, config: BenchConfig, beside: _Beside, broken: Collection[int], problems: Problems
) -> list[tuple[Place, CaseEntry]]:
    """Merges the cases: those of the file come first; combinations of variables are cases of their own.

    Args:
        file: the configuration.
        config: its content.
        beside: reads the file of cases.
        broken: positions of cases that are left out.
        problems: what is wrong with single cases is added here.
    """
    written, before = list[tuple[Place, CaseEntry]](), len(problems.found)
    if config.test_cases_file is not None:
        read = partial(_of_data_file, beside, config.test_cases_file, problems)
        written += problems.attempt(read) or []
    written += [
        (beside.root.at("test_cases", at), case)
        for at, case in enumerate(config.test_cases)
        if at not in broken
    ]
    if not (written or broken or len(problems.found) > before):
        raise InputError(
            f"{file.name}: no test cases in it", hint="write test_cases, or name a test_cases_file"
        )
    found = list[tuple[Place, CaseEntry]]()
    for number, (place, entry) in enumerate(written, 1):
        named = replace(place, case=entry.id or "")
        for case in problems.attempt(partial(expanded, entry, named, number)) or []:
            found.append((replace(place, case=case.id or ""), case))
        if len(found) > MOST_CASES:
            raise InputError(
                f"{file.name}: {max(len(found), len(written)):,} cases, at most {MOST_CASES:,} are allowed",
                hint="split them into several runs",
            )
    problems.attempt(partial(refuse_twice, [(place, case.id) for place, case in found], "case"))
    return found


def _of_data_file(beside: _Beside, written: str, problems: Problems) -> list[tuple[Place, CaseEntry]]:
    """Reads the cases of a file of their own."""
    data = beside.text(beside.root.at("test_cases_file"), written, DATA_BYTES)
    return read_case_data(data, problems)


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


def _check_names(cases: Iterable[tuple[Place, CaseEntry]], validators: Validators | None) -> None:
    """Refuses validators that the validators file does not have."""
    known, problems = sorted(validator_names(validators.source)) if validators else [], Problems()
    for place, case in cases:
        if case.validator is None:
            continue
        at = place.at("validator")
        if validators is None:
            what = f"{shown(case.validator)} is asked for, and there is no validators_file"
            problems.add(at.error(what, 'add validators_file: "validators.py"'))
        elif case.validator not in known:
            what = f"the validators file has no function {shown(case.validator)}"
            problems.add(at.error(what, nearest(case.validator, known)))
    problems.raise_found()


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
    except YamlError as error:
        raise Place(file.name, line=error.line).error(error.message, error.hint) from None
    except (ValueError, RecursionError) as error:
        place = Place(file.name, line=getattr(error, "lineno", 1))
        raise place.error(why_broken(error), "a schema is one JSON document") from None
    check_schema(file.name, schema)
    return schema


def _warnings(name: str, config: BenchConfig, cases: Sequence[BenchCase]) -> Iterable[str]:
    """Names what the contract allows but is probably a mistake."""
    for model in dict.fromkeys(model for model in config.models if config.models.count(model) > 1):
        yield f"{name}: models: {shown(model)} stands twice and is asked once"
    judges = config.settings.judges
    used = {*config.models, *judges, *check_models(cases), config.settings.embedding_model}
    used |= {config.pairwise.model} if config.pairwise else set()
    if len(judges) % 2 == 0 and judges:
        yield f"{name}: judge_models: {len(judges)} judges can be of two minds, and a tie is no PASS"
    for model in config.model_configs:
        if model not in used:
            meant = nearest(model, config.models)
            yield f"{name}: model_configs: {shown(model)} is none of the models; {meant}"


def _literal_marks(config: BenchConfig, cases: Sequence[BenchCase], root: Place) -> Iterable[str]:
    """Names the first text that looks like a template, and is sent as it is."""
    if config.prompts is not None:
        return
    texts = [(root, "system_prompt", config.system_prompt)]
    texts += [(case.place, "input", case.entry.input) for case in cases]
    found = next(((place, key) for place, key, text in texts if text and "{{" in text and "}}" in text), None)
    if found is not None:
        place = found[0].at(found[1])
        yield place.error("{{ }} is sent as it is: only prompts are templates").message


def check_models(cases: Sequence[BenchCase]) -> list[str]:
    """Names the models that the checks of some cases ask, each once."""
    lists = {id(case.checks): case.checks for case in cases}
    return list(dict.fromkeys(model for checks in lists.values() for model in models_of(checks)))


def outputs_of(cases: Sequence[BenchCase]) -> Mapping[int, Mapping[str, str]]:
    """Collects the outputs that stand with their cases."""
    return {at: case.entry.outputs for at, case in enumerate(cases) if case.entry.outputs is not None}
