"""Holds the baselines loader: three forms, strict types, natural order, errors that name their place."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from producer.forecasts.queries import forecast as forecast_queries
from producer.load import baselines as loader
from producer.load.baselines import Baselines, load_baselines, read_baselines
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.queries.load import load_queries, start_at
from shared.errors import InputError


def baseline(identifier: str = "Q-01", **changes: Any) -> dict[str, Any]:
    """A good baseline, with changes; None takes a key out."""
    good = {
        "id": identifier,
        "category": "booking",
        "query": "How?",
        "is_oos": False,
        "expected_docs": ["BK"],
        "must_contain": ["so"],
        "must_not_contain": [],
    }
    return {key: value for key, value in {**good, **changes}.items() if value is not ...}


def read(content: Any) -> Baselines:
    """Reads what a file would hold: text as it is, everything else as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    return read_baselines(Source("-", stdin=io.BytesIO(text.encode("utf-8", "surrogatepass"))))


def refusal(content: Any) -> str:
    """The error that a content is refused with, hint included."""
    with pytest.raises(InputError) as caught:
        read(content)
    return f"{caught.value.message} | {caught.value.hint}"


def ids(baselines: Baselines) -> list[str]:
    """The ids in their order."""
    return [query.id for query in baselines.queries]


def test_the_documents_form_is_an_object_with_version_and_queries() -> None:
    """Version and queries are taken; other keys of the object do not matter."""
    found = read({"version": "1.0", "description": "x", "queries": [baseline()]})
    assert (found.version, ids(found), found.warnings) == ("1.0", ["Q-01"], [])


def test_a_file_is_read_once_for_forecast_and_submit(tmp_path: Path) -> None:
    """What was read to announce a run is what is submitted, whatever became of the file since."""
    path = tmp_path / "baselines.json"
    path.write_text(json.dumps([baseline("Q-02"), baseline("Q-01")]), encoding="utf-8")
    source, options = Source(path), SubmitOptions()
    found = forecast_queries(source, options)
    assert found is not None
    path.unlink()
    load = load_queries(source, replace(options, baselines=found.baselines))
    assert [list(chunk.payloads.values()) for chunk in load.chunks] == [
        [loader.encode_baseline(query)] for query in read([baseline("Q-01"), baseline("Q-02")]).queries
    ]


def test_own_categories_are_taken() -> None:
    """A category beyond the document's five is kept, and warned of once, with the one that may be meant."""
    found = read([baseline("Q-1", category="returns"), baseline("Q-2", category="returns")])
    assert [query.category for query in found.queries] == ["returns", "returns"]
    (warning,) = found.warnings
    assert "(Q-1): category 'returns' is one of your own; known ones: " in warning
    for written, meant in (("custom", "customs"), ("edge", "edge_case")):
        (warning,) = read([baseline(category=written)]).warnings
        assert warning.endswith(f"category {written!r} is one of your own, but did you mean {meant!r}?")
    assert read([baseline(category=category) for category in ("sla",)]).warnings == []


def test_a_bare_list_and_json_lines_are_taken_too() -> None:
    """All three forms give the same queries."""
    rows = [baseline("Q-1"), baseline("Q-2")]
    lines = "\ufeff" + "\n\n".join(json.dumps(row) for row in rows) + "\r\n"
    assert read(rows).queries == read(lines).queries == read({"queries": rows}).queries


def test_a_single_line_is_json_lines() -> None:
    """One query on one line is a file of one query, also when it is spread over several lines."""
    assert ids(read(json.dumps(baseline()))) == ids(read(json.dumps(baseline(), indent=1))) == ["Q-01"]


def test_queries_are_sorted_by_id_in_natural_order() -> None:
    """Q-2 comes before Q-10; equal numbers go by their text."""
    found = read([baseline(name) for name in ("Q-10", "Q-2", "Q", "Q-02", "Q-1", "P-3", "7")])
    assert ids(found) == ["7", "P-3", "Q", "Q-1", "Q-02", "Q-2", "Q-10"]


def test_optional_keys_may_be_absent_or_null() -> None:
    """They become empty lists."""
    query = read([baseline(should_contain=None)]).queries[0]
    assert (query.oos_decline_signals, query.should_contain) == ([], [])


def test_unknown_keys_are_kept() -> None:
    """A note stays with its query, without a warning."""
    found = read([baseline(notes="why", priority={"a": [1]})])
    assert found.queries[0].model_extra == {"notes": "why", "priority": {"a": [1]}}
    assert found.warnings == []


@pytest.mark.parametrize("key", ["mustContain", "must_contains", "should-contain", "oos_signals_decline"])
def test_a_key_near_a_known_one_is_kept_with_a_warning(key: str) -> None:
    """What is probably a slip is a warning, not an error."""
    found = read([{**baseline(), key: []}])
    assert found.queries[0].model_extra == {key: []}
    assert all("did you mean" in warning and key in warning for warning in found.warnings)
    assert len(found.warnings) == (0 if key == "oos_signals_decline" else 1)


def test_out_of_scope_without_signals_is_warned_about() -> None:
    """Such a query can never pass."""
    (warning,) = read([baseline(is_oos=True)]).warnings
    assert "Q-01" in warning
    assert "oos_decline_signals" in warning


@pytest.mark.parametrize(
    "key", ["id", "category", "query", "is_oos", "expected_docs", "must_contain", "must_not_contain"]
)
def test_a_missing_required_key_is_refused(key: str) -> None:
    """The error names file, place, query and key."""
    error = refusal({"queries": [baseline("Q-01"), baseline("Q-02", **{key: ...})]})
    assert error.startswith("stdin: queries[1]")
    assert f"{key}: is missing" in error
    assert key == "id" or "(Q-02)" in error


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"is_oos": "false"}, "is_oos: not a truth value ('false')"),
        ({"is_oos": 0}, "is_oos: not a truth value (0)"),
        ({"must_contain": "visa"}, "must_contain: not a list ('visa')"),
        ({"must_contain": None}, "must_contain: null is not a value"),
        ({"must_contain": ["a", 7]}, "must_contain[1]: not a text (7)"),
        ({"must_contain": ["a", " "]}, "must_contain[1]: text must not be blank"),
        ({"category": " "}, "category: text must not be blank"),
        ({"category": "x" * 81}, "category: 81 characters"),
        ({"id": 7}, "id: not a text (7)"),
        ({"id": ""}, "id: text must not be blank"),
        ({"query": "\n"}, "query: text must not be blank"),
        ({"query": "x" * 20_001}, "query: 20,001 characters"),
    ],
)
def test_wrong_types_and_values_are_refused(changes: dict[str, Any], words: str) -> None:
    """Nothing is guessed: a text is no truth value and no list."""
    assert words in refusal([baseline(**changes)])


def test_several_problems_of_a_query_are_counted() -> None:
    """The first is reported, and that there are more."""
    assert "(and 1 more problem in this query)" in refusal([baseline(is_oos="no", must_contain="x")])


def test_duplicate_ids_are_refused_with_both_places() -> None:
    """Two queries with one id would be one result."""
    error = refusal([baseline("Q-1"), baseline("Q-2"), baseline("Q-1")])
    assert error.startswith("stdin: [2]: id: 'Q-1' is the id of another query, at stdin: [0]")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("[]", "no queries in it"),
        ('{"queries": []}', "no queries in it"),
        ('{"queries": {}}', "queries: not a list"),
        ('{"querys": []}', "'querys' is probably meant to be 'queries'"),
        ("7", "no list of queries"),
        ("[7]", "[0]: not an object (7)"),
        ('{"queries": [\n  {"id": }\n]}', "stdin:2: not valid JSON"),
        (json.dumps(baseline()) + '\n{"id": ', "stdin:2: not valid JSON"),
        ("[NaN]", "NaN is no JSON value"),
        ('[{"id": "a", "id": "b"}]', "the key 'id' stands twice"),
        ("[" * 100_000, "nested too deep"),
        ("[" + "9" * 5000 + "]", "not valid JSON"),
    ],
)
def test_what_is_no_baselines_file_is_refused(content: str, words: str) -> None:
    """Each error says what is wrong and, in JSON, where."""
    assert words in refusal(content)


def test_text_that_cannot_be_sent_is_refused() -> None:
    """Half a surrogate pair fits in no request; an infinity in no file."""
    assert "half of a surrogate pair" in refusal(json.dumps([baseline(query="\ud800")]))
    for note in ('"\\ud800"', "1e999"):
        broken = json.dumps([baseline(notes="N")]).replace('"N"', note)
        assert "cannot be sent on" in refusal(broken)


def test_a_file_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading stops at the limit instead of filling the memory."""
    monkeypatch.setattr(loader, "MAX_FILE_BYTES", 10)
    assert "is larger than" in refusal([baseline()])


def test_another_encoding_is_refused_with_its_byte() -> None:
    """The error names the byte and how to convert."""
    with pytest.raises(InputError, match=r"not UTF-8 text \(byte 3\)"):
        read_baselines(Source("-", stdin=io.BytesIO(b'["\xff"]')))


def test_a_hostile_id_cannot_break_the_error_line() -> None:
    """Control characters of an id never reach the terminal."""
    assert "\x1b" not in refusal([baseline("\x1b[2J", is_oos=1)])


def test_load_baselines_returns_sorted_dictionaries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The document's function: a list of dicts by id; another number than 50 is a warning."""
    path = tmp_path / "b.json"
    path.write_text(json.dumps({"queries": [baseline("Q-02"), baseline("Q-01")]}))
    assert [query["id"] for query in load_baselines(str(path))] == ["Q-01", "Q-02"]
    assert capsys.readouterr().err == "Warning: expected 50 baselines, found 2\n"


def test_load_baselines_takes_the_documents_path_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a path it reads data/evaluation_baselines.json here, and exits 1 when that is missing."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        load_baselines()
    assert caught.value.code == 1
    assert "data/evaluation_baselines.json: no such file" in capsys.readouterr().err
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "evaluation_baselines.json").write_text(json.dumps([baseline()]))
    assert len(load_baselines()) == 1


def test_load_baselines_exits_1_on_a_missing_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason goes to stderr in one line, the hint below it."""
    path = tmp_path / "b.json"
    path.write_text(json.dumps([baseline(query=...)]))
    with pytest.raises(SystemExit) as caught:
        load_baselines(str(path))
    assert caught.value.code == 1
    assert "query: is missing" in capsys.readouterr().err


def test_a_run_starts_at_a_known_id() -> None:
    """Earlier queries are skipped; without an id all run."""
    queries = read([baseline(f"Q-{number}") for number in range(1, 12)]).queries
    assert [query.id for query in start_at(queries, "Q-9")] == ["Q-9", "Q-10", "Q-11"]
    assert len(start_at(queries, None)) == 11


def test_an_unknown_start_is_an_error() -> None:
    """The nearest id is named, or the range."""
    queries = read([baseline("Q-01"), baseline("Q-02")]).queries
    with pytest.raises(InputError, match="no query has the id 'Q-2'") as caught:
        start_at(queries, "Q-2")
    assert caught.value.hint == "did you mean 'Q-02'?"
    with pytest.raises(InputError) as caught:
        start_at(queries, "zzz")
    assert caught.value.hint == "the ids go from Q-01 to Q-02"
