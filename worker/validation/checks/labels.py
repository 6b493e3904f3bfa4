"""What checks are called: by people, by their templates, or after what they do."""

from typing import Any

import msgspec

from shared.contracts.checks import MAX_NAME_CHARS, Check
from worker.validation.checks.kind import placed, titled
from worker.validation.checks.table import CHECK_KINDS


def label(check: Check) -> str:
    """What a check is called everywhere, equal for all cases that have it: a check is its template.

    >>> label(Check("contains", "Paris")), label(Check("not", checks=(Check("contains", "Paris"),)))
    ('contains: Paris', 'not contains: Paris')
    >>> label(Check("json_equals", {"capital": "Paris"}, name="the capital"))
    'the capital'
    >>> label(Check("length", {"max": 20})), label(Check("contains", "Paris", json_path="$.city"))
    ('length: 20', 'contains at $.city: Paris')
    >>> called = Check("contains", "Paris", written="contains: {{ capital }}")
    >>> label(called), rendered(called)
    ('contains: {{ capital }}', 'contains: Paris')
    """
    return check.name or check.written or _default_name(check)


def rendered(check: Check) -> str:
    """What it is called in the reasons of one case."""
    return check.name or _default_name(check)


def _default_name(check: Check) -> str:
    """Names a check after what it does, and what part of the output it looks at."""
    kind = CHECK_KINDS.get(check.check)
    if kind is not None and kind.title is not None:
        name = kind.title(check, label)
    elif check.argument is not None:
        name = titled(check, check.argument)
    elif check.checks:
        name = f"{placed(check)}: {', '.join(map(label, check.checks))}"
    else:
        name = placed(check)
    return name[:MAX_NAME_CHARS]


def as_written(check: Check, raw: Any) -> Check:
    """Names a check, and those that it holds, by their templates.

    Args:
        check: read after its templates were rendered.
        raw: as it is written, with its templates.

    >>> label(as_written(Check("contains", "Paris"), {"contains": "{{ city }}"}))
    'contains: {{ city }}'
    >>> inner = Check("not", checks=(Check("contains", "Paris"),))
    >>> label(as_written(inner, {"not": {"contains": "{{ city }}"}}))
    'not contains: {{ city }}'
    """
    return _as_written(check, raw[check.check]) if isinstance(raw, dict) else check


def _as_written(check: Check, value: Any) -> Check:
    """Names a check by the template of its argument."""
    nested = CHECK_KINDS[check.check].nested
    if nested is None:
        named = msgspec.structs.replace(check, argument=value)
    else:
        pairs = zip(check.checks, nested.split(value)[1], strict=True)
        inner = tuple((_as_written if held.of else as_written)(each, held.raw) for each, held in pairs)
        named = msgspec.structs.replace(check, checks=inner)
    template, plain = (_default_name(each) for each in (named, check))
    written = "" if template == plain else template
    return msgspec.structs.replace(check, checks=named.checks, written=written)
