"""Holds docs/performance.md to its measurements, and these to their form."""

from pathlib import Path

import msgspec
import pytest

from tests.benchmarks import bench_peers
from tests.benchmarks.performance import DOCUMENT, FOLDER, blocks, pictures, reports, workload_text
from tests.benchmarks.results import Figure, Missing, NotHereError
from tests.support.document_blocks import with_blocks


def test_the_documents_figures_are_the_measured_ones() -> None:
    """Tables and plots are what `make performance` writes from the JSON files beside them."""
    text = DOCUMENT.read_text(encoding="utf-8")
    measured = reports()
    assert with_blocks(text, blocks(measured)) == text, "run `make performance`"
    drawn = pictures(measured)
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(drawn)
    for name, picture in drawn.items():
        assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == picture, "run `make performance`"


def test_each_figure_has_a_reference_of_the_same_run() -> None:
    """In every table something is compared, and what is compared has a limit beside it."""
    for report in reports().values():
        for workload in dict.fromkeys(figure.workload for figure in report.figures):
            compared = [figure for figure in report.of(workload) if figure.reference]
            assert compared, workload
            assert all(figure.bound and figure.ratio is not None for figure in compared), workload


def test_measurements_say_where_and_how() -> None:
    """Each file names its command, commit, processor and versions."""
    for report in reports().values():
        assert report.command.startswith("make bench")
        assert report.commit
        assert report.machine.cpu
        assert report.machine.packages


def test_a_partial_measurement_is_refused() -> None:
    """Figures of some workloads only would leave old ones beside them in the document."""
    partial = msgspec.structs.replace(
        reports()["bench"], figures=(), missing=(Missing("pages", "no Chromium"),)
    )
    assert workload_text(partial, "pages") == "Not measured: no Chromium"
    with pytest.raises(ValueError, match="has not measured turns"):
        workload_text(partial, "turns")


def test_a_figure_is_compared_in_its_own_unit() -> None:
    """A ratio is the figure by the reference, and the words name both."""
    figure = Figure(workload="w", parameter="p", measure="rate", value=1500.0, unit="cases/s")
    assert figure.beside("ideal rate", 2000).compared() == "0.75 \N{MULTIPLICATION SIGN} ideal rate"


@pytest.mark.parametrize("package", bench_peers.PACKAGES, ids=lambda package: package.name)
def test_a_peer_that_cannot_be_installed_says_why(
    package: bench_peers.Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without node, and without a registry, the reason is a sentence and no traceback."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        NotHereError, match=r"needs node and npm|could not be installed from its registry with (pip|python)"
    ):
        package.tool(tmp_path)
