"""Holds the validation engine against DeepDiff, rouge-score, and the round trip of JSON in Markdown."""

import json
import random
from typing import Any

from deepdiff import DeepDiff
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenize import tokenize

from shared.contracts.case_vocabulary import CaseStatus, why_not_json
from worker.validation.equality import explain, unordered_equal
from worker.validation.extraction import ExtractionError, extract_json_object
from worker.validation.pipeline import validate
from worker.validation.rouge import fmeasure, rouge_l

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3) | st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8) | st.sampled_from(["```", "```json", "~~~", '"', "\\", "}\n", "NONE", "int:1"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same value in another order."""
    if isinstance(value, dict):
        keys = rng.sample(list(value), len(value))
        return {key: shuffled(value[key], rng) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, rng) for item in rng.sample(value, len(value))]
    return value


def changed(value: Any, rng: random.Random) -> Any:
    """The value with something else at one place, or the same again."""
    others: list[Any] = [0, 1, True, None, 1.0, "a", [], {}, [1, 1]]
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        return {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        return [*value[:index], changed(value[index], rng), *value[index + 1 :]]
    return rng.choice(others)


def random_value(rng: random.Random, depth: int = 3) -> Any:
    """A small value of a few scalars, so that equal ones come up; none that DeepDiff's hashes mix up."""
    roll = rng.random()
    if depth == 0 or roll < 0.5:
        return rng.choice([0, 1, 2, True, False, None, 1.0, 2.5, "a", "b", "", "1", -1])
    if roll < 0.75:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(["a", "b", "c", "__p"]): random_value(rng, depth - 1) for _ in range(rng.randrange(4))}


def test_the_verdict_is_deepdiffs_where_deepdiff_is_exact() -> None:
    """On thousands of pairs, equal and nearly equal, both say the same, and what differs is explained."""
    rng = random.Random(11)
    equal = 0
    for _ in range(2_500):
        first = {"x": random_value(rng)}
        second = shuffled(first, rng)
        if rng.random() < 0.5:
            second = changed(second, rng)
        verdict = unordered_equal(first, second)
        diff = DeepDiff(
            first, second, ignore_order=True, report_repetition=True, ignore_private_variables=False
        )
        assert verdict is (not diff), (first, second, diff)
        equal += verdict
    assert 800 < equal < 2_000


@given(VALUES, st.randoms(use_true_random=False))
def test_equality_knows_no_order_and_no_side(value: Any, rng: random.Random) -> None:
    """A shuffled value is equal, a changed one is judged alike from both sides and explained."""
    assert unordered_equal(value, shuffled(value, rng))
    other = changed(value, rng)
    verdict = unordered_equal(value, other)
    assert unordered_equal(shuffled(other, rng), value) is verdict
    explained = explain(value, other)
    assert bool(explained) is not verdict
    json.dumps(explained.as_document())


def test_rouge_l_is_the_packages_number_bit_for_bit() -> None:
    """Thousands of pairs of 0 to 300 words give exactly the package's F1, by both ways where both apply."""
    rng = random.Random(5)
    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    words = [
        "the",
        "a",
        "cat",
        "x1",
        "3.5",
        "don't",
        "e-mail",
        "UPPER",
        "\u2014",
        "...",
        *map(str, range(30)),
    ]
    lengths = [*range(12), 63, 64, 65, 100, 101, 130]
    for number in range(2_500):
        most = 300 if number % 100 == 0 else rng.choice(lengths)
        prediction = " ".join(rng.choices(words, k=rng.randint(0, most)))
        reference = " ".join(rng.choices(words, k=rng.randint(0, most)))
        theirs = scorer.score(target=reference, prediction=prediction)["rougeL"].fmeasure
        assert rouge_l(prediction, reference).fmeasure == theirs, (prediction, reference)
        assert fmeasure(tokenize(prediction, None), tokenize(reference, None)) == theirs


@given(
    OBJECTS,
    st.sampled_from(["", "json", "JSON", "text"]),
    st.sampled_from(["```", "````", "~~~"]),
    st.sampled_from([None, 2]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_an_object_survives_every_wrapping(
    value: dict[str, Any], tag: str, fence: str, indent: int | None, line_end: str
) -> None:
    """Whatever texts an object holds, fences included, it comes out of its block as it went in."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    assert extract_json_object(text) == value
    block = f"Here you are:{line_end}{fence}{tag}{line_end}{text}{line_end}"
    assert unordered_equal(extract_json_object(block), value)
    assert unordered_equal(extract_json_object(f"{block}{fence}{line_end}Done."), value)


@given(OBJECTS, st.integers(1, 40))
def test_a_truncated_object_is_never_taken(value: dict[str, Any], missing: int) -> None:
    """No prefix of an object parses, alone or in a block, strictly or leniently."""
    text = json.dumps(value)
    for cut in (text[:-missing], f"```json\n{text[:-missing]}"):
        for lenient in (False, True):
            try:
                found = extract_json_object(cut, lenient=lenient)
            except ExtractionError:
                continue
            raise AssertionError((cut, found))


FRAGMENTS = st.sampled_from(
    [
        "```",
        "json",
        "\n",
        "{",
        "}",
        '"',
        "a",
        ":",
        "1",
        "[",
        "]",
        ",",
        "~~~",
        " ",
        "\\",
        "NaN",
        "1e999",
        "\ud800",
        "\0",
    ]
)


@given(
    st.lists(FRAGMENTS, max_size=25).map("".join) | st.text(max_size=40) | OBJECTS.map(json.dumps),
    st.fixed_dictionaries(
        {},
        optional={
            "expected": OBJECTS,
            "schema": st.sampled_from([True, False, {}, {"required": ["a"]}, {"maxProperties": 1}]),
            "regex_pattern": st.sampled_from(["a", "^$", "(", "[", "{", "x*"]),
            "validator": st.sampled_from(["accepts", "refuses", "raises", "nonsense"]),
            "reference": st.text(max_size=20),
            "json_extraction": st.sampled_from(["strict", "lenient"]),
        },
    ),
    st.sampled_from([None, "PASS", "FAIL", "?", ConnectionError("down")]),
)
def test_every_output_gets_one_of_the_seven_statuses(
    output: str, case: dict[str, Any], reply: str | Exception | None
) -> None:
    """Whatever the answer and whatever is required of it, there is a verdict that can be stored."""

    def judge(_expected: Any, _actual: Any) -> str:
        if isinstance(reply, str):
            return reply
        raise reply or AssertionError

    result = validate(case, output, judge=judge if reply else None, sandbox=Validators())
    assert result.status in set(CaseStatus)
    assert result.passed is (result.status == "passed")
    assert [stage.number for stage in result.stages] == ["0", "0.5", "1", "2", "3", "4"]
    assert result.passed or result.message
    if result.metrics:
        assert 0.0 <= result.metrics["rouge_l"] <= 1.0
    document = result.as_document()
    assert why_not_json(document) is None
    json.dumps(document, ensure_ascii=False).encode()


class Validators:
    """A sandbox with four validators, which searches in this process."""

    def search(self, pattern: str, text: str) -> str | None:
        """Finds plain text only."""
        return pattern if pattern in text else None

    def call(self, name: str, _text: str) -> object:
        """Runs one of the four."""
        if name == "raises":
            raise RuntimeError("no")
        return {"accepts": True, "refuses": (False, "no")}.get(name, 7)
