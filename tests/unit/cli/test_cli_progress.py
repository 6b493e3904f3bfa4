"""What the progress view says of a run, and why the run waits."""

import io

import pytest
from rich.console import Console

from producer.cli.drawing import draw
from producer.cli.live import PlainView
from producer.cli.options import GlobalOptions
from producer.cli.output import Output
from producer.cli.progress import Meter, Progress, figures

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
    """The time left follows from the rate of late, and is not told while nobody knows it."""
    assert ("left", "1.3 s") in figures(progress())
    assert "left" not in dict(figures(progress(rate_s=None)))
    assert "left" not in dict(figures(progress(rate_s=0.0)))


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
    assert "71 %" in lines[1]


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
