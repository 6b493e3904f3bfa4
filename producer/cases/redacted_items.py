"""Replaces personal data in the settings and items of a cases run, before they are written to Redis."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from shared.contracts.case_run import CasePayload, CaseRun
from shared.redaction import Redactor

_NAMES_OF_CASES: Final = frozenset(("model", "prompt_id", "images"))
"""Fields that name what else is stored under these names."""
_TEXTS_OF_RUNS: Final = ("name", "system_prompt", "schema", "validators", "judge_params", "pairwise")
"""Settings that texts are written in; others are endpoints, prices and names."""
_TEXTS_BY_NAME: Final = ("templates", "calls")
"""The same by the ids of prompts and the names of models."""


def redacted_case(payload: CasePayload, redactor: Redactor) -> CasePayload:
    """Returns the item of a case without what the rules find.

    >>> redacted_case(CasePayload(0, "m", "ask ann@example.com"), Redactor(["mail"])).input
    'ask [mail:71d4]'
    """
    fields = msgspec.to_builtins(payload)
    kept = {name: fields.pop(name) for name in _NAMES_OF_CASES & fields.keys()}
    return msgspec.convert(redactor.value(fields) | kept, CasePayload)


def redacted_run(run: CaseRun, redactor: Redactor) -> CaseRun:
    """Returns the settings of a run of cases without what the rules find in prompts and other texts.

    >>> redacted_run(CaseRun("bench", "You are ann@example.com."), Redactor(["mail"])).system_prompt
    'You are [mail:71d4].'
    """
    fields = msgspec.to_builtins(run)
    fields |= {name: redactor.value(fields[name]) for name in _TEXTS_OF_RUNS}
    for name in _TEXTS_BY_NAME:
        fields[name] = {key: redactor.value(each) for key, each in fields[name].items()}
    return msgspec.convert(fields, CaseRun)


def redacted_files(run: CaseRun, files: Mapping[str, bytes], redactor: Redactor) -> dict[str, bytes]:
    """Returns the files of a run with redacted variables; what images show stays."""
    shared = {name: redactor.json(data) for name, data in files.items() if name == run.shared_vars}
    return {**files, **shared}


def redacted_items(items: Callable[[], Iterable[CasePayload]], redactor: Redactor) -> Iterator[CasePayload]:
    """Yields the items of a run without what the rules find."""
    return (redacted_case(item, redactor) for item in items())
