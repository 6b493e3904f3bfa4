"""Finds out, before anything is sent, whether workers will take a run's schema, validators and prices."""

import json
from typing import Any

from producer.load.case_files import TextFile
from producer.load.problems import shown
from shared.contracts.case_run import CaseRun
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


def check_prices(run: CaseRun, *, has_expected: bool) -> None:
    """Proves that a run with a cost cap can be held to it: every price is known.

    Raises:
        ConfigError: one is not.
    """
    from shared.upstream.prices import cost_of  # noqa: PLC0415 - only for runs with a cap

    if run.max_cost is None:
        return
    judges = run.judges if has_expected else ()
    called = [*(() if run.recorded else run.models), *judges, *run.check_models]
    for model in dict.fromkeys(called):
        if cost_of(model, 0, 0, run.prices) is None:
            what = f"max_cost: the price of {shown(model)} is not known, so that no cap can be kept"
            given = "prices: {prompt_per_million: …, completion_per_million: …}"
            option = "give --price IN/OUT, or " if model in run.models and not run.recorded else ""
            raise ConfigError(what, hint=f"{option}write model_configs: {{{json.dumps(model)}: {{{given}}}}}")


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
