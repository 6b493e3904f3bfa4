"""What the progress view says of a run, and why the run waits."""

import io
import json
from itertools import cycle
from typing import Any

import pytest
from rich.console import Console

from producer.cli.live.drawing import InPlace, draw
from producer.cli.live.progress import figures, money, plain_line
from producer.cli.live.view import EventLines, NoView, PlainView
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output
from producer.following import CallsSoFar, FailedItem, Meter, Progress
from producer.following.follower import limit_text
from shared.runs.upstreams import ScopeUsage
from shared.upstream.limits import Limits, ScopeState

TALLY = {"must": 1200, "should": 900, "skip": 440, "error": 2}


def progress(**changes: object) -> Progress:
    """A run in the middle of its work, with changes."""
    values: dict[str, object] = {
        "run": "turns-4k2m9x",
        "state": "running",
        "done": 2542,
        "total": 3574,
        "tally": TALLY,
        "elapsed_s": 3.0,
        "workers": 2,
        "queued": 3,
        "rate_s": 800.0,
        "source": "turns.jsonl",
    }
    return Progress(**{**values, **changes})  # type: ignore[arg-type]  # a table of literals


def test_time_left() -> None:
    """The time left follows from the rate of late, and is not shown while it is unknown."""
    assert ("left", "1.3 s") in figures(progress())
    assert "left" not in dict(figures(progress(rate_s=None)))
    assert "left" not in dict(figures(progress(rate_s=0.0)))


def test_calls_in_flight_are_shown_while_the_run_goes_on() -> None:
    """What is under way over all workers stands among the figures, where somebody counts it."""
    assert ("in flight", "25") in figures(progress(calls=CallsSoFar(in_flight=25)))
    assert ("in flight", "0") in figures(progress(calls=CallsSoFar(in_flight=0)))
    assert "in flight" not in dict(figures(progress()))
    assert "in flight" not in dict(figures(progress(state="finished", calls=CallsSoFar(in_flight=0))))


class Resized(dict[str, str]):
    """The environment of a terminal that has another width each time somebody asks."""

    def __init__(self) -> None:
        self._columns = cycle((140, 60, 100))

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the next width for `COLUMNS`."""
        return str(next(self._columns)) if key == "COLUMNS" else default


def test_a_view_is_drawn_for_one_width_while_the_terminal_changes() -> None:
    """A line that fills the width it was made for is written whole, whatever the terminal does meanwhile."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system=None, _environ=Resized())
    place = InPlace(console, transient=True)
    for _ in range(6):
        place.show(lambda size: "x" * (size.width - 1) + "!")
        written = stream.getvalue()
        assert written.count("x") + written.count("!") in {60, 100, 140}
        assert "x!" in written
        stream.truncate(stream.seek(0))
    place.close()


def test_the_last_line_has_the_whole_cost() -> None:
    """What was spent after the last look at the budget is in the results, and counts."""
    calls = CallsSoFar(spent_usd=0.0013, cap_usd=1.0)
    ended = progress(state="finished", tally={"passed": 30, "cost_micro_usd": 3158}, calls=calls)
    assert money(ended) == [("paid", "$0.0032 of $1.00")]


def test_rate_is_of_the_last_seconds() -> None:
    """A run that stood still for a minute shows its present rate, not the average since its start."""
    meter = Meter()
    for second in range(60):
        meter.rate(float(second), 0)
    assert meter.rate(60.0, 500) == pytest.approx(100.0, rel=0.2)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_live_view_fits_the_terminal(width: int) -> None:
    """No line of the live view is wider than the terminal, whatever the file is called."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(draw(progress(source="x" * 200, why="no worker is alive"), width))
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("turns-4k2m9x")
    assert lines[0].rstrip().endswith("running")
    assert "71%" in lines[1]


def test_hostile_name_cannot_leave_its_line() -> None:
    """A file name with escape sequences is shown, not obeyed."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    with console.capture() as capture:
        console.print(draw(progress(source="a\x1b[2J\nb"), 80))
    assert "\x1b" not in capture.get()
    assert len(capture.get().splitlines()) == 4


def test_plain_view_tells_changes_only(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there is one line for a new state or reason, and none for numbers."""
    view = PlainView(Output(GlobalOptions()))
    view.show(progress())
    view.show(progress(done=2600))
    view.show(progress(why="no worker is alive"))
    view.show(progress(why="no worker is alive", done=2601))
    view.show(progress(state="finished", done=3574))
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert [line.split()[1] for line in lines] == ["running", "running", "finished"]
    assert "waiting: no worker is alive" in lines[1]
    assert "\x1b" not in captured.err


HOSTILE = FailedItem("case 3 · m\x1b[2J", "upstream_refused", "no\nsuch \x1b]0;owned\x07 model")
CALLS = CallsSoFar(0.0123, 1.0, ("openai 480/500 req/min, 7/8 at a time",), (HOSTILE,) * 3)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_live_view_shows_limits_cost_and_failures(width: int) -> None:
    """Each has a line of its own that never wraps, and an upstream's words cannot move the cursor."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(draw(progress(calls=CALLS), width))
    text = capture.get()
    lines = text.splitlines()
    assert len(lines) == 8
    assert max(map(len, lines)) <= width
    assert "\x1b" not in text
    assert lines[4].startswith("limit  openai 480/500 req/min")
    assert lines[5].startswith("failed  case 3 · m")
    if width > 40:
        assert "paid $0.01 of $1.00" in lines[2]


def test_plain_line_tells_all_of_it_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A log gets limits, cost and the last failure too, in one inert line."""
    PlainView(Output(GlobalOptions())).show(progress(calls=CALLS))
    (line,) = capsys.readouterr().err.splitlines()
    assert "\x1b" not in line
    assert "paid $0.01 of $1.00" in line
    assert " | limit openai 480/500 req/min" in line
    assert " | last failure: case 3" in line
    long = CallsSoFar(failed=(FailedItem("case 3", "upstream_refused", "x" * 100),))
    assert plain_line(progress(calls=long)).endswith(f"upstream_refused {'x' * 60}...")


def test_a_reason_that_counts_down_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A log gets one line for a limit that holds and lets go, however many seconds are left."""
    view = PlainView(Output(GlobalOptions()))
    for left in (3, 2, 1):
        view.show(progress(why=f"limit of openai: the next call may go in {left} s"))
        view.show(progress())
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_events_are_one_line_per_change(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get the submit, each failure and reason once, numbers now and then, and the last ones."""
    view = EventLines(Output(GlobalOptions(jsonl=True)), NoView())
    view.show(progress(done=0))
    view.show(progress(done=1))
    view.show(progress(done=2, calls=CALLS, why="limit of openai: the next call may go in 3 s"))
    view.show(progress(done=3, calls=CALLS, why="limit of openai: the next call may go in 2 s"))
    view.show(progress(done=3574, state="finished", calls=CALLS))
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    words = [event["event"] for event in events]
    assert words == ["submitted", "progress", *["failure"] * 3, "waiting", "progress"]
    assert {event["schema_version"] for event in events} == {2}
    assert (events[0]["total"], events[1]["done"], events[-1]["done"]) == (3574, 0, 3574)
    assert events[2]["code"] == "upstream_refused"
    assert (events[-1]["cost_usd"], events[-1]["max_cost_usd"]) == (0.0123, 1.0)


def test_headroom_is_shown_by_scope() -> None:
    """Requests of late stand beside the limit, calls under way beside the most, adapted or set."""
    state = ScopeState("openai", "ab", 3, 4.7, 0, "closed", 0, 2_400, None)
    gauge = ScopeUsage(state, Limits(rpm=500, concurrency=8), 100, is_own=True)
    assert limit_text(gauge, 8.0) == "openai 480/500 req/min, 3/4 at a time (adapted), next in 3 s"
    assert limit_text(gauge, None).startswith("openai ?/500 req/min")
