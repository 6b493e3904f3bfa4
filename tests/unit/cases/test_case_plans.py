"""A configuration becomes a run: settings, items in order, chunks, and what a command line changes."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from producer.cases.load import CHUNK_BYTES_MOST, load_cases, settings_digest
from producer.forecasts.cases import estimated
from producer.load.source import Source
from producer.options import CaseChoice, SubmitOptions
from shared.contracts.case_config import CaseEntry
from shared.contracts.case_run import CaseRun, Recorded, decode_case
from shared.contracts.case_vocabulary import MAX_OUTPUT_CHARS
from shared.errors import ConfigError
from shared.ledger.bounds import LAYOUT, TARGETS_LAYOUT
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import GivenPrice
from tests.support.benches import CASES, HEAD, MINIMAL, plan, refusal, write

FULL = """
name: full
system_prompt: Answer.
models: [a, b, a]
schema_path: shape.json
test_cases_file: more.jsonl
model_configs:
  b:
    api_base: "http://localhost:8000/v1/"
    api_key_env: B_KEY
    prices: {prompt_per_million: 1, completion_per_million: 2}
  a: {prices: {prompt_per_million: 3, completion_per_million: 4}}
  judge: {api_base: "http://localhost:9000/v1", prices: {prompt_per_million: 5, completion_per_million: 6}}
  c: {api_base: "http://localhost:7000/v1"}
config: {concurrency: 7, temperature: 0, judge_model: judge, max_cost: 1.5, repeat: 2}
stream: true
test_cases:
  - {input: two, expected: {n: 2}, id: second}
"""

PRICE = {"prompt_per_million": 5.0, "completion_per_million": 6.0}


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A configuration that uses nearly everything."""
    write(tmp_path, '{"type": "object"}', "shape.json")
    write(tmp_path, '{"input": "one", "regex_pattern": "x", "reference": "r", "id": "first"}\n', "more.jsonl")
    return write(tmp_path, FULL)


def test_a_full_configuration_is_read(full: Path) -> None:
    """Every setting arrives in the run, and models stand once; what is odd is warned about."""
    found = plan(full)
    run = found.run
    assert run.models == {"a": ModelTarget("a"), "b": ModelTarget("b", "http://localhost:8000/v1", "B_KEY")}
    assert run.judges == {"judge": ModelTarget("judge", "http://localhost:9000/v1")}
    assert run.schema == {"type": "object"}
    assert (run.concurrency, run.temperature, run.judge_model, run.max_cost) == (7, 0, "judge", 1.5)
    assert (run.repeat, run.stream, run.cache, run.mode, run.recorded) == (2, True, True, "standard", False)
    assert run.prices == {
        model: GivenPrice(prompt, prompt + 1) for model, prompt in (("b", 1), ("a", 3), ("judge", 5))
    }
    assert [("'a' stands twice" in text, "'c' is none of the models" in text) for text in found.warnings] == [
        (True, False),
        (False, True),
    ]


def test_items_are_in_order(full: Path) -> None:
    """Model by model, case by case, repetition by repetition; cases of the file come first."""
    found = [(item.case, item.model, item.repeat) for item in plan(full).items()]
    assert found == [(case, model, repeat) for model in "ab" for case in (0, 1) for repeat in (0, 1)]
    one, *_, two = plan(full).items()
    assert (one.input, one.criteria, one.id) == ("one", {"reference": "r", "regex_pattern": "x"}, "first")
    assert (two.input, two.expected, two.id) == ("two", {"n": 2}, "second")


def test_the_loader_makes_chunks_and_a_snapshot(full: Path) -> None:
    """What travels can be read back as it was, and a chunk is named after its first item."""
    load = load_cases(Source(full), SubmitOptions())
    chunks = list(load.chunks)
    assert [chunk.plan.first for chunk in islice(chunks, 3)] == ["first · a", "first · a #2", "second · a"]
    payloads = [decode_case(payload) for chunk in chunks for payload in chunk.payloads.values()]
    assert payloads == list(plan(full).items())
    assert [name for chunk in chunks for name in chunk.payloads] == [str(at) for at in range(8)]
    stored = CaseRun.from_snapshot(json.loads(json.dumps(load.snapshot)))
    assert (stored.models, stored.schema, stored.together) == (plan(full).run.models, {"type": "object"}, 1)
    assert load.max_open_chunks == 7 + 3


def test_the_command_line_goes_before_the_configuration(full: Path) -> None:
    """Models are replaced, not added; an endpoint and a price go for all of them; null asks no judge."""
    found = plan(
        full,
        models=("x", "y"),
        api_base="http://h/v1",
        prices=PRICE,
        judges=(),
        temperature=1.0,
        max_cost=9.0,
        concurrency=50,
        repeat=1,
        cache=False,
        fail_fast=True,
    )  # fmt: skip - a command line
    run = found.run
    assert run.models == {name: ModelTarget(name, "http://h/v1") for name in ("x", "y")}
    assert run.prices["x"] == run.prices["y"] == GivenPrice(5.0, 6.0)
    assert (run.judge_model, run.temperature, run.max_cost, run.concurrency) == (None, 1.0, 9.0, 50)
    assert (run.repeat, run.cache, run.fail_fast, found.total) == (1, False, True, 4)


@pytest.mark.parametrize(
    ("choice", "positions"),
    [
        ({"cases": ("second",)}, [1]),
        ({"cases": ("1",)}, [0]),
        ({"cases": ("2", "first")}, [0, 1]),
        ({"containing": "ONE"}, [0]),
        ({"first": 1}, [0]),
        ({"sample": 5}, [0, 1]),
    ],
)
def test_cases_can_be_chosen(full: Path, choice: dict[str, Any], positions: list[int]) -> None:
    """Chosen cases keep their place in the file, so that results can be compared with those of all."""
    assert [item.case for item in plan(full, **choice, models=("a",), repeat=1).items()] == positions


def test_a_choice_of_nothing_is_refused(full: Path) -> None:
    """A name that is none, and a word that is nowhere, are reported."""
    assert "no case is called 'secnd' | did you mean 'second'?" in refusal(full, cases=("secnd",))
    assert "no case is left to run" in refusal(full, containing="zebra")


@pytest.mark.parametrize(
    ("cases", "hint"),
    [
        ("[{input: a}, {input: b}]", "cases are numbered from 1 to 2"),
        ("[{input: a, id: one}, {input: b}]", "cases are numbered from 1 to 2; there are: one"),
        ("[{input: a, id: Q-9}]", "cases are numbered from 1 to 1; there are: Q-9"),
    ],
)
def test_a_case_number_that_is_none_brings_the_range(tmp_path: Path, cases: str, hint: str) -> None:
    """The hint has the numbers that can be given, and the ids of cases that have one."""
    found = refusal(write(tmp_path, f"{HEAD}test_cases: {cases}\n"), cases=("9",))
    assert found == f"--case: no case is called '9' | {hint}"


@pytest.mark.parametrize(
    ("cases", "mode"),
    [
        ("[{input: a}, {input: b}]", "freeform"),
        ("[{input: a, expected: null}]", "freeform"),
        ("[{input: a}, {input: b, expected: {}}]", "standard"),
        ("[{input: a, reference: r}]", "standard"),
        ("[{input: a, regex_pattern: r}]", "standard"),
    ],
)
def test_freeform_is_when_no_case_has_a_criterion(tmp_path: Path, cases: str, mode: str) -> None:
    """One criterion makes a standard run; null is none, an empty object is one."""
    assert plan(write(tmp_path, f"{HEAD}test_cases: {cases}\n")).run.mode == mode


def test_a_schema_is_a_criterion(tmp_path: Path) -> None:
    """Inputs alone are not freeform when every output must keep to a schema; YAML schemas are read too."""
    write(tmp_path, "type: object\n", "shape.yaml")
    found = plan(write(tmp_path, f"{HEAD}{CASES}schema: shape.yaml\n"))
    assert (found.run.mode, found.run.schema) == ("standard", {"type": "object"})


def test_settings_may_stand_above_without_a_block(tmp_path: Path) -> None:
    """Top-level spellings are the document's; `config:` without content is a block with defaults."""
    above = plan(
        write(tmp_path, HEAD + CASES + "temperature: 0.5\njudge_model: null\nmax_cost: 2\n"), prices=PRICE
    ).run
    assert (above.temperature, above.judge_model, above.max_cost, above.concurrency) == (0.5, None, 2, 5)
    plain = plan(write(tmp_path, HEAD + CASES + "config:\nrepeat: 3\n")).run
    assert (plain.temperature, plain.judge_model, plain.repeat) == (0.1, "gpt-3.5-turbo", 3)


def test_csv_is_read_as_spreadsheets_write_it(tmp_path: Path) -> None:
    """A byte order mark, quotes, line ends in cells, formulas: nothing is lost, nothing is computed."""
    rows = '\ufeffinput,expected\r\n"say ""hi"",\nplease","{""a"": 1}"\r\n=1+1,\r\n\r\n@SUM(A1),{}\r\n'
    write(tmp_path, rows, "cases.csv")
    found = list(plan(write(tmp_path, HEAD + "test_cases_file: cases.csv\n")).items())
    assert [case.input for case in found] == ['say "hi",\nplease', "=1+1", "@SUM(A1)"]
    assert [case.expected for case in found] == [{"a": 1}, None, {}]


def test_csv_and_json_lines_carry_every_key(tmp_path: Path) -> None:
    """Patterns, references and ids of a data file are used as those of the configuration are."""
    write(tmp_path, "input,regex_pattern,reference,id\na,x+,r,one\n", "c.csv")
    write(tmp_path, '{"input":"a","regex_pattern":"x+","reference":"r","id":"one"}\n', "c.jsonl")
    csv, lines = (
        list(plan(write(tmp_path, f"{HEAD}test_cases_file: c.{end}\n")).items()) for end in ("csv", "jsonl")
    )
    assert csv == lines
    assert csv[0].criteria["regex_pattern"] == "x+"


def outputs(folder: Path, *rows: dict[str, Any]) -> str:
    """A file of recorded outputs."""
    return str(write(folder, "\n".join(json.dumps(row) for row in rows), "outputs.jsonl"))


def test_recorded_outputs_need_no_model(full: Path, tmp_path: Path) -> None:
    """Rows name cases by position or id; a missing one is an item without an output: an error later."""
    rows = outputs(
        tmp_path,
        {
            "case": 0,
            "model": "a",
            "output": "",
            "latency_seconds": 0.5,
            "cached": True,
            "prompt_tokens": 3,
            "cached_input_tokens": 2,
            "reasoning": "?",
        },
        {"case": "second", "model": "a", "output": "zwei", "repeat": 1},
        {"case": 1, "model": "other", "output": "x"},
    )
    found = plan(full, outputs=rows)
    assert (found.run.recorded, list(found.run.models)) == (True, ["a", "b", "other"])
    by_item = {(item.case, item.model, item.repeat): item.recorded for item in found.items()}
    first = Recorded("", 0.5, prompt_tokens=3, reasoning="?", cached=True, cached_input_tokens=2)
    assert by_item[0, "a", 0] == by_item[0, "a", 1] == first
    assert (by_item[1, "a", 0], by_item[1, "a", 1]) == (None, Recorded("zwei"))
    assert by_item[1, "other", 0] == Recorded("x")
    assert by_item[0, "b", 0] is None


def test_an_output_of_a_repetition_that_there_is_not_is_refused(full: Path, tmp_path: Path) -> None:
    """File and line are named; with enough repetitions it is taken."""
    rows = outputs(tmp_path, *({"case": 0, "model": "a", "output": "x", "repeat": nth} for nth in (1, 5)))
    found = refusal(full, outputs=rows)
    assert "outputs.jsonl:2: repeat: there is no repetition 5 | " in found
    assert found.endswith("repetitions go from 0 to 1, since repeat is 2")
    assert plan(full, outputs=rows, repeat=6).run.repeat == 6


def test_outputs_of_other_models_stand_for_themselves(full: Path, tmp_path: Path) -> None:
    """Where no configured model has an output, the recorded ones are the run's models."""
    rows = outputs(tmp_path, {"case": 0, "model": "recorded", "output": "x"})
    assert list(plan(full, outputs=rows).run.models) == ["recorded"]
    assert list(plan(full, outputs=rows, models=("a",)).run.models) == ["a"]


def test_outputs_may_stand_with_their_cases(tmp_path: Path) -> None:
    """`outputs` of a case, by model, make a recorded run; a file goes before them."""
    bench = write(tmp_path, HEAD + "test_cases:\n  - {input: a, outputs: {m: hello}}\n")
    assert [item.recorded for item in plan(bench).items()] == [Recorded("hello")]
    rows = outputs(tmp_path, {"case": 0, "model": "m", "output": "file"})
    assert [item.recorded for item in plan(bench, outputs=rows).items()] == [Recorded("file")]


def test_hostile_outputs_travel(tmp_path: Path) -> None:
    """Half of a surrogate pair is replaced, NUL is kept, and the overlong stays too long after it is cut."""
    bench = write(tmp_path, HEAD + "test_cases:\n  - input: a\n  - input: b\n")
    rows = outputs(
        tmp_path,
        {"case": 0, "model": "m", "output": "\ud800\x00"},
        {"case": 1, "model": "m", "output": "x" * (5 << 20)},
    )
    odd, long = (item.recorded for item in plan(bench, outputs=rows).items())
    assert odd == Recorded("\ufffd\x00")
    assert long is not None
    assert MAX_OUTPUT_CHARS < len(long.output) < 2 * MAX_OUTPUT_CHARS


def test_heavy_cases_make_small_chunks(tmp_path: Path) -> None:
    """However many cases a chunk may hold, it is closed before it is too heavy for one call of the ledger."""
    row = json.dumps({"input": "x" * 500_000})
    write(tmp_path, "\n".join([row] * 20), "c.jsonl")
    bench = write(tmp_path, HEAD + "repeat: 40\ntest_cases_file: c.jsonl\n")
    chunks = list(load_cases(Source(bench), SubmitOptions()).chunks)
    assert sum(chunk.item_count for chunk in chunks) == 800
    assert max(len(chunk.content) for chunk in chunks) <= CHUNK_BYTES_MOST


def test_answers_that_are_compared_follow_each_other_in_one_chunk(tmp_path: Path) -> None:
    """Each item has the other models' and prompts' of its repetition, recorded outputs included."""
    more = """
prompts: [{id: p, user: "{{ input }}"}, {id: q, user: "{{ input }}!"}]
config: {repeat: 2, judge_model: judge, concurrency: 1}
default_checks: [{not: {select_best: Brief.}}]
test_cases: [{input: one}, {input: two}]
"""
    bench = write(tmp_path, "name: b\nmodels: [a, b]\n" + more)
    items = list(plan(bench).items())
    order = [(case, model, by) for case in (0, 1) for model in "ab" for by in "pq"]
    assert [(item.case, item.model, item.prompt_id) for item in items[::2]] == order
    rivals = [(each.model, each.prompt_id, each.input) for each in items[0].rivals]
    assert rivals == [("a", "q", "one!"), ("b", "p", "one"), ("b", "q", "one!")]
    assert [chunk.item_count for chunk in load_cases(Source(bench), SubmitOptions()).chunks] == [8, 8]
    estimate = estimated(plan(bench))
    assert (estimate.calls, estimate.check_calls) == (16, 4)
    with pytest.raises(ConfigError, match="in the cache, which is off"):
        plan(bench, cache=False)


def test_an_answer_without_another_is_warned_about(tmp_path: Path) -> None:
    bench = write(tmp_path, HEAD + "default_checks: [{select_best: Brief.}]\ntest_cases: [{input: one}]\n")
    assert ["one model and one prompt" in text for text in plan(bench).warnings] == [True]


def test_the_digest_knows_what_decides_the_results(full: Path) -> None:
    """The same key may come with another width, but not with another prompt, judge or model."""
    same = settings_digest(plan(full).run)
    assert settings_digest(plan(full, concurrency=3, cache=False).run) == same
    assert settings_digest(plan(full, judges=()).run) != same
    assert settings_digest(plan(full, models=("a",)).run) != same


@pytest.mark.parametrize(
    ("cases", "judge", "choice", "unpriced"),
    [
        ("[{input: a}]", "openai/gpt-4o", {}, "m"),
        ("[{input: a}]", "nobody-knows", {"models": ("openai/gpt-4o",)}, ""),
        ("[{input: a, expected: {}}]", "nobody-knows", {"models": ("openai/gpt-4o",)}, "nobody-knows"),
        ("[{input: a, expected: {}}]", "openai/gpt-4o", {"prices": PRICE}, ""),
        ("[{input: a, outputs: {m: x}}]", "nobody-knows", {}, ""),
    ],
)
def test_a_cap_needs_prices(
    tmp_path: Path, cases: str, judge: str, choice: dict[str, Any], unpriced: str
) -> None:
    """With `max_cost`, a model or a judge that may be asked without a known price is refused at submit."""
    bench = write(tmp_path, f"{HEAD}test_cases: {cases}\njudge_model: {judge}\nmax_cost: 1\n")
    if unpriced:
        assert f"max_cost: the price of '{unpriced}' is not known" in refusal(bench, **choice)
    else:
        assert plan(bench, **choice).run.max_cost == 1


def test_the_hint_on_an_unknown_price_names_the_option(tmp_path: Path) -> None:
    """`--price` is that of the models under test, and not that of a judge."""
    bench = write(tmp_path, f"{HEAD}{CASES}max_cost: 1\njudge_model: null\n")
    with pytest.raises(ConfigError) as refused:
        plan(bench)
    assert refused.value.hint.startswith("give --price IN/OUT, or write model_configs: ")
    bench = write(
        tmp_path, f"{HEAD}test_cases: [{{input: a, expected: {{}}}}]\nmax_cost: 1\njudge_model: j\n"
    )
    with pytest.raises(ConfigError) as refused:
        plan(bench, prices=PRICE)
    assert refused.value.hint.startswith("write model_configs: ")


def test_a_configuration_comes_over_stdin_too(tmp_path: Path) -> None:
    """JSON is a configuration as well, whatever it comes from."""
    path = write(tmp_path, json.dumps({**MINIMAL, "test_cases": [{"input": "Hi"}]}), "bench.json")
    with path.open("rb") as stream:
        load = load_cases(Source("-", stdin=stream), SubmitOptions(cases=CaseChoice()))
        assert sum(chunk.item_count for chunk in load.chunks) == 1


def test_a_new_key_of_a_case_needs_a_new_layout(full: Path) -> None:
    """Workers in use know the keys of today's layout; they would pass a case with another one unchecked."""
    known = (
        "at_least checks default_checks expand expected id images input label messages metadata only outputs "
        "paid_checks reference repeat regex_pattern system_prompt tags transform validator vars weight"
    )
    assert set(CaseEntry.model_fields) == set(known.split()), "raise LAYOUT, and list the key here"
    assert (load_cases(Source(full), SubmitOptions()).layout, LAYOUT) == (TARGETS_LAYOUT, 5)


def test_a_price_holds_from_its_day_on(tmp_path: Path) -> None:
    """The latest of those that have begun; one that lies ahead changes nothing yet."""
    usual, past, ahead = (f"{{prompt_per_million: {usd}, completion_per_million: 1}}" for usd in (1, 2, 3))
    days = f"{{'2020-01-01': {usual}, '2020-02-01': {past}, '2999-01-01': {ahead}}}"
    more = f"model_configs: {{m: {{prices: {usual}, prices_from: {days}}}}}\n"
    run = plan(write(tmp_path, HEAD + CASES + more)).run
    assert run.prices == {"m": GivenPrice(2, 1)}


@pytest.mark.parametrize(
    ("more", "tested", "judging"),
    [
        ("params: {service_tier: flex}\n", 900, 120),
        ("params: {service_tier: flex}\nconfig: {timeout_s: 120}\n", 120, 120),
        ("model_configs: {m: {params: {service_tier: flex}}}\n", 900, 120),
        ("params: {service_tier: flex}\nmodel_configs: {m: {params: {service_tier: null}}}\n", 120, 120),
        ("prompts: [{user: '{{ input }}', params: {service_tier: flex}}]\n", 900, 120),
        ("judge_params: {service_tier: flex}\n", 120, 900),
        ("params: {service_tier: priority}\n", 120, 120),
    ],
)
def test_a_slow_tier_has_more_time(tmp_path: Path, more: str, tested: float, judging: float) -> None:
    """Unless the file says how long a call may take; the options of judges are their own."""
    run = plan(write(tmp_path, HEAD + CASES + more)).run
    assert [target.timeout_s for target in run.models.values()] == [tested] * len(run.models)
    assert [target.timeout_s for target in run.judges.values()] == [judging]


def test_one_model_stands_under_several_names(tmp_path: Path) -> None:
    """Calls, keys and prices are those of the model that is called; options and results those of the name."""
    price = "{prompt_per_million: 1, completion_per_million: 2}"
    models = [
        f"{{name: cold, model: openai/gpt-4o, params: {{temperature: 0}}, prices: {price}}}",
        "{name: warm, model: openai/gpt-4o}",
        "{name: e, model: echo}",
    ]
    text = f"name: n\nsystem_prompt: s\nmodels: [{', '.join(models)}]\nconfig: {{max_cost: 1}}\n"
    found = plan(write(tmp_path, text + "test_cases: [{input: a}]\n"))

    assert {name: target.model for name, target in found.run.models.items()} == {
        "cold": "openai/gpt-4o",
        "warm": "openai/gpt-4o",
        "e": "echo",
    }
    assert [item.model for item in found.items()] == ["cold", "warm", "e"]
    assert found.run.prices == {"openai/gpt-4o": GivenPrice(1, 2)}
    assert found.run.calls["cold"][""]["params"] == {"temperature": 0.0}
    assert (estimated(found).calls, found.run.models["e"].is_echo) == (2, True)
    assert estimated(found).cost_usd


def test_an_application_has_no_other_model(tmp_path: Path) -> None:
    model = "{name: a, model: b, http: {url: 'http://h/', body: {q: '{{ input }}'}, answer: /a}}"
    text = f"name: n\nsystem_prompt: s\nmodels: [{model}]\ntest_cases: [{{input: a}}]\n"
    assert "http is called, and there is model too" in str(refusal(write(tmp_path, text)))


PAIRS = """
name: n
models: [a, {name: b, prompts: [short]}]
prompts:
  - {id: short, user: "{{ x }}"}
  - {id: long, user: "{{ x }} {{ y }}"}
test_cases:
  - {vars: {x: 1, y: 2}}
  - {vars: {x: 2}, only: {prompts: [short]}}
  - {vars: {x: 3, y: 2}, only: {models: [a]}, repeat: 2}
"""


def test_models_and_cases_choose_with_whom_they_are_paired(tmp_path: Path) -> None:
    """Templates are rendered where they are sent: the second case lacks a variable of the long prompt."""
    found = plan(write(tmp_path, PAIRS))

    assert [(item.model, item.prompt_id, item.input) for item in found.items()] == [
        *[("a", "short", text) for text in ("1", "2", "3", "3")],
        *[("a", "long", text) for text in ("1 2", "3 2", "3 2")],
        *[("b", "short", text) for text in ("1", "2")],
    ]
    assert found.total == estimated(found).calls == 9


@pytest.mark.parametrize(
    ("written", "named", "message"),
    [
        (
            "only: {prompts: [short]}",
            "only: {prompts: [shrt]}",
            "9: test_cases[1].only.prompts[0]: 'shrt' is",
        ),
        ("models: [a]}", "models: [c]}", "10: test_cases[2].only.models[0]: 'c' is not in the bench"),
        ("prompts: [short]}]", "prompts: [x]}]", "model_configs.b.prompts[0]: 'x' is not in the bench"),
    ],
)
def test_pairs_name_what_is_in_the_bench(written: str, named: str, message: str, tmp_path: Path) -> None:
    assert message in str(refusal(write(tmp_path, PAIRS.replace(written, named))))
