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
MADE: Final = {"docs/", "deploy/.env", "deploy/secrets", "deploy/models.env", "producer/examples"}
"""Paths that users make."""
EXAMPLES: Final = {"shared.nowhere", "shared.names.Nothing", "worker.under_test"}
"""Names that tests make up."""
MOST_FILES: Final = 5
"""Files that a reader opens for the answer to one question."""


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
    names = [
        f"{guide}: {name}"
        for guide in ("CONTRIBUTING.md", "docs/architecture.md")
        for name in re.findall(r"`([a-z]\w*_\w+)`", (ROOT / guide).read_text(encoding="utf-8"))
    ]
    assert names
    wrong = [name for name in names if name.partition(": ")[2] not in words]
    assert not wrong, "these names are used and do not exist:\n" + "\n".join(wrong)


def questions() -> list[tuple[str, list[str]]]:
    """The questions of CONTRIBUTING.md, each with what its answer has in backticks."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| question | read |\n| --- | --- |\n")[2].partition("\n\n")[0]
    return [
        (question, re.findall(r"`([^`]+)`", answer))
        for question, answer in re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)
    ]


@pytest.mark.parametrize(("question", "named"), questions(), ids=lambda value: str(value)[:60])
def test_an_answer_names_at_most_five_files_that_have_its_names(question: str, named: list[str]) -> None:
    """Each file is named by its whole path, and what is named beside them stands in one of them."""
    places = list(dict.fromkeys(name for name in named if "/" in name or re.search(r"\.\w+$", name)))
    lost = [name for name in places if not (ROOT / name).exists()]
    assert not lost, f"{question} names what is not there: {lost}"
    files = [name for name in places if (ROOT / name).is_file()]
    assert places, f"{question} names no file"
    assert len(files) <= MOST_FILES, f"{question} names {len(files)} files"
    inside = (path for name in places for path in [ROOT / name, *(ROOT / name).glob("*")] if path.is_file())
    words = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in inside)))
    strange = [name for name in named if re.fullmatch(r"\w+", name) and name not in words]
    assert not strange, f"{question} names what stands in none of its files: {strange}"


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
