"""`llm-bench` speaks the validation document's words, and takes variables from files."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from subprocess import run as call

import click
import pytest

from producer.bench import help_text, read_environment, run, translated
from producer.cases.load import load_cases
from producer.cli.main import proctor
from producer.env_files import variables, variables_in
from producer.git_state import git_info
from producer.load.source import Source
from producer.options import SubmitOptions
from shared.errors import InputError, UsageError
from tests.support.benches import CASES, HEAD, write


@pytest.mark.parametrize(
    ("words", "means"),
    [
        ("run", "run --config bench.config.yaml"),
        ("run --config bench.config.yaml --verbose", "run --config bench.config.yaml --verbose"),
        ("run -c freeform.yaml --export html -o x.html", "run -c freeform.yaml --export html -o x.html"),
        ("run -m a -m b -j 3 -e csv", "run -m a -m b -j 3 -e csv --config bench.config.yaml"),
        ("run mine.yaml --no-color -q", "run mine.yaml --color never -q"),
        ("-v run", "run -v --config bench.config.yaml"),
        ("--redis redis://db run -q", "run --redis redis://db -q --config bench.config.yaml"),
        ("--color=never validate", "validate --color=never --config bench.config.yaml"),
        ("run --resume some-run", "run --resume some-run"),
        ("run -q -- mine.yaml", "run -q -- mine.yaml"),
        ("run -", "run -"),
        ("run --no-such-option", "run --no-such-option --config bench.config.yaml"),
        ("models -p openai", "models -p openai --config bench.config.yaml"),
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
def test_words_are_translated(words: str, means: str) -> None:
    """Each documented command line becomes one of Proctor's."""
    assert translated(words.split()) == means.split()


def options(name: str) -> Iterator[tuple[str, str, bool]]:
    """Every spelling of every option of a command, and whether it takes a value."""
    context = click.Context(proctor)
    command = proctor.get_command(context, name)
    assert command is not None
    other = {"--config", "--resume", "--help", "--version"}  # they say what is run, or that nothing is
    for param in command.get_params(context):
        if isinstance(param, click.Option) and other.isdisjoint(param.opts):
            for spelling in param.opts:
                yield name, spelling, not (param.is_flag or param.count)


ALL = [each for name in ("run", "validate", "models") for each in options(name)]


def test_the_table_of_options_is_no_empty_one() -> None:
    """The options that once swallowed the default configuration are among those tried below."""
    valued = {spelling for name, spelling, has_value in ALL if has_value and name == "run"}
    assert {"--fail-on", "--namespace", "--live", "--bearer-env", "--delay", "--in-flight", "-k"} <= valued
    assert len(valued) > 35


@pytest.mark.parametrize(("name", "option", "has_value"), ALL)
def test_no_option_swallows_the_default_configuration(name: str, option: str, has_value: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """The value of an option is no file, in whatever way it is written; a file behind it is one."""
    value = ["value"] if has_value else []
    words = [name, option, *value]
    assert translated(words) == [*words, "--config", "bench.config.yaml"]
    assert translated([*words, "mine.yaml"]) == [*words, "mine.yaml"]
    if has_value and option.startswith("--"):
        assert translated([name, f"{option}=value"])[2:] == ["--config", "bench.config.yaml"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_run_knows_the_commit_of_its_configuration(tmp_path: Path) -> None:
    """Commit, branch, tag and changes in a repository; nothing without a commit or outside of one."""
    assert git_info(tmp_path) is None
    assert git_info(tmp_path / "none") is None
    for words in (
        "init -q -b trunk",
        "-c user.name=me -c user.email=me@example commit -q --allow-empty -m one",
    ):
        assert git_info(tmp_path) is None
        call(["git", *words.split()], cwd=tmp_path, check=True)
    found = git_info(tmp_path)
    assert found is not None
    commit = found["commit_hash"]
    assert isinstance(commit, str)
    assert len(commit) == 40
    assert found == {
        "commit_hash": commit,
        "commit_short": commit[:7],
        "branch": "trunk",
        "is_dirty": False,
        "tag": None,
    }
    bench = Source(write(tmp_path, HEAD + CASES))
    assert load_cases(bench, SubmitOptions()).snapshot["git"] == found
    call(["git", "checkout", "-q", "--detach"], cwd=tmp_path, check=True)
    assert git_info(tmp_path) == {**found, "branch": None}
    for words in ("tag v1.0", f"add {bench.path}"):
        call(["git", *words.split()], cwd=tmp_path, check=True)
    assert git_info(tmp_path) == {**found, "branch": None, "tag": "v1.0", "is_dirty": True}


def test_no_git_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where git is not installed, reports leave its columns empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_info(tmp_path) is None


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
    """`.env` supplies missing keys; `.env.local` and `--env-file` go before what is there."""
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("# keys\nA_TOKEN=1\nexport B_TOKEN='two words'\nC_TOKEN=3 # note\n\n")
    Path(".env.local").write_text('D_TOKEN="4"\nA_TOKEN=local\nOPENSSL_CONF=o.cnf\n')
    Path("more").write_text("E=5\nC_TOKEN=more\n")
    environment = {"B_TOKEN": "kept", "D_TOKEN": "old"}
    assert read_environment(["run", "--env-file", "more", "-q"], environment) == ["run", "-q"]
    found = {"A_TOKEN": "local", "B_TOKEN": "kept", "C_TOKEN": "more", "D_TOKEN": "4", "E": "5"}
    assert environment == found
    assert read_environment(["--env-file=more", "run"], environment) == ["run"]


def test_a_broken_file_of_variables_shows_no_secret(tmp_path: Path) -> None:
    """The error names the line, not its content; a missing file is an error too."""
    path = tmp_path / ".env"
    path.write_text("A=1\nsk-secret\n")
    with pytest.raises(InputError, match=r"\.env:2: not NAME=VALUE") as caught:
        variables(path)
    assert "secret" not in caught.value.message
    assert variables_in("A=nul\0inside").broken == [1]
    assert variables_in("A=1\n\n\nsk-secret\n").broken == [4]
    assert variables_in('A="no end\n').broken == [1]
    assert variables_in("A=one\u2028line").found == {"A": "one\u2028line"}
    assert variables_in("A=${B}$C").found == {"A": "${B}$C"}
    with pytest.raises(InputError, match="cannot be read"):
        variables(tmp_path / "none")
    with pytest.raises(UsageError, match="--env-file names no file"):
        read_environment(["run", "--env-file"], {})


def test_help_names_the_program_that_was_called(capsys: pytest.CaptureFixture[str]) -> None:
    """The usage of a command, and hints to it, say `llm-bench`."""
    assert run(["run", "--help"], {}) == 0
    assert capsys.readouterr().out.startswith("Usage: llm-bench run ")
    assert run(["validate", "-c"], {}) == 2
    assert "proctor" not in capsys.readouterr().err
