"""Before anything is sent: every problem of a file, what it costs, missing variables, places of reports."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from producer.access import Access
from producer.cli.main import run
from producer.forecasts import Forecast
from producer.forecasts.cases import forecast
from producer.load.source import Source
from producer.options import SubmitOptions
from tests.support.benches import HEAD, write

BROKEN = """name: bench
system_prompt: Answer.
models: [m]
schema: nope.json
validators_file: v.py
prompts: [{id: p, user: "{{ input }}"}, {id: p, user: "{{ input"}]
default_checks: [{contians: x}]
test_cases:
  - {input: Hi, id: a, expceted: 1}
  - {input: 5}
  - {input: Ho, id: b, validator: is_x}
  - {input: Ho, id: b, validator: is_y}
  - {input: Hu, checks: [{regex: "("}, {similar: Hu, at_least: 0.5}]}
"""


def result_of(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Runs a command: exit code, stdout, stderr."""
    code = run([str(each) for each in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_validate_lists_every_problem_of_a_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys, values, ids, prompts, functions, schema and checks: one line each, with how to fix it."""
    write(tmp_path, "def is_x(output):\n    return True\n", "v.py")
    code, out, err = result_of(capsys, "validate", write(tmp_path, BROKEN))
    assert (code, out) == (2, "")
    lines = err.replace(f"{tmp_path}/bench.config.yaml", "b").splitlines()
    assert lines[0].endswith("error: 12 problems"), err
    for words in (
        "b:9: test_cases[0].expceted (case 'a'): unknown key; did you mean 'expected'?",
        'b:10: test_cases[1].input: not a text (5); quote it: "5"',
        "'p' is the id of another prompt",
        "not a template",
        "b:12: id: 'b' is the id of another case, at b:11; give each case its own id",
        "the validators file has no function 'is_y'; did you mean 'is_x'?",
        "b:4: schema: no such file: 'nope.json'",
        "unknown check 'contians' (and 2 more); did you mean 'contains'?",
        "b:13: test_cases[4].checks[0]",
        "b:13: test_cases[4].checks[1]: similar asks a model, and none is named",
    ):
        assert any(words in line for line in lines), (words, err)


def test_a_run_names_the_first_problem_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`run` ends at the first problem, with its hint, and says how many more that place has."""
    code, _, err = result_of(capsys, "run", write(tmp_path, HEAD + "test_cases: [{input: 5, idd: 1}]\n"))
    assert code == 2
    assert "test_cases[0].idd: unknown key (and 1 more problem)" in err
    assert "hint: did you mean 'id'?" in err


def test_equal_problems_share_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of turns and queries too: the first in full, of the others the lines."""
    bad = '{"threadId": "t", "message": "x", "role": "bot"}\n'
    turns = write(tmp_path, bad + '{"threadId": "t", "message": "ok"}\n' + bad * 5 + "x\n", "turns.jsonl")
    err = result_of(capsys, "validate", turns)[2]
    assert "error: 7 problems\n" in err
    assert f"{turns}:1: role: unknown value 'bot' (and 5 more: lines 3, 4, 5, …); one of: " in err
    assert f"{turns}:8: not a JSON object" in err
    query = '{"id": "Q-%d", "qury": "x", "category": "sla", "is_oos": false, "expected_docs": [], %s}\n'
    lists = '"must_contain": [], "must_not_contain": []'
    queries = write(tmp_path, "".join(query % (at, lists) for at in (1, 2, 2)) + "{\n", "queries.jsonl")
    err = result_of(capsys, "validate", queries)[2]
    assert f"{queries}:1 (Q-1): query: is missing (and 2 more: lines 2, 3); this key is required" in err
    assert f"{queries}:4: not valid JSON" in err


def test_recorded_outputs_are_checked_to_their_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line of recorded outputs that is wrong is listed by a dry run."""
    bench = write(tmp_path, HEAD + "test_cases: [{input: Hi, id: a}]\n")
    lines = '{"case": "a", "model": "m"}\nx\n{"case": "b", "model": "m", "output": ""}\n'
    err = result_of(capsys, "run", bench, "--dry-run", "--outputs", write(tmp_path, lines, "o.jsonl"))[2]
    assert "error: 3 problems" in err
    assert [line.split(":")[1] for line in err.splitlines() if "o.jsonl:" in line] == ["1", "2", "3"]


def test_a_dry_run_prices_judges_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What judges and checks cost at most stands beside the models; a price that is not known is named."""
    place = "{api_base: 'http://localhost:1/v1'}"
    prices = f"{place[:-1]}, prices: {{prompt_per_million: 1000, completion_per_million: 2000}}}}"
    bench = write(
        tmp_path,
        f"{HEAD}model_configs: {{m: {prices}, j: {prices}, e: {prices}, r: {place}}}\n"
        "config: {judge_model: j}\n"
        "test_cases: [{input: Hi, expected: {a: 1}, "
        "checks: [{similar: Ho, model: e, at_least: 0.5}, {rubric: kind, model: r, at_least: 1}]}]\n",
    )
    out = result_of(capsys, "run", bench, "--dry-run")[1]
    assert out.splitlines()[-1].startswith("cost      at most about $0.01"), out
    assert "judge at most $0.1" in out
    assert "checks not counted" in out
    estimate = json.loads(result_of(capsys, "run", bench, "--dry-run", "--json")[1])["estimate"]
    assert estimate["judge_cost_usd"] > 0
    assert estimate["check_cost_usd"] is None
    out = result_of(capsys, "run", bench, "--dry-run", "--price", "1/1")[1]
    assert "checks not counted" in out


def test_a_dry_run_knows_the_tier_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Models by `params`, judges and rubrics by `judge_params`; embeddings have no tier."""
    prices = "{prompt_per_million: 1000, completion_per_million: 2000, flex_factor: 0.5}"
    config = f"{{api_base: 'http://localhost:1/v1', prices: {prices}}}"
    flex = "{service_tier: flex}"
    costs = []
    for more in ("", f"params: {flex}\n", f"judge_params: {flex}\n"):
        bench = write(
            tmp_path,
            f"{HEAD}model_configs: {{m: {config}, j: {config}}}\nconfig: {{judge_model: j}}\n{more}"
            "test_cases: [{input: Hi, expected: {a: 1}, checks: [{rubric: kind}]}]\n",
        )
        estimate = json.loads(result_of(capsys, "run", bench, "--dry-run", "--json")[1])["estimate"]
        costs.append([estimate[f"{whose}cost_usd"] for whose in ("", "judge_", "check_")])
    usual, model, judges = costs
    assert model == pytest.approx([usual[0] / 2, *usual[1:]])
    assert judges == pytest.approx([usual[0], usual[1] / 2, usual[2] / 2])


def test_variables_that_calls_will_lack_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that are not set here, and variables that workers do not send; each once, with who needs it."""
    for name in ("OPENAI_API_KEY", "PROCTOR_KEY_VARIABLES", "MY_SECRET"):
        monkeypatch.delenv(name, raising=False)
    bench = write(
        tmp_path,
        "name: n\nsystem_prompt: s\nmodels: [openai/gpt-4o, openai/o3, ollama/mine]\n"
        'model_configs: {ollama/mine: {headers: {X-Secret: "env:MY_SECRET"}}}\n'
        'test_cases: [{input: "Hi {{ you }}"}]\n',
    )
    err = result_of(capsys, "run", bench, "--dry-run")[2]
    assert "OPENAI_API_KEY is not set here: calls of openai/gpt-4o, openai/o3 fail unless" in err
    assert "calls of ollama/mine fail unless the workers may send it: MY_SECRET is not sent by workers" in err
    assert "{{ }} is sent as it is: only prompts are templates" in err
    monkeypatch.setenv("OPENAI_API_KEY", "kept-for-me")
    monkeypatch.setenv("MY_SECRET", "kept-too")
    monkeypatch.setenv("PROCTOR_KEY_VARIABLES", "MY_SECRET")
    err = result_of(capsys, "run", bench, "--dry-run")[2]
    assert "OPENAI_API_KEY" not in err
    assert "MY_SECRET" not in err
    assert "kept" not in err


def test_a_missing_key_ends_a_command_that_starts_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2 before anything is sent, with the line to type and the way to sample models."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(Access, "count_workers", lambda *_: 0)
    bench = write(tmp_path, HEAD.replace("[m]", "[openai/gpt-4o]") + "test_cases: [{input: Hi}]\n")
    code, out, err = result_of(capsys, "run", bench)
    assert (code, out) == (2, "")
    error, hint = err.splitlines()
    assert error == "error: OPENAI_API_KEY is not set: calls of openai/gpt-4o would fail"
    sample = "--api-base http://localhost:3000/v1 after `proctor sample-api`, for sample models"
    assert hint == f"hint: export OPENAI_API_KEY=…, or {sample}"


@pytest.mark.parametrize(
    ("rest", "option"),
    [
        ("config: {judge_model: openai/judge}\ntest_cases: [{input: Hi, expected: {a: 1}}]\n", ()),
        ("test_cases: [{input: Hi, expected: {a: 1}}]\n", ("--judge", "openai/judge")),
        ("test_cases: [{input: Hi, checks: [{rubric: Polite., model: openai/judge}]}]\n", ()),
        ("test_cases: [{input: Hi, checks: [{similar: Ho, at_least: 0.5, model: openai/judge}]}]\n", ()),
    ],
    ids=["judge of the bench", "judge of the command line", "rubric", "similar"],
)
def test_a_missing_key_of_a_judge_or_a_check_ends_a_command_that_starts_workers(
    rest: str,
    option: Sequence[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit 2 before the models under test are paid for answers without a verdict."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(Access, "count_workers", lambda *_: 0)
    own = "model_configs: {m: {api_base: 'http://localhost:1/v1'}}\n"
    bench = write(tmp_path, f"{HEAD}{own}{rest}")
    code, out, err = result_of(capsys, "run", bench, *option)
    assert (code, out) == (2, "")
    error, hint = err.splitlines()
    assert error == "error: OPENAI_API_KEY is not set: calls of openai/judge would fail"
    assert hint.startswith("hint: export OPENAI_API_KEY=…, or set the api_base of each in model_configs")


def test_the_judge_that_nobody_named_is_not_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that equal what was expected need no judge: its missing key is a warning."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    own = "model_configs: {m: {api_base: 'http://localhost:1/v1'}}\n"
    bench = write(tmp_path, f"{HEAD}{own}test_cases: [{{input: Hi, expected: {{a: 1}}}}]\n")
    found = forecast(Source(bench), SubmitOptions())
    assert found.missing is None
    assert "OPENAI_API_KEY is not set here: calls of gpt-3.5-turbo fail" in found.warnings[0]


def test_a_name_near_that_of_a_model_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its place and the listed name; newer versions, own servers and listed models are not."""
    monkeypatch.setenv("OPENAI_API_KEY", "kept-for-me")
    models = "[openai/gpt-4o-minni, openai/gpt-4o, openai/gpt-99, ollama/llama33]"
    bench = write(tmp_path, f"name: n\nsystem_prompt: s\nmodels: {models}\ntest_cases: [{{input: Hi}}]\n")
    err = result_of(capsys, "validate", bench)[2]
    where = f"{bench}:3: models[0]: "
    assert err == (
        f"warning: {where}'openai/gpt-4o-minni' is in no list of models; did you mean 'openai/gpt-4o-mini'?\n"
    )


def test_limits_of_answers_bound_the_forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cost is "at most about"; it assumes `max_tokens` where that is set, and says what it assumes else."""
    place = (
        "{api_base: 'http://localhost:1/v1', prices: {prompt_per_million: 0, completion_per_million: 1000}"
    )
    text = f"{HEAD}model_configs: {{m: {place}PARAMS}}}}\ntest_cases: [{{input: Hi}}, {{input: Ho}}]\n"
    costs = [
        result_of(capsys, "run", write(tmp_path, text.replace("PARAMS", params)), "--dry-run")[
            1
        ].splitlines()[-1]
        for params in ("", ", params: {max_tokens: 10}")
    ]
    assert costs == [
        "cost      at most about $0.51, assuming 256 tokens an answer",
        "cost      at most about $0.02",
    ]


def test_variables_of_requests_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headers and the bearer token of queries, and template marks in their texts, before Redis is used."""
    monkeypatch.setenv("PROCTOR_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("PROCTOR_CONNECT_PATIENCE_S", "0.1")
    query = '{"id": "Q-1", "query": "{{ x }}", "category": "sla", "is_oos": false, "expected_docs": [], '
    file = write(tmp_path, query + '"must_contain": [], "must_not_contain": []}\n', "q.jsonl")
    options = ["--header", "X-Tenant=a-$TENANT", "--bearer-env", "MY_BEARER_TOKEN"]
    code, _, err = result_of(capsys, "run", file, *options)
    assert code == 3
    assert "requests fail unless the workers may send it: TENANT is not sent by workers" in err
    assert "MY_BEARER_TOKEN is not set here: requests fail unless the workers have it" in err
    assert "Q-1: {{ }} is sent as it is: queries are no templates" in err
    assert f"{file}: 1 request (1 query to http://localhost:3000)\n" in err


def test_a_report_that_cannot_be_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A place beside which nothing can be written is refused before the run, whatever its own rights are."""
    bench = write(tmp_path, HEAD + "test_cases: [{input: Hi}]\n")
    code, _, err = result_of(capsys, "run", bench, "-o", Path("/proc/self/report.md"))
    assert code == 2
    assert "/proc/self/report.md: cannot be written: " in err
    code, _, err = result_of(capsys, "run", bench, "-o", tmp_path / f"{'x' * 250}.md")
    assert code == 2
    assert "File name too long" in err


def test_a_forecast_in_words() -> None:
    """Calls with what they are made of, what comes on top, and the cost as far as it is known."""
    found = Forecast(8, "4 cases", more={"judges": 2, "checks": 0}, cost_usd=0.02, unpriced=["checks"])
    assert (
        str(found)
        == "8 calls (4 cases), at most 2 calls by judges, at most about $0.02, checks of unknown price"
    )
    assert found.total == 10
