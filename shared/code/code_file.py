"""A file of code as it travels with a run: workers may have no such file."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

CALLED_AS_MODEL: Final = "model"
CALLED_AS_CHECK: Final = "check"


class CodeFile(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A function of a file, as it was read at submit."""

    language: str
    """`python` or `javascript`."""
    name: str
    """What the file is called, without its folder."""
    source: str
    """Its text."""
    sha256: str
    """As `digest_of` makes it of the texts."""
    function: str = ""
    """What is called; empty: the usual one."""
    env: list[str] = []
    """The variables that it is given."""
    folder: str = ""
    """Where it was read."""
    role: str = CALLED_AS_MODEL
    """What its functions are to a worker: `model`, or `check`."""
    imported: Mapping[str, str] = {}
    """What it imports from its folder: texts by their paths from there. Workers know no other file of it."""

    @property
    def place(self) -> str:
        """Where calls of it go, for people and for limits: other texts of the same name are other places.

        >>> CodeFile("python", "provider.py", "", "5d41402abc4b2a76").place
        'python:provider.py#5d41402a'
        """
        return f"{self.language}:{self.name}#{self.sha256[:8]}"

    @property
    def is_check(self) -> bool:
        """Whether its functions say if answers pass."""
        return self.role == CALLED_AS_CHECK

    @property
    def beside(self) -> Path | None:
        """The folder where it was read, with what it imports; None: this machine has other texts, or none."""
        folder = Path(self.folder)
        try:
            own, *others = ((folder / name).read_bytes().decode() for name in (self.name, *self.imported))
        except (OSError, ValueError):
            return None
        found = digest_of(own, dict(zip(self.imported, others, strict=True)))
        return folder if self.folder and found == self.sha256 else None

    def write(self, folder: Path) -> None:
        """Writes it and what it imports into an empty folder."""
        for name, text in {**self.imported, self.name: self.source}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())


def digest_of(text: str, imported: Mapping[str, str]) -> str:
    """Returns the SHA-256 of a text in UTF-8, as hexadecimal digits; with others, of all with their paths.

    >>> digest_of("hello", {})[:16]
    '2cf24dba5fb0a30e'
    """
    whole = json.dumps([text, sorted(imported.items())]) if imported else text
    return sha256(whole.encode()).hexdigest()
