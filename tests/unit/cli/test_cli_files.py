"""Report files are decided and checked before any work is done."""

from pathlib import Path

import pytest

from producer.cli.main import run
from producer.report_files import ReportFile, plan_files
from shared.errors import UsageError


@pytest.mark.parametrize(
    ("name", "export", "format_name"),
    [
        ("out.md", None, "md"),
        ("OUT.JSONL", None, "jsonl"),
        ("out.json", None, "json"),
        ("out.csv", None, "csv"),
        ("out.xml", None, "junit"),
        ("out.txt", "csv", "csv"),
        ("out.json", "md", "md"),
    ],
)
def test_format(tmp_path: Path, name: str, export: str | None, format_name: str) -> None:
    """The suffix tells the format, unless `--export` does."""
    assert plan_files([tmp_path / name], [export] if export else []) == [
        ReportFile(format_name, tmp_path / name)
    ]


@pytest.mark.parametrize("name", ["out.docx", "out", "nowhere/out.md", "."])
def test_wrong_place_is_refused(tmp_path: Path, name: str) -> None:
    """An unknown suffix, a missing folder and a folder itself are refused with a way out."""
    with pytest.raises(UsageError) as refused:
        plan_files([tmp_path / name])
    assert str(tmp_path) in refused.value.message
    assert refused.value.hint


def test_existing_report_may_be_overwritten(tmp_path: Path) -> None:
    """A file that is there already is no error: running again is the usual case."""
    (tmp_path / "out.md").write_text("old")
    assert plan_files([tmp_path / "out.md"])


def test_two_reports_in_one_file_are_refused(tmp_path: Path) -> None:
    """Two spellings of one place are one place: the second report would take the first one's."""
    (tmp_path / "sub").mkdir()
    with pytest.raises(UsageError, match="named twice"):
        plan_files([tmp_path / "a.md", tmp_path / "b.md", tmp_path / "sub" / ".." / "a.md"])


def test_each_format_has_its_file() -> None:
    """Formats that would share a file, or the files of `-o`, are refused with the option that helps."""
    files = [ReportFile("junit", Path("report.xml")), ReportFile("github", Path("report.md"))]
    assert plan_files([], ["junit", "github"]) == files
    for paths, formats in (([], ["md", "github"]), ([Path("a.xml")], ["junit", "md"])):
        with pytest.raises(UsageError) as refused:
            plan_files(paths, formats)
        assert "-o" in refused.value.hint


def test_repeated_export_is_not_overridden(capsys: pytest.CaptureFixture[str]) -> None:
    """`-e junit -e md -o FILE` ends with exit 2 before the file is read; the last one had silently won."""
    assert run(["run", "no.yaml", "-e", "junit", "-e", "md", "-o", "a.xml"]) == 2
    assert "junit, md are several formats" in capsys.readouterr().err
