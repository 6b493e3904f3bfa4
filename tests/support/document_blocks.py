"""Writes the parts of documents that come from measurements: tables between marks, and pictures beside them.

<!-- costs: written by `make scaling` -->
…
<!-- end of costs -->
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.tree import shown


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> str:
    """Writes a Markdown table, numbers to the right.

    Args:
        head: of each column.
        rows: one text a column.
        texts: how many columns, from the left, are text.

    >>> print(table(["kind", "cost"], [["turns", "9 µs"]]))
    | kind | cost |
    | --- | ---: |
    | turns | 9 µs |
    """
    aligned = ["---" if at < texts else "---:" for at in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, aligned, *rows))


def with_blocks(text: str, blocks: Mapping[str, str]) -> str:
    r"""Returns a document with what is between its marks written anew.

    Raises:
        ValueError: a mark is missing.

    >>> with_blocks("<!-- a: by hand -->\nold\n<!-- end of a -->\n", {"a": "new"})
    '<!-- a: by hand -->\nnew\n<!-- end of a -->\n'
    """
    for name, block in blocks.items():
        mark = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        found = mark.search(text)
        if found is None:
            raise ValueError(f"the document has no mark for {name!r}: <!-- {name}: … --> and its end")
        text = f"{text[: found.start()]}{found[1]}{block}\n{found[2]}{text[found.end() :]}"
    return text


def save(document: Path, blocks: Mapping[str, str], pictures: Mapping[str, str]) -> None:
    """Writes the blocks of a document, and its pictures into the folder that is named like it."""
    folder = document.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, drawn in pictures.items():
        (folder / f"{name}.svg").write_text(drawn, encoding="utf-8")
    document.write_text(with_blocks(document.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    sys.stdout.write(f"{shown(document)}: {len(blocks)} blocks, {len(pictures)} pictures\n")
