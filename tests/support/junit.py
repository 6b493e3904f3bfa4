"""Reads JUnit XML as build servers do, and refuses what the schema of Jenkins' xUnit plugin does not have."""

import re
from collections.abc import Iterable
from typing import Final
from xml.etree import ElementTree as ET

ATTRIBUTES: Final = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "property": {"name", "value"},
    "properties": set[str](),
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
}
"""Of each element: all that we write, and the schema knows all of them."""
INSIDE: Final = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "error", "skipped"},
}
TIME: Final = re.compile(r"\d+\.\d{3}")
TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def read_junit(content: bytes) -> ET.Element:
    """Parses a report and holds it against the schema: elements, attributes, numbers."""
    root = ET.fromstring(content)  # noqa: S314 - our own file
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag], element.attrib
        assert {child.tag for child in element} <= INSIDE.get(element.tag, set())
        if "time" in element.attrib:
            assert TIME.fullmatch(element.attrib["time"])
    for suite in root:
        assert [child.tag for child in suite][:1] == ["properties"]
        assert TIMESTAMP.fullmatch(suite.attrib["timestamp"])
        assert all(len(test) <= 1 for test in suite.iter("testcase"))
        _hold_numbers(suite, [suite], ("tests", "failures", "errors", "skipped"))
    _hold_numbers(root, root, ("tests", "failures", "errors"))
    return root


def suites_of(root: ET.Element) -> dict[str, list[tuple[str, str]]]:
    """Returns name and ending of the tests of each suite."""
    return {
        suite.attrib["name"]: [
            (test.attrib["name"], next((child.tag for child in test), "passed"))
            for test in suite.iter("testcase")
        ]
        for suite in root
    }


def _hold_numbers(element: ET.Element, suites: Iterable[ET.Element], names: tuple[str, ...]) -> None:
    """Holds the numbers of an element against the tests in its suites."""
    tests = [test for suite in suites for test in suite.iter("testcase")]
    found = {"tests": len(tests)}
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        found[name] = sum(test.find(tag) is not None for test in tests)
    assert {name: int(element.attrib[name]) for name in names} == {name: found[name] for name in names}
