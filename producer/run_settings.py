"""What commands and reports read of a run's snapshot, whatever its kind."""

from contextlib import suppress

from shared.contracts.case_run import FREEFORM, CaseRun
from shared.runs import RunInfo


def has_quorums(info: RunInfo) -> bool:
    """Returns whether answers to a case count together; no if another version wrote it otherwise."""
    with suppress(KeyError, TypeError, ValueError):
        return CaseRun.from_snapshot(info.snapshot).has_quorums
    return False


def is_freeform(info: RunInfo) -> bool:
    """Returns whether the outputs of a run are only shown; no if another version wrote it otherwise."""
    with suppress(KeyError, TypeError, ValueError):
        return CaseRun.from_snapshot(info.snapshot).mode == FREEFORM
    return False
