"""Composes JUnit XML, which build servers show, with memory that does not grow with the number of tests.

There is no standard; this writes what Jenkins, GitLab and GitHub's readers have in common, as the schema of
Jenkins' xUnit plugin has it. A suite's numbers stand before its tests, so these wait in a temporary file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Final, Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from producer.documents import AnyRun
from producer.report.cells import Size
from shared.clock import iso_utc
from shared.codecs.item_rows import ItemRow
from shared.runs import RunInfo

IN_MEMORY: Final = 1 << 20
"""Bytes of tests that need no file."""
PIECE: Final = 1 << 20
"""Bytes that are copied at once."""
NAME_CHARS: Final = 200
"""Of a name, by which a build server knows a test again from run to run."""
ELLIPSIS: Final = "..."
UNKNOWN: Final = "\ufffd"
NEVER: Final = "the run ended before it"
"""Why an item without a result is skipped."""
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Ending = Literal["passed", "failure", "error", "skipped"]


class JunitTest(NamedTuple):
    """One test."""

    classname: str
    """What it belongs to; readers group by it."""
    name: str
    ending: Ending = "passed"
    time_s: float = 0.0
    type: str = ""
    """Of a failure or an error: its code."""
    message: str = ""
    """Why, in one line."""
    body: str = ""
    """More of it."""
    case: int | None = None
    """Position of the case among the run's, of a case."""
    tags: Sequence[str] = ()
    """What a case belongs to."""


class _Suite:
    """Numbers of a suite, and where its tests are."""

    __slots__ = ("endings", "parts", "time_s")

    def __init__(self) -> None:
        self.endings = dict.fromkeys(("passed", "failure", "error", "skipped"), 0)
        self.time_s = 0.0
        self.parts = list[tuple[int, int]]()


class Junit:
    """Takes tests of any suite, and writes all of them at the end.

    Args:
        out: where to.
        info: the run.
    """

    def __init__(self, out: BinaryIO, info: RunInfo) -> None:
        self._out, self._info = out, info
        self._suites: dict[str, _Suite] = {}
        self._tests = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by `end`
        self._size = 0

    def add(self, suite: str, tests: Iterable[JunitTest]) -> None:
        """Takes tests of a suite; suites stand in the order in which they are first named."""
        found = self._suites.setdefault(suite, _Suite())
        pieces = []
        for test in tests:
            found.endings[test.ending] += 1
            found.time_s += test.time_s
            pieces.append(xml_of(test))
        piece = "".join(pieces).encode()
        self._tests.write(piece)
        begin, self._size = self._size, self._size + len(piece)
        if found.parts and found.parts[-1][1] == begin:
            begin, _ = found.parts.pop()
        found.parts.append((begin, self._size))

    def add_by_class(self, tests: Iterable[JunitTest]) -> None:
        """Takes tests, each for the suite of its class; those of a suite together, to save places on disk."""
        found: dict[str, list[JunitTest]] = {}
        for test in tests:
            found.setdefault(test.classname, []).append(test)
        for suite, some in found.items():
            self.add(suite, some)

    def end(self, document: AnyRun) -> None:
        """Writes the file, and gives the disk back."""
        suites = self._suites.values()
        head = {"name": self._info.run, **_numbers(suites), "time": f"{document.summary.duration_s or 0:.3f}"}
        self._out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{_attributes(head)}>\n'.encode())
        for name, suite in self._suites.items():
            self._out.write(self._opening(name, suite, document).encode())
            for piece in self._pieces(suite):
                self._out.write(piece)
            self._out.write(b"</testsuite>\n")
        self._out.write(b"</testsuites>\n")
        self._tests.close()

    def _opening(self, name: str, suite: _Suite, document: AnyRun) -> str:
        """Writes what stands before the tests of a suite."""
        head = {
            "name": cut(name, NAME_CHARS),
            **_numbers([suite]),
            "skipped": str(suite.endings["skipped"]),
            "time": f"{suite.time_s:.3f}",
            # Without the zone, which is UTC: the schema has none.
            "timestamp": iso_utc(self._info.created_ms)[:19],
        }
        properties = {
            "run_id": document.run_id,
            "schema_version": document.schema_version,
            "kind": document.kind,
            "state": document.state,
            "source": self._info.source,
        }
        lines = "".join(
            f"<property{_attributes({'name': key, 'value': str(value)})}/>\n"
            for key, value in properties.items()
        )
        return f"<testsuite{_attributes(head)}>\n<properties>\n{lines}</properties>\n"

    def _pieces(self, suite: _Suite) -> Iterator[bytes]:
        """Yields the tests of a suite."""
        for begin, end in suite.parts:
            self._tests.seek(begin)
            left = end - begin
            while left:
                piece = self._tests.read(min(left, PIECE))
                left -= len(piece)
                yield piece


class SuitePerClass:
    """Writes a run with a suite for each class name of its tests.

    Args:
        out: where to.
        info: the run.
        tests_of: makes a test of each row.
    """

    def __init__(
        self, out: BinaryIO, info: RunInfo, tests_of: Callable[[Sequence[ItemRow]], Iterable[JunitTest]]
    ) -> None:
        self._junit, self._tests_of = Junit(out, info), tests_of

    def page(self, rows: Sequence[ItemRow]) -> None:
        """Takes some rows."""
        self._junit.add_by_class(self._tests_of(rows))

    def end(self, document: AnyRun) -> None:
        """Writes the file."""
        self._junit.end(document)


def xml_of(test: JunitTest) -> str:
    r"""Writes one test.

    >>> xml_of(JunitTest("m", "case 1", time_s=0.25))
    '<testcase classname="m" name="case 1" time="0.250"/>\n'
    >>> xml_of(JunitTest("m", "case 1", tags=["eu"]))[51:]
    '<properties><property name="tag" value="eu"/></properties></testcase>\n'
    >>> xml_of(JunitTest("m", "case 1", "failure", type="t", message='"<', body="]]>"))[51:]
    '<failure message=\'"&lt;\' type="t">]]&gt;</failure></testcase>\n'
    """
    head = {
        "classname": cut(test.classname, NAME_CHARS),
        "name": cut(test.name, NAME_CHARS),
        "time": f"{test.time_s:.3f}",
    }
    opening = f"<testcase{_attributes(head)}"
    listed = "".join(f"<property{_attributes({'name': 'tag', 'value': tag})}/>" for tag in test.tags)
    tags = f"<properties>{listed}</properties>" if listed else ""
    if test.ending == "passed":
        return f"{opening}>{tags}</testcase>\n" if tags else f"{opening}/>\n"
    why = {"message": cut(test.message, Size.TEXT)} | ({"type": test.type} if test.type else {})
    inner = f"<{test.ending}{_attributes(why)}"
    body = xml_text(cut(test.body, Size.BODY))
    inner += f">{body}</{test.ending}>" if body else "/>"
    return f"{opening}>{tags}{inner}</testcase>\n"


def xml_text(text: str) -> str:
    r"""Makes text safe between tags; what XML 1.0 cannot hold becomes the sign for what is unknown.

    >>> xml_text("a\x00<b\ud800\r&]]>")
    'a\ufffd&lt;b\ufffd&#13;&amp;]]&gt;'
    """
    return escape(_FORBIDDEN.sub(UNKNOWN, text), {"\r": "&#13;"})


def cut(text: str, limit: int) -> str:
    """Returns text of a bounded length, which says when it was cut.

    >>> cut("abcdef", 3), cut("abc", 3)
    ('abc...', 'abc')
    """
    return text if len(text) <= limit else text[:limit] + ELLIPSIS


def _attributes(values: Mapping[str, str]) -> str:
    """Writes attributes, each with a space in front."""
    return "".join(f" {key}={quoteattr(_FORBIDDEN.sub(UNKNOWN, value))}" for key, value in values.items())


def _numbers(suites: Iterable[_Suite]) -> dict[str, str]:
    """Adds up suites."""
    found = list(suites)
    return {
        "tests": str(sum(sum(suite.endings.values()) for suite in found)),
        "failures": str(sum(suite.endings["failure"] for suite in found)),
        "errors": str(sum(suite.endings["error"] for suite in found)),
    }
