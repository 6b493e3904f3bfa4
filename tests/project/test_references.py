"""Holds what documents and comments name to what is there: files, folders, modules and the names in them."""

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support.tree import ROOT, project_files, shown

PATH: Final = re.compile(
    r"(?<![\w/.*-])((?:shared|worker|producer|tests|docs|deploy|examples)/[\w./-]*?\w)(?=[`\s,;:)\"'\]]|\.(?:\s|$)|/[`\s,;:)])"
)
DOTTED: Final = re.compile(r"(?<![\w/.])((?:shared|worker|producer)(?:\.\w+)+)")
HISTORY: Final = {"CHANGELOG.md", "docs/decisions.md", "docs/status.md"}
"""Documents that may name what was there once."""
TEXTS: Final = {".py", ".md", ".lua", ".toml", ".yaml", ".yml", ".sh", ""}
MADE: Final = {"docs/", "deploy/.env", "deploy/secrets", "deploy/models.env"}
"""Paths that users make."""
EXAMPLES: Final = {"shared.nowhere", "shared.names.Nothing", "worker.under_test"}
"""Names that tests make up."""


@cache
def source_of(module: str) -> str | None:
    """The text of a module or of a package's `__init__.py`; none where there is neither."""
    path = ROOT / module.replace(".", "/")
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or a name that stands in the nearest module above it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        text = source_of(".".join(parts[:length]))
        if text is not None:
            return length == len(parts) or re.search(rf"\b{parts[length]}\b", text) is not None
    return False


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a file with their numbers; of Python only strings and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in {tokenize.STRING, tokenize.COMMENT}:
            yield from enumerate(token.string.splitlines(), token.start[0])


def texts() -> list[Path]:
    """Files whose words are held to the tree."""
    return [
        path
        for path in project_files()
        if path.suffix in TEXTS and shown(path) not in HISTORY and "data" not in path.parts
    ]


def test_files_that_are_named_exist() -> None:
    """A path from the project's folder, in a document, comment or text, leads to a file or folder."""
    wrong = [
        f"{shown(path)}:{number}: {name}"
        for path in texts()
        for number, line in lines_of(path)
        for name in PATH.findall(line)
        if not (ROOT / name).exists() and not any(name.startswith(made) for made in MADE)
    ]
    assert not wrong, "these files are named and do not exist:\n" + "\n".join(wrong)


def test_functions_that_guides_name_exist() -> None:
    """A name with an underscore in the guides for contributors stands somewhere in our code."""
    code = "".join(
        path.read_text(encoding="utf-8") for path in project_files() if path.suffix in {".py", ".lua"}
    )
    words = set(re.findall(r"\w+", code))
    wrong = [
        f"{guide}: {name}"
        for guide in ("CONTRIBUTING.md", "docs/architecture.md")
        for name in re.findall(r"`([a-z]\w*_\w+)`", (ROOT / guide).read_text(encoding="utf-8"))
        if name not in words
    ]
    assert not wrong, "these names are used and do not exist:\n" + "\n".join(wrong)


def test_modules_that_are_named_exist() -> None:
    """A dotted name of ours, in a document, comment or text, is a module or stands in one."""
    wrong = [
        f"{shown(path)}:{number}: {name}"
        for path in texts()
        for number, line in lines_of(path)
        for name in DOTTED.findall(line)
        if "__" not in name and name not in EXAMPLES and not is_there(name)
    ]
    assert not wrong, "these names are used and do not exist:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shared.names", True),
        ("shared.names.Outcome", True),
        ("shared.ledger", True),
        ("shared.nowhere", False),
        ("shared.names.Nothing", False),
    ],
)
def test_names_are_looked_up(name: str, *, expected: bool) -> None:
    """A name counts when it is a module, or stands in one."""
    assert is_there(name) is expected
