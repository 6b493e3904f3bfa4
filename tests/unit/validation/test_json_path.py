"""JSONPath: the examples of RFC 9535, what is no path, and bounds on hostile values."""

from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.validation.json_path import JsonPathError, compile_path, select

STORE: Final[dict[str, Any]] = {
    "store": {
        "book": [
            {"category": "reference", "author": "Rees", "title": "Sayings", "price": 8.95},
            {"category": "fiction", "author": "Waugh", "title": "Sword", "price": 12.99},
            {"category": "fiction", "author": "Melville", "title": "Moby", "isbn": "0-553", "price": 8.99},
            {"category": "fiction", "author": "Tolkien", "title": "Lord", "isbn": "0-395", "price": 22.99},
        ],
        "bicycle": {"color": "red", "price": 399},
    }
}
BOOKS: Final = STORE["store"]["book"]
ARRAY: Final = {
    "a": [3, 5, 1, 2, 4, 6, {"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}],
    "o": {"p": 1, "q": 2},
    "e": "f",
}
SAME: Final = {"obj": {"x": "y"}, "arr": [2, 3]}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.store.book[*].author", ["Rees", "Waugh", "Melville", "Tolkien"]),
        ("$..author", ["Rees", "Waugh", "Melville", "Tolkien"]),
        ("$.store.*", [BOOKS, STORE["store"]["bicycle"]]),
        ("$.store..price", [8.95, 12.99, 8.99, 22.99, 399]),
        ("$..book[2]", [BOOKS[2]]),
        ("$..book[2].author", ["Melville"]),
        ("$..book[2].publisher", []),
        ("$..book[-1]", [BOOKS[3]]),
        ("$..book[0,1]", BOOKS[:2]),
        ("$..book[:2]", BOOKS[:2]),
        ("$..book[?@.isbn]", BOOKS[2:]),
        ("$..book[?@.price<10].title", ["Sayings", "Moby"]),
        ("$['store']['bicycle'][\"color\"]", ["red"]),
        ("$.store.book[::-1].title", ["Lord", "Moby", "Sword", "Sayings"]),
        ("$.store.book[3:0:-2].title", ["Lord", "Sword"]),
        ("$.store.book[::0]", []),
        ("$", [STORE]),
    ],
)
def test_the_store_of_the_rfc(path: str, found: list[Any]) -> None:
    """Section 1.5."""
    assert select(path, STORE) == found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.a[?@.b == 'kilo']", [{"b": "kilo"}]),
        ("$.a[?(@.b == 'kilo')]", [{"b": "kilo"}]),
        ("$.a[?@>3.5]", [5, 4, 6]),
        ("$.a[?@.b]", [{"b": "j"}, {"b": "k"}, {"b": {}}, {"b": "kilo"}]),
        ("$[?@.*]", [ARRAY["a"], ARRAY["o"]]),
        ("$[?@[?@.b]]", [ARRAY["a"]]),
        ("$.o[?@<3, ?@<3]", [1, 2, 1, 2]),
        ('$.a[?@<2 || @.b == "k"]', [1, {"b": "k"}]),
        ("$.o[?@>1 && @<4]", [2]),
        ("$.o[?@.u || @.x]", []),
        ("$.a[?!@.b]", [3, 5, 1, 2, 4, 6]),
        ("$.a[?!(@.b || @ > 2)]", [1, 2]),
        ("$.a[?@.b == $.x]", [3, 5, 1, 2, 4, 6]),
        ("$.a[?@ == @]", ARRAY["a"]),
        ("$[?length(@) == 2]", [ARRAY["o"]]),
        ("$[?count(@.*) == 10]", [ARRAY["a"]]),
        ("$.a[?value(@..b) == 'j']", [{"b": "j"}]),
        ("$.a[?@ == 3.0]", [3]),
    ],
)
def test_filters_of_the_rfc(path: str, found: list[Any]) -> None:
    """Sections 2.3.5 and 2.4."""
    assert select(path, ARRAY) == found


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ("$.absent1 == $.absent2", True),
        ("$.absent1 <= $.absent2", True),
        ("$.absent == 'g'", False),
        ("$.absent1 != $.absent2", False),
        ("$.absent != 'g'", True),
        ("1 <= 2", True),
        ("1 > 2", False),
        ("13 == '13'", False),
        ("'a' <= 'b'", True),
        ("'a' > 'b'", False),
        ("$.obj == $.arr", False),
        ("$.obj != $.arr", True),
        ("$.obj == $.obj", True),
        ("$.arr == $.arr", True),
        ("$.obj == 17", False),
        ("$.obj <= $.arr", False),
        ("$.obj < $.arr", False),
        ("$.obj <= $.obj", True),
        ("1 <= $.arr", False),
        ("true <= true", True),
        ("true > true", False),
        ("true == 1", False),
        ("false < 1", False),
        ("null == $.absent", False),
        ("1e1 == 10", True),
    ],
)
def test_comparisons_of_the_rfc(comparison: str, *, expected: bool) -> None:
    """Section 2.3.5.3, table 11."""
    assert bool(select(f"$[?{comparison}]", SAME)) is expected


def test_an_existing_falsy_value_exists() -> None:
    values: list[Any] = [0, None, False, "", {}]
    assert select("$[?@]", values) == values


def test_names_in_quotes_have_escapes() -> None:
    value = {"a'b": 1, '"': 2, "☺": 3, "😀": 4, "\n": 5, "": 6}
    paths = [r"$['a\'b']", r'$["\""]', r"$['\u263A']", r"$['\uD83D\uDE00']", r"$['\n']", "$['']"]
    assert [select(path, value) for path in paths] == [[1], [2], [3], [4], [5], [6]]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "capital",
        "$.",
        "$[",
        "$[]",
        "$.a b",
        " $",
        "$ ",
        "$.a..",
        "$[01]",
        "$[-0]",
        "$[9007199254740992]",
        "$['a]",
        r"$['\x']",
        r"$['\uD800']",
        r"$['\uDC00']",
        "$['a\nb']",
        "$[?]",
        "$[?1]",
        "$[?'a']",
        "$[?@.a ==]",
        "$[?@..a == 1]",
        "$[?@.* == 1]",
        "$[?1 == @[0,1]]",
        "$[?!1 == 2]",
        "$[?@.a <> 1]",
        "$[?@.a && ]",
        "$[?(@.a]",
        "$[?length(@)]",
        "$[?count(1) == 1]",
        "$[?length(@.*) == 1]",
        "$[?nope(@) == 1]",
        "$[?true]",
        "$[1 2]",
        "$[?" + "(" * 100 + "@" + ")" * 100 + "]",
        "$" + ".a" * 1_000,
    ],
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        compile_path(path)


@pytest.mark.parametrize("name", ["match", "search"])
def test_patterns_are_refused_and_the_check_for_them_is_named(name: str) -> None:
    with pytest.raises(JsonPathError, match="use the check regex"):
        compile_path(f"$[?{name}(@.a, '(a+)+$')]")


def test_a_path_that_visits_too_much_is_given_up() -> None:
    wide = [[0] * 1_000 for _ in range(100)]
    for path in ("$..[?count($..*) > 1]", "$[*][?$ == $]", "$[*,*,*][*,*,*]"):
        with pytest.raises(JsonPathError, match="more than 500,000 values"):
            select(path, wide)


def test_a_value_may_be_nested_deep() -> None:
    value: Any = {"end": 1}
    for _ in range(490):
        value = [value]
    assert select("$..end", value) == [1]
    assert select("$[?@ == $[0]]", [value, value]) == [value, value]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)


@given(JSON, st.sampled_from("abc"))
def test_descendants_are_those_of_a_walk(value: Any, name: str) -> None:
    def walk(node: Any) -> list[Any]:
        children = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
        own = [node[name]] if isinstance(node, dict) and name in node else []
        return own + [found for child in children for found in walk(child)]

    assert select(f"$..{name}", value) == walk(value)


@given(st.lists(st.integers(), max_size=6), *[st.none() | st.integers(-8, 8)] * 3)
def test_slices_are_those_of_python(
    values: list[int], start: int | None, end: int | None, step: int | None
) -> None:
    text = [("" if each is None else str(each)) for each in (start, end, step)]
    wanted = [] if step == 0 else values[start:end:step]
    assert select(f"$[{':'.join(text)}]", values) == wanted


@given(st.text("$@.[]'\"?*:,()!=<>&| ab01-", max_size=30))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    with suppress(JsonPathError):
        select("$" + text, {"a": [1, {"b": 2}], "b": "ab"})
