"""What `status --watch` shows of one look: lines that fit, and one line for a log."""

from typing import Any

import pytest
from msgspec.structs import replace

from producer.cli.live.fleet_view import Rates, plain_line, screen_lines
from producer.cli.output import printable
from producer.cli.run_lookup import listed
from producer.service_documents import QueueState, StatusDocument, WorkerState
from tests.support.run_infos import info

RUN = replace(listed(info(), "limit of openai"), run_id="bench-4k2m9x", state="running", done=12, total=400)
QUEUES = tuple(
    QueueState(kind, workers=2, queued=3, handed_out=4, delayed=0, runs=1, open_items=388)
    for kind in ("turns", "cases", "queries")
)


def look(**changes: Any) -> StatusDocument:
    """One look at a fleet, with changes."""
    workers = (WorkerState("celery@host-1", ("turns", "cases"), 62, 0.7),)
    fleet = StatusDocument(
        redis="redis://db", embedded=False, queues=QUEUES, workers=workers, runs=(RUN,), dead=2
    )
    return replace(fleet, **changes)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_look_fits_the_terminal(width: int) -> None:
    """No line is wider than the terminal; queues, runs with rate, workers with their age are there."""
    run = replace(RUN, why="it waits for " + "x" * 300)
    lines = screen_lines(look(runs=(run,)), {RUN.run_id: 2.5}, width=width, height=40)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert lines[1].split()[:4] == ["turns", "388", "3", "4"], "items, and chunks below their own heading"
    assert "CHUNKS QUEUED" in lines[0]
    assert "bench-4k2m9x" in text
    assert "2.5/s" in text
    assert "0.7 s ago" in text
    assert "2 dead items" in text


def test_a_look_is_no_higher_than_the_terminal() -> None:
    """What does not fit is counted."""
    many = tuple(replace(RUN, run_id=f"r{number}") for number in range(100))
    lines = screen_lines(look(runs=many), {run.run_id: None for run in many}, width=80, height=20)
    assert len(lines) == 20
    assert lines[-1].startswith("… and ")


def test_runs_that_have_ended_are_no_news() -> None:
    """Only runs under way have a rate, and stand in the line of a log."""
    rates, ended = Rates(), replace(RUN, run_id="old", state="finished")
    document = look(runs=(replace(RUN, why="a\x1b[2Jb"), ended))
    assert rates.of(document) == {"bench-4k2m9x": None}
    line = printable(plain_line(document, {"bench-4k2m9x": 2.5}))
    assert line.startswith("workers 1 queue 9 dead 2 | bench-4k2m9x running 3% of 400 2.5/s waiting: a")
    assert "old" not in line
    assert "\x1b" not in line
