"""The two hashes of a case: of what decides its answer, and of what decides its verdict; pure.

Equal hashes mean that the same is sent, or that answers are judged alike, whatever cases, prompts and
variables are called. A case alone has them without settings; a case of a run with those of the run:
`call_hash` and `judging_hash`.
"""

from hashlib import blake2b
from typing import Any, Final

import msgspec

from shared.contracts.case_run import CasePayload, CaseRun
from shared.contracts.sent_messages import messages_as_sent
from shared.upstream.model_target import ModelTarget

HASH_BYTES: Final = 8
"""Enough to tell the cases of two files apart."""
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def hash_of(*values: Any) -> bytes:
    """Hashes values that JSON has; the order of keys does not count.

    >>> hash_of({"a": 1, "b": 2}) == hash_of({"b": 2, "a": 1}), hash_of("a") == hash_of("b")
    (True, False)
    """
    return blake2b(_encode(values), digest_size=HASH_BYTES).digest()


def answer_hash(case: CasePayload, system_prompt: str, call: bytes = b"") -> bytes:
    """Hashes what decides the answer to a case: its messages, its images, or what was recorded for it.

    Args:
        case: rendered.
        system_prompt: the bench's, which is sent where the case and its prompt have none.
        call: how its model is called; empty for the case alone.

    >>> case = CasePayload(0, "m", "Hi", id="a", prompt_id="short", vars={"name": "Ada"}, tags=["easy"])
    >>> renamed = CasePayload(7, "m", "Hi", id="b", prompt_id="brief", system="Answer.")
    >>> answer_hash(case, "Answer.") == answer_hash(renamed, "Be brief.")
    True
    >>> answer_hash(case, "Answer.") == answer_hash(case, "Be brief.")
    False
    """
    messages = messages_as_sent(case, system_prompt, case.images)
    recorded = None if case.recorded is None else msgspec.to_builtins(case.recorded)
    return hash_of(messages, recorded, call.hex())


def verdict_hash(case: CasePayload, judging: bytes = b"") -> bytes:
    """Hashes what decides the verdict on an answer: criteria and checks.

    Args:
        case: with its checks rendered.
        judging: how the run judges; empty for the case alone.

    >>> [france, spain] = [CasePayload(0, "m", text, criteria={"regex_pattern": "^A"}) for text in ("F", "S")]
    >>> verdict_hash(france) == verdict_hash(spain)
    True
    >>> verdict_hash(france) == verdict_hash(CasePayload(0, "m", "F", criteria={"regex_pattern": "^B"}))
    False
    """
    return hash_of(case.criteria, judging.hex())


def call_hash(run: CaseRun, model: str, prompt_id: str | None) -> bytes:
    """Hashes how a run calls a model for a prompt: endpoint, options and headers.

    >>> run = CaseRun("bench", "Answer.", {"m": ModelTarget("m", api_key_env="KEY")}, temperature=0.1)
    >>> call_hash(run, "m", None) == call_hash(CaseRun("other", "?", {"m": ModelTarget("m")}), "m", None)
    True
    """
    call = run.calls.get(model, {}).get(prompt_id or "", {})
    place = run.models.get(model, ModelTarget(model)).place
    return hash_of(place, call, run.temperature, run.timeout_s, run.stream, run.recorded)


def judging_hash(run: CaseRun) -> bytes:
    """Hashes how a run judges answers: schema, validators, judges and the models of checks."""
    judging = [
        {model: (target.place, target.headers) for model, target in asked.items()}
        for asked in (run.judges, run.check_models)
    ]
    source = run.validators.sha256 if run.validators else None
    return hash_of(*judging, source, run.judge_params, run.schema, run.json_extraction)
