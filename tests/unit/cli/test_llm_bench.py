"""`llm-bench` speaks the validation document's words, and takes variables from files."""

from pathlib import Path

import pytest

from producer.bench import help_text, read_environment, run, translated, variables
from shared.errors import InputError, UsageError


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("run", "run --config bench.config.yaml"),
        ("run --config bench.config.yaml --verbose", "run --config bench.config.yaml --verbose"),
        ("run -c freeform.yaml --export html -o x.html", "run -c freeform.yaml --export html -o x.html"),
        ("run -m a -m b -j 3 -e csv", "run -m a -m b -j 3 -e csv --config bench.config.yaml"),
        ("run mine.yaml --no-color -q", "run mine.yaml --color never -q"),
        ("-v run", "run -v --config bench.config.yaml"),
        ("validate", "validate --config bench.config.yaml"),
        ("init --non-interactive", "init --kind cases"),
        ("init -o a/b.yaml", "init --kind cases -o a/b.yaml"),
        ("compare a.json b.json", "compare a.json b.json"),
        ("cache clear -f", "cache clear -f"),
        ("run --help", "run --help"),
        ("-V", "--version"),
        ("--version", "--version"),
    ],
)
def test_words_are_translated(said: str, means: str) -> None:
    """Each documented command line becomes one of Proctor's."""
    assert translated(said.split()) == means.split()


def test_an_unknown_command_is_a_usage_error() -> None:
    """The error lists the commands, and its exit code is 2."""
    with pytest.raises(UsageError, match="no such command: rum") as caught:
        translated(["rum"])
    assert "run" in caught.value.hint
    assert run(["rum"], {}) == 2


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command there is help, and that is no error."""
    assert run([], {}) == 0
    assert capsys.readouterr().out == help_text()


def test_files_of_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`.env` fills in what is missing; `.env.local` and `--env-file` go before what is there."""
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("# keys\nA=1\nexport B='two words'\nC=3 # note\n\n")
    Path(".env.local").write_text('D="4"\nA=local\n')
    Path("more").write_text("E=5\nC=more\n")
    environment = {"B": "kept", "D": "old"}
    assert read_environment(["run", "--env-file", "more", "-q"], environment) == ["run", "-q"]
    assert environment == {"A": "local", "B": "kept", "C": "more", "D": "4", "E": "5"}
    assert read_environment(["--env-file=more", "run"], environment) == ["run"]


def test_a_broken_file_of_variables_shows_no_secret(tmp_path: Path) -> None:
    """The error names the line, not its content; a missing file is an error too."""
    path = tmp_path / ".env"
    path.write_text("A=1\nsk-secret\n")
    with pytest.raises(InputError, match=r"\.env:2: not NAME=VALUE") as caught:
        variables(path)
    assert "secret" not in caught.value.message
    with pytest.raises(InputError, match="cannot be read"):
        variables(tmp_path / "none")
    with pytest.raises(UsageError, match="--env-file names no file"):
        read_environment(["run", "--env-file"], {})
