"""The check `json_equals`: the JSON value in the output is this one, whatever the order of keys and items."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.equality import explain, unordered_equal


def json_equals(check: Check, subject: Subject) -> Score:
    """Compares any JSON value as `expected` compares objects.

    >>> json_equals(Check("json_equals", ["a", "b"]), Subject('["b", "a"]')).value
    1.0
    >>> json_equals(Check("json_equals", {"a": 1}), Subject('{"a": 2}')).reason
    '1 difference: /a: expected 1, found 2'
    """
    parsed = subject.parsed
    if parsed.error:
        return no(parsed.error)
    if unordered_equal(check.argument, parsed.value):
        return yes("equal to the expected JSON")
    return no(str(explain(check.argument, parsed.value)))
