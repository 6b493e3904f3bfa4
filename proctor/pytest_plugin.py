"""Turns the answers of a bench into tests of pytest, which go through the queue all at once.

    pytest --proctor bench.yaml     the cases of a file
    pytest                          files called *.bench.yaml are collected like test files

The first test that is wanted runs all that were selected; with xdist, one process runs them for all.
"""

import fcntl
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from proctor import following
from proctor.errors import ProctorError
from proctor.program import document
from proctor.runs import Row, Run

SUFFIXES: Final = (".bench.yaml", ".bench.yml")
CHARS: Final = 2_000
"""Longest prompt and answer in the report of a failure."""
FEW: Final = 200
"""Cases of a selection that are named to the program; of more, all are run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--proctor` and `--proctor-option`."""
    group = parser.getgroup("proctor", "evaluations")
    group.addoption(
        "--proctor", action="append", default=[], metavar="FILE", help="Bench whose answers are tests."
    )
    group.addoption(
        "--proctor-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="Option of `proctor run` for all benches, e.g. max-cost=1 or no-cache.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Collects the files of `--proctor` like arguments; without other arguments, only these."""
    files = config.getoption("--proctor")
    if files:
        given = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
        config.args = [*given, *files]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "BenchFile | None":
    """Collects benches."""
    named = {Path(file).resolve() for file in parent.config.getoption("--proctor")}
    if file_path.name.endswith(SUFFIXES) or file_path.resolve() in named:
        return BenchFile.from_parent(parent, path=file_path)
    return None


@pytest.fixture
def proctor_run(request: pytest.FixtureRequest) -> Callable[..., Run]:
    """`proctor.run`, with the test's name as the name of the run."""

    def run(source: following.Source, **options: Any) -> Run:
        return following.run(source, **{"name": request.node.name, **options})

    return run


class NoAnswerError(Exception):
    """An item has no answer."""


class FailedAnswerError(AssertionError):
    """An answer did not pass."""


class BenchFile(pytest.File):
    """A bench."""

    listed: list[dict[str, Any]]
    """Its items, in the order of a run."""
    kind = ""
    rows: Mapping[str, Row] | None = None
    """Results by item, once they are there."""

    def collect(self) -> Iterator["BenchItem"]:
        """Asks the program which items there are; nothing is sent."""
        try:
            found = document(["validate", str(self.path), "--list"])
        except ProctorError as error:
            raise self.CollectError(str(error)) from None
        self.listed, self.kind = found["items"], found["kind"]
        for each in self.listed:
            yield BenchItem.from_parent(self, name=each["name"], listed=each)

    def row_of(self, item: "BenchItem") -> Row | None:
        """Returns the result of an item; the first one that is wanted runs all that were selected."""
        if self.rows is None:
            with _shared(self.config, self.path) as memory:
                if not memory.read_text():
                    memory.write_text(json.dumps(self._run()))
                run, ids = json.loads(memory.read_text())
            self.rows = {ids[row.index]: row for row in Run(run).rows}
        return self.rows.get(item.item_id)

    def _run(self) -> tuple[str, list[str]]:
        """Runs what was selected; returns the run, and its items as they are called in the whole file."""
        selected = {
            each.case_id for each in self.session.items if isinstance(each, BenchItem) and each.parent is self
        }
        items, options = self.listed, _options(self.config)
        if self.kind == "cases" and len(selected) <= FEW:
            items = [each for each in items if each["id"] in selected]
            options["case"] = list(dict.fromkeys(each["id"] for each in items))
        run = following.run(self.path, name=self.path.name, **options)
        return run.id, [each["item_id"] for each in items]


class BenchItem(pytest.Item):
    """One answer of a bench."""

    parent: BenchFile

    def __init__(self, *, listed: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self.item_id = str(listed["item_id"])
        self.case_id = str(listed["id"])
        for tag in listed["tags"]:
            marker = re.sub(r"\W", "_", tag)
            self.config.addinivalue_line("markers", f"{marker}: cases with the tag {tag}")
            self.add_marker(marker)

    def runtest(self) -> None:
        """Waits for the result, and fails as it does.

        Raises:
            FailedAnswerError: the answer did not pass.
            NoAnswerError: there is none.
        """
        row = self.parent.row_of(self)
        if row is None or row.outcome == "skipped":
            pytest.skip("the run ended before it")
        self.user_properties += [
            (name, value)
            for name, value in (
                ("proctor_run", row.line["run_id"]),
                ("latency_ms", row.latency_ms),
                ("cost_usd", row.cost_usd),
            )
            if value is not None
        ]
        if not row.passed:
            raise (NoAnswerError if row.error else FailedAnswerError)(_described(row))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Shows question, answer and reason, without a traceback into this plugin."""
        if isinstance(excinfo.value, FailedAnswerError | NoAnswerError | ProctorError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Names the test in reports."""
        return self.path, None, f"{self.path.name}: {self.name}"


def _described(row: Row) -> str:
    """Writes why a row did not pass, with what was asked and answered."""
    lines = [row.reason]
    lines += [f"{each['role']}: {_cut(each.get('content'))}" for each in row.messages]
    if row.output is not None:
        lines.append(f"answer: {_cut(row.output)}")
    if row.result.get("differences"):
        lines.append(f"differences: {json.dumps(row.result['differences'], indent=2, ensure_ascii=False)}")
    lines += [f"check {each.name}: {each.reason}" for each in row.checks if each.passed is False]
    run, item = row.line["run_id"], row.item_id
    return "\n".join([*lines, f"proctor show {run} {item}"])


def _cut(content: Any) -> str:
    """Writes the content of a message, shortened."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return text if len(text) <= CHARS else f"{text[:CHARS]}… ({len(text):,} characters)"


def _options(config: pytest.Config) -> dict[str, Any]:
    """Reads `--proctor-option`."""
    pairs = (text.partition("=") for text in config.getoption("--proctor-option"))
    return {name.replace("-", "_"): value if sign else True for name, sign, value in pairs}


@contextmanager
def _shared(config: pytest.Config, path: Path) -> Iterator[Path]:
    """A file that processes of xdist share, locked: the first one runs the bench, the others read its run."""
    root = Path(config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined] # noqa: SLF001 - no public way
    worker = getattr(config, "workerinput", None)
    folder = root if worker is None else root.parent
    name = re.sub(r"\W", "_", str(path))
    unique = "" if worker is None else str(worker["testrunuid"])
    memory = folder / f"proctor-{unique}{name[-100:]}"
    with memory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        memory.touch()
        yield memory
