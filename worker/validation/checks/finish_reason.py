"""The check `finish_reason`: why the answer ended."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.display import show


def finish_reason(check: Check, subject: Subject) -> Score:
    """Compares the reason that the provider gave, in OpenAI's words.

    >>> from worker.validation.checks.kind import Answer
    >>> finish_reason(Check("finish_reason", "stop"), Subject("Hi", Answer(finish_reason="length"))).reason
    'ended with "length", expected "stop"'
    """
    found = subject.answer.finish_reason
    if not found:
        return no("the provider gave no reason why the answer ended")
    score = yes if found.lower() == check.argument.lower() else no
    return score(f"ended with {show(found)}, expected {show(check.argument)}")
