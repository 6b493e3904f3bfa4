"""Makes the dictionary of a large run: typical results of its kind, and some of its own items."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from shared.codecs.packing import DICTIONARY, DICTIONARY_BYTES

FEWEST_ITEMS: Final = 1_000
"""Items of a run that is packed; smaller ones can be read with `redis-cli`, and by earlier workers."""
SAMPLES: Final = 2
"""Items that are part of the dictionary; they have in common what all have."""
SAMPLE_BYTES: Final = 1_024
"""Most bytes of each; longer ones would displace the typical results."""
TYPICAL_CASE: Final = (
    b'{"name":"","check":"","score":0.0,"passed":false,"reason":"","cost_usd":null,"detail":{},'
    b'"at_least":null}],"judge":{"model":"","token_usage":null,"cost_usd":null,"latency_ms":0,'
    b'"cached":false},"reply":"","outcome":"fail","reason":"differs: ","status":"failed",'
    b'"passed":false,"detail":{"match":"","span":[0,0]}},{"error":{"code":"","message":""},"result":'
    b'{"model":"","case_index":0,"case_id":null,"repeat_index":0,"prompt_id":null,"vars":{},"tags":[],'
    b'"metadata":{},"status":"passed","passed":true,"stages":[{"stage":"regex","outcome":"skipped",'
    b'"reason":"no regex_pattern","detail":{}},{"stage":"custom","outcome":"skipped",'
    b'"reason":"no validator","detail":{}},{"stage":"json_parse","outcome":"skipped",'
    b'"reason":"neither expected nor a schema","detail":{}},{"stage":"json_parse","outcome":"pass",'
    b'"reason":"found in the whole text","detail":{"source":"whole text","blocks":1}},'
    b'{"stage":"schema","outcome":"pass","reason":"keeps to the schema","detail":{}},'
    b'{"stage":"schema","outcome":"skipped","reason":"no schema","detail":{}},'
    b'{"stage":"equality","outcome":"skipped","reason":"no expected","detail":{}},'
    b'{"stage":"equality","outcome":"pass","reason":"equal to the expected object","detail":{}},'
    b'{"stage":"fuzzy","outcome":"skipped","reason":"no expected","detail":{}}],"decided_by":"checks",'
    b'"reason":"equality passed","detail":{}}],"decided_by":"equality","message":"","differences":null,'
    b'"raw_output":"","parsed_output":null,"metrics":{"rouge_l":0.0,"rouge_l_tokenizer":"rouge-score"},'
    b'"metrics":{},"used_fuzzy_match":false,"freeform":false,"score":null,"checks":[],"score":1.0,'
    b'"checks":[{"name":"","check":"","score":1.0,"passed":true,"reason":"","cost_usd":null,"detail":{},'
    b'"at_least":null}],"token_usage":null,"reasoning":"","tool_calls":[],"refusal":"","finish_reason":""}'
    b'"token_usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0},"reasoning":"",'
    b'"tool_calls":[],"refusal":"","finish_reason":"stop"}'
)
"""Stored results of cases, in pieces as long as they have in common."""
TYPICAL_QUERY: Final = (
    b'{"error":{"code":"","message":""},"result":{"id":"","category":"","query":"","is_oos":false,'
    b'"response":{"answer":"","sources":[{"title":"","url":"https://"}],"relatedDocs":[],"citations":[],'
    b'"confidence":{"level":"High"},"metadata":{"chunksRetrieved":1,"latencyMs":0}},"checks":'
    b'{"must_contain":{"pass":false,"total":1,"matched":0,"missing":[""]},"must_not_contain":{"pass":false,'
    b'"found":[""]},"checks":{"must_contain":{"pass":true,"total":1,"matched":1,"missing":[]},'
    b'"must_not_contain":{"pass":true,"found":[]},"expected_docs":{"pass":true,"expected":[],"found":[]},'
    b'"citation_present":{"pass":true,"applicable":true,"source_count":1,"citation_count":0},'
    b'"oos_handling":{"pass":true,"applicable":false,"signals_found":[]},'
    b'"latency":{"pass":true,"latency_ms":0,"threshold_ms":5000}},"overall_pass":false,'
    b'"client_latency_ms":0,"error":null}"overall_pass":true,"client_latency_ms":0,"error":null}'
)
"""The same of queries."""


def dictionary_of(payloads: Iterable[bytes], total: int, typical: bytes) -> dict[str, bytes]:
    """Returns the dictionary of a run as a file of it; empty for a run that is not packed.

    Args:
        payloads: of its first items.
        total: how many items it has.
        typical: results of its kind.

    >>> dictionary_of([b'{"id":"Q-1"}'], 2, b"")
    {}
    >>> dictionary_of([b'{"id":"Q-1"}'], 10_000, b'{"error":null}')
    {'dictionary': b'{"error":null}{"id":"Q-1"}'}
    """
    if total < FEWEST_ITEMS:
        return {}
    samples = [payload[:SAMPLE_BYTES] for payload in islice(payloads, SAMPLES)]
    return {DICTIONARY: b"".join([typical, *samples])[-DICTIONARY_BYTES:]}
