"""What a conversion gives: the bench, and what is left because benches have no counterpart for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from producer.cases.bench_files import CONFIG_BYTES, read_source
from producer.load.problems import MOST_CASES, Place
from producer.load.problems import Path as DocumentPath
from producer.load.source import Source
from producer.load.yaml_text import parse_yaml
from producer.text import shown
from shared.contracts.case_config import BenchConfig
from shared.contracts.prompts import Prompt
from shared.errors import WrongInput

UNWRITTEN: Final = Prompt(user="{{ write_the_prompt_here }}")
"""The prompt of a bench that cannot be run before someone writes one."""
WHAT_CHARS: Final = 80
"""The longest name of what is left."""


@dataclass(frozen=True, slots=True)
class Left:
    """Something of a foreign file that the bench does not have."""

    place: Place
    """Where it is written."""
    what: str
    """What it is, in the words of its tool."""
    reason: str
    """Why it is left, and what to do instead."""
    at: DocumentPath = ()
    """Where in the bench it belongs, for the comment there; empty: at the beginning."""

    @property
    def message(self) -> str:
        """It with its place, on one line."""
        what = self.what if len(self.what) <= WHAT_CHARS else f"{self.what[:WHAT_CHARS]}…"
        return f"{self.place}: {' '.join(what.split())}: {self.reason}"


class Conversion(NamedTuple):
    """A translated file."""

    bench: BenchConfig
    """The bench; only what is set is written."""
    left: Sequence[Left] = ()
    """What it lacks, in the order of the foreign file."""
    comments: Mapping[DocumentPath, Sequence[str]] = {}
    """Comments of the foreign file, by the place in the bench that they stand above, without their `#`."""
    files: Mapping[str, str] = {}
    """Texts of files that the bench names and that do not exist yet, by their names beside it."""
    places: Mapping[DocumentPath, Place] = {}
    """Where parts of the bench, by their places in it, stand in the foreign file; under `()` the file."""


@dataclass(slots=True)
class CaseCount:
    """Counts the cases of a foreign file, which are no more than a bench may have."""

    cases: int = 0
    """So far."""

    def add(self, cases: int, place: Place) -> None:
        """Adds cases.

        Raises:
            InputError: they are too many.
        """
        self.cases += cases
        if self.cases > MOST_CASES:
            raise place.error(f"more than {MOST_CASES:,} cases", "split them into several files")


@dataclass(frozen=True)
class ForeignFile:
    """A file of another tool.

    Args:
        path: where it is.
        folder: where the bench will stand; paths in it are relative to this folder.
    """

    path: Path
    folder: Path

    @cached_property
    def text(self) -> str:
        """Its content, of a bounded size.

        Raises:
            InputError: it cannot be read, is too large, or is no UTF-8.
        """
        return read_source(Source(self.path), CONFIG_BYTES).text

    @property
    def place(self) -> Place:
        """The place of the whole file."""
        return Place(str(self.path), self.text)

    @cached_property
    def document(self) -> Any:
        """Its content as YAML or JSON; None where it is neither.

        Raises:
            InputError: it is broken.
        """
        try:
            return parse_yaml(self.text)
        except WrongInput as error:
            raise Place(str(self.path), line=error.line).error(error.what, error.hint) from None

    @property
    def mapping(self) -> dict[str, Any]:
        """Its content, where that has to be a mapping.

        Raises:
            InputError: it is broken, or something else.
        """
        if not isinstance(self.document, dict):
            what = f"should be a mapping, found {shown(self.document)}"
            raise self.place.error(what, "--from names the format of the file")
        return self.document
