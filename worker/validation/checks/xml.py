"""The check `xml`: the output is well-formed XML, or has some, with certain elements."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal
from xml.parsers import expat

from pydantic import Field

from shared.contracts.checks import Check
from worker.validation.checks.kind import Score, Subject, no, yes
from worker.validation.checks.texts import PartOfText, listed

MAX_CHARS: Final = 1_000_000
MAX_ELEMENTS: Final = 100_000
Elements = Literal[True] | Annotated[list[PartOfText], Field(min_length=1, max_length=1_000)]
"""`true`, or the paths of elements that have to be there, from the first on: `order.item`."""
XML_OPTIONS: Final = {"where": Literal["whole", "anywhere"]}


def xml(check: Check, subject: Subject) -> Score:
    """Looks for a document, and for elements in it.

    >>> xml(Check("xml", ["a.b"]), Subject("<a><b/></a>")).reason
    'well-formed XML'
    >>> xml(Check("xml", options={"where": "anywhere"}), Subject("so: <a/>.")).value
    1.0
    >>> xml(Check("xml"), Subject("<a>")).reason
    'no well-formed XML: no element found: line 1, column 3'
    """
    text = subject.text.strip()
    if check.options.get("where") == "anywhere":
        text = text[text.find("<") : text.rfind(">") + 1]
    try:
        paths = _paths(text)
    except expat.ExpatError as error:
        return no(f"no well-formed XML: {error}")
    wanted: Sequence[str] = check.argument if isinstance(check.argument, list) else ()
    missing = [path for path in wanted if path not in paths]
    return no(f"missing: {listed(missing)}") if missing else yes("well-formed XML")


def _paths(text: str) -> set[str]:
    """The paths of all elements of a document.

    Raises:
        ExpatError: it is none, is too large, or declares entities, which could stand for any amount of text.
    """
    if len(text) > MAX_CHARS:
        raise expat.ExpatError(f"more than {MAX_CHARS:,} characters")
    found, path = set[str](), list[str]()

    def opened(name: str, _attributes: Any) -> None:
        path.append(name)
        found.add(".".join(path))
        if len(found) > MAX_ELEMENTS:
            raise expat.ExpatError(f"more than {MAX_ELEMENTS:,} kinds of elements")

    def refuse(*_: Any) -> None:
        raise expat.ExpatError("it declares entities")

    parser = expat.ParserCreate()
    parser.StartElementHandler = opened
    parser.EndElementHandler = lambda _: path.pop()
    parser.EntityDeclHandler = refuse
    parser.Parse(text, True)  # noqa: FBT003 - it takes nothing by name
    return found
