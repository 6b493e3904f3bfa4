"""Converts test cases and goldens of DeepEval from JSON and CSV; actual outputs become recorded answers."""

import ast
import json
from contextlib import suppress
from typing import Any, Final

import msgspec

from producer.convert.data_set import Check, DataSet, literal, records_of, typed
from producer.convert.report import Conversion, ForeignFile
from producer.load.problems import InputRow, Place
from shared.contracts.case_vocabulary import why_not_json

MODEL: Final = "app"
"""Whose the recorded answers are: DeepEval does not say."""
METRICS: Final = (
    "metrics are chosen in code: checks are assumed by the fields",
    "metrics as checks: AnswerRelevancyMetric: answer_relevance, FaithfulnessMetric: context_faithfulness,",
    "ContextualRecallMetric: context_recall, ContextualPrecisionMetric: context_precision, GEval: g_eval,",
    "ToolCorrectnessMetric: tool_calls, JsonCorrectnessMetric: json_schema, ExactMatchMetric: equals",
)


class _Tool(msgspec.Struct):
    """A tool that was called, or is expected to be."""

    name: str
    input_parameters: dict[str, Any] = {}


class _TestCase(msgspec.Struct):
    """A test case, or a golden: one without an answer."""

    input: str
    actual_output: str | None = None
    expected_output: str | None = None
    context: list[str] = []
    retrieval_context: list[str] = []
    tools_called: list[_Tool] = []
    expected_tools: list[_Tool] = []
    name: str | None = None
    tags: list[str] = []
    additional_metadata: dict[str, Any] = {}
    completion_time: float | None = None
    token_cost: float | None = None


_TURNS: Final = frozenset({"scenario", "turns", "expected_outcome"})
"""What conversations have."""
_OWN: Final = frozenset({"actual_output", "expected_output", "retrieval_context", "expected_tools"})
"""What no other format has."""
_LISTS: Final = frozenset({"context", "retrieval_context"})
_NAMES: Final = frozenset({"tools_called", "expected_tools", "tags"})
"""What tables may also list as names, separated by `;`."""
_JSON: Final = _NAMES | {"additional_metadata"}


def fits(file: ForeignFile) -> bool:
    """Returns whether a file has test cases of DeepEval."""
    records = records_of(file)
    keys = set(map(_snake, records[0].value)) if records else set[str]()
    return ("input" in keys and bool(keys & _OWN)) or bool(keys & _TURNS)


def convert(file: ForeignFile) -> Conversion:
    """Translates test cases.

    Raises:
        InputError: one of them has no input, or all are conversations.
    """
    data = DataSet(file, comments=[*METRICS])
    for place, written in records_of(file):
        record = {_snake(key): value for key, value in written.items() if value not in (None, "")}
        if record.keys() & _TURNS:
            data.leave(place, "conversation", "users are not simulated: write its turns as `messages`")
            continue
        read = {key: _value(key, value, place) for key, value in record.items()}
        others = {key: value for key, value in record.items() if key not in _TestCase.__struct_fields__}
        _add(data, place, typed(InputRow(place, read), _TestCase), others)
    return data.conversion()


def _snake(name: str) -> str:
    """The name of a field: platforms write `actualOutput`."""
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def _add(data: DataSet, place: Place, test: _TestCase, others: dict[str, Any]) -> None:
    """Adds a test case."""
    name = data.unique(test.name or f"case-{len(data.cases) + 1}")
    variables = {"expected_output": test.expected_output} if test.expected_output else {}
    variables |= {key: texts for key in sorted(_LISTS) if (texts := getattr(test, key))}
    data.add(
        place,
        id=name,
        input=test.input,
        vars=variables,
        tags=test.tags,
        metadata={**test.additional_metadata, **others},
        checks=_checks(test, place),
    )
    if test.actual_output is not None:
        calls = [_call(at, each) for at, each in enumerate(test.tools_called, 1)]
        data.record(
            place,
            case=name,
            model=MODEL,
            output=test.actual_output,
            tool_calls=calls,
            latency_seconds=test.completion_time,
            cost_usd=test.token_cost,
        )


def _checks(test: _TestCase, place: Place) -> list[Check]:
    """The checks that the fields of a test case allow."""
    checks = list[Check]()
    if test.expected_output:
        checks.append({"factuality": "{{ expected_output }}"})
    if test.retrieval_context:
        checks.append({"context_faithfulness": "{{ retrieval_context | tojson }}"})
    if test.expected_tools:
        calls = [_expected_call(each, place) for each in test.expected_tools]
        checks.append({"tool_calls": calls, "order": "any"})
    return checks


def _value(key: str, value: Any, place: Place) -> Any:
    """A field; cells of tables hold JSON, contexts separated by `|` or `;`, or names by `;`."""
    if key in {"tools_called", "expected_tools"} and isinstance(value, list):
        tools = [each if isinstance(each, dict) else {"name": str(each)} for each in value]
        return [{_snake(name): part for name, part in each.items() if part is not None} for each in tools]
    if not isinstance(value, str) or key not in _LISTS | _JSON:
        return value
    if key in _LISTS and not value.startswith("["):
        return [each.strip() for each in value.split("|" if "|" in value else ";")]
    for read in (json.loads, ast.literal_eval):  # metadata of tables are written as Python has them
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return _value(key, read(value), place)
    if key in _NAMES and not value.startswith(("[", "{")):
        return _value(key, [each.strip() for each in value.split(";")], place)
    raise place.error(f"{key} is no JSON", "write it as DeepEval's save_as does")


def _expected_call(tool: _Tool, place: Place) -> Any:
    """A call that is expected."""
    if problem := why_not_json(tool.input_parameters):
        raise place.at("expected_tools").error(problem)
    if not tool.input_parameters:
        return tool.name
    return {"name": tool.name, "arguments": {"json_equals": _escaped(tool.input_parameters)}}


def _escaped(value: Any) -> Any:
    """A value without templates."""
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, dict):
        return {key: _escaped(each) for key, each in value.items()}
    return [_escaped(each) for each in value] if isinstance(value, list) else value


def _call(at: int, tool: _Tool) -> dict[str, Any]:
    """A call that was made, in OpenAI's form."""
    function = {"name": tool.name, "arguments": json.dumps(tool.input_parameters, ensure_ascii=False)}
    return {"id": f"call-{at}", "type": "function", "function": function}
