"""A file of code as it travels with a run: workers may have no such file."""

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
    """Its text: of other files beside it workers know nothing."""
    sha256: str
    """SHA-256 of the text in UTF-8, as hexadecimal digits."""
    function: str = ""
    """What is called; empty: the usual one."""
    env: list[str] = []
    """The variables that it is given."""
    folder: str = ""
    """Where it was read."""
    role: str = CALLED_AS_MODEL
    """What its functions are to a worker: `model`, or `check`."""

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
        """The folder where it was read, with what it imports; None: this machine has not its text there."""
        try:
            text = Path(self.folder, self.name).read_bytes() if self.folder else b""
        except OSError:
            return None
        return Path(self.folder) if sha256(text).hexdigest() == self.sha256 else None
