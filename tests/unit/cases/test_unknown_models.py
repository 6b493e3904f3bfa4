"""Models that nobody serves are refused by `validate` and before a run, with the place and how to mend it."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from producer.cases.ranking_run import comparison_of
from producer.cli.main import run
from producer.cli.options.choices import read_live_run
from producer.cli.options.run_options import ModelOptions
from shared.contracts.case_run import SNAPSHOT_KEY, CaseRun
from shared.errors import UsageError
from shared.kinds import CASES
from tests.support.benches import write
from tests.support.run_infos import info

OWN_API = "for an API of your own, give --api-base URL or set its api_base in model_configs"
BENCH = """name: b
system_prompt: Answer.
models: [nosuch, openai/gpt-99, opnai/gpt-4o]
config:
  judge_model: jdge
  embedding_model: openai/e
default_checks:
  - {similar: Paris, model: simil, at_least: 0.5}
test_cases:
  - input: Hi
    expected: {a: 1}
    checks:
      - any: [{rubric: Is kind., model: claude-99, at_least: 1}, {contains: x}]
"""


def result_of(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, list[str]]:
    """Runs a command: exit code, stdout, lines of stderr."""
    code = run([str(each) for each in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.splitlines()


def test_each_model_without_a_provider_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate` names models, judges and models of checks with line, place and what is probably meant."""
    code, out, lines = result_of(capsys, "validate", write(tmp_path, BENCH))
    assert (code, out) == (2, "")
    lines = [line.replace(f"{tmp_path}/bench.config.yaml", "b") for line in lines]
    assert lines[0] == "error: 5 problems"
    assert lines[1] == (
        "b:3: models[0]: no provider is known for 'nosuch'; write the provider first, e.g. openai/nosuch; "
        + OWN_API
    )
    assert lines[2].startswith(
        "b:3: models[2]: no provider is known for 'opnai/gpt-4o'; did you mean 'openai/"
    )
    assert lines[3].startswith("b:5: config.judge_model: no provider is known for 'jdge'; write the provider")
    assert lines[4].startswith("b:8: default_checks[0].model: no provider is known for 'simil'")
    assert lines[5].startswith(
        "b:13: test_cases[0].checks[0].any[0].model: no provider is known for 'claude-99'; did you mean"
    )
    assert "--api-base" not in "".join(lines[3:])


@pytest.mark.parametrize("command", ["run", "submit"])
def test_nothing_is_sent_to_a_model_that_nobody_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """An option is named with its value, before Redis is used and before a price is printed."""
    monkeypatch.setenv("PROCTOR_REDIS_URL", "redis://127.0.0.1:1/0")
    text = "name: b\nsystem_prompt: s\nmodels: [openai/o]\ntest_cases: [{input: Hi}]\n"
    code, out, lines = result_of(capsys, command, write(tmp_path, text), "-m", "nosuch")
    assert (code, out) == (2, "")
    assert lines == [
        "error: --model: no provider is known for 'nosuch'",
        f"hint: write the provider first, e.g. openai/nosuch; {OWN_API}",
    ]


def test_models_with_an_api_of_their_own_may_have_any_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--api-base` names the API of the models under test, a file those of all; recorded ones need none."""
    text = "name: b\nsystem_prompt: s\nmodels: [mine]\ntest_cases: [{input: Hi, id: a}]\n"
    bench = write(tmp_path, text)
    assert result_of(capsys, "validate", bench)[0] == 2
    assert result_of(capsys, "validate", bench, "--api-base", "http://localhost:1/v1")[0] == 0
    outputs = write(tmp_path, '{"case": "a", "model": "mine", "output": "Ho"}\n', "o.jsonl")
    assert result_of(capsys, "validate", bench, "--outputs", outputs)[0] == 0
    place = "model_configs: {mine: {api_base: 'http://localhost:1/v1'}}\n"
    assert result_of(capsys, "validate", write(tmp_path, text + place))[0] == 0


def test_a_judge_that_is_not_needed_may_have_any_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Judges are called for cases with an expected object only."""
    text = "name: b\nsystem_prompt: s\nmodels: [openai/o]\njudge_model: j\ntest_cases:\n- {input: Hi%s}\n"
    assert result_of(capsys, "validate", write(tmp_path, text % ""))[0] == 0
    assert result_of(capsys, "validate", write(tmp_path, text % ", expected: {a: 1}"))[0] == 2


def test_a_model_for_turns_needs_a_provider() -> None:
    """Live turns are refused before anything is connected."""
    with pytest.raises(UsageError, match="--model: no provider is known for 'nosuch'"):
        read_live_run(ModelOptions(models=("nosuch",)))


def test_a_judge_of_a_ranking_needs_a_provider() -> None:
    """The option is named, or the run whose bench names the judge."""
    settings = CaseRun("b", "s", pairwise={"model": "j", "criterion": "Is brief."})
    found = replace(info(), run="r1", kind=CASES, snapshot={SNAPSHOT_KEY: msgspec.to_builtins(settings)})
    with pytest.raises(UsageError, match=r"pairwise\.model of r1: no provider is known for 'j'"):
        comparison_of(found, None, None)
    with pytest.raises(UsageError, match="--model: no provider is known for 'k'"):
        comparison_of(found, "k", None)
    assert comparison_of(found, "openai/k", None).model == "openai/k"
