"""Unit tests: the functions of `proctor.check` write every check that there is, as bench files have it."""

from dataclasses import fields

from proctor import Bench, Case, ModelConfig, check
from shared.contracts import case_config
from worker.validation.checks import parse_checks
from worker.validation.checks.table import CHECK_KINDS

WRITTEN = (
    check.equals("Paris", ignore_case=True),
    check.contains("Paris", name="names it", weight=2),
    check.contains_all(["Paris", "Seine"]),
    check.contains_any(["Paris", "Lutetia"]),
    check.starts_with("It"),
    check.one_of(["yes", "no"]),
    check.regex("^P"),
    check.json(),
    check.json_schema({"type": "object"}),
    check.json_equals({"a": [1]}, json_path="$.b"),
    check.number(2.1, tolerance="5%"),
    check.length(min=1, max=20, unit="words"),
    check.max_tokens_used(500),
    check.max_latency_s(5),
    check.max_first_token_s(1.5),
    check.min_tokens_per_s(20),
    check.max_cost(0.01),
    check.rouge_l("The capital is Paris.", at_least=0.5),
    check.rouge_1("The capital is Paris.", at_least=0.5),
    check.edit_distance("Paris", at_most=2),
    check.xml(["a.b"]),
    check.finish_reason("stop"),
    check.mean_of([check.contains("Paris")], at_least=0.5),
    check.levenshtein("Paris", at_least=0.8),
    check.bleu(["The capital is Paris."], at_least=0.5),
    check.tool_call("get_weather", arguments=check.json_equals({"city": "Paris"})),
    check.no_tool_call(),
    check.tool_calls(["get_weather", "get_time"], order="any"),
    check.refusal(),
    check.no_refusal(),
    check.python("is_short"),
    check.javascript("output.length < 100", config={"most": 100}),
    check.javascript(file="check.js", function="is_short"),
    check.verdict("names_the_capital", model="own-checks", config={"most": 1}),
    check.similar("Paris", model="openai/text-embedding-3-small", at_least=0.8),
    check.rubric("Polite.", models=["openai/gpt-4o", "openai/gpt-4o-mini"]),
    check.factuality("It is Paris.", scores={"superset": 0.6}),
    check.closed_qa("Names one city.", models=("openai/gpt-4o", "openai/gpt-4o-mini")),
    check.select_best("Is short.", model="judge"),
    check.g_eval("Is coherent.", steps=["Look for contradictions."]),
    check.answer_relevance(),
    check.context_recall(["It is Paris."], "Paris"),
    check.context_precision("It is Paris.", model="openai/gpt-4o"),
    check.context_faithfulness("It is Paris."),
    check.all_of([check.contains("Paris")]),
    check.any_of([check.contains("Paris"), check.contains("Lima")]),
    check.not_(check.contains("sorry")),
)


def test_every_kind_of_check_has_a_function_whose_result_is_accepted() -> None:
    """What the functions return parses, and all kinds of the table are among it."""
    assert len(parse_checks(list(WRITTEN))) == len(WRITTEN)
    assert {next(iter(each)) for each in WRITTEN} == set(CHECK_KINDS)


def test_the_public_functions_are_those() -> None:
    """A function that is added is listed above."""
    functions = {name for name in vars(check) if name[0].islower() and callable(vars(check)[name])}
    assert len(functions) == len(WRITTEN) - 1  # of the code, or of a file


def test_values_have_the_fields_of_files() -> None:
    """What a bench file may say of a bench, a case or a model can be said in Python."""
    cases, models, bench = ({each.name for each in fields(kind)} for kind in (Case, ModelConfig, Bench))
    settings = case_config.RunSettings.model_fields.keys() - {"repeat"}
    assert cases == case_config.CaseEntry.model_fields.keys()
    assert models == case_config.ModelConfig.model_fields.keys()
    of_file = case_config.BenchConfig.model_fields.keys() - settings
    assert bench - {"cases", "schema"} == of_file - {"test_cases", "schema_", "schema_path"}
