"""The check `contains_all`: each of several texts is somewhere in the output."""

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.texts import begins, compared_texts, listed


def contains_all(check: Check, subject: Subject) -> Score:
    """Looks for several texts.

    >>> contains_all(Check("contains_all", ["Paris", "Seine"]), Subject("Paris")).reason
    '1 of 2 texts is missing: "Seine" in the output, which begins: Paris'
    """
    text, parts = compared_texts(check, subject)
    missing = [part for part, compared in zip(check.argument, parts, strict=True) if compared not in text]
    if not missing:
        return yes(f"all {len(parts)} texts are in the output")
    verb = "is" if len(missing) == 1 else "are"
    what = f"{len(missing)} of {len(parts)} texts {verb} missing: {listed(missing)}"
    return no(f"{what} in {begins(subject.text)}", missing=missing)
