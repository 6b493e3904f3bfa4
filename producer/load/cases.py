"""Reads `bench.config.yaml` with all it names: cases, validators, schema; all is checked before it is used.

read, bounded  →  YAML or JSON  →  the contract  →  files it names  →  what only the whole can tell
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, Final

from producer.load.case_data import read_case_data
from producer.load.case_files import (
    CONFIG_BYTES,
    DATA_BYTES,
    SCHEMA_BYTES,
    VALIDATORS_BYTES,
    TextFile,
    read_beside,
    read_source,
)
from producer.load.case_gates import check_schema, check_validators
from producer.load.case_rows import MOST_CASES, checked, nearest, refuse_twice
from producer.load.problems import shown
from producer.load.source import Source
from producer.load.strict_json import parse_json, why_broken
from producer.load.yaml_events import YamlError, line_of
from producer.load.yaml_text import parse_yaml
from shared.contracts.case_config import BenchConfig, CaseEntry
from shared.contracts.case_run import Validators
from shared.errors import InputError

_SHAPE: Final = "write name, system_prompt, models and test_cases, each at the start of a line"


@dataclass(frozen=True, slots=True)
class Bench:
    """A configuration with everything it names."""

    config: BenchConfig
    """As it is written."""
    cases: Sequence[CaseEntry]
    """Those of the file first."""
    schema: Any = None
    """The JSON schema; None for none."""
    validators: Validators | None = None
    """The validators' source, checked."""
    warnings: Sequence[str] = field(default_factory=tuple)
    """What is probably not meant."""


def read_bench(source: Source, *, validators_file: str | None = None) -> Bench:
    """Reads a configuration.

    Args:
        source: its file, or standard input.
        validators_file: another one than the configuration names.

    Raises:
        InputError: it, or a file that it names, breaks the contract.
        ConfigError: the schema is none.
        ValidatorSecurityError: the validators file does what validators may not.
    """
    file = read_source(source, CONFIG_BYTES)
    document = _document(file)
    config = checked(BenchConfig, document, lambda path: f"{file.name}:{line_of(file.text, path)}")
    cases = _cases(file, source.path, config)
    validators = _validators(file, source.path, config, validators_file)
    _check_names(cases, validators)
    schema = None
    if config.schema_file is not None:
        schema = _schema(_beside(file, source.path, "schema_path", config.schema_file, SCHEMA_BYTES))
    return Bench(config, [case for _, case in cases], schema, validators, list(_warnings(file.name, config)))


def _document(file: TextFile) -> dict[str, Any]:
    """Reads YAML or JSON, and proves that it is a mapping."""
    if not file.text.strip():
        raise InputError(f"{file.name}: is empty", hint=_SHAPE)
    try:
        document = parse_yaml(file.text)
    except YamlError as error:
        raise InputError(f"{file.name}:{error.line}: {error.message}", hint=error.hint) from None
    if not isinstance(document, dict):
        raise InputError(f"{file.name}: not a configuration ({shown(document)})", hint=_SHAPE)
    return document


def _beside(file: TextFile, config: Path | None, key: str, written: str, most: int) -> TextFile:
    """Reads a file that the configuration names; errors begin with the configuration's place."""
    try:
        return read_beside(config, key, written, most)
    except InputError as error:
        # Only now: finding the line means reading all of the configuration once more.
        keys = ("schema_path", "schema") if key == "schema_path" else (key,)
        line = max(line_of(file.text, (each,)) for each in keys)
        raise InputError(f"{file.name}:{line}: {error.message}", hint=error.hint) from None


def _cases(file: TextFile, path: Path | None, config: BenchConfig) -> list[tuple[str, CaseEntry]]:
    """Merges the cases: those of the file come first."""
    found = list[tuple[str, CaseEntry]]()
    if config.test_cases_file is not None:
        data = _beside(file, path, "test_cases_file", config.test_cases_file, DATA_BYTES)
        found += read_case_data(data)
    found += [(f"{file.name}: test_cases[{at}]", case) for at, case in enumerate(config.test_cases)]
    if not found:
        raise InputError(
            f"{file.name}: no test cases in it", hint="write test_cases, or name a test_cases_file"
        )
    if len(found) > MOST_CASES:
        raise InputError(
            f"{file.name}: {len(found):,} cases, at most {MOST_CASES:,} are allowed",
            hint="split them into several runs",
        )
    refuse_twice(((where, case.id) for where, case in found), "case")
    return found


def _validators(
    file: TextFile, path: Path | None, config: BenchConfig, override: str | None
) -> Validators | None:
    """Reads and checks the validators file; workers get its text, since they may share no disk."""
    if override is not None:
        source = read_beside(path, "--validators-file", _from_folder(path, override), VALIDATORS_BYTES)
    elif config.validators_file is not None:
        source = _beside(file, path, "validators_file", config.validators_file, VALIDATORS_BYTES)
    else:
        return None
    check_validators(source)
    return Validators(source.text, sha256(source.text.encode()).hexdigest())


def _from_folder(config: Path | None, written: str) -> str:
    """A path of the command line: counted from the configuration's folder, else from the current one."""
    folder = config.parent if config is not None else Path()
    try:
        is_here = not (folder / written).exists() and Path(written).exists()
    except (OSError, ValueError):
        return written
    return str(Path(written).resolve()) if is_here else written


def _check_names(cases: Iterable[tuple[str, CaseEntry]], validators: Validators | None) -> None:
    """Refuses validators that nobody wrote."""
    known = sorted(validator_names(validators.source)) if validators else []
    for where, case in cases:
        if case.validator is None:
            continue
        if validators is None:
            what = (
                f"{where}: validator: {shown(case.validator)} is asked for, and there is no validators_file"
            )
            raise InputError(what, hint='add validators_file: "validators.py"')
        if case.validator not in known:
            what = f"{where}: validator: the validators file has no function {shown(case.validator)}"
            raise InputError(what, hint=nearest(case.validator, known))


def validator_names(source: str) -> set[str]:
    r"""Names what may be called as a validator: functions, and whatever a name was given to.

    >>> sorted(validator_names("import re\ndef is_code(text): return True\nis_text = lambda text: True"))
    ['is_code', 'is_text']
    """
    names = set[str]()
    waiting: list[ast.AST] = list(ast.parse(source).body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=targets):
                names.update(each.id for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.If() | ast.Try() | ast.With() | ast.ExceptHandler():
                waiting += ast.iter_child_nodes(node)
            case _:
                pass
    return {name for name in names if not name.startswith("_")}


def _schema(file: TextFile) -> Any:
    """Reads a schema, in JSON or YAML, and compiles it."""
    try:
        is_yaml = PurePath(file.name).suffix.lower() in (".yaml", ".yml")
        schema = parse_yaml(file.text) if is_yaml else parse_json(file.text)
    except YamlError as error:
        raise InputError(f"{file.name}:{error.line}: {error.message}", hint=error.hint) from None
    except (ValueError, RecursionError) as error:
        where = f"{file.name}:{getattr(error, 'lineno', 1)}"
        raise InputError(f"{where}: {why_broken(error)}", hint="a schema is one JSON document") from None
    check_schema(file.name, schema)
    return schema


def _warnings(name: str, config: BenchConfig) -> Iterable[str]:
    """Names what the contract allows and nobody wants."""
    for model in dict.fromkeys(model for model in config.models if config.models.count(model) > 1):
        yield f"{name}: models: {shown(model)} stands twice and is asked once"
    asked = {*config.models, *config.judges}
    if len(config.judges) % 2 == 0 and config.judges:
        yield f"{name}: judge_models: {len(config.judges)} judges can be of two minds, and a tie is no PASS"
    for model in config.model_configs:
        if model not in asked:
            meant = nearest(model, config.models)
            yield f"{name}: model_configs: {shown(model)} is none of the models; {meant}"


def outputs_of(cases: Sequence[CaseEntry]) -> Mapping[int, Mapping[str, str]]:
    """Collects the outputs that stand with their cases."""
    return {at: case.outputs for at, case in enumerate(cases) if case.outputs is not None}
