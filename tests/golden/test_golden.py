"""Every document and screen of a run is what its golden file says; `make golden` writes what is now."""

import difflib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from producer.sample_api.server import in_background
from tests.golden.normalize import beginning, normalized
from tests.golden.scenes import FORMATS, SCENES, Scene, as_recorded, write_files
from tests.support.cli import Cli, Done
from tests.support.fork_server import ForkServer
from tests.support.processes import Processes
from tests.support.tree import ROOT

KEPT: Final = ROOT / "tests" / "golden" / "kept"
WRITE: Final = "GOLDEN_WRITE"
"""Set by `make golden`: the files are written instead of compared."""


@pytest.fixture(scope="module")
def desk(
    tmp_path_factory: pytest.TempPathFactory, forks: ForkServer | None, _runtime_folder: None
) -> Iterator[Cli]:
    """A command line with workers that stay, and a sample API, for all scenes."""
    folder = tmp_path_factory.mktemp("golden")
    env = {
        **os.environ,
        "PROCTOR_DATA_DIR": str(folder / "data"),
        "PROCTOR_EMBEDDED_IDLE_S": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    processes = Processes(folder, env, forks)
    try:
        with in_background() as api:
            processes.env.update(API=api, MODELS=f"{api}/v1")
            workers = processes.start(sys.executable, "-P", "-m", "producer", "worker", "--processes", "1")
            workers.wait_for("ready ", 30)
            yield Cli(processes)
    finally:
        processes.close()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_documents_and_screens_are_those_of_the_golden_files(desk: Cli, scene: Scene, tmp_path: Path) -> None:
    """A run says the same, in each format and at two widths, as when its golden files were written."""
    found = captured(desk, scene, tmp_path)
    if WRITE in os.environ:
        _write(scene, found)
    kept = {path.name: path.read_text(encoding="utf-8") for path in sorted((KEPT / scene.name).iterdir())}
    changes = "\n".join(
        line
        for name in sorted(found.keys() | kept.keys())
        for line in difflib.unified_diff(
            kept.get(name, "").splitlines(), found.get(name, "").splitlines(), name, name, lineterm="", n=1
        )
    )
    assert not changes, f"not as kept; if that is meant, run `make golden` and commit:\n{changes}"


def captured(desk: Cli, scene: Scene, folder: Path) -> Mapping[str, str]:
    """Runs a scene and returns what it wrote and printed, by the names of golden files."""
    env = desk.processes.env
    write_files(scene, folder, env["API"])

    def proctor(*arguments: str, columns: int = 80) -> Done:
        expanded = [a.replace("$API", env["API"]).replace("$MODELS", env["MODELS"]) for a in arguments]
        return desk(*expanded, cwd=folder, env={"COLUMNS": str(columns)})

    command = scene.command
    if scene.recorded:
        proctor("run", *command, "-q", "-o", "first.jsonl")
        rows = (folder / "first.jsonl").read_text(encoding="utf-8")
        (folder / "recorded.jsonl").write_text(as_recorded(rows), encoding="utf-8")
        command = (*command, "--outputs", "recorded.jsonl")
    outputs = [part for suffix in FORMATS for part in ("-o", f"report.{suffix}")]
    found = {"run.txt": str(proctor("run", *command, *outputs))}
    found["run.json"] = proctor("runs", "show", "last", "--json").out
    run = json.loads(found["run.json"])["run_id"]
    for suffix in FORMATS:
        assert (folder / f"report.{suffix}").exists(), found["run.txt"]
        found[f"report.{suffix}"] = (folder / f"report.{suffix}").read_text(encoding="utf-8")
    looks = {
        "watch_140.txt": proctor("watch", "last", columns=140),
        "github.md": proctor("report", "last", "--format", "github"),
        "failed.txt": proctor("results", "last", "--failed", "--first", "20"),
        "results_140.txt": proctor("results", "last", "--first", "20", columns=140),
        "show.txt": proctor("show", "last", scene.item),
        **{f"{'_'.join(more)}.txt": proctor(*more) for more in scene.after},
    }
    found |= {name: str(done) for name, done in looks.items()}
    found["show.json"] = proctor("show", "last", scene.item, "--json").out
    places = [
        (env["API"], "API"),
        (run, "RUN"),
        (str(folder), "FOLDER"),
        (str(ROOT), "ROOT"),
        (sys.executable, "PYTHON"),
    ]
    kept = {name: normalized(name, text, places) for name, text in found.items()}
    return {name: beginning(text) for name, text in kept.items()} if scene.is_timed else kept


def _write(scene: Scene, found: Mapping[str, str]) -> None:
    folder = KEPT / scene.name
    folder.mkdir(parents=True)
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")
