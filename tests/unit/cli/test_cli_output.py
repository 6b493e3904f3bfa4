"""Where output goes and when it is coloured."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from producer import bench
from producer.atomic_file import atomic_file
from producer.cli.colors import wants_color
from producer.cli.main import run
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import Output, printable, usable_streams
from producer.harness.program import main as evaluate
from producer.report_files import ReportFile, reports_of
from shared.errors import InfrastructureError, UsageError
from tests.support.tree import ROOT

FULL: Final = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="/dev/full: there is none here")


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


@needs_full
@pytest.mark.parametrize(
    "command",
    [
        lambda: run(["decide", "ok thanks", "--json"]),
        lambda: run(["config", "show"]),
        lambda: run(["no-such-command", "--json"]),
        lambda: bench.run(["--help"], {}),
        lambda: bench.run(["validate", "--json"], {}),
        lambda: evaluate(["--dry-run"]),
    ],
    ids=["document", "words", "failure as a document", "llm-bench", "llm-bench failing", "harness"],
)
def test_full_standard_output_is_one_line(
    command: Callable[[], int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every program that prints ends with one line on stderr, no traceback, and nothing left to flush."""
    monkeypatch.chdir(ROOT / "examples" / "copilot")
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with usable_streams():
            code = command()
        full.flush()
    lines = capsys.readouterr().err.splitlines()
    assert code in {2, 3}
    assert lines[0].lower().startswith("error: ")
    if code == 3:
        assert lines == [lines[0]]
        assert lines[0].endswith("standard output: No space left on device")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "ascii"])
def test_characters_that_an_encoding_lacks_are_escaped(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where stdout is not UTF-8 a mark or a letter becomes its escape; nothing fails."""
    path = tmp_path / "out"
    with path.open("w", encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        with usable_streams():
            Output(GlobalOptions()).data("\u2713 passed \u00e9 \u3042")
    expected = "\u2713 passed \u00e9 \u3042".encode(encoding, "backslashreplace")
    assert path.read_bytes() == expected + b"\n"


@needs_full
def test_a_log_on_a_full_disk_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed beside the data is lost without a word, and the command goes on."""
    with os.fdopen(os.open(FULL, os.O_WRONLY), "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        Output(GlobalOptions()).warn("careful")
        with usable_streams():
            pass
        full.flush()


def write(files: Sequence[ReportFile], *, is_final: bool) -> None:
    """Writes reports of a run, all at the same time."""
    with reports_of("run-1", files, is_final=is_final), ExitStack() as stack:
        for out in [stack.enter_context(atomic_file(file.path)) for file in files]:
            out.write(b"a row")


@needs_full
@pytest.mark.parametrize(("is_final", "way"), [(True, "report run-1"), (False, "run --resume run-1")])
def test_report_on_a_full_disk_names_file_run_and_way_out(
    tmp_path: Path, way: str, *, is_final: bool
) -> None:
    """The message has the file and the reason, the hint the command that writes all files; none is left."""
    files = [ReportFile("md", tmp_path / "a.md"), ReportFile("csv", tmp_path / "b.csv")]
    part = tmp_path / f".b.csv.{os.getpid()}.part"
    part.symlink_to(FULL)
    with pytest.raises(InfrastructureError) as caught:
        write(files, is_final=is_final)
    assert caught.value.message == f"{files[1].path} cannot be written: No space left on device"
    command = f"`proctor {way} -o {files[0].path} -o {files[1].path}`"
    assert caught.value.hint == f"run-1 is kept: free some space, then {command}"
    assert list(tmp_path.iterdir()) == []


def test_report_in_a_folder_that_is_gone_is_no_fault_of_the_machine(tmp_path: Path) -> None:
    """A place that cannot be used is exit code 2, and the run is as safe."""
    path = tmp_path / "gone" / "a.md"
    with pytest.raises(UsageError, match=f"{path} cannot be written: No such file") as caught:
        write([ReportFile("md", path)], is_final=True)
    assert "run-1 is kept" in caught.value.hint


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    """What is no ordinary file is written to, and not replaced by one."""
    pipe = tmp_path / "out.csv"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        write([ReportFile("csv", pipe)], is_final=True)
        assert reader.read() == b"a row"
    assert pipe.is_fifo()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file that a link names gets the report."""
    there, link = tmp_path / "there.csv", tmp_path / "link.csv"
    link.symlink_to(there)
    write([ReportFile("csv", link)], is_final=True)
    assert link.is_symlink()
    assert there.read_bytes() == b"a row"
