"""Finds what code imports from its own folder, and what that imports, by reading and without running it.

What is imported by a name that is made while it runs, and files that are opened, cannot be found so.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final

MOST_FILES: Final = 100
"""Files that travel with code."""
MOST_BYTES: Final = 1 << 20
"""Characters of all of them together: they are stored with the run, for each model that is code."""
_RELATIVE: Final = re.compile(r"""\b(?:from|import|require)\b\s*\(?\s*["'](\.[^"'\n]*)["']""")
"""Where JavaScript names a file: `import`, also `import(…)`, `export … from` and `require(…)`."""
_SUFFIXES: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".json")


def imported_files(file: Path, text: str) -> Mapping[str, str]:
    """Returns the texts of the files that a file needs of its folder, by their paths from there.

    They are none if they are more than may travel.

    Args:
        file: its path.
        text: its content.
    """
    folder, found, size = file.parent.resolve(), dict[str, str](), 0
    left = [(file.name, text)]
    while left:
        path, text = left.pop()
        named = _named_by_python(path, text) if path.endswith(".py") else _named_by_javascript(path, text)
        for each in named:
            if each in found or each == file.name or (content := _read(folder, each)) is None:
                continue
            found[each] = content
            left.append((each, content))
            size += len(content)
            if len(found) > MOST_FILES or size > MOST_BYTES:
                return {}
    return dict(sorted(found.items()))


def _read(folder: Path, path: str) -> str | None:
    """Returns the text of a file in a folder, or its beginning if it is too long; None if there is none."""
    try:
        file = (folder / path).resolve()
        if not (file.is_relative_to(folder) and file.is_file()):
            return None
        with file.open(encoding="utf-8", newline="") as opened:
            return opened.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        return None


def _named_by_python(path: str, text: str) -> Iterator[str]:
    """Yields the paths of modules that may be imported: of each name, as a file and as a package.

    >>> list(_named_by_python("a.py", "from lib.words import longest"))[:4]
    ['lib.py', 'lib/__init__.py', 'lib/words.py', 'lib/words/__init__.py']
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [tuple(each.name.split(".")) for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = PurePosixPath(path).parts[: -node.level] if node.level else ()
            module = (*above, *(node.module or "").split("."))
            names = [tuple(filter(None, (*module, each.name))) for each in node.names]
        else:
            continue
        for parts in names:
            for length in range(1, len(parts) + 1):
                dotted = "/".join(parts[:length])
                yield from (f"{dotted}.py", f"{dotted}/__init__.py")


def _named_by_javascript(path: str, text: str) -> Iterator[str]:
    """Yields the paths of files that may be imported: as they are named, and with what node adds.

    >>> list(_named_by_javascript("lib/a.js", "import { b } from '../b.js'"))[:2]
    ['b.js', 'b.js.js']
    """
    for named in _RELATIVE.findall(text):
        found = normpath(f"{PurePosixPath(path).parent}/{named}")
        yield found
        yield from (f"{found}{suffix}" for suffix in _SUFFIXES)
        yield from (f"{found}/index{suffix}" for suffix in _SUFFIXES)
        if found.endswith(".js"):  # TypeScript names what it is compiled to
            yield f"{found.removesuffix('.js')}.ts"
