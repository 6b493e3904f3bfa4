"""Reads a Dockerfile as stages of instructions; one that it does not know is an error and not a guess."""

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import Final

VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
CACHE_MOUNT: Final = re.compile(r"--mount=type=cache,target=(\S+)")
STEPS: Final = frozenset({"RUN", "COPY"})
WORDS: Final = STEPS | {"FROM", "ARG", "ENV", "LABEL", "WORKDIR", "USER", "STOPSIGNAL", "HEALTHCHECK"}
EXEC_FORMS: Final = frozenset({"ENTRYPOINT", "CMD"})


@dataclass(frozen=True)
class Step:
    """Something that changes the stage's file system."""

    word: str
    """`RUN` or `COPY`."""
    text: str
    """What stands behind the word, without cache mounts."""
    workdir: str
    """The folder it happens in."""
    env: dict[str, str]
    """The environment at this step."""
    caches: tuple[str, ...] = ()
    """Targets of its cache mounts."""


@dataclass
class Stage:
    """One stage, and how a container of it starts."""

    name: str
    image: str
    steps: list[Step] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "0:0"
    stop_signal: str = "SIGTERM"
    healthcheck: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def parse_dockerfile(text: str) -> list[Stage]:
    """Reads all stages.

    Raises:
        ValueError: it holds an instruction or a form that this reader does not perform.
    """
    stages: list[Stage] = []
    outer: dict[str, str] = {}
    for line in _logical_lines(text):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            image, _, name = _expanded(rest, outer).partition(" AS ")
            stages.append(Stage(name or str(len(stages)), image.strip(), args=dict(outer)))
        elif word == "ARG" and not stages:
            outer |= _pairs(rest)
        else:
            _apply(stages[-1], word, rest.strip())
    return stages


def _logical_lines(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines()


def _expanded(text: str, values: dict[str, str]) -> str:
    return VARIABLE.sub(lambda found: values[found[1]], text)


def _pairs(text: str) -> dict[str, str]:
    """Reads `A=1 B="two words"`."""
    return dict(_split(each) for each in shlex.split(text))


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} has no value: write NAME=VALUE")
    return name, value


def _apply(stage: Stage, word: str, rest: str) -> None:
    if word in STEPS:
        caches = tuple(CACHE_MOUNT.findall(rest))
        stage.steps.append(
            Step(word, CACHE_MOUNT.sub("", rest).strip(), stage.workdir, dict(stage.env), caches)
        )
    elif word in EXEC_FORMS:
        setattr(stage, {"ENTRYPOINT": "entrypoint", "CMD": "command"}[word], json.loads(rest))
    elif word == "HEALTHCHECK":
        stage.healthcheck = json.loads(rest.partition("CMD ")[2])
    elif word == "ARG":
        stage.args |= _pairs(rest)
    elif word == "ENV":
        stage.env |= _pairs(rest)
    elif word == "LABEL":
        stage.labels |= _pairs(_expanded(rest, stage.args))
    elif word in WORDS:
        setattr(stage, {"WORKDIR": "workdir", "USER": "user", "STOPSIGNAL": "stop_signal"}[word], rest)
    else:
        raise ValueError(f"{word} is not an instruction that the test of the image performs")
