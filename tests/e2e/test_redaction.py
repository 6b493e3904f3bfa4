"""Texts that the settings redact stand nowhere: inputs, answers, judges' replies, errors, reports."""

import json
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say
from tests.support.scripted_api import ScriptedApi, Step

MAIL: Final = "ann.example+tag@mail.example.com"
CARD: Final = "4111 1111 1111 1111"
OWN: Final = "K-123456"
ALL: Final = f"Hi {MAIL}, paid by {CARD} for {OWN}."
PLANTED: Final = (MAIL, CARD, CARD.replace(" ", ""), OWN, MAIL.partition("@")[0])
ENVIRONMENT: Final = {
    "PROCTOR_REDACT": "mail, card",
    "PROCTOR_REDACT_PATTERNS": r"\bK-\d{6}\b",
    "PROCTOR_LOG_LEVEL": "debug",
}
SUFFIXES: Final = ("html", "json", "jsonl", "csv", "md", "xml")


def planted_in(text: bytes) -> list[str]:
    """What a text has of the planted ones."""
    return [each for each in PLANTED if each.encode() in text]


def script(prompt: str, _nth: int) -> Say:
    """Repeats what is asked, in each part of an answer, with the originals."""
    if "REFUSE" in prompt:
        return Say(f"{'e' * 270} {ALL}", status=400)
    if "rubric" in prompt:
        return Say(json.dumps({"reason": f"mentions {MAIL}", "score": 1}))
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "pay", "arguments": json.dumps({"to": f"\n{MAIL}"})},
    }
    message = {"content": json.dumps({"said": f"Yes\n{ALL}"}), "reasoning_content": ALL, "tool_calls": [call]}
    return Say(body={"choices": [{"message": message, "finish_reason": "stop"}]})


CASES: Final[list[dict[str, Any]]] = [
    {"id": MAIL, "input": "1", "vars": {"who": ALL}, "metadata": {MAIL: 4111111111111111}},
    {"id": "no", "input": "REFUSE", "vars": {"who": OWN}},
    {"id": "tool", "input": "3", "vars": {"who": ""}, "checks": [{"tool_call": {"name": "pay"}}]},
]


def bench_of(api_base: str) -> dict[str, Any]:
    """A bench with planted texts wherever one can be written."""
    expects: list[Any] = [{"contains": MAIL}, {"rubric": f"rubric: names {MAIL}", "model": "judge"}]
    return {
        "name": f"about {MAIL}",
        "description": ALL,
        "system_prompt": f"You are {MAIL}.",
        "models": ["m"],
        "model_configs": {"m": {"api_base": api_base}, "judge": {"api_base": api_base}},
        "prompts": [{"id": "p", "user": f"{ALL} {{{{ who }}}} {{{{ input }}}}"}],
        "test_cases": [{"checks": expects, **case} for case in CASES],
    }


class Runs:
    """Runs files with redaction, keeps what was shown and sent, and writes reports in every format."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self.cli, self.folder, self.out = cli, folder, folder / "out"
        self.shown, self.sent = "", list[str]()
        self.out.mkdir()

    def run(self, name: str, content: str, *options: str) -> list[dict[str, Any]]:
        """Runs a file; returns its rows."""
        file = self.folder / name
        file.write_text(content, encoding="utf-8")
        reports = [part for suffix in SUFFIXES for part in ("-o", self.out / f"{file.stem}.{suffix}")]
        done = self.cli("run", file, "-v", *options, *reports, env=ENVIRONMENT, within_s=60)
        assert done.code in {0, 1}, done
        self.shown += done.out + done.err
        rows = (self.out / f"{file.stem}.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in rows.splitlines()]

    def cases(self) -> list[dict[str, Any]]:
        """Runs the bench."""
        with ModelServer(script) as server:
            rows = self.run("bench.yaml", yaml.safe_dump(bench_of(server.api_base)), "--name", f"for {MAIL}")
            self.sent += [json.dumps(request.body) for request in server.requests]
        return rows

    def queries(self) -> list[dict[str, Any]]:
        """Runs one query whose answer repeats what it must contain."""
        query = {"id": MAIL, "category": "customs", "query": ALL, "is_oos": False, "expected_docs": []}
        query |= {"must_contain": [MAIL], "must_not_contain": []}
        with ScriptedApi(lambda text, _nth: Step(body={"answer": text, "sources": [{"title": ALL}]})) as api:
            content = json.dumps({"version": "1", "queries": [query]})
            rows = self.run("queries.json", content, "--api-url", api.url)
            self.sent += [json.dumps(request.body) for request in api.requests]
        return rows

    def turns(self) -> list[dict[str, Any]]:
        """Runs two turns of two threads."""
        turn = {
            "threadId": MAIL,
            "messageId": MAIL,
            "role": "user",
            "ts": "2026-03-02T09:00:40Z",
            "message": ALL,
        }
        return self.run("turns.jsonl", f"{json.dumps(turn)}\n{json.dumps({**turn, 'threadId': 'b'})}\n")


def test_planted_texts_are_in_no_request_file_log_or_report(cli: Cli, tmp_path: Path) -> None:
    """Models are sent the redacted texts, checks see redacted answers, and equal originals stay equal."""
    runs = Runs(cli, tmp_path)
    cases, queries, turns = runs.cases(), runs.queries(), runs.turns()
    assert len(runs.sent) == 5  # three cases and one judge, one query
    assert planted_in("\n".join(runs.sent).encode()) == []
    assert [line for line in runs.shown.splitlines() if planted_in(line.encode())] == []
    folders = Path(cli.processes.env["PROCTOR_DATA_DIR"]), runs.out
    written = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in written} >= {".aof", ".log", *(f".{suffix}" for suffix in SUFFIXES)}
    assert {str(path): found for path in written if (found := planted_in(path.read_bytes()))} == {}

    assert [row["outcome"] for row in cases] == ["passed", "error", "passed"]
    assert cases[0]["result"]["case_id"].startswith("[mail:")
    assert json.loads(cases[0]["result"]["raw_output"])["said"].startswith("Yes\nHi [mail:")
    assert [row["outcome"] for row in queries] == ["passed"]  # its keyword is redacted like the answer
    assert len({row["result"]["threadId"] for row in turns}) == 2
