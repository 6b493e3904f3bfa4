"""The tree of commands: what is listed, what is refused, and in which words."""

import json
from importlib import import_module

import click
import pytest

from producer.cli.main import COMMANDS, proctor, run
from producer.cli.options.global_options import GLOBAL_OPTIONS


@pytest.mark.parametrize("name", COMMANDS)
def test_listed_command_exists_and_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command of the table can be loaded and has a help page with its own sentence."""
    command = import_module(f"producer.cli.commands.{name.replace('-', '_')}").command
    assert isinstance(command, click.Command)
    assert run([name, "--help"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"Usage: proctor {name}")
    assert (command.help or "").split("\n")[0].rstrip(".") in " ".join(page.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_options_have_help(name: str) -> None:
    """No option of any command stands there without an explanation."""
    command = import_module(f"producer.cli.commands.{name.replace('-', '_')}").command
    commands = [command, *getattr(command, "commands", {}).values()]
    silent = [
        f"{each.name} {param.opts[0]}"
        for each in commands
        for param in each.params
        if isinstance(param, click.Option) and not param.help
    ]
    assert silent == []


def test_help_lists_commands_options_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """The first page names every command, every global option and every exit code."""
    assert run(["--help"]) == 0
    words = capsys.readouterr().out.split()
    for name in COMMANDS:
        assert name in words
    for option in GLOBAL_OPTIONS:
        assert any(word.rstrip(",") in option.opts for word in words)
    assert {"0", "1", "2", "3", "4", "70", "130"} <= set(words)


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    """`proctor` alone explains itself and exits 2, as a command line without a command is no request."""
    assert run([]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("Usage: proctor")
    assert captured.out == ""


def test_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped command is refused in one line with the command that was meant."""
    assert run(["statsu"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == ["error: no such command: statsu", "hint: did you mean status?"]


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("ls", "`proctor runs` lists runs"),
        ("eval", "`proctor run FILE` evaluates a file"),
        ("logs", "`proctor watch RUN` follows a run, `proctor show RUN` shows what did not pass"),
    ],
)
def test_commands_of_other_tools_name_the_right_one(
    typed: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What people are used to type is answered with the command for it, not one spelled alike."""
    assert run([typed, "something"]) == 2
    assert capsys.readouterr().err.splitlines() == [f"error: no such command: {typed}", f"hint: {hint}"]


def test_unknown_option_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped option is refused with code 2 and a hint."""
    assert run(["decide", "hello", "--sginal", "pivot"]) == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["error: no such option '--sginal'", "hint: did you mean --signal?"]


def test_an_option_that_people_try_has_the_right_way(capsys: pytest.CaptureFixture[str]) -> None:
    """`run --prompt` is answered with the way to compare prompts, not with options spelled alike."""
    assert run(["run", "bench.yaml", "--prompt", "easy"]) == 2
    err = capsys.readouterr().err
    assert "hint: all prompts of a bench are run" in err
    assert "--detach" not in err


@pytest.mark.parametrize("arguments", [["--json", "statsu"], ["statsu", "--json"], ["decide", "--json"]])
def test_usage_error_as_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With `--json`, wherever it stands, a usage error is one JSON document on stdout and nothing else."""
    assert run(arguments) == 2
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert captured.err == ""
    assert document["schema_version"] == 2
    assert document["exit"] == 2
    assert document["error"].keys() == {"code", "message", "hint"}
    assert document["error"]["code"] == "usage"


@pytest.mark.parametrize(
    "arguments", [["--json", "decide", "ok"], ["decide", "--json", "ok"], ["decide", "ok", "--json"]]
)
def test_global_options_work_before_and_after(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--json` means the same before the command, after it and at the end."""
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "skip"


@pytest.mark.parametrize("arguments", [["--version"], ["decide", "--version"], ["runs", "list", "--version"]])
def test_version_works_everywhere(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`--version` prints name and version wherever it stands."""
    assert run(arguments) == 0
    assert capsys.readouterr().out.startswith("proctor ")


def test_bug_ends_with_70_and_a_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """An error that nobody foresaw is one line with the place of its traceback, never the traceback."""
    monkeypatch.setenv("PROCTOR_DATA_DIR", str(tmp_path))

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(proctor, "make_context", fail)
    assert run(["status"]) == 70
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "internal error: ZeroDivisionError: planted" in captured.err
    assert "Traceback" not in captured.err
    path = captured.err.split("the traceback is in ")[1].strip()
    assert path.startswith(str(tmp_path))
    with open(path, encoding="utf-8") as log:  # noqa: PTH123 - the path comes from the message
        assert "ZeroDivisionError: planted" in log.read()
