"""A key of the workers stands nowhere but in requests, also if the server that is called repeats it."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psutil
import yaml

from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say
from tests.support.processes import marked_processes

KEY: Final = "q7Rt+Zz0/4Lm=9Xw2Kp8Vb5Nc1"
FORMS: Final = (KEY, quote(KEY, safe=""), b64encode(KEY.encode()).decode()[:24], json.dumps(KEY)[1:-1])
LEAST_PART: Final = 12
"""Characters of a key that no text has by chance."""
ECHOES: Final[dict[str, Say]] = {
    "plain": Say(f"Incorrect API key provided: {KEY}", status=400),
    "in a URL": Say(f"no access by ?api_key={quote(KEY, safe='')}", status=400),
    "in base64": Say(f"bad login {b64encode(KEY.encode()).decode()}", status=400),
    "long": Say("e" * 290 + f" {KEY} " + "e" * 5_000, status=400),
    "cut": Say(f"wrong key {KEY[:14]}", status=400),
    "page": Say(body=f"<html><body>Bearer {KEY}</body></html>", status=500),
    "redirect": Say("moved", status=307, headers={"Location": f"http://127.0.0.1:1/{quote(KEY, safe='')}"}),
    "in a header": Say("slow down", status=400, headers={"X-Request": KEY}),
    "as the reason": Say(body={"choices": [{"message": {"content": "Hi"}, "finish_reason": KEY}]}),
    "no answer": Say(body={"choices": [], "error": {"message": KEY}}),
}
REPORTS: Final = ("html", "json", "jsonl", "csv", "md", "xml")


def parts_in(text: bytes) -> list[str]:
    """The parts of the key that a text has."""
    starts = ((form, at) for form in FORMS for at in range(len(form) - LEAST_PART + 1))
    return [part for form, at in starts if (part := form[at : at + LEAST_PART]).encode() in text]


def files_below(folder: Path) -> list[Path]:
    """All regular files in a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_key_is_in_no_file_log_event_or_command_line(cli: Cli, tmp_path: Path) -> None:
    """Redis' files, logs, reports, events and command lines are free of it, whatever an upstream answers."""
    seen = list[str]()

    def script(prompt: str, _nth: int) -> Say:
        """Looks at the processes while a call is under way, and repeats the key."""
        seen.extend(" ".join(command_line(each)) for each in marked_processes())
        return ECHOES[prompt]

    with ModelServer(script) as server:
        place = {"api_base": server.api_base, "api_key_env": "ECHO_API_KEY"}
        bench: dict[str, Any] = {
            "name": "echo",
            "system_prompt": "Answer.",
            "models": ["m"],
            "model_configs": {"m": {**place, "headers": {"X-Key": "env:ECHO_API_KEY"}}},
            "config": {"cache": False, "concurrency": 4},
            "test_cases": [{"id": name, "input": name, "checks": [{"contains": "x"}]} for name in ECHOES],
        }
        path = tmp_path / "bench.yaml"
        path.write_text(yaml.safe_dump(bench), encoding="utf-8")
        out = tmp_path / "out"
        out.mkdir()
        reports = [part for suffix in REPORTS for part in ("-o", out / f"r.{suffix}")]
        env = {"ECHO_API_KEY": KEY, "PROCTOR_LOG_LEVEL": "debug"}
        done = cli("run", path, "--jsonl", "-v", *reports, env=env, within_s=90)
        asked = {(request.prompt, request.headers["Authorization"]) for request in server.requests}
    assert asked == {(name, f"Bearer {KEY}") for name in ECHOES}
    assert seen
    assert parts_in("\n".join(seen).encode()) == []
    assert parts_in(f"{done.out}{done.err}".encode()) == []
    data = Path(cli.processes.env["PROCTOR_DATA_DIR"])
    written = [*files_below(data), *files_below(out)]
    assert {path.suffix for path in written} >= {".aof", *(f".{suffix}" for suffix in REPORTS)}
    assert {str(path): parts for path in written if (parts := parts_in(path.read_bytes()))} == {}


def command_line(process: psutil.Process) -> list[str]:
    """The command line of a process; empty if it has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
