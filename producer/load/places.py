"""Where something stands in an input file, so that errors can name file, line and case."""

from dataclasses import dataclass
from typing import TypeAlias

from producer.load.problems import path_text
from producer.load.yaml_events import line_of
from shared.errors import InputError

Path: TypeAlias = tuple[str | int, ...]
"""Keys and positions inside a document."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file. The line in a configuration is looked up only for an error."""

    where: str
    """The file; of a line of a data file, with the line: `cases.jsonl:3`."""
    text: str = ""
    """Content of the configuration; empty where `where` has the line."""
    path: Path = ()
    """The place inside the configuration."""
    case: str = ""
    """What the case is called that stands there."""

    def __str__(self) -> str:
        return f"{self.where}:{line_of(self.text, self.path)}" if self.text else self.where

    def at(self, *path: str | int) -> "Place":
        r"""A place inside this one.

        >>> str(Place("a.yaml", "a:\n  b: 1\n", ("a",)).at("b"))
        'a.yaml:2'
        """
        return Place(self.where, self.text, (*self.path, *path), self.case)

    def error(self, what: str, hint: str = "") -> InputError:
        """Makes the error for what is wrong here.

        >>> Place("cases.jsonl:3", case="fr").at("checks", 0).error("nothing to check").message
        "cases.jsonl:3: checks[0] (case 'fr'): nothing to check"
        """
        path = path_text(self.path) + (f" (case {self.case!r})" if self.case else "")
        return InputError(f"{self}: {path + ': ' if path else ''}{what}", hint=hint)
