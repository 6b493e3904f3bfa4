"""Turns the answers of a bench into tests of pytest, which go through the queue all at once.

    pytest --proctor bench.yaml     the cases of a file
    pytest                          files called *.bench.yaml are collected like test files

The first test that is wanted runs all that were selected; with xdist, one process runs them for all.
"""

import fcntl
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, NamedTuple

import pytest

from proctor import following
from proctor.errors import ProctorError
from proctor.program import arguments_of, document
from proctor.runs import Row, Run

SUFFIXES: Final = (".bench.yaml", ".bench.yml")
CHARS: Final = 2_000
"""Longest prompt and answer in the report of a failure."""
NAME_CHARS: Final = 120
"""Longest name of a run."""
MARKERS: Final = pytest.StashKey["TagMarkers"]()


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


@pytest.hookimpl(tryfirst=True)  # before plugins add their markers
def pytest_configure(config: pytest.Config) -> None:
    """Collects the files of `--proctor` like arguments; without other arguments, only these."""
    config.stash[MARKERS] = TagMarkers(config)
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
        return following.run(source, **{"name": _run_name(request.node.name), **options})

    return run


class NoAnswerError(Exception):
    """An item has no answer."""


class FailedAnswerError(AssertionError):
    """An answer did not pass."""


class TagMarkers:
    """The markers of tags; those of pytest and its plugins would change what becomes of a test.

    Args:
        config: has the markers of the project, and not yet those of plugins.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._known = set(config.getini("markers"))
        self._markers = dict[str, str]()

    def of(self, tag: str) -> str:
        """Returns the marker of a tag: `tag_skip` for the tag `skip`."""
        if tag not in self._markers:
            marker = re.sub(r"\W", "_", tag)
            if marker in self._others():
                marker = f"tag_{marker}"
            self._markers[tag] = marker
            self._config.addinivalue_line("markers", f"{marker}: cases with the tag {tag}")
        return self._markers[tag]

    def _others(self) -> set[str]:
        """Returns the markers that plugins added."""
        lines = set(self._config.getini("markers")) - self._known
        return {re.split(r"\W", line, maxsplit=1)[0] for line in lines} - {*self._markers.values()}


class Listed(NamedTuple):
    """An answer that a run of a bench asks for."""

    name: str
    """As lists and `--only` name it."""
    asked: str
    """The name without the number of a repetition."""
    needed: int | None
    """How many answers with this `asked` must pass; None: each is judged alone."""
    tags: Sequence[str]

    @property
    def test(self) -> str:
        """The name of its test, which answers share that are judged together."""
        return self.name if self.needed is None else self.asked


class BenchFile(pytest.File):
    """A bench."""

    listed: Sequence[Listed]
    """Its answers, in the order of a run."""
    rows: Mapping[str, list[Row]] | None = None
    """Results by test, once they are there."""

    def collect(self) -> Iterator["BenchItem"]:
        """Asks the program which answers a run with these options has; nothing is sent."""
        options = arguments_of(_options(self.config))
        try:
            found = document(["run", str(self.path), "--dry-run", "--list", *options])["items"]
        except ProctorError as error:
            raise self.CollectError(str(error)) from None
        self.listed = [Listed(each["name"], each["asked"], each["needed"], each["tags"]) for each in found]
        for test, each in {each.test: each for each in self.listed}.items():
            yield BenchItem.from_parent(self, name=_printable(test), listed=each)

    def rows_of(self, listed: Listed) -> list[Row]:
        """Returns the results of a test; the first one that is wanted runs all that were selected.

        Raises:
            ProctorError: the run was refused, or the bench is another than the one that was collected.
        """
        if self.rows is None:
            with _shared(self.config, self.path) as memory:
                if not memory.read_text():
                    memory.write_text(json.dumps(self._run()))
                run, tests, refusal = json.loads(memory.read_text())
            if refusal:
                raise ProctorError(refusal)
            rows = defaultdict[str, list[Row]](list)
            for row in Run(run).rows:
                rows[tests[row.index]].append(row)
            self.rows = rows
        return self.rows.get(listed.test, [])

    def _run(self) -> tuple[str, list[str], str]:
        """Runs what was selected; returns the run, the test of each of its answers, and why there is none."""
        items = (each for each in self.session.items if isinstance(each, BenchItem) and each.parent is self)
        selected = {each.listed.asked for each in items}
        chosen = [each for each in self.listed if each.asked in selected]
        name, options = self.path.name, _options(self.config)
        with NamedTemporaryFile("w", encoding="utf-8") as names:
            if len(chosen) < len(self.listed):
                names.write("\n".join(selected))
                names.flush()
                options["only"] = names.name
                name = f"{name}, {len(chosen):,} of {len(self.listed):,}"  # a history of its own
            try:
                run = following.run(self.path, **{"name": _run_name(name), **options})
            except ProctorError as error:
                return "", [], str(error)
        changed = f"{self.path} was changed after its tests were collected"
        return run.id, [each.test for each in chosen], changed if run.counts["total"] != len(chosen) else ""


class BenchItem(pytest.Item):
    """One answer of a bench, or several that are judged together."""

    parent: BenchFile

    def __init__(self, *, listed: Listed, **options: Any) -> None:
        super().__init__(**options)
        self.listed = listed
        for tag in listed.tags:
            self.add_marker(self.config.stash[MARKERS].of(tag))

    def runtest(self) -> None:
        """Waits for the result, and fails as it does.

        Raises:
            FailedAnswerError: an answer did not pass.
            NoAnswerError: there is none.
        """
        rows = self.parent.rows_of(self.listed)
        for name, value in _properties(rows):
            self.user_properties.append((name, value))
        passed, needed = sum(row.passed for row in rows), self.listed.needed or 1
        if passed >= needed:
            return
        worst = [row for row in rows if not row.passed and row.outcome != "skipped"]
        if not worst:
            pytest.skip("the run ended before it")
        head = f"{passed} of {len(rows)} answers passed, {needed} needed\n" if self.listed.needed else ""
        error = NoAnswerError if all(row.error for row in worst) else FailedAnswerError
        raise error(_printable(head + _described(worst[0])))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Shows question, answer and reason, without a traceback into this plugin."""
        if isinstance(excinfo.value, FailedAnswerError | NoAnswerError | ProctorError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Names the test in reports."""
        return self.path, 0, f"{self.path.name}: {self.name}"


def _properties(rows: Sequence[Row]) -> Iterator[tuple[str, Any]]:
    """Yields what reports in JUnit XML say of a test: its run, the longest latency, the sum of the costs."""
    latencies = [row.latency_ms for row in rows if row.latency_ms is not None]
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    if rows:
        yield "proctor_run", rows[0].line["run_id"]
    if latencies:
        yield "latency_ms", max(latencies)
    if costs:
        yield "cost_usd", sum(costs)


def _described(row: Row) -> str:
    """Writes why a row did not pass, with what was asked and answered."""
    lines = [row.reason]
    lines += [f"{each['role']}: {_cut(each.get('content'))}" for each in row.messages]
    if row.output is not None:
        lines.append(f"answer: {_cut(row.output)}")
    lines += _differences(row.result.get("differences") or {})
    lines += [
        f"check {each.name}: {each.reason}"
        for each in row.checks
        if each.passed is False and each.reason not in row.reason
    ]
    run, item = row.line["run_id"], row.item_id
    return "\n".join([*lines, f"proctor show {run} {item}"])


def _differences(found: Mapping[str, Any]) -> Iterator[str]:
    """Writes how an object differs from the expected one, a line for each place.

    >>> list(_differences({"changed": [{"path": "/n", "expected": 1, "actual": None}]}))
    ['/n: 1 → null']
    >>> list(_differences({"missing": [{"path": "/a", "expected": "x"}], "omitted": 2}))
    ['/a: "x" → missing', 'and 2 more']
    """
    for each in found.get("changed", ()):
        yield f"{each['path']}: {_json(each['expected'])} → {_json(each['actual'])}"
    for each in found.get("missing", ()):
        yield f"{each['path']}: {_json(each['expected'])} → missing"
    for each in found.get("unexpected", ()):
        yield f"{each['path']}: not expected → {_json(each['actual'])}"
    for each in found.get("repetitions", ()):
        times = f"{each['expected_times']} → {each['actual_times']}"
        yield f"{each['path']}: {_json(each['value'])} occurs {times} times"
    if found.get("omitted"):
        yield f"and {found['omitted']:,} more"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _printable(text: str) -> str:
    r"""Makes hostile text safe for a terminal: control characters become their escapes, except line ends.

    >>> _printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\nc'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def _run_name(text: str) -> str:
    """Makes of a test's name one that a run may have: a line of limited length."""
    return _printable(text).replace("\n", " ")[:NAME_CHARS]


def _cut(content: Any) -> str:
    """Writes the content of a message, shortened."""
    text = content if isinstance(content, str) else _json(content)
    return text if len(text) <= CHARS else f"{text[:CHARS]}… ({len(text):,} characters)"


def _options(config: pytest.Config) -> dict[str, Any]:
    """Reads `--proctor-option`; one that is given several times has all its values."""
    given = defaultdict[str, list[Any]](list)
    for text in config.getoption("--proctor-option"):
        name, sign, value = text.partition("=")
        given[name.replace("-", "_")].append(value if sign else True)
    return {name: values[0] if len(values) == 1 else values for name, values in given.items()}


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
