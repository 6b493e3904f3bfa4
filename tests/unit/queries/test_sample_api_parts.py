"""Holds the parts of the sample API: knowledge base, retrieval, answers, behaviours."""

from pathlib import Path

import pytest

from producer.load.baselines import read_baselines
from producer.load.source import Source
from producer.sample_api.answers import DECLINE, answer, reply, wrong_answer
from producer.sample_api.behaviour import (
    NAMES,
    Behaviour,
    RequestLog,
    chosen_behaviour,
    parse_behaviour,
)
from producer.sample_api.knowledge import load_knowledge
from producer.sample_api.retrieval import Index
from shared.contracts.query_vocabulary import CATEGORIES
from shared.errors import ConfigError, InputError
from tests.support.tree import ROOT

BASELINES = ROOT / "examples" / "copilot" / "data" / "evaluation_baselines.json"


@pytest.fixture(scope="module")
def index() -> Index:
    """The packaged knowledge base, searchable."""
    return Index(load_knowledge())


def test_the_packaged_baselines_are_fifty_of_five_categories() -> None:
    """Ten of each category, forty in scope, ten out; no warning."""
    found = read_baselines(Source(BASELINES))
    categories = [query.category for query in found.queries]
    assert {category: categories.count(category) for category in CATEGORIES} == dict.fromkeys(CATEGORIES, 10)
    assert sum(query.is_oos for query in found.queries) == 10
    assert (found.version, found.warnings) == ("1.0", [])


def test_expected_documents_exist_in_the_knowledge_base(index: Index) -> None:
    """Every pattern of the baselines is part of a document's id."""
    documents = {chunk.doc_id.lower() for chunk in index.chunks}
    patterns = {
        pattern for query in read_baselines(Source(BASELINES)).queries for pattern in query.expected_docs
    }
    assert all(any(pattern.lower() in name for name in documents) for pattern in patterns)


def test_required_keywords_stand_in_the_expected_documents(index: Index) -> None:
    """Every in-scope query can be answered from the document that it expects."""
    texts: dict[str, str] = {}
    for chunk in index.chunks:
        texts[chunk.doc_id] = f"{texts.get(chunk.doc_id, '')} {chunk.text}".casefold()
    for query in read_baselines(Source(BASELINES)).queries:
        text = " ".join(texts[name] for name in texts if any(part in name for part in query.expected_docs))
        assert [word for word in query.must_contain if word.casefold() not in text] == [], query.id


def test_an_answer_quotes_and_cites_what_it_found(index: Index) -> None:
    """Text, sources, citations and related documents name the same section."""
    found = answer(index, "How long is a binding tariff ruling valid?")
    body = reply("q", found, latency_ms=3)
    assert "3 years" in body["answer"]
    assert body["answer"].endswith("[1]")
    assert body["sources"][0]["section"] == body["citations"][0]["section"] == "Binding ruling"
    assert body["relatedDocs"][0]["docId"] == "CU-02-tariff-codes"
    assert body["confidence"]["level"] == "High"
    assert body["metadata"]["chunksUsed"] == len(body["sources"])


def test_what_the_knowledge_base_does_not_have_is_declined(index: Index) -> None:
    """No chunk, no citation, no model, and a text that says so."""
    body = reply("q", answer(index, "Who painted this picture?"), latency_ms=0)
    assert (body["answer"], body["sources"], body["relatedDocs"], body["citations"]) == (DECLINE, [], [], [])
    assert (body["metadata"]["chunksRetrieved"], body["metadata"]["model"]) == (0, None)


@pytest.mark.parametrize("query", ["", "???", "the of and", "\x00", "🚢", "x" * 1000])
def test_queries_without_words_are_declined(index: Index, query: str) -> None:
    """Nothing to look for finds nothing."""
    assert answer(index, query).text == DECLINE


def test_a_wrong_answer_is_confident_and_about_something_else(index: Index) -> None:
    """It shares no word with the query."""
    found = wrong_answer(index, "How long is a binding tariff ruling valid?")
    assert found.level == "High"
    assert found.quoted[0].chunk not in [
        hit.chunk for hit in answer(index, "binding tariff ruling").retrieved
    ]


def test_a_broken_document_is_refused(tmp_path: Path) -> None:
    """The error names the file; an empty folder is an error too."""
    with pytest.raises(InputError, match="no documents in it"):
        load_knowledge(tmp_path)
    (tmp_path / "x.md").write_text("# No head\n\n## Section\ntext\n")
    with pytest.raises(InputError, match=r"x\.md: not a document"):
        load_knowledge(tmp_path)


def test_behaviours_are_read_from_flag_and_environment() -> None:
    """The flag wins; without both the API answers."""
    environment = {"PROCTOR_SAMPLE_API_BEHAVIOUR": "503"}
    assert chosen_behaviour("slow:seconds=2", environment) == Behaviour("slow", seconds=2.0)
    assert chosen_behaviour(None, environment).status == 503
    assert chosen_behaviour(None, {}) == Behaviour()


@pytest.mark.parametrize("name", [*NAMES, "400", "429", "599"])
def test_every_documented_name_is_a_behaviour(name: str) -> None:
    """Names stand for themselves; statuses refuse."""
    assert parse_behaviour(name).name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slwo", "unknown name 'slwo'"),
        ("200", "unknown name"),
        ("600", "unknown name"),
        ("0429", "unknown name"),
        ("9" * 5000, "unknown name"),
        ("slow:second=1", "unknown key 'second'"),
        ("slow:name=1", "unknown key 'name'"),
        ("slow:seconds=soon", "no number"),
        ("slow:seconds=nan", "no number"),
        ("slow:seconds=inf", "no number"),
        ("429:every=0", "no number"),
        ("429:times=-1", "no number"),
        ("huge:mib=99999", "no number"),
    ],
)
def test_unusable_behaviours_are_refused(text: str, words: str) -> None:
    """The error names what is wrong with which part."""
    with pytest.raises(ConfigError, match=words):
        parse_behaviour(text)


def test_requests_are_counted_by_query() -> None:
    """Behaviours can be limited to the first of a query, or to every n-th request."""
    log = RequestLog()
    assert [log.add(query) for query in "aba"] == [(1, 1), (2, 1), (3, 2)]
    every_second = Behaviour("500", every=2)
    assert [every_second.meets(nth=n, nth_of_query=1) for n in (1, 2, 3, 4)] == [False, True, False, True]
