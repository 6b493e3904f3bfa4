"""Texts come back from the store as they were, whatever the dictionary; typical ones take a fraction."""

from hypothesis import given
from hypothesis import strategies as st

from producer.load.baselines import encode_baseline
from producer.load.chunks import FEWEST_ITEMS, TYPICAL_CASE, TYPICAL_QUERY, dictionary_of
from shared.codecs.packing import DICTIONARY, PACKED, Packing
from shared.contracts.case_run import CasePayload, encode_case
from shared.contracts.queries import Baseline
from tests.support.query_desk import numbered
from worker.executors.case_results import CallDetails, case_document, case_line
from worker.executors.queries import result_line
from worker.queries.checks import query_result
from worker.queries.reply import Reply
from worker.validation.pipeline import validate

TEXTS = st.binary().map(lambda text: b"{" + text) | st.just(b"")
"""JSON of the ledger begins with `{`; a poisoned item has none."""


@given(st.binary(max_size=9_000), st.lists(TEXTS, max_size=4))
def test_every_text_comes_back(dictionary: bytes, texts: list[bytes]) -> None:
    """Unpacking undoes packing, nothing grows, and plain texts are read in every run."""
    packing = Packing(dictionary)
    for text in [*texts, dictionary[-500:] and b"{" + dictionary[-500:]]:
        stored = packing.pack(text)
        assert packing.unpack(stored) == packing.unpack(text) == text
        assert len(stored) <= len(text)
        assert stored == text or stored.startswith(PACKED)


def test_typical_results_take_a_tenth() -> None:
    """The typical results of the dictionaries are like the real ones: items of a run hardly take anything."""
    queries = [encode_baseline(Baseline.model_validate(query)) for query in numbered(3)]
    reply = Reply({"answer": "yes", "sources": [{"title": "S"}], "metadata": {"latencyMs": 9}}, 9, 200)
    answered = result_line(query_result(numbered(3)[2], reply), "")
    payload = CasePayload(2, "m", "Hi", criteria={"expected": {"ok": True}})
    verdict = validate({"expected": {"ok": True}}, '{"ok": true}')
    judged = case_line(case_document(payload, verdict, CallDetails()))
    for first, typical, result in (
        (queries[0], TYPICAL_QUERY, answered),
        (encode_case(payload), TYPICAL_CASE, judged),
    ):
        packing = Packing(dictionary_of([first], FEWEST_ITEMS, typical)[DICTIONARY])
        assert len(packing.pack(result)) < len(result) / 10
    assert len(Packing(dictionary_of(queries, FEWEST_ITEMS, b"")[DICTIONARY]).pack(queries[2])) < 20
