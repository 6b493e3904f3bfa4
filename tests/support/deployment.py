"""Reads the files of deploy/ for tests: services, pods, units, and all command lines and variables."""

import configparser
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from shared.kinds import all_kinds
from shared.settings import Settings, describe
from tests.support.dockerfile import parse_dockerfile
from tests.support.tree import ROOT, project_files

DEPLOY: Final = ROOT / "deploy"
SUPERVISOR_MARGIN_S: Final = 5.0
"""What a supervisor waits beyond its grace period before it kills (worker/supervisor.py, MARGIN_S)."""
UNITS_OF_TIME: Final = {"s": 1, "m": 60, "h": 3600}
SHELL_ENDS: Final = frozenset({">", ">>", "|", "||", "&&", ";", "&"})


@dataclass(frozen=True)
class Command:
    """One command line of `proctor`."""

    where: str
    """The file, and what of it."""
    words: tuple[str, ...]
    """Without the program's name."""


def default_grace_s() -> float:
    """The grace period that holds where nothing sets one."""
    rows = describe(Settings(data_dir=Path("/x")))
    return next(float(row.value) for row in rows if row.name == "grace_s")


@cache
def compose() -> dict[str, Any]:
    """The compose file with its anchors resolved, as YAML has it."""
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def services() -> dict[str, dict[str, Any]]:
    """The compose file's services."""
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def is_ours(image: str) -> bool:
    """Whether a service or container runs our image."""
    return "proctor" in image


def seconds(text: str) -> float:
    """Reads a duration such as `45s` or `1m`.

    >>> seconds("1m")
    60.0
    """
    return float(text[:-1]) * UNITS_OF_TIME[text[-1]] if text[-1] in UNITS_OF_TIME else float(text)


def units() -> dict[str, configparser.RawConfigParser]:
    """The systemd units by name; of a key that stands several times the values are joined by line ends."""
    found = {}
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        parser = configparser.RawConfigParser(strict=False, dict_type=_Joined)
        parser.optionxform = str  # type: ignore[assignment,method-assign] # its documented use: keep the case of keys
        parser.read(path, encoding="utf-8")
        found[path.name] = parser
    return found


class _Joined(dict[str, Any]):
    """Keeps all values of a key that a parser sets several times."""

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, list) and isinstance(self.get(key), list):
            value = self[key] + value
        super().__setitem__(key, value)


def documents(*paths: Path) -> list[dict[str, Any]]:
    """All YAML documents of some files."""
    return [each for path in paths for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def kubernetes_files() -> list[Path]:
    """Every YAML file below kubernetes/."""
    return sorted((DEPLOY / "kubernetes").rglob("*.yaml"))


def pods(found: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and pod specification of each workload among some documents."""
    for document in found:
        if document.get("kind") in {"Deployment", "StatefulSet"}:
            yield document["metadata"]["name"], document["spec"]["template"]["spec"]


def commands() -> list[Command]:
    """Every command line of `proctor` in deploy/."""
    found = [*_of_image(), *_of_compose(), *_of_kubernetes(), *_of_systemd()]
    found += _of_shell(DEPLOY / "github" / "proctor.yml")
    for path in [*DEPLOY.rglob("*.md"), *DEPLOY.rglob("*.sh")]:
        found += _of_shell(path)
    return sorted(set(found), key=lambda each: (each.where, each.words))


def _of_image() -> Iterator[Command]:
    stage = parse_dockerfile((DEPLOY / "Dockerfile").read_text(encoding="utf-8"))[-1]
    for what, words in (("CMD", [*stage.entrypoint, *stage.command]), ("HEALTHCHECK", stage.healthcheck)):
        assert words[0] == "proctor", f"{what} of the image runs {words[0]}"
        yield Command(f"Dockerfile {what}", tuple(words[1:]))


def _of_compose() -> Iterator[Command]:
    for name, service in services().items():
        test = service["healthcheck"]["test"]
        if is_ours(service["image"]):
            yield Command(f"compose.yaml {name}", tuple(service["command"]))
        if test[:2] == ["CMD", "proctor"]:
            yield Command(f"compose.yaml {name} healthcheck", tuple(test[2:]))


def _of_kubernetes() -> Iterator[Command]:
    for name, pod in pods(documents(*kubernetes_files())):
        for container in pod["containers"]:
            if not is_ours(container.get("image", "")):
                continue
            yield Command(f"kubernetes {name}", tuple(container["args"]))
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                words = container[probe].get("exec", {}).get("command", [""])
                if words[0] == "proctor":
                    yield Command(f"kubernetes {name} {probe}", tuple(words[1:]))


def _of_systemd() -> Iterator[Command]:
    for name, unit in units().items():
        program, *words = shlex.split(unit["Service"]["ExecStart"])
        assert program == "/opt/proctor/bin/proctor", f"{name} runs {program}"
        for kind in map(str, all_kinds()) if "%i" in words else ("",):
            yield Command(f"systemd {name}", tuple(kind if word == "%i" else word for word in words))


def _of_shell(path: Path) -> Iterator[Command]:
    """Finds `proctor …` at the beginning of a line or of a `$(…)`, and behind `compose run`."""
    pattern = re.compile(r"(?:^\s*(?:\$ )?|\$\(|run --rm (?:--volume \S+ )?)(proctor [a-z].*)$", re.MULTILINE)
    for line in pattern.findall(path.read_text(encoding="utf-8")):
        words = []
        for word in shlex.split(line.rstrip(")"), comments=True)[1:]:
            if word in SHELL_ENDS or word.startswith(">"):
                break
            words.append(word)
        yield Command(path.relative_to(DEPLOY).as_posix(), tuple(words))


def variables() -> set[tuple[str, str]]:
    """Every variable of ours that a file of deploy/ names: (file, variable)."""
    return {
        (path.relative_to(DEPLOY).as_posix(), name)
        for path in project_files()
        if path.is_relative_to(DEPLOY)
        for name in re.findall(r"PROCTOR_[A-Z_]+", path.read_text(encoding="utf-8"))
    }
