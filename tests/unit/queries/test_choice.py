"""Holds which queries of a file are asked, and what a run remembers of the choice."""

import io
import json
from typing import Final

import pytest

from producer.load.source import Source
from producer.options import QueryChoice, SubmitOptions
from producer.queries.load import choose, load_queries
from shared.contracts.queries import Baseline
from shared.errors import InputError
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
