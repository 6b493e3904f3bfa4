"""A bench with prompts, variables, conversations, images, options and checks, through real workers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.case_runs import WORKERS, bench, document, rows_of
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
CHATS: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello! Which country?"},
    {"role": "user", "content": "France"},
]
CASES: list[dict[str, Any]] = [
    {
        "id": "fr",
        "vars": {"country": "France", "capital": "Paris"},
        "tags": ["europe"],
        "metadata": {"owner": "geo"},
        "checks": [{"contains": "{{ capital }}"}, {"not": {"regex": "(?i)sorry"}}],
    },
    {
        "id": "es",
        "vars": {"country": "Spain"},
        "checks": [{"equals": "Madrid"}, {"contains": "Spain"}],
        "at_least": 0.5,
    },
    {"id": "chat", "messages": CHATS, "images": ["map.png"], "checks": [{"regex": "^nothing$"}]},
]


def says(prompt: Any, _nth: int) -> Say:
    """Answers with the capital of France, and with the prompt to all else."""
    text = prompt if isinstance(prompt, str) else prompt[0]["text"]
    return Say("The capital is Paris." if "France" in text else text)


def test_prompts_and_checks_end_to_end(cli: Cli, tmp_path: Path) -> None:
    """Models by prompts by cases; what is sent is rendered, options are merged, and rows have every check."""
    (tmp_path / "map.png").write_bytes(PNG)
    with ModelServer(says) as server:
        path = bench(
            tmp_path,
            server,
            CASES,
            prompts=[
                {"id": "terse", "system": "One word.", "user": "Capital of {{ country | default('?') }}?"},
                {
                    "id": "long",
                    "user": "Name the capital of {{ country | default('?') }}.",
                    "params": {"seed": 3},
                },
            ],
            params={"temperature": None, "max_tokens": 50},
            headers={"X-Team": "geo"},
        )
        done = cli("run", path, *WORKERS)
        assert done.code == 1, done
        finished = document(done)
    rows = [row["result"] for row in rows_of(cli, finished["run_id"])]
    assert [(row["model"], row["prompt_id"], row["case_id"]) for row in rows] == [
        (model, prompt, case)
        for model in ("alpha", "beta")
        for prompt in ("terse", "long")
        for case in ("fr", "es", "chat")
    ]
    assert [row["status"] for row in rows[:6]] == ["passed", "passed", "failed_checks"] * 2
    fr, es, chat, *_ = rows
    assert (fr["vars"]["capital"], fr["tags"], fr["metadata"]) == ("Paris", ["europe"], {"owner": "geo"})
    assert (fr["decided_by"], fr["score"], fr["finish_reason"]) == ("checks", 1.0, "stop")
    assert [(check["name"], check["passed"]) for check in es["checks"]] == [
        ("equals: Madrid", False),
        ("contains: Spain", True),
    ]
    assert (es["score"], es["passed"], chat["passed"]) == (0.5, True, False)
    assert chat["message"].startswith("regex: ^nothing$: ")
    _check_sent([(request.body, request.headers) for request in server.requests])


def _check_sent(requests: list[tuple[Any, Mapping[str, str]]]) -> None:
    """System messages, merged options, headers and images are in the requests."""
    terse = next(body for body, _ in requests if body["messages"][0]["content"] == "One word.")
    assert (terse["max_tokens"], "temperature" in terse, "seed" in terse) == (50, False, False)
    assert sum("seed" in body for body, _ in requests) == 6
    assert all(headers["X-Team"] == "geo" for _, headers in requests)
    [sent] = [body["messages"] for body, _ in requests if len(body["messages"]) == 4 and "seed" in body][:1]
    assert sent[0] == {"role": "system", "content": "Answer."}
    assert sent[1:3] == CHATS[:2]
    assert sent[3]["content"][0] == {"type": "text", "text": "France"}
    assert sent[3]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_items_are_found_by_case_and_prompt(cli: Cli, tmp_path: Path) -> None:
    """The id of a case is all its answers, where nothing is asked again; a whole name is always one item."""
    outputs = tmp_path / "outputs.jsonl"
    outputs.write_text(json.dumps({"case": "fr", "model": "alpha", "output": "Paris"}), encoding="utf-8")
    with ModelServer() as server:
        path = bench(
            tmp_path,
            server,
            [{"id": "fr", "checks": ["contain"]}],
            prompts=[{"id": "a", "user": "A"}, {"id": "b", "user": "B"}],
        )
        refused = cli("run", path, *WORKERS)
        assert (refused.code, server.requests) == (2, [])
        path = bench(
            tmp_path,
            server,
            [{"id": "fr", "checks": [{"contains": "Paris"}]}],
            prompts=[{"id": "a", "user": "A"}, {"id": "b", "user": "B"}],
            models=["alpha"],
        )
        finished = document(cli("run", path, "--outputs", str(outputs), *WORKERS))
        assert finished["counts"]["passed"] == 2
        assert server.requests == []
    one = cli("results", finished["run_id"], "--format", "jsonl", "--item", "fr · alpha · b")
    assert json.loads(one.out)["result"]["prompt_id"] == "b"
    both = cli("results", finished["run_id"], "--item", "fr")
    assert [line.split()[:4] for line in both.out.splitlines()[1:]] == [
        ["fr", "alpha", "·", at] for at in "ab"
    ]
    assert cli("retry", finished["run_id"], "--item", "fr").code == 2


def test_a_last_message_without_a_text_is_answered_and_judged(cli: Cli, tmp_path: Path) -> None:
    """An empty variable, an image alone, a tool that returned nothing: the answer and its cost are kept."""
    (tmp_path / "map.png").write_bytes(PNG)
    image = {"type": "image_url", "image_url": {"url": "https://example.com/x.png"}}
    called = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    checks = {"checks": [{"contains": "Hello"}]}
    cases: list[dict[str, Any]] = [
        {"id": "empty", "vars": {"q": ""}, **checks},
        {"id": "freeform", "vars": {"q": " "}},
        {"id": "with image", "vars": {"q": ""}, "images": ["map.png"], **checks},
        {"id": "image alone", "messages": [{"role": "user", "content": [image]}], **checks},
        {
            "id": "empty result",
            "messages": [
                CHATS[0],
                {"role": "assistant", "content": None, "tool_calls": [called]},
                {"role": "tool", "tool_call_id": "c1", "content": ""},
            ],
            **checks,
        },
    ]
    with ModelServer() as server:
        prompts = [{"id": "p", "user": "{{ q | default('?') }}"}]
        done = cli("run", bench(tmp_path, server, cases, models=["alpha"], prompts=prompts), *WORKERS)
        assert len(server.requests) == len(cases)
    assert done.code == 0, done
    rows = rows_of(cli, document(done)["run_id"])
    assert [row["result"]["raw_output"] for row in rows] == ["Hello"] * len(cases)
    assert all(row["cost_usd"] > 0 for row in rows)
