"""The notebook of the documents, executed cell by cell in a kernel as a notebook server does."""

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.cli import Cli
from tests.support.tree import ROOT

NOTEBOOK = ROOT / "docs" / "python.ipynb"


@pytest.fixture
def outputs(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What each cell of code printed and showed, by its first line."""
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    env = {**cli.processes.env, **{name: os.environ[name] for name in os.environ if "PY" in name}}
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call] # it has no types
    path = os.pathsep.join(map(str, [ROOT]))
    client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**env, "PYTHONPATH": path})
    return {cell.source.splitlines()[0]: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def shown(outputs: list[Any], kind: str) -> str:
    """What a cell shows in one form."""
    return "".join(each["data"].get(kind, "") for each in outputs if "data" in each)


def test_the_notebook_runs_and_shows_what_it_says(outputs: dict[str, list[Any]]) -> None:
    """A run is shown with its verdict, rate and first failures, its rows as a table; no cell fails."""
    progress, run = outputs["run = proctor.run(bench, app=answer)"]
    assert "1 of 2 passed, 1 failed" in progress["data"]["text/html"]
    html = run["data"]["text/html"]
    assert html.startswith("<b>capitals: failed</b><table><tr><td>pass rate</td><td>50.0% (")
    assert "<tr><td>passed</td><td>1</td></tr><tr><td>failed</td><td>1</td></tr>" in html
    assert "<tr><td>cost</td><td>$0.0000</td></tr>" in html
    assert "<tr><td>pe</td><td>answer</td><td>I do not know.</td><td>" in html
    assert "<code>proctor open run-" in html
    table = shown(outputs['run.to_pandas()[["case_id", "outcome", "output", "reason"]]'], "text/plain")
    assert "It is Paris." in table
    failed = outputs["[row.case_id for row in run.select(failed=True)]"]
    assert shown(failed, "text/plain") == "['pe']"
