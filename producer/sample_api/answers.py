"""Writes the API's answers: quoted sections with citations, a pointer when unsure, a decline when lost."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from producer.sample_api.retrieval import Hit, Index

MODEL: Final = "keyword-retrieval-1"
DECLINE: Final = (
    "I don't have information about that in the knowledge base."
    " Please contact the service desk, or ask about bookings, customs, carriers or service levels."
)
MIN_COVERAGE: Final = 0.25
"""Sections that cover less of the query are not retrieved."""
MEDIUM_COVERAGE: Final = 0.42
"""From here on a section is quoted; below, it is only pointed at."""
HIGH_COVERAGE: Final = 0.6
SECOND_SHARE: Final = 0.7
"""A second section is quoted when its score is at least this share of the first one's."""


class SampleAnswer(NamedTuple):
    """What the API says, and on what grounds."""

    text: str
    """The answer."""
    quoted: list[Hit]
    """Sections that are quoted and cited."""
    retrieved: list[Hit]
    """Sections that were found."""
    level: str
    """High, Medium or Low."""
    reason: str
    """Why."""


def answer(index: Index, query: str) -> SampleAnswer:
    """Answers a query from the knowledge base, or says that it cannot."""
    retrieved = [hit for hit in index.search(query) if hit.coverage >= MIN_COVERAGE]
    if not retrieved:
        return SampleAnswer(DECLINE, [], [], "Low", "No section of the knowledge base fits the query")
    best = retrieved[0]
    if best.coverage < MEDIUM_COVERAGE:
        names = " and ".join(f'"{hit.chunk.section}"' for hit in retrieved[:2])
        text = f"I found no clear answer. It may help to read {names}."
        return SampleAnswer(text, [], retrieved, "Low", "The sections found cover little of the query")
    quoted = [best, *(hit for hit in retrieved[1:2] if hit.score >= SECOND_SHARE * best.score)]
    text = " ".join(f"{hit.chunk.text} [{number}]" for number, hit in enumerate(quoted, 1))
    level = "High" if best.coverage >= HIGH_COVERAGE else "Medium"
    return SampleAnswer(text, quoted, retrieved, level, f"{len(quoted)} of {len(retrieved)} sections quoted")


def wrong_answer(index: Index, query: str) -> SampleAnswer:
    """Answers with the section that fits least, and full confidence: what an evaluation must catch."""
    found = {hit.chunk for hit in index.search(query, top=len(index.chunks))}
    strangers = [chunk for chunk in index.chunks if chunk not in found] or list(index.chunks)
    stranger = Hit(strangers[len(query) % len(strangers)], 0.0, 0.0)
    return SampleAnswer(
        f"{stranger.chunk.text} [1]", [stranger], [stranger], "High", "1 of 1 sections quoted"
    )


def reply(query: str, found: SampleAnswer, *, latency_ms: int) -> dict[str, Any]:
    """Returns the body of the API's reply."""
    return {
        "answer": found.text,
        "sources": [_source(hit) for hit in found.quoted],
        "relatedDocs": _related(found.retrieved),
        "citations": [_citation(number, hit) for number, hit in enumerate(found.quoted, 1)],
        "confidence": {"level": found.level, "reason": found.reason},
        "metadata": {
            "query": query,
            "chunksRetrieved": len(found.retrieved),
            "chunksUsed": len(found.quoted),
            "latencyMs": latency_ms,
            "model": MODEL if found.retrieved else None,
        },
    }


def _source(hit: Hit) -> dict[str, str]:
    """Names where a quotation comes from."""
    chunk = hit.chunk
    return {"title": chunk.title, "org": chunk.org, "url": chunk.url, "section": chunk.section}


def _related(hits: Sequence[Hit]) -> list[dict[str, str]]:
    """Names the documents that were found, each once."""
    documents = {hit.chunk.doc_id: hit.chunk for hit in hits}
    return [
        {"title": chunk.title, "category": chunk.category, "docId": doc_id, "url": chunk.url}
        for doc_id, chunk in documents.items()
    ]


def _citation(number: int, hit: Hit) -> dict[str, Any]:
    """Describes one mark in the answer."""
    chunk = hit.chunk
    return {
        "raw": f"[{number}]",
        "title": chunk.title,
        "section": chunk.section,
        "matched": True,
        "sourceUrls": [chunk.url],
        "docId": chunk.doc_id,
        "score": round(hit.score, 3),
    }
