"""Where output goes and when it is coloured."""

import pytest

from producer.cli.options import GlobalOptions
from producer.cli.output import Output, printable, wants_color


@pytest.mark.parametrize(
    ("terminal", "mode", "environment", "color"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"NO_COLOR": ""}, True),
        (True, "auto", {"CI": "true"}, False),
        (True, "auto", {"TERM": "dumb"}, False),
        (False, "auto", {"FORCE_COLOR": "1"}, True),
        (True, "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (False, "always", {"NO_COLOR": "1"}, True),
        (True, "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_color(terminal: bool, mode: str, environment: dict[str, str], color: bool) -> None:  # noqa: FBT001 - columns of the table
    """The flag comes first, then `NO_COLOR`, `FORCE_COLOR`, `CI` and what the stream is."""
    assert wants_color(terminal, mode, environment) is color


@pytest.mark.parametrize("text", ["\x1b]0;owned\x07", "a\rb", "\u202egnp.exe", "tab\there", "\x9b31m"])
def test_hostile_text_is_made_harmless(text: str) -> None:
    """Nothing that moves a cursor, renames a window or turns text around reaches the terminal."""
    assert printable(text).isprintable()


def test_ordinary_text_stays(capsys: pytest.CaptureFixture[str]) -> None:
    """Letters of any language and emoji pass unchanged."""
    text = "Größe 東京 🙂 don't"
    assert printable(text) == text
    Output(GlobalOptions()).data(text)
    assert capsys.readouterr().out == text + "\n"


def test_quiet_keeps_data_warnings_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """`-q` silences notes only; data goes to stdout, all else to stderr."""
    output = Output(GlobalOptions(quiet=True))
    output.note("a note")
    output.detail("a detail")
    output.data("data")
    output.warn("careful")
    output.error("broken", hint="mend it")
    captured = capsys.readouterr()
    assert captured.out == "data\n"
    assert captured.err == "warning: careful\nerror: broken\nhint: mend it\n"


def test_forced_color_paints(capsys: pytest.CaptureFixture[str]) -> None:
    """`--color always` colours also when nobody looks."""
    Output(GlobalOptions(color="always")).error("broken")
    assert capsys.readouterr().err == "\x1b[31merror:\x1b[0m broken\n"


def test_table_is_not_cut_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A table that goes to a file keeps its cells whole, and a cell cannot start a new line."""
    Output(GlobalOptions()).table(("NAME", "TEXT"), [("a", "x" * 300), ("b", "one\ntwo")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "TEXT"]
    assert lines[1].split() == ["a", "x" * 300]
    assert lines[2].split() == ["b", "one\\ntwo"]
