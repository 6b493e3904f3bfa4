"""A file of code as it travels with a run: workers may have no such file."""

import msgspec


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

    @property
    def place(self) -> str:
        """Where calls of it go, for people and for limits: other texts of the same name are other places.

        >>> CodeFile("python", "provider.py", "", "5d41402abc4b2a76").place
        'python:provider.py#5d41402a'
        """
        return f"{self.language}:{self.name}#{self.sha256[:8]}"
