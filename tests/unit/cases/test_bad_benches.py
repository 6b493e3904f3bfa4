"""Every way to get a bench configuration wrong is one sentence: where, what, and how to mend it."""

import json
import os
from pathlib import Path
from time import process_time

import pytest

from producer.cases import bench_config
from tests.support.benches import CASES, HEAD, MINIMAL, plan, refusal, write


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "bench.config.yaml: is empty"),
        ("- a\n", "bench.config.yaml: not a configuration"),
        (HEAD, "bench.config.yaml: no test cases in it"),
        (HEAD + "test_cases:\n", "no test cases in it"),
        (
            HEAD + CASES + "    expectd: {a: 1}\n",
            ":6: test_cases[0].expectd: unknown key | did you mean 'expected'?",
        ),
        (HEAD + CASES + "    schema: {}\n", ":6: test_cases[0].schema: unknown key"),
        (HEAD + CASES + "judge_prompt: x\n", ":6: judge_prompt: unknown key | did you mean"),
        (
            HEAD + CASES + "config:\n  temprature: 1\n",
            ":7: config.temprature: unknown key | did you mean 'temperature'?",
        ),
        (
            HEAD + CASES + "    expected: Paris\n",
            ":6: test_cases[0].expected: not an object ('Paris') | an output is",
        ),
        (HEAD + CASES + "    expected: [1]\n", ":6: test_cases[0].expected: not an object ([1])"),
        (HEAD + CASES + "    regex_pattern: ''\n", ":6: test_cases[0].regex_pattern: text must not be blank"),
        (HEAD + CASES + "    validator: ''\n", ":6: test_cases[0].validator: text must not be blank"),
        (
            HEAD + CASES + "    regex_pattern: 'a('\n",
            ":6: test_cases[0].regex_pattern: not a regular expression",
        ),
        (
            HEAD + CASES + "    validator: is_x\n",
            "validator: 'is_x' is asked for, and there is no validators_file",
        ),
        (HEAD + "test_cases:\n  - input: ' '\n", ":5: test_cases[0].input: text must not be blank"),
        (HEAD + "test_cases:\n  - input: 5\n", ':5: test_cases[0].input: not a text (5) | quote it: "5"'),
        (HEAD + "test_cases:\n  - expected: {}\n", ":5: test_cases[0].input: is missing"),
        (HEAD + "test_cases: Hi\n", ":4: test_cases: not a list ('Hi')"),
        (
            HEAD + "test_cases:\n  - {input: a, id: x}\n  - {input: b, id: x}\n",
            "id: 'x' is the id of another case",
        ),
        (HEAD.replace("[m]", "[]") + CASES, ":3: models: is empty"),
        (HEAD.replace("[m]", "m") + CASES, ":3: models: not a list ('m')"),
        (HEAD.replace("[m]", "[' ']") + CASES, ":3: models[0]: text must not be blank"),
        (HEAD.replace("name: bench\n", "") + CASES, "name: is missing"),
        (HEAD + CASES + "config: {concurrency: 101}\n", "config.concurrency: 101 is too much | at most 100"),
        (HEAD + CASES + "config: {concurrency: 0}\n", "config.concurrency: 0 is too little | at least 1"),
        (HEAD + CASES + "config: {concurrency: '5'}\n", "config.concurrency: not a whole number ('5')"),
        (HEAD + CASES + "config: {temperature: 2.1}\n", "config.temperature: 2.1 is too much"),
        (HEAD + CASES + "config: {max_cost: -1}\n", "config.max_cost: -1 is too little"),
        (HEAD + CASES + "config: {stream: no}\n", "config.stream: not a truth value ('no')"),
        (HEAD + CASES + "config: {}\ntemperature: 1\n", "temperature stands beside a config block"),
        (HEAD + CASES + "config: {repeat: 2}\nrepeat: 3\n", ":7: repeat: repeat stands here and in config"),
        (HEAD + CASES + "schema: a.json\nschema_path: b.json\n", "schema and schema_path differ"),
        (HEAD + CASES + "model_configs: {m: {api_base: localhost}}\n", "api_base: not a web address"),
        (
            HEAD + CASES + "model_configs: {m: {api_key_env: sk-12}}\n",
            "api_key_env: not the name of a variable",
        ),
        (
            HEAD + CASES + "model_configs: {m: {prices: {prompt_per_million: 1}}}\n",
            "completion_per_million: is missing",
        ),
        (
            HEAD + CASES + "model_configs: {m: {prices_from: {12/2026: {}}}}\n",
            "not a day ('12/2026')",
        ),
        (HEAD + CASES + "    tags: x\n", ":6: test_cases[0].tags: not a list ('x') | write it as […]"),
        (
            HEAD + CASES + f"    checks: [{{contains: a, json_path: ${'.a' * 700}}}]\n",
            "1,000 characters | shorten it: $..name selects a key at any depth",
        ),
        (HEAD + CASES + "schema: {type: 5}\n", ":6: schema: "),
        (
            HEAD + CASES + "schema: [a]\n",
            ":6: schema: neither the path of a file nor a schema | write schema:",
        ),
        (HEAD + CASES + "    expected: {a: 1e999}\n", ":6: '1e999' is too large for a number"),
    ],
)  # fmt: skip - one wrong file, one row
def test_what_breaks_the_contract_is_reported(tmp_path: Path, text: str, words: str) -> None:
    """The message names file, line and path, says what is wrong, and the hint how to mend it."""
    found = refusal(write(tmp_path, text))
    assert words in found, found


@pytest.mark.parametrize(
    ("key", "written", "words"),
    [
        ("schema_path", "../x.json", ":6: schema_path: '../x.json' leads out of the folder"),
        ("schema", "/etc/hostname", ":6: schema: '/etc/hostname' leads out of the folder"),
        ("validators_file", "none.py", ":6: validators_file: no such file: 'none.py'"),
        ("validators_file", "cheks.py", "did you mean 'checks.py'?"),
        ("test_cases_file", "sub", ":6: test_cases_file: 'sub' is a directory"),
        ("test_cases_file", "out.csv", ":6: test_cases_file: 'out.csv' leads out of the folder"),
        ("test_cases_file", "pipe.csv", "'pipe.csv' is no regular file"),
        ("test_cases_file", "a\\0b.csv", "is no usable path"),
        ("test_cases_file", "ring.csv", "test_cases_file"),
        ("test_cases_file", "checks.py", "'checks.py' has no suffix of a file of cases"),
        ("schema_path", "broken.json", "broken.json:1: not valid JSON"),
        ("schema_path", "wrong.json", "wrong.json: "),
    ],
)
def test_files_stay_in_the_folder(tmp_path: Path, key: str, written: str, words: str) -> None:
    """Links are followed before a path is judged; what is missing, no file, or broken is named."""
    folder = tmp_path / "bench"
    (folder / "sub").mkdir(parents=True)
    write(tmp_path, "input\nHi\n", "outside.csv")
    write(folder, "x = 1\n", "checks.py")
    write(folder, '{"type": ', "broken.json")
    write(folder, '{"type": 5}', "wrong.json")
    (folder / "out.csv").symlink_to(tmp_path / "outside.csv")
    (folder / "ring.csv").symlink_to(folder / "ring.csv")
    os.mkfifo(folder / "pipe.csv")
    found = refusal(write(folder, f'{HEAD}{CASES}{key}: "{written}"\n'))
    assert words in found, found


def test_paths_inside_the_folder_are_taken(tmp_path: Path) -> None:
    """A file below, an absolute path inside, a link that stays inside: all are the same file."""
    folder = tmp_path / "sub"
    folder.mkdir()
    data = write(folder, "input\nHi\n", "cases.csv")
    (tmp_path / "link.csv").symlink_to(data)
    for written in ("sub/cases.csv", "./sub/../sub/cases.csv", str(data), "link.csv"):
        assert plan(write(tmp_path, f"{HEAD}test_cases_file: {written}\n")).total == 1


def test_a_configuration_is_bounded(tmp_path: Path) -> None:
    """A configuration of 11 MB is refused before it is parsed."""
    assert "is larger than 10 MiB" in refusal(write(tmp_path, HEAD + CASES + "#" * (11 << 20)))


def test_a_small_bound_has_its_unit(tmp_path: Path) -> None:
    """A validators file may have 256 KiB."""
    write(tmp_path, "#" * 262_145, "checks.py")
    found = refusal(write(tmp_path, f"{HEAD}{CASES}validators_file: checks.py\n"))
    assert "checks.py: is larger than 256 KiB" in found


def test_a_schema_may_stand_in_the_bench(tmp_path: Path) -> None:
    """It is the same as in a file of its own."""
    write(tmp_path, '{"type": "object", "required": ["city"]}', "schema.json")
    inline = plan(write(tmp_path, f"{HEAD}{CASES}schema: {{type: object, required: [city]}}\n"))
    in_file = plan(write(tmp_path, f"{HEAD}{CASES}schema: schema.json\n"))
    assert inline.run.schema == in_file.run.schema == {"type": "object", "required": ["city"]}
    assert inline.run == in_file.run


def test_a_key_that_stands_twice_among_many_is_found_at_once(tmp_path: Path) -> None:
    """Looking for it takes time in proportion to the keys."""
    keys = ", ".join(f'"k{number}": 0' for number in [*range(30_000), 29_999])
    began = process_time()
    assert "the key 'k29999' stands twice" in refusal(write(tmp_path, f'{{"name": {{{keys}}}}}'))
    assert process_time() - began < 5


def test_another_encoding_is_named(tmp_path: Path) -> None:
    """A byte that is no UTF-8 is an error with its line."""
    path = tmp_path / "bench.config.yaml"
    path.write_bytes(HEAD.encode() + "# café\n".encode("latin-1"))
    assert "bench.config.yaml:4: not UTF-8 text" in refusal(path)
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        path.write_bytes((HEAD + CASES).encode(encoding))
        assert refusal(path).startswith("bench.config.yaml:1: ")
    path.write_bytes((HEAD + CASES + "    id: a\0b\n").encode())
    assert refusal(path).startswith("bench.config.yaml:6: a character that YAML does not allow")
    path.write_bytes((HEAD + CASES).encode("utf-8-sig"))
    assert plan(path).total == 1


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("c.csv", "", "c.csv: is empty"),
        ("c.csv", "input\n", "c.csv: no cases in it"),
        (
            "c.csv",
            "prompt,expected\na,\n",
            "c.csv:1: there is no column input | name it in the first line; columns: {prompt: input} renames",
        ),
        ("c.csv", "imput\na\n", "c.csv:1: unknown column 'imput' | did you mean 'input'?"),
        (
            "c.csv",
            "input,vars\na,[1]\n",
            "c.csv:2: vars: not an object ([1])",
        ),
        ("c.csv", "input;expected\na;b\n", "columns are separated by commas"),
        ("c.csv", "expected\n{}\n", "c.csv:1: there is no column input"),
        ("c.csv", "input,input\na,b\n", "c.csv:1: the column input stands twice"),
        ("c.csv", "input,expected\na,b,c\n", "c.csv:2: 3 cells, and the header has 2"),
        ("c.csv", "input,expected\na,{x}\n", "c.csv:2: expected: not valid JSON"),
        ("c.csv", "input,expected\na,\n b ,[1]\n", "c.csv:3: expected: not an object ([1])"),
        ("c.csv", 'input,id\n"a\nb",1\n,2\n', "c.csv:4: input: text must not be blank"),
        ("c.csv", 'input\n"a', "c.csv:2: not valid CSV"),
        ("c.jsonl", "\n", "c.jsonl: no cases in it"),
        ("c.jsonl", '{"input": "a"}\n\n[1]\n', "c.jsonl:3: not an object ([1])"),
        (
            "c.jsonl",
            '{"input": "a", "input": "b"}\n',
            "c.jsonl:1: not valid JSON: the key 'input' stands twice",
        ),
        (
            "c.jsonl",
            '{"input": "a", "expcted": {}}\n',
            "c.jsonl:1: expcted: unknown column 'expcted' | did you mean 'expected'?",
        ),
        ("c.jsonl", '{"input": "a", "expected": {"x": NaN}}\n', "c.jsonl:1: not valid JSON: NaN"),
        ("c.jsonl", '{"input": "\\ud800"}\n', "c.jsonl:1: input: text holds half of a surrogate pair"),
        ("c.jsonl", '{"input": ' + "[" * 5_000 + "\n", "c.jsonl:1: nested too deep"),
        ("c.jsonl", '{"input": "' + "x" * 1_000_001 + '"}\n', "1,000,001 characters, at most 1,000,000"),
        ("c.jsonl", '{"input": "a"}\n' * 11, "c.jsonl:11: more than 10 cases"),
        ("c.csv", "input,tag\na,b\n", "c.csv:1: unknown column 'tag' | did you mean 'tags'?"),
        ("c.csv", "input,Expected\na,{}\n", "unknown column 'Expected' | did you mean 'expected'? For a"),
        ("c.csv", "input,weight\na,b\n", "c.csv:2: weight: not valid JSON: Expecting value at column 1"),
        ("c.csv", "input,vars.n,n\na,1,2\n", "c.csv:1: the column n and vars.n are both vars.n"),
        ("c.csv", "input,\na,1\n", "c.csv:1: the column 2 has no name"),
        ("c.csv", "q,input\na,b\n", "c.csv:1: the column input and q are both input"),
        ("c.csv", "q,n\n,b\n", "c.csv:2: q: text must not be blank"),
        ("c.csv", "q,r\na,[\n", "c.csv:2: r: not valid JSON"),
        ("c.csv", "q,r\na,[1]\n", "c.csv:2: r: not an object ([1])"),
        ("c.tsv", "q\tid\na\t1\t2\n", "c.tsv:2: 3 cells, and the header has 2 | quote cells that hold tabs"),
        ("c.tsv", "input,id\na,b\n", "columns are separated by tabs"),
        ("c.tsv", 'q\n"a', "c.tsv:2: not valid TSV"),
        ("c.jsonl", '{"q": "a", "vars": {"n": 1}, "n": 2}\n', "c.jsonl:1: vars: n stands in vars and in a"),
        ("c.json", "{}", "c.json: not a list of cases ({}) | write ["),
        ("c.json", '[\n{"q": "a"},\n"b"]', "c.json:3: not an object ('b')"),
        ("c.json", '{"q": "a"}\n{"q": "b"}\n', "c.json:2: not valid JSON: Extra data"),
        ("c.yaml", "- q: a\n- q: b\n  expcted: {}\n", "c.yaml:2: expcted: unknown column"),
        ("c.yaml", "- q: [a\n", "c.yaml:"),
    ],
)  # fmt: skip - one wrong file, one row
def test_a_wrong_file_of_cases_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, words: str
) -> None:
    """The message names the file, the line on which the row begins, the column, and what is wrong."""
    monkeypatch.setattr(bench_config, "MOST_CASES", 10)
    write(tmp_path, content, name)
    renamed = "columns: {q: input, r: expected}\n" if "q" in content else ""
    found = refusal(write(tmp_path, f"{HEAD}test_cases_file: {name}\n{renamed}"))
    assert words in found, found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "o.jsonl: no outputs in it"),
        ('{"case": 0, "model": "m"}', "o.jsonl:1: output: is missing"),
        (
            '{"case": 9, "model": "m", "output": ""}',
            "o.jsonl:1: case: there is no case 9 | positions go from 0 to 1",
        ),
        (
            '{"case": "frist", "model": "m", "output": ""}',
            "no case has the id 'frist' | did you mean 'first'?",
        ),
        ('{"case": true, "model": "m", "output": ""}', "o.jsonl:1: case"),
        ('{"case": 0, "model": "m", "ouput": ""}', "o.jsonl:1: ouput: unknown key"),
        ('{"case": 0, "model": "m", "output": 5}', "o.jsonl:1: output: not a text (5)"),
        ('{"case": 0, "model": "m", "output": "", "cost_usd": -1}', "o.jsonl:1: cost_usd: -1"),
        (
            '{"case": 0, "model": "m", "output": ""}\n{"case": "first", "model": "m", "output": ""}',
            "o.jsonl:2: another",
        ),
    ],
)  # fmt: skip - one wrong file, one row
def test_a_wrong_file_of_outputs_is_reported(tmp_path: Path, content: str, words: str) -> None:
    """Recorded outputs keep to their contract, and name cases that are there."""
    outputs = write(tmp_path, content, "o.jsonl")
    bench = write(tmp_path, HEAD + "test_cases:\n  - {input: a, id: first}\n  - input: b\n")
    found = refusal(bench, outputs=str(outputs))
    assert words in found, found


def test_a_key_in_place_of_a_variables_name_is_not_shown(tmp_path: Path) -> None:
    """Who writes a key where its variable belongs does not find it in a log afterwards."""
    text = HEAD + CASES + "model_configs: {m: {api_key_env: sk-secret-12}}\n"
    assert "sk-secret" not in refusal(write(tmp_path, text))


@pytest.mark.parametrize("key", ["", "a\nb", "\x1b[31m", "x" * 500])
def test_strange_keys_stay_on_one_line(tmp_path: Path, key: str) -> None:
    """A key of any kind is named without breaking the message, at the top and below."""
    for document in ({**MINIMAL, key: 1}, {**MINIMAL, "config": {key: 1}}):
        assert "unknown key" in refusal(write(tmp_path, json.dumps(document)))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("model_configs: {m: {api_base: 'http://me:geheim-4711@host/v1'}}", "a password in it"),
        (
            "model_configs: {m: {api_base: 'http://host/v1?api_key=geheim-4711'}}",
            "the value of api_key in it",
        ),
        ("model_configs: {m: {api_base: 'htp://me:geheim-4711@host/v1'}}", "not a web address"),
        ("model_configs: {m: {api_base: ['sk-geheim-4711']}}", "not a text"),
        ("model_configs: {m: {api_key_env: geheim-4711}}", "name the variable that holds the key"),
        ("model_configs: {m: {api_key: geheim-4711}}", "unknown key"),
        ("headers: {X-Auth: geheim-4711}", "env:VARIABLE"),
        ("params: {extra_body: {api_key: geheim-4711}}", "env:VARIABLE"),
        ("params: {headers: {X-Team: Bearer geheim-4711}}", "env:VARIABLE"),
        ("judge_params: {stop: sk-geheim-4711}", "must not be stored"),
        ("params: {seed: sk-geheim-4711}", "not a whole number"),
        ("params: sk-geheim-4711", "not an object"),
    ],
)
def test_no_message_repeats_a_secret(tmp_path: Path, written: str, words: str) -> None:
    """Logs of builds keep messages: they have the place of a secret and how to mend it, not the secret."""
    text = refusal(write(tmp_path, f"{HEAD}{CASES}{written}\n"))
    assert words in text
    assert "geheim" not in text
    assert ":6: " in text


def test_a_configuration_of_promptfoo_is_recognised(tmp_path: Path) -> None:
    """One line says what it is and where its keys are translated, in place of a list of ours."""
    text = "description: x\nprompts: [a]\nproviders: [openai:gpt-4o]\ntests: [{vars: {a: 1}}]\n"
    found = refusal(write(tmp_path, text))
    what, _, hint = found.partition(" | ")
    assert what.endswith(": this looks like a promptfoo configuration")
    assert hint == "docs/coming-from.md says what its keys are called in a bench"
