"""The reading side of runs: what a run is, what it waits for, and its results in input order."""

from shared.runs.info import RunInfo, RunStore
from shared.runs.pages import TurnRow
from shared.runs.waiting import Worker

__all__ = ["RunInfo", "RunStore", "TurnRow", "Worker"]
