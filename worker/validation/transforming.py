"""Changes what is checked: to a part of its JSON, or to what a template, a function or JavaScript makes."""

from typing import Any, Final

from shared.codecs.json_pointers import at
from shared.contracts.case_vocabulary import why_not_json
from shared.contracts.checks import Transform
from shared.contracts.transform_config import script_of
from shared.errors import CheckUnusableError, WrongInput
from shared.templates.template_rendering import render
from worker.validation.case_verdict import CheckResult, CheckSandbox
from worker.validation.checks.javascript import request_of
from worker.validation.checks.kind import FAILED, Subject
from worker.validation.checks.python import encoded_context, stopped

NAME: Final = "transform"
"""What the row of a check is called that says why an answer could not be changed."""
_ABSENT: Final = object()


class TransformError(Exception):
    """An output could not be changed; the text says why."""


def transformed(transform: Transform, subject: Subject) -> Subject:
    """Changes what checks look at.

    Raises:
        TransformError: it cannot be changed.
        CheckUnusableError: the sandbox cannot run its code, whatever the output is.

    >>> transformed(Transform(json_pointer="/city"), Subject('{"city": "Paris"}')).text
    'Paris'
    >>> transformed(Transform(template="{{ json.n + 1 }}"), Subject('{"n": 1}')).text
    '2'
    >>> transformed(Transform(json_pointer="/town"), Subject('{"city": "Paris"}'))
    Traceback (most recent call last):
        ...
    worker.validation.transforming.TransformError: nothing is at /town
    """
    value = _value(transform, subject)
    if value is None:
        raise TransformError("it made nothing of the output")
    problem = why_not_json(value)
    if problem is not None:
        raise TransformError(f"it made something that JSON does not have: {problem}")
    return subject.at_node(value)


def failed(error: TransformError) -> CheckResult:
    """The row that stands in the place of all checks of an answer that could not be changed."""
    return CheckResult(NAME, NAME, FAILED, passed=False, reason=str(error), detail={"error": NAME})


def _value(transform: Transform, subject: Subject) -> Any:
    """What a transform makes of an output."""
    if transform.json_pointer is not None:
        if subject.parsed.error:
            raise TransformError(subject.parsed.error)
        value = at(subject.parsed.value, transform.json_pointer, _ABSENT)
        if value is _ABSENT:
            raise TransformError(f"nothing is at {transform.json_pointer}")
        return value
    if transform.template is not None:
        return _rendered(transform.template, subject)
    sandbox = subject.sandbox
    if not isinstance(sandbox, CheckSandbox):
        raise TransformError("it was not run: there is no sandbox here")
    try:
        if transform.python is not None:
            return sandbox.transform(transform.python, subject.text, encoded_context(subject))
        return sandbox.script(script_of(transform.javascript), request_of(subject)).value
    except CheckUnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever stops it, there is nothing to check
        what = "JavaScript" if transform.python is None else f"function {transform.python}"
        raise TransformError(stopped(what, error).reason) from None


def _rendered(template: str, subject: Subject) -> str:
    """Renders a template over an output."""
    values = {
        "output": subject.text,
        "json": subject.parsed.value,
        "input": subject.input,
        "vars": subject.vars,
        "metadata": subject.metadata,
    }
    try:
        return render(template, values)
    except WrongInput as problem:
        raise TransformError(problem.what) from None
