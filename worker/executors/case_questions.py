"""What a case asks: the model under test, the judges, and the pipeline."""

from typing import Any

from shared.contracts.case_run import CasePayload, CaseRun
from worker.upstream.model import ModelRequest
from worker.validation.judge import judge_prompt
from worker.validation.verdict import ValidationResult


def model_request(run: CaseRun, payload: CasePayload) -> ModelRequest:
    """Makes the question to the model under test."""
    place = run.models[payload.model]
    return ModelRequest(
        payload.model,
        run.system_prompt,
        payload.input,
        temperature=run.temperature,
        api_base=place.api_base,
        api_key_env=place.api_key_env,
        is_streamed=run.stream,
        timeout_s=run.timeout_s,
        repeat=payload.repeat,
    )


def judge_requests(run: CaseRun, payload: CasePayload, result: ValidationResult) -> list[ModelRequest]:
    """Makes the question to each judge; all are asked the same."""
    prompt = judge_prompt(payload.expected, result.parsed_output)
    return [
        ModelRequest(
            judge,
            prompt.system,
            prompt.user,
            temperature=0.0,
            api_base=place.api_base,
            api_key_env=place.api_key_env,
            timeout_s=run.timeout_s,
            repeat=payload.repeat,
        )
        for judge, place in run.judges.items()
    ]


def case_of(run: CaseRun, payload: CasePayload) -> dict[str, Any]:
    """Puts together what the pipeline needs to know of a case."""
    return {
        "input": payload.input,
        "expected": payload.expected,
        "reference": payload.reference,
        "regex_pattern": payload.regex_pattern,
        "validator": payload.validator,
        "schema": run.schema,
        "json_extraction": run.json_extraction,
    }
