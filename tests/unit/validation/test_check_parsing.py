"""Reading checks: every mistake is named with its place and a way to mend it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.checks import Check
from shared.errors import WrongInput
from worker.validation.checks import CHECK_KINDS, label, parse_checks, render_checks

PROBLEMS: list[tuple[Any, tuple[str | int, ...], str]] = [
    ({"contains": "a"}, (), "expected a list of checks, found"),
    ([5], (0,), "a check is a name with an argument, found 5"),
    ([None], (0,), "a check is a name with an argument, found null"),
    ([{}], (0,), "nothing to check"),
    ([{"weight": 2}], (0,), "only options, and nothing to check: weight"),
    (["contain"], (0,), "unknown check 'contain' (did you mean 'contains'?)"),
    ([{"contain": "a"}], (0,), "unknown check 'contain' (did you mean 'contains'?)"),
    ([{"levenstein": "a"}], (0,), "did you mean 'levenshtein'?"),
    ([{"zzzzzz": "a"}], (0,), "there are: equals, contains, "),
    (["contains"], (0,), "contains needs an argument (write {contains: Paris})"),
    ([{"contains": "a", "equals": "b"}], (0,), "one check is one name, found contains and equals"),
    (
        [{"contains": "a", "wieght": 2}],
        (0, "wieght"),
        "contains has no option 'wieght' (did you mean 'weight'?)",
    ),
    ([{"contains": "a", "tolerance": 2}], (0, "tolerance"), "contains has no option 'tolerance'"),
    ([{"max_cost": 1, "json_path": "$"}], (0, "json_path"), "max_cost has no option 'json_path'"),
    (
        [{"rubric": "a", "model": "b", "models": ["c"]}],
        (0, "models"),
        "model and models both stand here (keep models for a panel, or model for one judge)",
    ),
    ([{"contains": "a", "at_least": 1.5}], (0, "at_least"), "less than or equal to 1, found 1.5"),
    ([{"contains": "a", "at_least": "0.5"}], (0, "at_least"), 'found "0.5"'),
    ([{"contains": "a", "weight": -1}], (0, "weight"), "greater than or equal to 0, found -1"),
    ([{"contains": "a", "name": ""}], (0, "name"), "at least 1 character"),
    ([{"contains": "a", "ignore_case": "yes"}], (0, "ignore_case"), 'found "yes"'),
    ([{"contains": "a", "json_path": "a.b"}], (0, "json_path"), "not a JSONPath: expected $"),
    ([{"contains": ""}], (0, "contains"), "at least 1 character"),
    ([{"contains": None}], (0, "contains"), "valid string, found null"),
    ([{"contains": ["a"]}], (0, "contains"), 'valid string, found ["a"]'),
    ([{"contains_all": "a"}], (0, "contains_all"), "valid list"),
    ([{"contains_all": []}], (0, "contains_all"), "at least 1 item"),
    ([{"contains_all": ["a", None]}], (0, "contains_all", 1), "valid string, found null"),
    ([{"regex": "("}], (0, "regex"), "not a regular expression: missing ), unterminated subpattern"),
    ([{"json": 5}], (0, "json"), "json takes no argument"),
    ([{"json_schema": "schema.json"}], (0, "json_schema"), "expected a JSON schema, or a file with one"),
    ([{"json_schema": {"type": "nope"}}], (0, "json_schema"), "the JSON schema is not usable"),
    ([{"number": "many"}], (0, "number"), 'should be a number, found "many"'),
    ([{"number": True}], (0, "number"), "should be a number, found true"),
    ([{"number": 2, "tolerance": "a bit"}], (0, "tolerance"), "a percentage such as 5%"),
    ([{"number": 2, "tolerance": -1}], (0, "tolerance"), "should be a number from 0"),
    ([{"length": {"min": 3, "max": 2}}], (0, "length"), "min is greater than max"),
    ([{"length": {"most": 3}}], (0, "length", "most"), "should be 'min' or 'max'"),
    ([{"length": 1.5}], (0, "length"), "valid dictionary, found 1.5"),
    ([{"length": 1, "unit": "lines"}], (0, "unit"), "'characters' or 'words', found"),
    ([{"max_latency_s": "5"}], (0, "max_latency_s"), 'found "5"'),
    ([{"rouge_l": "a"}], (0,), "rouge_l gives a score and needs at_least"),
    ([{"not": {"rouge_l": "a"}}], (0, "not"), "rouge_l gives a score and needs at_least"),
    ([{"all": []}], (0, "all"), "all takes a list of checks"),
    ([{"any": {"contains": "a"}}], (0, "any"), "any takes a list of checks"),
    ([{"any": [{"contains": "a"}, {"contain": "b"}]}], (0, "any", 1), "unknown check 'contain'"),
    ([{"not": [{"contains": "a"}]}], (0, "not"), "a check is a name with an argument"),
    ([{"tool_call": {}}], (0, "tool_call"), "a call has the name of a tool"),
    ([{"tool_call": {"name": "a", "args": {}}}], (0, "tool_call", "args"), "`name` and `arguments`"),
    (
        [{"tool_call": {"name": "a", "arguments": {"city": "Paris"}}}],
        (0, "tool_call", "arguments"),
        "write `arguments: {json_equals: {…}}`",
    ),
    ([{"tool_calls": "a"}], (0, "tool_calls"), "takes a list of calls"),
    ([{"tool_calls": ["a"], "order": "sorted"}], (0, "order"), "'strict' or 'any'"),
    ([{"python": "not a name"}], (0, "python"), "name of a function of validators_file"),
    ([{"contains": "a\ud800"}], (), "surrogate"),
    ([{"json_equals": float("nan")}], (), "nan is no JSON number"),
    ([{"contains": "a"}] * 201, (200,), "more than 200 checks"),
]


@pytest.mark.parametrize(("raw", "path", "text"), PROBLEMS)
def test_a_mistake_is_named_with_its_place(raw: Any, path: tuple[str | int, ...], text: str) -> None:
    with pytest.raises(WrongInput) as caught:
        parse_checks(raw)
    assert caught.value.path == path
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_checks_may_not_stand_in_each_other_without_end() -> None:
    raw: Any = {"contains": "a"}
    for _ in range(100):
        raw = {"not": raw}
    with pytest.raises(WrongInput, match="too deep"):
        parse_checks([raw])


def test_a_check_is_read_with_its_options() -> None:
    raw = [{"number": 2.1, "tolerance": "5%", "json_path": "$.n", "name": "size", "weight": 2, "at_least": 1}]
    [check] = parse_checks(raw)
    assert check == Check("number", 2.1, "size", 1, 2, "$.n", {"tolerance": "5%"})


def test_an_inner_score_needs_no_threshold_under_one() -> None:
    [check] = parse_checks([{"all": [{"rouge_l": "a"}, {"not": {"rouge_l": "b"}}], "at_least": 0.5}])
    assert check.checks[0].at_least is None


def test_names_say_what_is_checked() -> None:
    raw = [
        {"contains": "Paris"},
        {"not": {"regex": "a"}},
        {"json_equals": {"a": 1}},
        "refusal",
        {"tool_call": "none"},
        {"any": [{"contains": "a"}, "json"]},
        {"contains": "line\nend " * 50},
        {"contains": "a", "name": "mine"},
    ]
    labels = [label(check) for check in parse_checks(raw)]
    assert labels[:6] == [
        "contains: Paris",
        "not regex: a",
        'json_equals: {"a":1}',
        "refusal",
        "tool_call: none",
        "any: contains: a, json",
    ]
    assert len(labels[6]) <= 80
    assert "\n" not in labels[6]
    assert labels[7] == "mine"


def test_templates_are_rendered_where_arguments_are_templates() -> None:
    seen = []

    def render(text: str, path: tuple[str | int, ...]) -> str:
        seen.append(path)
        return text.replace("{{ x }}", "1")

    raw = [
        {"contains": "{{ x }}", "name": "{{ x }}"},
        {"any": [{"regex": "{{ x }}"}, {"not": {"json_equals": {"a": ["{{ x }}"]}}}]},
        {"json_schema": {"const": "{{ x }}"}},
        {"python": "{{ x }}"},
        {"tool_call": {"name": "{{ x }}", "arguments": {"equals": "{{ x }}"}}},
        {"tool_calls": [{"name": "a", "arguments": ["json", {"equals": "{{ x }}"}]}]},
        {"number": "{{ x }}"},
        "json",
        5,
    ]
    assert render_checks(raw, render) == [
        {"contains": "1", "name": "{{ x }}"},
        {"any": [{"regex": "{{ x }}"}, {"not": {"json_equals": {"a": ["1"]}}}]},
        {"json_schema": {"const": "{{ x }}"}},
        {"python": "{{ x }}"},
        {"tool_call": {"name": "{{ x }}", "arguments": {"equals": "1"}}},
        {"tool_calls": [{"name": "a", "arguments": ["json", {"equals": "1"}]}]},
        {"number": "1"},
        "json",
        5,
    ]
    assert seen[0] == (0, "contains")
    assert seen[1] == (1, "any", 1, "not", "json_equals", "a", 0)
    assert render_checks("no list", render) == "no list"


WORDS = st.sampled_from(
    [*CHECK_KINDS, "weight", "at_least", "json_path", "name", "arguments", "min", "", "x", "$.a", "none"]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)


@given(ANYTHING)
def test_anything_is_checks_or_refused(raw: Any) -> None:
    """What is read can be written, read back and named."""
    render_checks(raw, lambda text, _: text)
    try:
        checks = parse_checks(raw)
    except WrongInput:
        return
    assert all(len(label(check)) <= 80 for check in checks)
