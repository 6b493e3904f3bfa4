"""The table of checks: one row for each kind, in the order of the documentation."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from worker.validation.checks.all_of import all_of
from worker.validation.checks.all_tool_calls import tool_calls
from worker.validation.checks.any_of import any_of
from worker.validation.checks.bleu import References, bleu
from worker.validation.checks.contains import contains
from worker.validation.checks.contains_all import contains_all
from worker.validation.checks.contains_any import contains_any
from worker.validation.checks.equals import equals
from worker.validation.checks.json_equals import json_equals
from worker.validation.checks.json_found import json_found
from worker.validation.checks.json_schema import Schema, json_schema
from worker.validation.checks.kind import CheckKind
from worker.validation.checks.length import LENGTH_OPTIONS, Bounds, length
from worker.validation.checks.levenshtein import levenshtein
from worker.validation.checks.max_cost import max_cost
from worker.validation.checks.max_latency_s import max_latency_s
from worker.validation.checks.max_tokens_used import max_tokens_used
from worker.validation.checks.negation import negation
from worker.validation.checks.no_refusal import no_refusal
from worker.validation.checks.number import Number, Tolerance, number
from worker.validation.checks.one_of import one_of
from worker.validation.checks.python import FunctionName, python
from worker.validation.checks.recorded_figures import Amount, Count
from worker.validation.checks.refusal import refusal
from worker.validation.checks.regex import Pattern, regex
from worker.validation.checks.rouge_l import rouge_l
from worker.validation.checks.rubric import AT_LEAST, RUBRIC_OPTIONS
from worker.validation.checks.similar import SIMILAR_OPTIONS
from worker.validation.checks.starts_with import starts_with
from worker.validation.checks.texts import TEXT_OPTIONS, AnyTextList, PartOfText, Text, TextList
from worker.validation.checks.tool_call import tool_call

ROWS: Final = (
    CheckKind(
        "equals",
        "the output is the text",
        "{equals: Paris, ignore_case: true}",
        "PARIS",
        argument=Text,
        options=TEXT_OPTIONS,
        run=equals,
    ),
    CheckKind(
        "contains",
        "the text is somewhere in the output",
        "{contains: Paris}",
        "The capital is Paris.",
        argument=PartOfText,
        options=TEXT_OPTIONS,
        run=contains,
    ),
    CheckKind(
        "contains_all",
        "each of the texts is in the output",
        "{contains_all: [Paris, Seine]}",
        "Paris lies on the Seine.",
        argument=TextList,
        options=TEXT_OPTIONS,
        run=contains_all,
    ),
    CheckKind(
        "contains_any",
        "at least one of the texts is in the output",
        "{contains_any: [Paris, Lutetia]}",
        "Lutetia",
        argument=TextList,
        options=TEXT_OPTIONS,
        run=contains_any,
    ),
    CheckKind(
        "starts_with",
        "the output begins with the text",
        "{starts_with: 'Yes'}",
        "Yes, of course.",
        argument=PartOfText,
        options=TEXT_OPTIONS,
        run=starts_with,
    ),
    CheckKind(
        "one_of",
        "the output is one of the texts",
        "{one_of: [positive, negative]}",
        "negative",
        argument=AnyTextList,
        options=TEXT_OPTIONS,
        run=one_of,
    ),
    CheckKind(
        "regex",
        "the pattern matches somewhere in the output, as `regex_pattern` does; it runs in the sandbox",
        "{regex: '(?i)par.s'}",
        "It is PARIS.",
        argument=Pattern,
        run=regex,
        is_template=False,
        needs_sandbox=True,
    ),
    CheckKind(
        "json",
        "there is JSON in the output: the whole text, or a fenced block",
        "json",
        '{"capital": "Paris"}',
        run=json_found,
        takes_bare_word=True,
    ),
    CheckKind(
        "json_schema",
        "the JSON in the output is valid against the schema, which is inline or the path of a file",
        "{json_schema: {type: object, required: [capital]}}",
        '{"capital": "Paris"}',
        argument=Schema,
        run=json_schema,
        is_template=False,
    ),
    CheckKind(
        "json_equals",
        "the JSON in the output is this value, whatever the order of keys and items",
        "{json_equals: {capital: Paris, rivers: [Seine, Marne]}}",
        '{"rivers": ["Marne", "Seine"], "capital": "Paris"}',
        argument=Any,
        run=json_equals,
    ),
    CheckKind(
        "number",
        "the whole text, or else the only number in it, is this number, within `tolerance` (`0.05`, `5%`)",
        "{number: 2.1, tolerance: 5%}",
        "About 2.14 million people.",
        argument=Number,
        options={"tolerance": Tolerance},
        run=number,
    ),
    CheckKind(
        "length",
        "the characters, or with `unit: words` the words, are `min` to `max` (a number alone: at most)",
        "{length: {min: 1, max: 20}, unit: words}",
        "It is Paris.",
        argument=Bounds,
        options=LENGTH_OPTIONS,
        run=length,
    ),
    CheckKind(
        "max_tokens_used",
        "prompt and answer together have at most this many tokens",
        "{max_tokens_used: 500}",
        "Paris",
        argument=Count,
        run=max_tokens_used,
        reads_text=False,
    ),
    CheckKind(
        "max_latency_s",
        "the answer took at most this many seconds",
        "{max_latency_s: 5}",
        "Paris",
        argument=Amount,
        run=max_latency_s,
        reads_text=False,
    ),
    CheckKind(
        "max_cost",
        "the answer cost at most this many US dollars",
        "{max_cost: 0.01}",
        "Paris",
        argument=Amount,
        run=max_cost,
        reads_text=False,
    ),
    CheckKind(
        "rouge_l",
        "ROUGE-L with the reference text reaches `at_least`",
        "{rouge_l: The capital of France is Paris., at_least: 0.5}",
        "The capital is Paris.",
        argument=PartOfText,
        run=rouge_l,
        is_scored=True,
    ),
    CheckKind(
        "levenshtein",
        "the similarity (1 minus edit distance by length of the longer text) reaches `at_least`",
        "{levenshtein: Paris, at_least: 0.8}",
        "Pariss",
        argument=Text,
        options=TEXT_OPTIONS,
        run=levenshtein,
        is_scored=True,
    ),
    CheckKind(
        "bleu",
        "BLEU-4 with the reference text, or the best of several, reaches `at_least`",
        "{bleu: The cat sat on the mat., at_least: 0.5}",
        "The cat sat on a mat.",
        argument=References,
        run=bleu,
        is_scored=True,
    ),
    CheckKind(
        "tool_call",
        "one of the calls is of this tool, with `arguments` that pass a check; `none`: no tool is called",
        "{tool_call: {name: get_weather, arguments: {json_equals: {city: Paris}}}}",
        "",
        run_nested=tool_call,
        reads_text=False,
    ),
    CheckKind(
        "tool_calls",
        "exactly these tools are called, in this order (`order: strict`) or in any (`order: any`)",
        "{tool_calls: [get_weather], order: any}",
        "",
        options={"order": Literal["strict", "any"]},
        run_nested=tool_calls,
        reads_text=False,
    ),
    CheckKind(
        "refusal",
        "the model refuses: the provider says so, or the first 400 characters contain words of a refusal",
        "refusal",
        "I'm sorry, but I can't help with that.",
        run=refusal,
        takes_bare_word=True,
        reads_text=False,
    ),
    CheckKind(
        "no_refusal",
        "the model does not refuse",
        "no_refusal",
        "Paris",
        run=no_refusal,
        takes_bare_word=True,
        reads_text=False,
    ),
    CheckKind(
        "python",
        "a function of `validators_file` returns true, or a score that reaches `at_least` (default 1)",
        "{python: is_short}",
        "Paris",
        argument=FunctionName,
        run=python,
        is_template=False,
        needs_sandbox=True,
    ),
    CheckKind(
        "similar",
        "the cosine of the embeddings of output and text reaches `at_least`; asks `model`",
        "{similar: The capital is Paris., model: openai/text-embedding-3-small, at_least: 0.8}",
        "Paris is the capital.",
        argument=PartOfText,
        options=SIMILAR_OPTIONS,
        is_scored=True,
        is_paid=True,
    ),
    CheckKind(
        "rubric",
        "a judge's score for this criterion reaches `at_least` (default 0.7); asks `model`, or a panel",
        "{rubric: Names the capital and nothing else., model: openai/gpt-4o-mini, at_least: 0.8}",
        "Paris",
        argument=PartOfText,
        options=RUBRIC_OPTIONS,
        is_scored=True,
        at_least=AT_LEAST,
        is_paid=True,
    ),
    CheckKind(
        "all",
        "each of the checks passes; its score is the minimum",
        "{all: [{contains: Paris}, {length: 100}]}",
        "It is Paris.",
        run_nested=all_of,
    ),
    CheckKind(
        "any",
        "at least one of the checks passes; its score is the maximum",
        "{any: [{contains: Paris}, {contains: Lutetia}]}",
        "Lutetia",
        run_nested=any_of,
    ),
    CheckKind(
        "not",
        "the check does not pass; its score is 1 minus that of the check",
        "{not: {regex: '(?i)sorry'}}",
        "It is Paris.",
        run_nested=negation,
    ),
)
"""All kinds of checks."""

CHECK_KINDS: Final[Mapping[str, CheckKind]] = {kind.name: kind for kind in ROWS}
"""The kinds of checks by name."""
