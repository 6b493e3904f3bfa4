"""Writes a run for GitHub Actions: Markdown for the job's summary, and annotations as workflow commands.

The summary is a file (`$GITHUB_STEP_SUMMARY`) and annotations are lines that the runner reads in a step's
output, so they are two reports. What failed is folded. Texts of models and of input files are hostile: in the
summary they are escaped HTML, in annotations escaped data, and neither holds what the runner would obey.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from producer.documents import AnyRun
from producer.report.cells import Size, plain
from producer.report.figures import ShownIn
from producer.report.interfaces import ReadFile, Screen
from producer.report.junit import JunitTest
from producer.report.run_report import RunReport
from producer.report.to_markdown import failure_blocks, table_blocks
from producer.run_settings import is_freeform
from shared.contracts.case_run import PLACES_FILE
from shared.runs import RunInfo

MOST_FAILURES: Final = 100
"""Failures in the summary, of which GitHub takes a megabyte for a step."""
MOST_ANNOTATIONS: Final = 10
"""Errors, and warnings, that GitHub shows for a step."""


Tests = Callable[[Iterable[Any]], Iterator[JunitTest]]
"""Makes a test of each row."""


class CasePlace(NamedTuple):
    """Where a case is written."""

    file: str
    line: int


class _Failures:
    """Keeps the first failures of a run, those without a verdict apart from the others."""

    def __init__(self, info: RunInfo, tests: Tests, most: int) -> None:
        self.info, self._tests, self._most = info, tests, most
        self.errors, self.failures = list[JunitTest](), list[JunitTest]()

    def page(self, rows: Sequence[Any]) -> None:
        """Keeps those of some rows."""
        for code, kept in (("x", self.errors), ("f", self.failures)):
            some = [row for row in rows if row.code.startswith(code)][: self._most - len(kept)]
            kept.extend(self._tests(some))


class GithubReport(_Failures):
    """Writes the summary of a job.

    Args:
        out: where to.
        info: the run.
        report_of: returns what is said of it, given its document.
        screen: what a terminal shows of its items.
        tests: makes a test of each row.
    """

    def __init__(
        self,
        out: BinaryIO,
        info: RunInfo,
        report_of: Callable[[AnyRun], RunReport],
        screen: Screen,
        tests: Tests,
    ) -> None:
        super().__init__(info, tests, MOST_FAILURES)
        self._out, self._report_of = out, report_of
        begin = None if is_freeform(info) else screen.failures  # else single items are outputs
        self._reasons = begin(info) if begin else None

    def page(self, rows: Sequence[Any]) -> None:
        """Keeps the failures of some rows, and their reasons."""
        super().page(rows)
        if self._reasons:
            self._reasons.page(rows)

    def end(self, document: AnyRun) -> None:
        """Writes the Markdown."""
        report, counts, run = self._report_of(document), document.counts, html(self.info.run)
        blocks = [f"## {html(report.verdict)}", f"Proctor run {run}, {html(report.headline)}"]
        if report.verdict.why:
            blocks.append("\n".join(f"- {html(sentence)}" for sentence in report.verdict.why))
        blocks += map(html, report.lines_in(ShownIn.BRIEF))
        for table in report.tables_in(ShownIn.BRIEF):
            blocks += [f"### {table.title}", *table_blocks(table, html)]
        if self._reasons and (self.errors or self.failures):
            blocks += [
                "### Failures by reason",
                *failure_blocks(self._reasons.failures(), document.run_id, html),
            ]
        for heading, kept, number in (
            ("Errors", self.errors, counts.error),
            ("Failed", self.failures, counts.failed),
        ):
            if kept:
                blocks += [f"### {heading}", *map(_failure, kept)]
            if number > len(kept):
                blocks.append(f"{number - len(kept):,} more: `proctor results {run} --failed`")
        self._out.write(("\n\n".join(blocks) + "\n").encode(errors="replace"))


class Annotations(_Failures):
    """Makes the annotations of a run: lines for a step's output.

    Args:
        info: the run.
        tests: makes a test of each row.
        folder: of the checkout, from which GitHub counts paths.
    """

    def __init__(self, info: RunInfo, tests: Tests, folder: Path) -> None:
        super().__init__(info, tests, MOST_ANNOTATIONS)
        self._folder = folder
        self._places = CasePlaces(None, folder)
        self.lines = list[str]()

    def read_files(self, read: ReadFile) -> None:
        """Reads where the cases are written."""
        self._places = CasePlaces(read(PLACES_FILE), self._folder)

    def end(self, document: AnyRun) -> None:
        """Makes the lines: missed gates and items without a verdict are errors, the rest are warnings."""
        gates = [gate.text for gate in document.missed_gates]
        errors = [command("error", line, title="Proctor") for line in gates]
        errors += [self._annotation("error", test) for test in self.errors]
        warnings = [self._annotation("warning", test) for test in self.failures]
        self.lines = errors[:MOST_ANNOTATIONS] + warnings[:MOST_ANNOTATIONS]

    def _annotation(self, level: str, test: JunitTest) -> str:
        """Makes the annotation of one item."""
        title = plain(f"{test.classname}: {test.name}", Size.LINE)
        text = plain(test.message or test.type, Size.TEXT) or test.ending
        place = None if test.case is None else self._places.get(test.case)
        return command(level, text, title=title, place=place)


def html(text: Any, limit: int | None = None) -> str:
    """Returns text as one line of HTML that is no Markdown and no workflow command.

    >>> html("<b>a|b</b> ::error::x ##[error]y *z*")
    '&lt;b&gt;a&#124;b&lt;/b&gt; &#58;:error&#58;:x &#35;#&#91;error&#93;y &#42;z&#42;'
    """
    return _quiet(plain(str(text), limit)).translate(_MARKDOWN)


def command(name: str, text: str, *, title: str, place: CasePlace | None = None) -> str:
    r"""Writes a workflow command.

    >>> command("error", "100 %\n::warning::x", title="a,b:c")
    '::error title=a%2Cb%3Ac::100 %25%0A::warning::x'
    >>> command("warning", "no", title="a", place=CasePlace("bench.yaml", 4))
    '::warning file=bench.yaml,line=4,title=a::no'
    """
    where = f"file={_property(place.file)},line={place.line}," if place else ""
    return f"::{name} {where}title={_property(title)}::{text.translate(_DATA)}"


def _property(text: str) -> str:
    """Escapes a property of a command."""
    return text.translate(_DATA).replace(":", "%3A").replace(",", "%2C")


_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_MARKDOWN: Final = str.maketrans({sign: f"&#{ord(sign)};" for sign in "\\`*_~[]|!@"})
"""What Markdown would read; the pieces of entities are not among them."""


def _quiet(text: str) -> str:
    """Escapes HTML, and what the runner takes for a command in the output of a step."""
    return escape(text).replace("::", "&#58;:").replace("##[", "&#35;#[")


def _failure(test: JunitTest) -> str:
    """Writes one item, folded."""
    name = f"{html(test.classname, Size.LINE)}: {html(test.name, Size.LINE)}"
    title = f"{name} ({html(test.type, Size.LINE)})" if test.type else name
    return _folded(title, "\n".join(filter(None, (test.message, test.body))))


def _folded(title: str, text: str) -> str:
    """Folds a text under a line of HTML; inside `pre` an escaped text means nothing to Markdown."""
    shown = text if len(text) <= Size.BODY else text[: Size.BODY] + "..."
    printed = "".join(sign for sign in shown if sign == "\n" or sign.isprintable())
    return f"<details><summary>{title}</summary>\n\n<pre>{_quiet(printed)}</pre>\n\n</details>"


class CasePlaces:
    """Where the cases of a run are written.

    Args:
        stored: as `producer.cases.chosen_cases.CaseLines` packed them; None: the run has none.
        folder: paths inside of it are written as counted from there.
    """

    def __init__(self, stored: bytes | None, folder: Path) -> None:
        kept: tuple[list[str], list[tuple[int, int, int, int]]] = ([], [])
        if stored is not None:
            kept = msgspec.msgpack.decode(stored, type=tuple[list[str], list[tuple[int, int, int, int]]])
        names, self._stretches = kept
        self._names = [_below(Path(name), folder.resolve()) for name in names]

    def get(self, at: int) -> CasePlace | None:
        """Returns the place of the case at a position; None where it is not known."""
        after = bisect_right(self._stretches, at, key=itemgetter(0))
        if not after:
            return None
        first, name, line, length = self._stretches[after - 1]
        return CasePlace(self._names[name], line + at - first) if at < first + length else None


def _below(path: Path, folder: Path) -> str:
    """Writes a path as counted from a folder, where it is inside."""
    resolved = path.resolve()
    return str(resolved.relative_to(folder)) if resolved.is_relative_to(folder) else str(path)
