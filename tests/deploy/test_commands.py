"""Holds the command lines and variables of deploy/ against the program that they are for."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import click
import pytest

from producer.cli.main import COMMANDS, proctor
from producer.report_files import FORMATS
from shared.settings import Settings, describe
from tests.support.deployment import Command, commands, variables
from tests.support.dockerfile import parse_dockerfile
from tests.support.image import DOCKERFILE, allowed_context
from tests.support.tree import ROOT

FOUND = commands()


def parse(words: Sequence[str]) -> None:
    """Parses a command line as the program does, and runs nothing.

    Raises:
        click.UsageError: it is no command line of ours.
    """
    command: click.Command = proctor
    rest = list(words)
    while isinstance(command, click.Group):
        context = command.make_context("proctor", rest)
        _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        command = cast("click.Command", found)
    command.make_context("proctor", rest)


def not_yet(words: Sequence[str]) -> str:
    """Names what a command line needs that this version of the program does not have."""
    if words[0] == "metrics" and "metrics" not in COMMANDS:
        return "the metrics command"
    return "the report format github" if "github" in words and "github" not in FORMATS else ""


@pytest.mark.parametrize("command", FOUND, ids=lambda each: f"{each.where}: {' '.join(each.words)}")
def test_every_command_line_is_understood(command: Command) -> None:
    """Each `proctor …` in deploy/ is a command of the program with options that it has."""
    if missing := not_yet(command.words):
        pytest.skip(f"needs {missing}")
    parse(command.words)


def test_a_wrong_command_line_is_found() -> None:
    """A command or an option that does not exist is refused by the same parser."""
    for words in (["wroker"], ["worker", "--queue-names", "turns"], ["health", "workers"]):
        with pytest.raises(click.UsageError):
            parse(words)


def test_command_lines_are_found_in_every_kind_of_file() -> None:
    """The image, compose, Kubernetes, systemd, the workflow and the page are all looked at."""
    places = {each.where.split()[0] for each in FOUND}
    assert {
        "Dockerfile",
        "compose.yaml",
        "kubernetes",
        "systemd",
        "github/proctor.yml",
        "README.md",
    } <= places
    assert ("worker", "--queues", "turns") in {each.words for each in FOUND}


def test_every_variable_is_a_setting() -> None:
    """Each PROCTOR_… in deploy/ is a variable of shared/settings.py, or the file of a secret one."""
    settings = {row.env for row in describe(Settings(data_dir=Path("/x")))}
    secrets = {f"PROCTOR_{name}_FILE" for name in ("REDIS_URL", "BROKER_URL", "FLOWER_AUTH")}
    wrong = {
        (file, name) for file, name in variables() if name.rstrip("_") not in settings | secrets | {"PROCTOR"}
    }
    assert not wrong
    assert ("compose.yaml", "PROCTOR_REDIS_URL_FILE") in variables()


def test_the_image_is_built_from_files_that_exist() -> None:
    """What .dockerignore lets in and the Dockerfile copies is there, and nothing more is let in."""
    copied = {
        source
        for stage in parse_dockerfile(DOCKERFILE.read_text(encoding="utf-8"))
        for step in stage.steps
        if step.word == "COPY" and not step.text.startswith("--from")
        for source in step.text.split()[:-1]
    }
    assert copied == allowed_context()
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_names_the_version_of_the_code() -> None:
    """Image, compose file and Deployments name the version of the package."""
    from shared import __version__  # noqa: PLC0415 - only here, and lazily provided

    stage = parse_dockerfile(DOCKERFILE.read_text(encoding="utf-8"))[-1]
    assert stage.labels["org.opencontainers.image.version"] == __version__
    assert f"proctor:{__version__}}}" in (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    assert f"newTag: {__version__}" in (ROOT / "deploy/kubernetes/base/kustomization.yaml").read_text()
