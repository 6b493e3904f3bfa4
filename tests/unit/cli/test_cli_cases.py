"""The commands around a bench: what a dry run tells, which options fit, what `init` writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from producer.cli.main import run
from producer.forecasts.cases import estimated
from producer.service_documents import RunEstimate
from tests.support.benches import CASES, HEAD, plan, write
from tests.support.schemas import hold

PRICED = """
model_configs:
  m: {api_base: "http://localhost:1/v1", prices: {prompt_per_million: 10, completion_per_million: 20}}
  judge: {api_base: "http://localhost:1/v1"}
config: {repeat: 2, judge_model: judge}
"""


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """One case for one model, twice, with a price and a judge."""
    return write(tmp_path, f"{HEAD}test_cases:\n  - {{input: {'x' * 100}, expected: {{a: 1}}}}{PRICED}")


def result_of(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Runs a command: exit code, stdout, stderr."""
    code = run([str(each) for each in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_dry_run_counts_and_estimates(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cases, models and repeats multiply; calls, the judge's at most, and cost are shown; nothing is sent."""
    code, out, _ = result_of(capsys, "run", bench, "--dry-run")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].endswith("1 case × 1 model × 2 repeats = 2 items; nothing was sent")  # noqa: RUF001 - a product
    assert lines[1:] == [
        "mode      standard",
        "models    m",
        "judge     judge, at most 2 calls",
        "calls     2, about 74 tokens of prompts",
        "cost      at most about $0.0009, judge not counted",
    ]


def test_the_document_of_a_dry_run(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` gives one document with the same numbers, for `validate` as well."""
    expected: dict[str, Any] = {
        "kind": "cases",
        "counts": {"total": 4, "cases": 1, "models": 2, "repeat": 2},
        "mode": "standard",
        "models": ["m", "openai/n"],
        "judge_model": None,
        "exit": 0,
    }
    code, out, _ = result_of(
        capsys, "run", "-c", bench, "--dry-run", "--json", "-m", "m", "-m", "openai/n", "--judge", "null"
    )
    found = json.loads(out)
    assert code == 0
    assert {key: found[key] for key in expected} == expected
    assert found["estimate"]["cost_usd"] is None
    assert json.loads(result_of(capsys, "validate", "--config", bench, "--json")[1])["counts"]["total"] == 2


def test_a_recorded_run_asks_nobody(bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With recorded outputs only the judge may be called."""
    write(tmp_path, '{"case": 0, "model": "any", "output": ""}', "o.jsonl")
    assert estimated(plan(bench, outputs=str(tmp_path / "o.jsonl"))) == RunEstimate(0, 2, 0, 0.0)
    code, out, _ = result_of(capsys, "run", bench, "--outputs", tmp_path / "o.jsonl", "--dry-run")
    assert code == 0
    assert out.splitlines()[-1] == "outputs   1 recorded; no model under test is called"


@pytest.mark.parametrize(("cache", "calls"), [("true", 7), ("false", 8)])
def test_steps_of_a_grade_are_counted_once(tmp_path: Path, cache: str, calls: int) -> None:
    """Two checks of two answers, one with steps to be written; with a panel twice, but for the steps."""
    checks = "[{g_eval: Clear., models: [m, judge]}, {factuality: Paris., model: judge}]"
    text = f"{HEAD}default_checks: {checks}\ntest_cases: [{{input: Hi}}]{PRICED}"
    found = plan(write(tmp_path, text.replace("config: {", f"config: {{cache: {cache}, ")))
    assert estimated(found).check_calls == calls


def test_freeform_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bench without criteria says so before it is run; the default judge has nothing to judge."""
    out = result_of(capsys, "validate", write(tmp_path, HEAD.replace("[m]", "[openai/m]") + CASES))[1]
    assert "mode      freeform: outputs are shown, nothing is checked" in out
    assert "judge" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--delay", "3"], "--delay is for queries, and this file describes cases"),
        (["--live", "must"], "--live is for turns, and this file describes cases"),
        (["--config", "other.yaml"], "are named"),
        (["-m", " "], "--model: the name is empty"),
        (["--case", "9"], "--case: no case is called '9'"),
        (["--outputs", "none.jsonl"], "none.jsonl: no such file"),
        (["--api-base", "localhost"], "--api-base: 'localhost' is no URL"),
    ],
)
def test_options_that_do_not_fit(
    bench: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    """An option of another kind, or with a value that is none, is a usage error."""
    code, _, err = result_of(capsys, "run", bench, "--dry-run", *arguments)
    assert code == 2
    assert words in err


def test_options_of_cases_are_refused_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Turns and queries have no recorded outputs, no judge and no validators."""
    turns = write(tmp_path, '{"threadId": "t", "message": "ok"}\n', "turns.jsonl")
    code, _, err = result_of(capsys, "run", turns, "--dry-run", "--judge", "x")
    assert code == 2
    assert "--judge is for cases, and this file describes turns" in err


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["bench.config.yaml", "validators.py"]),
        (["--kind", "prompts"], ["prompts.yaml"]),
        (["--kind", "table"], ["table.yaml", "countries.csv"]),
        (["--kind", "http"], ["http.yaml"]),
        (["--kind", "freeform"], ["freeform.yaml"]),
        (["--kind", "queries"], ["baselines.json"]),
        (["--kind", "turns"], ["turns.jsonl"]),
    ],
)
def test_init_writes_what_an_example_needs(
    words: list[str], names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cases unless another kind is named, and no file that the example does not use; each is valid."""
    code, out, _ = result_of(capsys, "init", tmp_path / "new", *words)
    assert code == 0
    assert [Path(line).name for line in out.splitlines()] == names
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(names)
    assert result_of(capsys, "validate", tmp_path / "new" / names[0])[0] == 0
    again = result_of(capsys, "init", tmp_path / "new", *words)
    assert again[0] == 2
    assert "exists already" in again[2]


def test_init_names_the_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`-o` names the file to run, also in its own comments; what it needs goes beside it, and is named."""
    code, out, err = result_of(capsys, "init", "--kind", "cases", "-o", tmp_path / "sub" / "mine.yaml")
    assert code == 0
    assert [Path(line).name for line in out.splitlines()] == ["mine.yaml", "validators.py"]
    assert "mine.yaml needs validators.py" in err
    text = (tmp_path / "sub" / "mine.yaml").read_text(encoding="utf-8")
    assert "`proctor run mine.yaml`" in text
    assert "bench.config.yaml" not in text


def test_init_keeps_a_file_of_the_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An existing validators.py stays as it is, also with `--force`; the bench uses one of its own name."""
    (tmp_path / "validators.py").write_text("MINE = 1\n", encoding="utf-8")
    for more in ([], ["--force"]):
        code, _, err = result_of(capsys, "init", "--kind", "cases", "-o", tmp_path / "mine.yaml", *more)
        assert code == 0, err
        assert "mine.yaml needs mine_validators.py" in err
    assert (tmp_path / "validators.py").read_text(encoding="utf-8") == "MINE = 1\n"
    assert result_of(capsys, "validate", tmp_path / "mine.yaml")[0] == 0


def test_init_shares_a_file_that_it_wrote_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second bench beside the first one uses the same validators.py, which is not written again."""
    result_of(capsys, "init", "--kind", "cases", "-o", tmp_path / "one.yaml")
    code, out, err = result_of(capsys, "init", "--kind", "cases", "-o", tmp_path / "two.yaml")
    assert (code, out.split()) == (0, [str(tmp_path / "two.yaml")])
    assert "two.yaml needs validators.py" in err


def test_models_of_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each model and judge with its provider, endpoint, key and price; no key is ever printed."""
    monkeypatch.setenv("MY_API_KEY", "kept-for-me")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = write(
        tmp_path,
        """
name: n
system_prompt: s
models: [openai/gpt-4o, mine]
model_configs:
  mine:
    api_base: "http://localhost:1/v1"
    api_key_env: MY_API_KEY
    prices: {prompt_per_million: 1, completion_per_million: 2}
config: {judge_model: nobody/knows}
test_cases: [{input: Hi}]
""",
    )
    code, out, _ = result_of(capsys, "models", path, "--json")
    found = hold("models", out)["models"]
    assert code == 0
    assert [(each["model"], each["role"], each["provider"]) for each in found] == [
        ("openai/gpt-4o", "model", "openai"),
        ("mine", "model", None),
        ("nobody/knows", "judge", "nobody"),
    ]
    assert [(each["api_base"], each["api_key_env"], each["key_present"]) for each in found] == [
        (None, "OPENAI_API_KEY", False),
        ("http://localhost:1/v1", "MY_API_KEY", True),
        (None, None, None),
    ]
    assert found[0]["price"]["completion_per_million"] > 0
    assert found[1]["price"] == {"prompt_per_million": 1, "completion_per_million": 2}
    assert found[2]["price"] is None
    lines = result_of(capsys, "models", "--config", path, "-p", "openai")[1].splitlines()
    assert [line.split("  ")[0] for line in lines] == ["MODEL", "openai/gpt-4o"]
    assert "OPENAI_API_KEY not set" in lines[1]
    assert "kept-for-me" not in out
    assert result_of(capsys, "models")[0] == 2
