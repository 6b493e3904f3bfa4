"""Writes the tables and plots of docs/performance.md from what benchmarks measured: `make performance`.

`make bench` and its like write JSON into `build`. This program takes those files over into the folder of the
document, where they stay, and writes everything from there; a test holds the document to them.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.bench import BENCHES
from tests.benchmarks.line_chart import Line, line_chart
from tests.benchmarks.results import Figure, Report, read
from tests.support.document_blocks import save, table
from tests.support.tree import ROOT

DOCUMENT: Final = ROOT / "docs" / "performance.md"
FOLDER: Final = DOCUMENT.with_suffix("")
WORKLOADS: Final[Mapping[str, Sequence[str]]] = {
    "bench": tuple(BENCHES),
    "growth": ("growth",),
    "peers": ("peers",),
}
"""Workloads that the document shows, by the name of the file with their measurements."""
HEAD: Final = ("what", "measure", "limited by", "figure", "compared")


class Plot(NamedTuple):
    """What is drawn of a workload."""

    workload: str
    measure: str
    title: str
    across: str
    """What the size of a figure is."""
    up: str


PLOTS: Final = (
    Plot("turns", "rate", "Recorded turns, file to file", "turns in the file", "turns a second"),
    Plot("queries", "rate", "Queries of 200 ms", "in flight", "queries a second"),
    Plot("growth", "time", "Runs of each kind, from file to file", "items", "seconds"),
    Plot("peers", "time", "Cases for a model of 50 ms, 100 in flight", "cases", "seconds"),
)


def reports() -> dict[str, Report]:
    """The measurements that there are, by the name of their file."""
    paths = {name: FOLDER / f"{name}.json" for name in WORKLOADS}
    return {name: read(path) for name, path in paths.items() if path.exists()}


def blocks(measured: Mapping[str, Report]) -> dict[str, str]:
    """What stands between the marks of the document."""
    found = {}
    for name, report in measured.items():
        found[f"{name} machine"] = machine_text(report)
        found |= {workload: workload_text(report, workload) for workload in WORKLOADS[name]}
    return found


def workload_text(report: Report, workload: str) -> str:
    """The table of a workload, or why there is none.

    Raises:
        ValueError: it was not asked for.
    """
    if figures := report.of(workload):
        return figures_table(figures)
    why = next((each.why for each in report.missing if each.name == workload), None)
    if why is None:
        message = f"`{report.command}` has not measured {workload}: run it without names of workloads"
        raise ValueError(message)
    return f"Not measured: {why}"


def figures_table(figures: Sequence[Figure]) -> str:
    """A row for each figure."""
    rows = [[each.parameter, each.measure, each.bound, each.shown(), each.compared()] for each in figures]
    return table(HEAD, rows, texts=3)


def machine_text(report: Report) -> str:
    """How, when and where everything was measured, and what was not."""
    machine = report.machine
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    lines = [
        f"- Command: `{report.command}`, commit {report.commit}, {report.measured_at} UTC",
        f"- Machine: {machine.cpu}, {machine.cores} cores, {machine.memory_gb:g} GB; {machine.system}",
        f"- Load before it began: {report.load:g} (on a quiet machine less than 0.5)",
        f"- Python {machine.python}; {machine.server}; {packages}",
    ]
    if report.scale != 1:
        lines.append(f"- Sizes: {report.scale:g} of the full ones")
    lines += [f"- Not measured: {each.name}: {each.why}" for each in report.missing]
    return "\n".join(lines)


def drawn(plot: Plot, figures: Sequence[Figure]) -> str:
    """Draws the lines of a workload, and what they are compared with where that is no line itself."""
    points = [each for each in figures if each.series and each.measure == plot.measure]
    by_series = {name: [each for each in points if each.series == name] for name in series_of(points)}
    lines = [Line(name, sorted((each.size, each.value) for each in some)) for name, some in by_series.items()]
    return line_chart(plot.title, plot.across, plot.up, [*lines, *references(points)])


def series_of(points: Sequence[Figure]) -> list[str]:
    """The names of all lines, in the order in which they were measured."""
    return list(dict.fromkeys(each.series for each in points))


def references(points: Sequence[Figure]) -> Iterator[Line]:
    """The lines of what figures are compared with."""
    for name in dict.fromkeys(each.reference for each in points):
        compared = [
            (each.size, each.value / each.ratio) for each in points if each.reference == name and each.ratio
        ]
        if compared and name not in series_of(points):
            yield Line(name, sorted(compared), is_dashed=True)


def pictures(measured: Mapping[str, Report]) -> dict[str, str]:
    """The plots by name."""
    figures = [figure for report in measured.values() for figure in report.figures]
    by_name = {plot: [each for each in figures if each.workload == plot.workload] for plot in PLOTS}
    return {plot.workload: drawn(plot, some) for plot, some in by_name.items() if some}


def take_over(build: Path) -> None:
    """Copies new measurements into the folder of the document."""
    for name in WORKLOADS:
        if (build / f"{name}.json").exists():
            shutil.copyfile(build / f"{name}.json", FOLDER / f"{name}.json")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    take_over(ROOT / "build")
    found = reports()
    save(DOCUMENT, blocks(found), pictures(found))
