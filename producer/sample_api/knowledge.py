"""Reads a knowledge base: one Markdown file per document, one chunk per section."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from producer.packaged_examples import example as packaged
from shared.errors import InputError

_FENCE = "---\n"
_KEYS = frozenset({"category", "org", "url"})


@dataclass(frozen=True, slots=True)
class Passage:
    """One section of one document: what is retrieved, and what is cited."""

    doc_id: str
    """The file's name without its suffix."""
    category: str
    """What the document is about."""
    org: str
    """Who wrote it."""
    url: str
    """Where it is published."""
    title: str
    """The document's title."""
    section: str
    """The section's heading."""
    text: str
    """The section's body, as one paragraph."""


def load_knowledge(folder: Traversable | None = None) -> list[Passage]:
    """Reads all documents of a folder, by name; by default those packaged with Proctor.

    Raises:
        InputError: a document lacks its head or its sections, or there is none.
    """
    place = folder or packaged("copilot", "knowledge")
    documents = sorted((entry for entry in place.iterdir() if entry.name.endswith(".md")), key=_name)
    chunks = [
        chunk for entry in documents for chunk in read_document(entry.name, entry.read_text(encoding="utf-8"))
    ]
    if not chunks:
        raise InputError(f"{place}: no documents in it", hint="put Markdown files there")
    return chunks


def read_document(name: str, text: str) -> Iterator[Passage]:
    r"""Yields the sections of one document.

    Args:
        name: the file's name.
        text: head between fences, `# Title`, then `## Section` and its body, repeated.

    Raises:
        InputError: a part is missing.

    >>> text = "---\ncategory: sla\norg: O\nurl: u\n---\n# Times\n\n## Reply\nWithin a day.\n"
    >>> [(chunk.title, chunk.section, chunk.text) for chunk in read_document("d.md", text)]
    [('Times', 'Reply', 'Within a day.')]
    """
    opening, _, rest = text.partition(_FENCE)
    head, _, body = rest.partition(_FENCE)
    facts = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    title, *sections = body.split("\n## ")
    if opening or not facts.keys() >= _KEYS or not title.startswith("# ") or not sections:
        raise InputError(
            f"{name}: not a document of a knowledge base",
            hint="it begins with category, org and url between lines of ---, then # title and ## sections",
        )
    for section in sections:
        heading, _, content = section.partition("\n")
        yield Passage(
            name.removesuffix(".md"),
            facts["category"],
            facts["org"],
            facts["url"],
            title.removeprefix("# ").strip(),
            heading.strip(),
            " ".join(content.split()),
        )


def _name(entry: Traversable) -> str:
    """Sorts files by name."""
    return entry.name
