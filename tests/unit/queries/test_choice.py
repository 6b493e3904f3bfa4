"""Holds which queries of a file are asked, and what a run remembers of the choice."""

import io
import json
from typing import Any, Final

import pytest

from producer.load.source import Source
from producer.options import QueryChoice, SubmitOptions
from producer.queries.load import choose, load_queries
from shared.contracts.queries import Baseline
from shared.contracts.query_run import QueryRun
from shared.errors import InputError, ProctorError
from tests.support.query_results import baseline

QUERIES: Final = [
    Baseline.model_validate(baseline(f"Q-{number}", category=category, query=query))
    for number, (category, query) in enumerate(
        [("sla", "Is it late?"), ("returns", "May I return it?"), ("sla", "How LATE?"), ("carrier", "Who?")]
    )
]


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        (QueryChoice(), ["Q-0", "Q-1", "Q-2", "Q-3"]),
        (QueryChoice(categories=["returns", "carrier"]), ["Q-1", "Q-3"]),
        (QueryChoice(containing="late"), ["Q-0", "Q-2"]),
        (QueryChoice(containing="q-3"), ["Q-3"]),
        (QueryChoice(categories=["sla"], containing="late", first=1), ["Q-0"]),
        (QueryChoice(sample=9), ["Q-0", "Q-1", "Q-2", "Q-3"]),
    ],
)
def test_queries_are_chosen(choice: QueryChoice, left: list[str]) -> None:
    """By category, by words in id or text in any case of letters, and then the first ones; in their order."""
    assert [query.id for query in choose(QUERIES, choice)] == left


def test_a_sample_is_the_same_each_time() -> None:
    """Two runs can be compared."""
    found = choose(QUERIES, QueryChoice(sample=2))
    assert len(found) == 2
    assert found == choose(QUERIES, QueryChoice(sample=2)) == sorted(found, key=lambda query: query.id)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (QueryChoice(categories=["slo"]), "no query has the category 'slo' | did you mean 'sla'?"),
        (QueryChoice(categories=["x"]), "'x' | its categories: sla, returns, carrier"),
        (QueryChoice(containing="nothing"), "no query is left to ask | -k nothing leaves none"),
    ],
)
def test_a_choice_that_leaves_nothing_is_refused(choice: QueryChoice, words: str) -> None:
    """The error names what there is."""
    with pytest.raises(InputError) as caught:
        choose(QUERIES, choice)
    assert words in f"{caught.value.message} | {caught.value.hint}"


def test_a_run_remembers_what_was_chosen() -> None:
    """Its snapshot says what it leaves out, and another choice is another run for an idempotency key."""
    loads = []
    for choice in (QueryChoice(), QueryChoice(first=1)):
        text = json.dumps([baseline("Q-1"), baseline("Q-2")]).encode()
        source = Source("-", stdin=io.BytesIO(text))
        loads.append(load_queries(source, SubmitOptions(query_choice=choice)))
    whole, some = loads
    assert whole.snapshot["queries"]["chosen"] == ""
    assert some.snapshot["queries"]["chosen"] == "1 of 2 queries, chosen with --first 1"
    assert sum(chunk.item_count for chunk in some.chunks) == 1
    assert whole.settings != some.settings


def load(api: object, **options: object) -> QueryRun:
    """Loads a file with a mapping, and returns the settings of its run."""
    document = {"api": api, "queries": [query.model_dump() for query in QUERIES]}
    source = Source("-", stdin=io.BytesIO(json.dumps(document).encode()))
    run = load_queries(source, SubmitOptions(queries=QueryRun(**options)))  # type: ignore[arg-type] # of a test
    return QueryRun.from_snapshot(run.snapshot)


def test_a_file_says_how_its_api_is_asked() -> None:
    """The host may be another one; workers of the previous release leave such a run alone."""
    api = {"url": "http://h:1/chat", "body": {"q": "{{ vars.category }}"}, "answer": "/text"}
    run = load(api)
    assert (run.api_url, run.path, run.method) == ("http://h:1", "/chat", "POST")
    assert run.http is not None
    assert run.http.answer == {"text": "/text"}
    other = load(api, api_url="http://other").http
    assert other is not None
    assert other.request.url == "http://other/chat"


@pytest.mark.parametrize(
    ("api", "options", "words"),
    [
        ({"answer": "text"}, {}, "api.answer.text: no JSON pointer"),
        ({"body": "{{ input"}, {}, "api.body: not a template"),
        ({"bdy": 1}, {}, "api.bdy: unknown key | did you mean 'body'?"),
        ({"body": "{{ vars.lang }}"}, {}, "query Q-0: 'lang' is missing"),
        ("http://h", {}, "api: not an object"),
        ({}, {"path": "/ask"}, "--path: the file says in `api` how it is asked"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_refused(api: Any, options: dict[str, Any], words: str) -> None:
    """With its place, and before anything is sent."""
    whole = {"url": "http://h/chat", "answer": "/text", **api} if isinstance(api, dict) else api
    with pytest.raises(ProctorError) as caught:
        load(whole, **options)
    assert words in f"{caught.value.message} | {caught.value.hint}"
