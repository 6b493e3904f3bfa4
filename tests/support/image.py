"""Builds an image from a Dockerfile into a root folder, step by step, without an engine."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.container import Container, make_root
from tests.support.dockerfile import Stage, Step, parse_dockerfile
from tests.support.tree import ROOT

DOCKERFILE: Final = ROOT / "deploy" / "Dockerfile"
BASE_ENV: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}
PASSED_ON: Final = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_CERT",
    "UV_",
    "SSL_CERT_FILE",
    "http",
    "HTTP",
)
"""Prefixes of variables by which a machine says how it reaches a registry, as build arguments would."""


@dataclass(frozen=True)
class Image:
    """A built image: a root folder, and the stage that says how it starts."""

    root: Path
    stage: Stage

    @property
    def env(self) -> dict[str, str]:
        """The environment that a container starts with."""
        return {**BASE_ENV, **self.stage.env}


def build(folder: Path, dockerfile: Path = DOCKERFILE) -> Image:
    """Performs every step of every stage; raises at the first that fails, with what it printed."""
    stages = parse_dockerfile(dockerfile.read_text(encoding="utf-8"))
    roots: dict[str, Path] = {}
    allowed = allowed_context(dockerfile)
    for stage in stages:
        root = roots[stage.name] = folder / stage.name
        make_root(root)
        _run(root, Step("RUN", "ldconfig", "/", {}), {})
        for step in stage.steps:
            (root / step.workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)
            if step.word == "RUN":
                _run(root, step, {**BASE_ENV, **step.env})
            else:
                _copy(root, step, roots, allowed)
    last = stages[-1]
    for stage in stages[:-1]:
        shutil.rmtree(roots[stage.name])
    return Image(roots[last.name], last)


def allowed_context(dockerfile: Path = DOCKERFILE) -> set[str]:
    """What .dockerignore lets into the build."""
    lines = dockerfile.with_name(f"{dockerfile.name}.dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in lines, ".dockerignore keeps everything out first"
    return {line[1:] for line in lines if line.startswith("!")}


def _run(root: Path, step: Step, env: dict[str, str]) -> None:
    passed_on = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    caches = {_cache_folder(root.parent): target for target in step.caches}
    container = Container(root, {**passed_on, **env}, workdir=step.workdir, writable=caches)
    done = container.run("sh", "-c", step.text)
    if done.returncode:
        raise AssertionError(f"RUN {step.text}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}")


def _cache_folder(beside: Path) -> Path:
    """The cache of this machine's uv, as build machines keep one; else a folder beside the image."""
    if uv := shutil.which("uv"):
        done = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=False)
        found = Path(done.stdout.strip())
        if done.returncode == 0 and found.is_dir():
            return found
    made = beside / "cache"
    made.mkdir(exist_ok=True)
    return made


def _copy(root: Path, step: Step, roots: dict[str, Path], allowed: set[str]) -> None:
    """Performs COPY: from a stage that is not needed any more, or from the files of the project."""
    words = step.text.split()
    source_stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else ""
    *sources, target = words
    into = root / os.path.join(step.workdir, target).lstrip("/")  # noqa: PTH118 - an absolute target wins
    for source in sources:
        if source_stage:
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(roots[source_stage] / source.lstrip("/"), into)
            continue
        assert source in allowed, f".dockerignore keeps {source} out of the build"
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, into)


def python_of_image(stage: Stage) -> tuple[str, str]:
    """The Python that the image names, and ours: `("3.11", "3.11")`."""
    version = stage.image.partition(":")[2].split("-")[0]
    return ".".join(version.split(".")[:2]), f"{sys.version_info.major}.{sys.version_info.minor}"
