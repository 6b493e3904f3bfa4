"""The checks of test cases: functions by what they look at, and one row each in one table (`table.py`)."""

from worker.validation.checks.kind import (
    Answer,
    AsksJudges,
    CheckKind,
    Score,
    Subject,
)
from worker.validation.checks.labels import as_written, label
from worker.validation.checks.parsing import map_check, parse_checks, render_checks
from worker.validation.checks.table import CHECK_KINDS
from worker.validation.checks.walks import with_models, with_transforms

__all__ = [
    "CHECK_KINDS",
    "Answer",
    "AsksJudges",
    "CheckKind",
    "Score",
    "Subject",
    "as_written",
    "label",
    "map_check",
    "parse_checks",
    "render_checks",
    "with_models",
    "with_transforms",
]
