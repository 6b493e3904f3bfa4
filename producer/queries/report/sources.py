"""Finds what an answer rests on: the sources, citations and related documents of a reply, each once.

The document names three lists of a reply and leaves open what their entries are. APIs write titles or objects
with keys of their own, so keys are recognised by what they are usually called.

>>> reply = {"sources": [{"title": "LCL guide", "section": "Cut-off"}],
...          "citations": [{"title": "LCL guide", "section": "Cut-off", "docId": "BK-02", "score": 0.91}],
...          "relatedDocs": ["Tariffs 2026"]}
>>> [(source.name, source.id, source.score, source.is_cited) for source in sources_of(reply)]
[('LCL guide', 'BK-02', '0.91', True), ('Tariffs 2026', '', '', False)]
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from producer.report.cells import Size, plain
from shared.contracts.query_vocabulary import json_object

MOST_SOURCES: Final = 30
"""Of one answer that are looked at."""
_LISTS: Final = {"sources": True, "citations": True, "relatedDocs": False}
"""Lists of a reply, and whether the answer cites what is in them."""
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "title": ("title", "name", "document", "documenttitle", "filename", "file", "source", "label"),
    "id": ("docid", "documentid", "id", "chunkid", "sourceid"),
    "section": ("section", "heading", "chapter", "page"),
    "score": ("score", "similarity", "relevance", "relevancescore", "distance"),
    "url": ("url", "link", "href", "uri", "sourceurls"),
    "text": ("text", "content", "snippet", "excerpt", "chunk", "passage", "quote", "pagecontent", "body"),
}
"""What an entry's keys are usually called, in lower case and without the signs between words."""
_UNTOLD: Final = frozenset({"raw", "matched"})
"""Keys that only programs need."""


@dataclass(slots=True)
class FoundSource:
    """One source of an answer."""

    is_cited: bool
    title: str = ""
    id: str = ""
    section: str = ""
    score: str = ""
    url: str = ""
    text: str = ""
    """What the API retrieved of it."""
    more: dict[str, str] = field(default_factory=dict)
    """Further keys with their values."""

    @property
    def name(self) -> str:
        """The best name there is."""
        return self.title or self.id or self.url or self.section or "unnamed"

    @property
    def short(self) -> str:
        """Name and section, for a line.

        >>> FoundSource(True, title="LCL guide", section="Cut-off").short
        'LCL guide, Cut-off'
        """
        parts = (self.name, self.section if self.section != self.name else "")
        return ", ".join(filter(None, parts))

    def is_same_as(self, other: "FoundSource") -> bool:
        """Returns whether both are one place in one document; an entry without a section is the document."""
        is_document = (
            bool(self.id and self.id == other.id)
            or bool(self.title and self.title == other.title)
            or bool(self.url and self.url == other.url)
        )
        return is_document and (self.section == other.section or not other.section or not self.section)

    def take(self, other: "FoundSource") -> None:
        """Fills in what another entry adds."""
        for name in _KEYS:
            if not getattr(self, name):
                setattr(self, name, getattr(other, name))
        self.more = {**other.more, **self.more}


def sources_of(response: Any) -> list[FoundSource]:
    """Returns the sources of a reply: what it cites, then what it only retrieved."""
    found = list[FoundSource]()
    for entry, is_cited in _entries(json_object(response)):
        source = _read(entry, is_cited=is_cited)
        same = next((each for each in found if each.is_same_as(source)), None)
        if same is None:
            found.append(source)
        else:
            same.take(source)
    return found


def _entries(response: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yields the entries of all lists, bounded."""
    for key, is_cited in _LISTS.items():
        value = response.get(key)
        entries = value if isinstance(value, list) else [value] if value else []
        for entry in entries[:MOST_SOURCES]:
            yield entry, is_cited


def _read(entry: Any, *, is_cited: bool) -> FoundSource:
    """Reads one entry, whatever it is."""
    source = FoundSource(is_cited)
    if not isinstance(entry, dict):
        source.title = plain(_text(entry), Size.LINE)
        return source
    values = {**json_object(entry.get("metadata")), **{key: entry[key] for key in entry if key != "metadata"}}
    values = {key: value for key, value in values.items() if value not in (None, "", [])}
    names = {key: "".join(sign for sign in str(key).lower() if sign.isalnum()) for key in values}
    taken = set[str]()
    for role, usual in _KEYS.items():
        for name in usual:
            key = next((key for key in values if names[key] == name), None)
            if key is not None:
                taken.add(key)
                value = _text(values[key])
                setattr(source, role, value if role == "text" else plain(value, Size.LINE))
                break
    source.more = {
        plain(str(key), Size.LINE): plain(_text(value), Size.REASON)
        for key, value in values.items()
        if key not in taken and names[key] not in _UNTOLD
    }
    return source


def _text(value: Any) -> str:
    """Writes a value; of a list with one entry, the entry."""
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
