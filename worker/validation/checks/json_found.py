"""The check `json`: there is a JSON value in the output."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.display import show


def json_found(_: Check, subject: Subject) -> Score:
    """Looks for the JSON value that the other JSON checks compare.

    >>> json_found(Check("json"), Subject("[1, 2]")).reason
    'the JSON is [1, 2]'
    >>> json_found(Check("json"), Subject("[1, 2")).reason
    "no JSON in the output: broken JSON: Expecting ',' delimiter: line 1 column 6 (char 5)"
    """
    if subject.parsed.error:
        return no(subject.parsed.error)
    return yes(f"the JSON is {show(subject.parsed.value)}")
