"""Converts test cases and goldens of DeepEval from JSON and CSV; actual outputs become recorded answers."""

import json
from typing import Any, Final

from producer.convert.data_set import Check, DataSet, literal, records_of
from producer.convert.report import Conversion, ForeignFile
from producer.load.problems import InputRow, Place
from shared.contracts.case_vocabulary import why_not_json

MODEL: Final = "app"
"""Whose the recorded answers are: DeepEval does not say."""
_OWN: Final = frozenset({"actual_output", "expected_output", "retrieval_context", "expected_tools"})
_TURNS: Final = frozenset({"scenario", "turns", "expected_outcome"})
_CARRIED: Final = frozenset(
    {"input", "name", "context", "tags", "tools_called", "additional_metadata", *_OWN}
)
_FACTS: Final = frozenset({"comments", "source_file", "custom_column_key_values"})
_LISTS: Final = frozenset({"context", "retrieval_context"})
_JSON: Final = frozenset(
    {"tools_called", "expected_tools", "additional_metadata", "custom_column_key_values", "tags"}
)
METRICS: Final = (
    "metrics as checks: AnswerRelevancyMetric: answer_relevance, FaithfulnessMetric: context_faithfulness,",
    "ContextualRecallMetric: context_recall, ContextualPrecisionMetric: context_precision, GEval: g_eval,",
    "ToolCorrectnessMetric: tool_calls, JsonCorrectnessMetric: json_schema, ExactMatchMetric: equals",
)


def fits(file: ForeignFile) -> bool:
    """Returns whether a file has test cases of DeepEval."""
    records = records_of(file)
    keys = set(_snake(records[0]).value) if records else set[str]()
    return ("input" in keys and bool(keys & _OWN)) or bool(keys & _TURNS)


def convert(file: ForeignFile) -> Conversion:
    """Translates test cases.

    Raises:
        InputError: one of them has no input, or all are conversations.
    """
    data = DataSet(file, comments=[*METRICS])
    for row in map(_snake, records_of(file)):
        if row.value.keys() & _TURNS:
            data.leave(
                row.place, "conversational golden", "users are not simulated: write its turns as `messages`"
            )
        elif not isinstance(row.value.get("input"), str):
            raise row.place.error("a test case without input", 'name what is asked "input"')
        else:
            _add(data, row)
    data.leave(Place(str(file.path)), "metrics", "they are chosen in code: checks are assumed by the fields")
    return data.conversion()


def _snake(row: InputRow) -> InputRow:
    """A record with its keys in one spelling: platforms write `actualOutput`."""
    names = {
        key: "".join(f"_{each.lower()}" if each.isupper() else each for each in key) for key in row.value
    }
    return InputRow(
        row.place, {names[key]: value for key, value in row.value.items() if value not in (None, "", [])}
    )


def _add(data: DataSet, row: InputRow) -> None:
    """Adds a test case."""
    place, record = row.place, {key: _value(key, value, row.place) for key, value in row.value.items()}
    metadata = {
        **(record.get("additional_metadata") or {}),
        **{key: record[key] for key in _FACTS & record.keys()},
    }
    variables = {
        key: record[key] for key in ("expected_output", "retrieval_context", "context") if key in record
    }
    for key in record.keys() - _CARRIED - _FACTS:
        metadata[key] = record[key]
    case = str(record.get("name") or f"case-{len(data.cases) + 1}")
    if any(case == each.id for each in data.cases[-1000:]):
        case = f"{case}-{len(data.cases) + 1}"
    checks, tags = _checks(record, place), record.get("tags")
    data.add(
        place, id=case, input=record["input"], vars=variables, tags=tags, metadata=metadata, checks=checks
    )
    if "actual_output" in record:
        calls = [_call(at, each) for at, each in enumerate(record.get("tools_called", ()))]
        data.record(place, case=case, model=MODEL, output=str(record["actual_output"]), tool_calls=calls)


def _checks(record: dict[str, Any], place: Place) -> list[Check]:
    """The checks that the fields of a test case allow."""
    checks = list[Check]()
    if "expected_output" in record:
        checks.append({"factuality": "{{ expected_output }}"})
    if "retrieval_context" in record:
        checks.append({"context_faithfulness": "{{ retrieval_context | tojson }}"})
    if tools := record.get("expected_tools"):
        checks.append({"tool_calls": [_expected_call(each, place) for each in tools], "order": "any"})
    return checks


def _value(key: str, value: Any, place: Place) -> Any:
    """A field; cells of tables hold JSON, or contexts separated by `|` or `;`."""
    if not isinstance(value, str) or key not in _LISTS | _JSON:
        return value
    if key in _LISTS and not value.startswith("["):
        return [each.strip() for each in value.split("|" if "|" in value else ";")]
    try:
        return json.loads(value)
    except ValueError:
        raise place.error(f"{key} is no JSON", "write it as DeepEval's save_as does") from None


def _name(tool: Any) -> str:
    """The name of a tool, which may stand alone."""
    return str(tool.get("name", "")) if isinstance(tool, dict) else str(tool)


def _arguments(tool: Any) -> Any:
    """What a tool was called with."""
    return tool.get("input_parameters", tool.get("inputParameters")) if isinstance(tool, dict) else None


def _expected_call(tool: Any, place: Place) -> Any:
    """A call that is expected."""
    arguments = _arguments(tool)
    if problem := why_not_json(arguments):
        raise place.at("expected_tools").error(problem)
    return (
        {"name": _name(tool), "arguments": {"json_equals": _escaped(arguments)}} if arguments else _name(tool)
    )


def _escaped(value: Any) -> Any:
    """A value without templates."""
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, dict):
        return {key: _escaped(each) for key, each in value.items()}
    return [_escaped(each) for each in value] if isinstance(value, list) else value


def _call(at: int, tool: Any) -> dict[str, Any]:
    """A call that was made, in OpenAI's form."""
    arguments = json.dumps(_arguments(tool) or {}, ensure_ascii=False)
    return {
        "id": f"call-{at + 1}",
        "type": "function",
        "function": {"name": _name(tool), "arguments": arguments},
    }
