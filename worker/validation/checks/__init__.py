"""The checks of test cases: one file with one function each, one row each in one table (`table.py`)."""

from worker.validation.checks.kind import Answer, CheckKind, Score, Subject
from worker.validation.checks.parsing import CheckProblem, parse_checks, render_checks
from worker.validation.checks.table import CHECK_KINDS

__all__ = [
    "CHECK_KINDS",
    "Answer",
    "CheckKind",
    "CheckProblem",
    "Score",
    "Subject",
    "parse_checks",
    "render_checks",
]
