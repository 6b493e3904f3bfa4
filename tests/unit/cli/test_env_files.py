"""Files of environment variables: which one is read, what wins, and what a file must not set."""

import json
import os
import sys
from pathlib import Path
from subprocess import run as call
from typing import Final

import pytest

from producer.cli.main import run
from producer.env_files import load
from shared.errors import InputError
from tests.support.benches import HEAD, write
from tests.support.tree import ROOT

KEYS: Final = ("OPENAI_API_KEY", "HF_TOKEN", "COPILOT_API_KEY", "TOGETHER_AI_TOKEN", "MY_LOGIN")
"""The last one because the environment lists it."""
NOT_KEYS: Final = (
    *("OPENSSL_CONF", "OPENSSL_MODULES", "SSL_CERT_FILE", "SSLKEYLOGFILE", "REQUESTS_CA_BUNDLE"),
    *("OPENAI_API_BASE", "OPENAI_BASE_URL", "ANTHROPIC_API_BASE", "AZURE_API_VERSION", "LOCAL_BASE_URL"),
    *(
        "PROCTOR_REDIS_URL",
        "PROCTOR_BROKER_URL",
        "PROCTOR_DATA_DIR",
        "PROCTOR_KEY_VARIABLES",
        "PROCTOR_X_TOKEN",
    ),
    *("PROCTOR_KINDS", "PROCTOR_UNSAFE_VALIDATORS", "PROCTOR_TRUST_ENV", "PROCTOR_REDIS_URL_FILE"),
    *(
        "PATH",
        "PYTHONPATH",
        "LD_PRELOAD",
        "HOME",
        "TMPDIR",
        "XDG_DATA_HOME",
        "GIT_TRACE",
        "GIT_CONFIG_GLOBAL",
    ),
    *(
        "CELERY_LOADER",
        "FLOWER_CONF",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "HTTPS_PROXY",
        "AWS_PROFILE",
        "DATABASE_URL",
    ),
)


def loaded(words: str, environment: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Loads for a command line: the environment after it, and the warnings."""
    warnings = list[str]()
    load(words.split(), environment, warn=warnings.append)
    return environment, warnings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of each test, below one with a file that nobody reads."""
    (tmp_path / ".env").write_text("ABOVE_API_KEY=1\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    return inside


def test_the_environment_goes_before_the_file(folder: Path) -> None:
    """`.env` of the working directory fills in keys that are missing; no other folder is searched."""
    assert loaded("run", {"A_TOKEN": "kept"}) == ({"A_TOKEN": "kept"}, [])
    (folder / ".env").write_text("A_TOKEN=1\nexport B_TOKEN='two words'\nC_TOKEN=$A${A} # note\n")
    found = {"A_TOKEN": "kept", "B_TOKEN": "two words", "C_TOKEN": "$A${A}"}
    assert loaded("run", {"A_TOKEN": "kept"}) == (found, [])


def test_another_file_or_none(folder: Path) -> None:
    """`--env-file`, else the setting, names another file, or none; then `.env` is not read."""
    (folder / ".env").write_text("A_TOKEN=1\nPLAIN=1\n")
    (folder / "more").write_text("B=2\n")
    assert loaded("run --env-file more x", {"B": "kept"}) == ({"B": "kept"}, [])
    assert loaded("--env-file=more run", {}) == ({"B": "2"}, [])
    assert loaded("--env-file=none run", {}) == ({}, [])
    assert loaded("run", {"PROCTOR_ENV_FILE": "none"}) == ({"PROCTOR_ENV_FILE": "none"}, [])
    assert loaded("run", {"PROCTOR_ENV_FILE": "more"})[0]["B"] == "2"
    assert loaded("run --env-file .env", {"PROCTOR_ENV_FILE": "more"})[0]["PLAIN"] == "1"
    for wrong in ("nowhere", "."):
        with pytest.raises(InputError, match="cannot be read"):
            loaded(f"run --env-file {wrong}", {})


def test_a_broken_line_is_skipped_with_its_number(folder: Path) -> None:
    """Of `.env` the good lines are used and the broken ones named, not shown; a named file is refused."""
    (folder / ".env").write_text("A_TOKEN=1\nsk-secret\n\nB-C=2\nD_TOKEN=4\n")
    found = {"A_TOKEN": "1", "D_TOKEN": "4"}
    assert loaded("run", {}) == (found, [".env: lines 2, 4: not NAME=VALUE, skipped"])
    with pytest.raises(InputError, match=r"^\.env:2: not NAME=VALUE$"):
        loaded("run --env-file .env", {})
    (folder / ".env").write_bytes(b"\xff\xfe")
    assert loaded("run", {}) == ({}, [".env: cannot be read: it is not UTF-8 text; it is not used"])


def test_a_folder_supplies_keys_alone(folder: Path) -> None:
    """Of `.env` only variables count that keys and headers may name; the command says what it left out."""
    (folder / ".env").write_text("".join(f"{name}=x\n" for name in (*KEYS, *NOT_KEYS)))
    found, warnings = loaded("run", {"PROCTOR_KINDS": "mine", "PROCTOR_KEY_VARIABLES": "MY_LOGIN"})
    assert found.keys() == {*KEYS, "PROCTOR_KINDS", "PROCTOR_KEY_VARIABLES"}
    assert found["PROCTOR_KINDS"] == "mine"
    [warning] = warnings
    assert warning.startswith(".env supplies only keys, ANTHROPIC_API_BASE, AWS_PROFILE, AZURE_API_VERSION, ")
    assert warning.endswith(" is ignored: write --env-file .env to take all of it")
    assert "PROCTOR_REDIS_URL" in warning
    assert not {"PROCTOR_KINDS", "OPENSSL_CONF", "DATABASE_URL"} & set(warning.replace(",", "").split())


def test_a_named_file_supplies_everything(folder: Path) -> None:
    """A person who names the file may set servers, addresses and guards in it."""
    (folder / ".env").write_text("".join(f"{name}=x\n" for name in (*KEYS, *NOT_KEYS)))
    assert loaded("run --env-file .env", {})[0].keys() == {*KEYS, *NOT_KEYS}


def test_commands_read_it(folder: Path) -> None:
    """`config show` names a named file; `models` finds a key in `.env` and shows nothing of its value."""
    (folder / ".env").write_text("PROCTOR_GRACE_S=7\nOPENAI_API_KEY=sk-kept-for-me\n")
    bench = write(folder, f"{HEAD.replace('[m]', '[openai/gpt-4o]')}test_cases: [{{input: Hi}}]\n")
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    environment = {**environment, "PYTHONPATH": str(ROOT)}

    def stdout_of(*words: str, module: str = "producer") -> str:
        """Stdout of a command in a process of its own."""
        command = [sys.executable, "-P", "-m", module, *words]
        done = call(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
        assert "kept" not in done.stdout + done.stderr
        return done.stdout

    def grace(*words: str) -> tuple[float, str]:
        """A setting and its origin."""
        rows = json.loads(stdout_of("config", "--json", *words))["settings"]
        return next((row["value"], row["origin"]) for row in rows if row["name"] == "grace_s")

    assert grace("--env-file", ".env") == (7.0, ".env")
    assert grace() == (25.0, "default")
    assert json.loads(stdout_of("models", str(bench), "--json"))["models"][0]["key_present"]
    assert json.loads(stdout_of("models", "--json", module="producer.bench"))["models"][0]["key_present"]


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """A named file that cannot be read ends the command before anything else, as any error of usage."""
    assert run(["config", "show", "--env-file", "nowhere"]) == 2
    assert "error: nowhere: cannot be read: No such file or directory" in capsys.readouterr().err
    assert run(["config", "show", "--env-file"]) == 2
