"""YAML is read with JSON's types, with bounds, and every place of it has a line."""

import json
from typing import Any

import pytest

from producer.load.yaml_text import MOST_NESTED, line_of, parse_yaml
from shared.errors import WrongInput


def refused(text: str) -> tuple[int, str]:
    """Line and words of the error."""
    with pytest.raises(WrongInput) as caught:
        parse_yaml(text)
    return caught.value.line, caught.value.what


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "Yes",
        "on",
        "12:30:00",
        "2026-01-01",
        "007",
        "0x1F",
        "0o17",
        "1_000",
        "1.2.3",
        ".inf",
        ".nan",
        "NaN",
    ],
)
def test_what_json_has_no_type_for_stays_text(text: str) -> None:
    """Words, times, dates and foreign numbers are not guessed at."""
    assert parse_yaml(f"a: {text}") == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!int 5", 5),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("{1: one, no: two}", {"1": "one", "no": "two"}),
    ],
)
def test_scalars_follow_json(text: str, value: Any) -> None:
    """Numbers, truth values and null are what JSON has; quotes make text, keys are text."""
    found = parse_yaml(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_backslashes_are_plain_yaml() -> None:
    """A pattern in double quotes doubles its backslashes; in single quotes it does not."""
    assert parse_yaml(r'a: "def add\\("') == parse_yaml(r"a: 'def add\('") == {"a": r"def add\("}


def test_json_is_read_as_json() -> None:
    """A configuration in JSON may hold what YAML's escapes cannot, such as pairs of surrogates."""
    document = {"a": "😀", "b": ["\u2028", 1.0, None]}
    assert parse_yaml(json.dumps(document)) == document


def test_anchors_and_merges_are_understood() -> None:
    """An alias stands for its value, and `<<` fills in keys that are not given."""
    text = "base: &b {x: 1, y: 2}\none: *b\ntwo: {<<: *b, y: 3}\n"
    assert parse_yaml(text) == {"base": {"x": 1, "y": 2}, "one": {"x": 1, "y": 2}, "two": {"x": 1, "y": 3}}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: [", 3, "not valid YAML"),
        ("a: b: c", 1, "not valid YAML: a second ': ' in a line"),
        ("a:\n  - b\n - c\n", 3, "`- c` is indented by 1, and `- b` on line 2 by 2"),
        ("a:\n  - b: 1\n   c: 2\n", 3, "`c: 2` is indented by 3, and `- b: 1` on line 2 by 4"),
        ("a: 1\n# why\n\n  b: 2\n", 4, "`b: 2` is indented by 2, and `a: 1` on line 1 by 0"),
        ("a:\n\t- b\n", 2, "a tab: YAML is indented with spaces"),
        ("a:\n  - b\n\tc: d\n", 3, "a tab"),
        ("a: [1, 2\nb: 3\n", 2, "the [ of line 1 is not closed before `b: 3`"),
        ("a: 'x\nb: 1\n", 1, "the quotation mark is not closed"),
        ("a: @x\n", 1, "a value cannot begin with @"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' stands twice, here and on line 1"),
        ("a: &x [1, *x]", 1, "the value of &x contains itself, as *x"),
        ("a: *nothing", 1, "*nothing stands for nothing"),
        ("a: !!python/object/apply:os.system [ls]", 1, "the tag"),
        ("a: !!timestamp 2026-01-01", 1, "the tag"),
        ("a: !!int five", 1, "'five' is not what its tag says"),
        ("? [1, 2]\n: b", 1, "a key that is a list or a mapping"),
        ("a: 1\n---\nb: 2", 2, "a second document"),
        ("a: \x07", 1, "a character that YAML does not allow"),
        ("a: 1e999", 1, "'1e999' is too large for a number"),
        ("a: " + "9" * 5_000, 1, "is too large for a number"),
        ("a: {<<: 5}", 1, "<< merges mappings"),
    ],
)
def test_what_is_refused_has_a_line_and_a_reason(text: str, line: int, words: str) -> None:
    """Broken YAML, lost values and foreign types are errors of one sentence."""
    at, message = refused(text)
    assert (at, words in message) == (line, True), message


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("m:\n  a: &s\n    base: x\n  b: *s\n", ("m", "b", "base"), 3),
        ("m:\n  a: &s\n    base: x\n  b: *s\n", ("m", "b"), 4),
        ("m:\n  a: &s\n    base: x\n  b:\n    <<: *s\n    other: y\n", ("m", "b", "base"), 3),
        ("m:\n  a: &s\n    base: x\n  b:\n    <<: [*s]\n    base: y\n", ("m", "b", "base"), 6),
        ("m:\n  - &s\n    base: x\n  - *s\n", ("m", 1, "base"), 3),
        ("m: &s\n  base: x\nn: *s\n", ("n", "absent"), 3),
    ],
)
def test_what_an_alias_repeats_stands_at_its_anchor(
    text: str, path: tuple[str | int, ...], line: int
) -> None:
    """The line is that of the key itself, also where an alias or `<<` brings it in."""
    assert line_of(text, path) == line


def test_a_value_that_contains_itself_is_named() -> None:
    """The hint does not ask for an anchor that is there."""
    with pytest.raises(WrongInput, match="&v contains itself") as caught:
        parse_yaml("a: &v {a: *v}\n")
    assert caught.value.hint == "write a value in place of *v"


def test_a_bomb_of_anchors_is_refused() -> None:
    """A few lines that unfold to billions of values cost no memory."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "anchors unfolded" in refused("\n".join(lines))[1]


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 50_000, '{"a":' * 100_000, "{a: " * 20_000])
def test_deep_nesting_is_refused(text: str) -> None:
    """A tower of brackets ends at the bound: no recursion, no crash, no quadratic time."""
    assert refused(text)[1] == f"nested deeper than {MOST_NESTED}"


def test_a_tower_of_anchors_is_refused() -> None:
    """Depth counts through aliases too."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, MOST_NESTED + 2))]
    assert "nested deeper" in refused("\n".join(lines))[1]


@pytest.mark.parametrize(
    ("path", "line"),
    [((), 1), (("a",), 1), (("b",), 2), (("b", 1), 4), (("b", 1, "d"), 5), (("b", 7), 2), (("e", "f"), 6)],
)
def test_every_place_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    """Keys and items are found where they stand; what is missing, at its nearest parent."""
    assert line_of("a: 1\nb:\n  - 2\n  - c: 3\n    d: 4\ne: {f: 5}\n", path) == line
