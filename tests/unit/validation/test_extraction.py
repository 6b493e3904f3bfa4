"""Tests where JSON is found in the output of a model, and what is no JSON however much it looks like it."""

import json
from time import process_time
from typing import Any

import pytest

from shared.contracts.case_vocabulary import MAX_DEPTH, MAX_OUTPUT_CHARS
from worker.validation.extraction import ExtractionError, extract, extract_json_object

OBJECT = '{"a": 1}'
FENCE = "```"

FOUND = {
    "the whole text": OBJECT,
    "blank around": f"\n  {OBJECT}\t\n",
    "a byte order mark": f"\ufeff{OBJECT}",
    "tagged": f"{FENCE}json\n{OBJECT}\n{FENCE}",
    "untagged": f"{FENCE}\n{OBJECT}\n{FENCE}",
    "upper-case tag": f"{FENCE}JSON\n{OBJECT}\n{FENCE}",
    "prose around": f"Sure!\n\n{FENCE}json\n{OBJECT}\n{FENCE}\nAnything else?",
    "Windows line ends": f"Sure!\r\n{FENCE}json\r\n{OBJECT}\r\n{FENCE}\r\n",
    "tildes": f"~~~json\n{OBJECT}\n~~~",
    "four backticks": f"{FENCE}`json\n{OBJECT}\n{FENCE}`",
    "indented": f"   {FENCE}json\n   {OBJECT}\n   {FENCE}",
    "on one line": f"{FENCE}json {OBJECT} {FENCE}",
    "never closed": f"{FENCE}json\n{OBJECT}",
    "after thinking": f'<think>{{"a": 2}} or so</think>\n{FENCE}json\n{OBJECT}\n{FENCE}',
    "a block of Python first": f"{FENCE}python\nprint({{}})\n{FENCE}\n{FENCE}json\n{OBJECT}\n{FENCE}",
    "tagged before untagged": f'{FENCE}\n{{"a": 2}}\n{FENCE}\n{FENCE}json\n{OBJECT}\n{FENCE}',
    "first of two": f'{FENCE}json\n{OBJECT}\n{FENCE}\n{FENCE}json\n{{"a": 2}}\n{FENCE}',
    "a list in the first block": f"{FENCE}json\n[1]\n{FENCE}\n{FENCE}json\n{OBJECT}\n{FENCE}",
    "a broken first block": f'{FENCE}json\n{{"a": \n{FENCE}\n{FENCE}json\n{OBJECT}\n{FENCE}',
    "half a surrogate pair outside": f"\ud800\n{FENCE}json\n{OBJECT}\n{FENCE}",
}

REFUSED = {
    "nothing": ("", "empty"),
    "blank": (" \n", "empty"),
    "prose": ("The answer is 1.", "there is no JSON in it"),
    "an object amid prose": (f"It is {OBJECT}.", "there is no JSON in it"),
    "prose behind": (f"{OBJECT} I hope this helps", "after the JSON the text goes on: I hope"),
    "a list": ("[1]", "a list, not an object"),
    "a text": ('"x"', "text, not an object"),
    "null": ("null", "null, not an object"),
    "a number": ("4", "a number, not an object"),
    "a boolean": ("true", "true or false, not an object"),
    "cut off": ('{"a": 1, "b": "x', "broken JSON: Unterminated string"),
    "a trailing comma": ('{"a": 1,}', "broken JSON"),
    "single quotes": ("{'a': 1}", "broken JSON"),
    "a comment": ('{"a": 1 /* one */}', "broken JSON"),
    "cut off in a block": (f'{FENCE}json\n{{"a": 1, "b": [\n', "broken JSON"),
    "more in the block": (f"{FENCE}json\n{OBJECT}\nand so on\n{FENCE}", "the block goes on: and so on"),
    "NaN": ('{"a": NaN}', "NaN is not JSON"),
    "Infinity": ('{"a": -Infinity}', "-Infinity is not JSON"),
    "a number beyond floats": ('{"a": 1e999}', "out of range"),
    "5,000 digits": ('{"a": ' + "9" * 5_000 + "}", "4300 digits"),
    "half a pair, escaped": ('{"a": "\\ud800"}', "half of a surrogate pair"),
    "half a pair, raw": ('{"a": "\ud800"}', "half of a surrogate pair"),
    "NUL in a text": ('{"a": "\0"}', "Invalid control character"),
    "deep lists": ("[" * 100_000, "deeper than"),
    "deep objects": ('{"a":' * 100_000, "deeper than"),
    "too deep, closed": ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "deeper than"),
    "too deep in a block": (FENCE + "json\n" + '{"a":' * 900 + "1" + "}" * 900, "deeper than"),
    "too long": (" " * (MAX_OUTPUT_CHARS + 1), "characters are more than"),
}


@pytest.mark.parametrize("shape", FOUND)
def test_an_object_is_found_in_every_wrapping_that_models_use(shape: str) -> None:
    """Fences of all kinds, byte order marks and talk around the block do not hide the object."""
    assert extract_json_object(FOUND[shape]) == {"a": 1}


@pytest.mark.parametrize("shape", REFUSED)
def test_what_is_no_json_object_is_refused_with_the_reason(shape: str) -> None:
    """Nothing is repaired, and nothing but `ExtractionError` is raised, whose text says what is wrong."""
    text, reason = REFUSED[shape]
    with pytest.raises(ExtractionError, match=reason) as caught:
        extract_json_object(text)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 200
    str(caught.value).encode()


def test_the_grammar_ends_a_block_not_the_next_backticks() -> None:
    """Backticks inside a JSON text do not close the block."""
    value = {"code": f"{FENCE}python\nprint()\n{FENCE}", "b": "~~~"}
    assert extract_json_object(f"Here:\n{FENCE}json\n{json.dumps(value)}\n{FENCE}\nDone.") == value


def test_values_keep_what_json_says() -> None:
    """Integers of any size stay exact, floats stay floats, and of two equal keys the last wins."""
    value = extract_json_object(f'{{"big": {2**80}, "one": 1.0, "a": 1, "a": 2}}')
    assert value == {"big": 2**80, "one": 1.0, "a": 2}
    assert type(value["one"]) is float


def test_the_deepest_allowed_nesting_is_read() -> None:
    """Exactly the bound still parses, wrapped or not."""
    text = '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH
    assert extract_json_object(text) == extract_json_object(f"{FENCE}json\n{text}\n{FENCE}")


def test_it_says_where_the_object_stood_and_of_how_many_it_is_the_first() -> None:
    """The source and the number of blocks come with the object."""
    text = f"{FENCE}json\n{OBJECT}\n{FENCE}\n" * 3
    assert extract(text)[1:] == ("fenced block", 3)
    assert extract(OBJECT)[1:] == ("whole text", 1)
    assert extract(f"so {OBJECT}", lenient=True)[1:] == ("prose", 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"It is {OBJECT}.", {"a": 1}),
        (f'[note] first {OBJECT} then {{"b": 2}}', {"a": 1}),
        (f"{{name}}: {OBJECT}", {"a": 1}),
        (f"[1, 2] and {OBJECT}", {"a": 1}),
        (f'It is {OBJECT} or\n{FENCE}json\n{{"b": 2}}\n{FENCE}', {"b": 2}),
    ],
)
def test_lenient_also_reads_an_object_amid_prose(text: str, expected: dict[str, Any]) -> None:
    """The first object in the prose counts, after any fenced block."""
    assert extract_json_object(text, lenient=True) == expected


@pytest.mark.parametrize(
    "text", [f"see [{OBJECT}]", f'[{OBJECT}, {{"b"', f'so {{"x": {OBJECT}, "y": tru', "no {object} here"]
)
def test_lenient_takes_no_part_of_something_bigger(text: str) -> None:
    """An object inside a list or inside broken JSON is not the answer."""
    with pytest.raises(ExtractionError):
        extract_json_object(text, lenient=True)


@pytest.mark.parametrize(
    "text",
    [
        "`" * 400_000,
        f"{FENCE}json\n{{\n{FENCE}\n" * 50_000,
        f"{FENCE} " * 200_000,
        FENCE + "a" * 1_000_000,
        f'{FENCE}json{{"a":"' * 70_000,
        '{"' * 400_000,
        "{ " * 400_000,
        '{"a":' * 200_000,
    ],
    ids=["backticks", "open blocks", "fences on a line", "a long tag", "one line", "keys", "braces", "deep"],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_hostile_text_takes_linear_time(text: str, *, lenient: bool) -> None:
    """Near a megabyte of fences and brackets is refused within a second."""
    before = process_time()
    with pytest.raises(ExtractionError):
        extract_json_object(text, lenient=lenient)
    assert process_time() - before < 1
