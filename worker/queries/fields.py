"""Where other APIs keep what the harness specification calls answer, sources, citations and so on.

A place is a JSON pointer (RFC 6901) into the reply. With the specification's own places the reply is taken
as it is; with others a reply in the specification's form is made, so that checks and reports have one form.

>>> fields = FieldMap(answer="/choices/0/text", related_docs="/hits", doc_id="/id")
>>> in_document_form({"choices": [{"text": "Yes."}], "hits": [{"id": "d1"}, "d2"]}, fields)["relatedDocs"]
[{'id': 'd1', 'docId': 'd1'}, {'docId': 'd2'}]
"""

from dataclasses import dataclass
from typing import Any, Final

from shared.codecs.json_pointers import at

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class FieldMap:
    """JSON pointers to the parts of a reply."""

    answer: str = "/answer"
    """The answer's text; a reply without this place is no answer."""
    sources: str = "/sources"
    """List of sources."""
    citations: str = "/citations"
    """List of citations."""
    related_docs: str = "/relatedDocs"
    """List of related documents."""
    doc_id: str = "/docId"
    """Inside a related document: its id. A document that is plain text is its own id."""
    confidence: str = "/confidence"
    """A level, or an object with level and reason."""
    chunks_retrieved: str = "/metadata/chunksRetrieved"
    """How many chunks the retrieval found."""
    latency_ms: str = "/metadata/latencyMs"
    """The server's own latency."""


DOCUMENT_FIELDS: Final = FieldMap()
"""The places that the specification names."""


def in_document_form(reply: Any, fields: FieldMap = DOCUMENT_FIELDS) -> dict[str, Any] | None:
    """Returns the reply in the specification's form, or None when it is no answer.

    >>> in_document_form({"answer": None}), in_document_form({}), in_document_form([1])
    ({'answer': None}, None, None)
    """
    if not isinstance(reply, dict) or at(reply, fields.answer, _ABSENT) is _ABSENT:
        return None
    if fields == DOCUMENT_FIELDS:
        return reply
    related = at(reply, fields.related_docs)
    return {
        "answer": at(reply, fields.answer),
        "sources": at(reply, fields.sources),
        "citations": at(reply, fields.citations),
        "relatedDocs": [_document(entry, fields.doc_id) for entry in related]
        if isinstance(related, list)
        else [],
        "confidence": at(reply, fields.confidence),
        "metadata": {
            "chunksRetrieved": at(reply, fields.chunks_retrieved),
            "latencyMs": at(reply, fields.latency_ms),
        },
    }


def _document(entry: Any, pointer: str) -> dict[str, Any]:
    """Returns a related document with its id where the specification has it."""
    if isinstance(entry, dict):
        return {**entry, "docId": at(entry, pointer)}
    return {"docId": entry}
