"""What the documents show is what is taken: our examples, and every block of the validation document.

The document is beside the checkout where the project is built, and not in the wheel; where it is missing, the
same is asked of our own examples, so that nothing is skipped.
"""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import BaseModel

from producer.cases.bench_config import validator_names
from producer.cases.bench_files import TextFile, check_validators
from producer.cases.recorded import OutputRow
from shared.contracts.case_config import BenchConfig, CaseEntry, ModelConfig, Price, RunSettings
from shared.contracts.case_vocabulary import STAGE_TABLE
from shared.contracts.cases import CRITERIA
from shared.errors import ProctorError
from tests.support.benches import MINIMAL, plan, write
from tests.support.tree import ROOT
from worker.validation.policy import check_validator_source

DOCUMENT: Final = ROOT.parent / "shared" / "spec" / "evaluation_and_validation.md"
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES: Final = ROOT / "examples"
OURS: Final = [("yaml", (EXAMPLES / name).read_text()) for name in ("bench.config.yaml", "freeform.yaml")]
OURS.append(("python", (EXAMPLES / "validators.py").read_text()))
THEIRS: Final = BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")) if DOCUMENT.is_file() else []
BLOCKS: Final = [*OURS, *THEIRS]
YAMLS: Final = [text for language, text in BLOCKS if language == "yaml"]
PYTHONS: Final = [text for language, text in BLOCKS if language == "python"]
REFUSED: Final = "# This will be rejected"
NAMES: Final = {"is_valid_python", "contains_sql_keywords", "has_minimum_length"}


def whole(fragment: dict[str, Any]) -> dict[str, Any]:
    """A block as a configuration: what it leaves out is filled in, and it keeps what it says."""
    filled = {**MINIMAL, "test_cases": [{"input": "Hi"}], **fragment}
    if any("validator" in case for case in filled["test_cases"]):
        filled.setdefault("validators_file", "validators.py")
    return filled


@pytest.mark.parametrize("validators", [text for text in PYTHONS if REFUSED not in text])
@pytest.mark.parametrize("text", YAMLS)
def test_every_block_of_yaml_loads(tmp_path: Path, text: str, validators: str) -> None:
    """Fragments, merged into a minimal configuration, mean what they say."""
    write(tmp_path, validators, "validators.py")
    fragment = yaml.safe_load(text)
    path = write(tmp_path, yaml.safe_dump(whole(fragment), allow_unicode=True))
    found = plan(path)
    assert [case.input for case in found.bench.cases] == [
        case["input"] for case in whole(fragment)["test_cases"]
    ]
    assert list(found.run.models) == whole(fragment)["models"]
    if "judge_model" in fragment.get("config", {}):
        assert found.run.judge_model == fragment["config"]["judge_model"]
    if "models" in fragment and "test_cases" in fragment:  # a whole file loads as it stands
        assert list(plan(write(tmp_path, text)).items()) == list(found.items())


@pytest.mark.parametrize("text", [text for text in PYTHONS if REFUSED not in text])
def test_the_validators_are_taken_under_their_names(text: str) -> None:
    """Functions are what their file defines; imports are none."""
    check_validators(TextFile("validators.py", text))
    assert validator_names(text) >= NAMES
    assert not {"ast", "re"} & validator_names(text)


@pytest.mark.parametrize("text", [text for text in PYTHONS if REFUSED in text] or ["import os\n"])
def test_what_the_document_refuses_is_refused(tmp_path: Path, text: str) -> None:
    """Blocked imports and calls are reported at submit, and nothing of the file is executed."""
    write(tmp_path, f"{text}\nopen({str(tmp_path / 'trace')!r}, 'w')\n", "validators.py")
    path = write(tmp_path, yaml.safe_dump(whole({"validators_file": "validators.py"})))
    with pytest.raises(ProctorError) as caught:
        plan(path)
    assert type(caught.value).__name__ == "ValidatorSecurityError"
    assert caught.value.exit_code == 2
    assert not (tmp_path / "trace").exists()


def test_unknown_validators_are_reported(tmp_path: Path) -> None:
    """A name that no function has is a configuration error with the nearest one."""
    write(tmp_path, (EXAMPLES / "validators.py").read_text(), "validators.py")
    bench = whole({"test_cases": [{"input": "a", "validator": "is_valid_pyton"}]})
    with pytest.raises(ProctorError, match="has no function 'is_valid_pyton'") as caught:
        plan(write(tmp_path, yaml.safe_dump(bench)))
    assert caught.value.hint == "did you mean 'is_valid_python'?"


def test_validators_of_the_command_line(tmp_path: Path) -> None:
    """A path counts from the configuration's folder, else from the current one, and stays inside it."""
    validators = write(tmp_path, "def f(text):\n    return True\n", "other.py")
    bench = write(tmp_path, yaml.safe_dump(whole({"test_cases": [{"input": "a", "validator": "f"}]})))
    source = validators.read_text()
    for name in ("other.py", str(validators)):
        found = plan(bench, validators_file=name).run.validators
        assert found is not None
        assert found.source == source
    with pytest.raises(ProctorError, match="leads out of the folder"):
        plan(bench, validators_file=str(EXAMPLES / "validators.py"))


@pytest.mark.parametrize("model", [BenchConfig, RunSettings, CaseEntry, ModelConfig, Price, OutputRow])
def test_every_key_is_documented(model: type[BaseModel]) -> None:
    """docs/bench.md names each key of the contract; its YAML is good and its defaults are right."""
    text = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    keys = {field.alias or name: field for name, field in model.model_fields.items()}
    assert {key for key in keys if f"`{key}`" not in text and f"{key}:" not in text} == set()
    for name, field in RunSettings.model_fields.items():
        default = {"temperature": "0.1", "max_cost": "none"}.get(
            name, str(field.default).lower().removesuffix(".0")
        )
        assert f"| `{name}` | {default} |" in text
    for language, block in BLOCK.findall(text):
        if language == "yaml":
            BenchConfig.model_validate(whole(yaml.safe_load(block)))
        elif language == "python":
            check_validator_source(block)
        else:
            assert language in {"console", "csv"}  # run, or read, by tests/e2e/test_docs_commands.py


def test_every_stage_is_documented() -> None:
    """docs/bench.md lists the stages in their order, each with number, name, keys and status on failure."""
    text = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([0-9.]+) \| `(\w+)` \| (.*?) \|.*\| `(\w+)` \|$", text, re.MULTILINE)
    assert [(number, stage, failure) for number, stage, _, failure in rows] == [
        (row.number, stage.value, row.failure.value) for stage, row in STAGE_TABLE.items()
    ]
    keys = [key for row in STAGE_TABLE.values() for key in row.keys]
    assert set(keys) <= {*CRITERIA, "schema"}
    for (_, stage, needs, _), row in zip(rows, STAGE_TABLE.values(), strict=True):
        assert all(key in needs for key in row.keys), stage
