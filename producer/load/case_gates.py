"""Asks the engines, before anything is sent, whether they will take a run's schema and validators."""

from importlib import import_module
from typing import Any

from producer.load.case_files import TextFile
from shared.errors import ConfigError, InputError


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
    try:
        policy = import_module("worker.validation.policy")
    except ModuleNotFoundError:
        raise ConfigError("validators cannot be checked here, so that none is taken") from None
    try:
        policy.check_validator_source(file.text)
    except SyntaxError as error:
        what = f"{file.name}:{error.lineno or 1}: not valid Python: {error.msg}"
        raise InputError(what, hint="correct it: python -m py_compile FILE") from None
