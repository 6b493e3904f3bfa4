"""The commands that stand on pages, pasted in the folder of the run: each works, and asks as the run did."""

import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Final

from tests.support.case_runs import WORKERS, bench
from tests.support.cli import Cli
from tests.support.model_server import ModelServer, Say
from tests.support.query_desk import numbered
from tests.support.scripted_api import ScriptedApi, Step

COMMAND: Final = re.compile(r"proctor (?:run|retry|results|show|report|compare) [^<\"\n]+")
MOST: Final = 3
"""Commands of one page that are pasted, of each kind."""


def commands_of(page: Path) -> list[list[str]]:
    """The words of the commands on a page; of each command of Proctor the first ones."""
    found = dict.fromkeys(
        unescape(text).strip(" .)") for text in COMMAND.findall(page.read_text(encoding="utf-8"))
    )
    words = [shlex.split(text)[1:] for text in found]
    return [each for each in words if [one[0] for one in words[: words.index(each)]].count(each[0]) < MOST]


def paste(cli: Cli, page: Path) -> None:
    """Runs the commands of a page where its run was started."""
    commands = commands_of(page)
    assert commands, page
    for words in commands:
        local = ("--processes", "1") if words[0] in {"run", "retry"} else ()
        done = cli(*words, *local, "-q", cwd=page.parent)
        assert done.code <= 1, f"{words}: {done}"


def test_a_page_of_queries_sends_a_query_as_its_run_did(cli: Cli, tmp_path: Path) -> None:
    """The command has the whole path of the file, and every option by which the API is reached."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "my queries.json").write_text(json.dumps(numbered(1)), encoding="utf-8")
    with ScriptedApi(lambda _query, _nth: Step(body={"out": {"text": "I do not know"}})) as api:
        done = cli(
            "run", "data/my queries.json", "--api-url", api.url, "--path", "/v2/ask", "--method", "PUT",
            "--field", "query=/q/text", "--field", "answer=/out/text", "--header", "X-Tenant=blue",
            "--timeout-s", "7", "--processes", "1", "-q", "-o", "page.html", cwd=tmp_path,
        )  # fmt: skip
        assert done.code == 1, done
        paste(cli, tmp_path / "page.html")
        assert len(api.requests) == 2, api.requests
        first, second = api.requests
    assert (second.path, second.method, second.body) == (first.path, first.method, first.body)
    assert second.headers["X-Tenant"] == first.headers["X-Tenant"]


def test_pages_of_cases_and_comparisons_have_commands_that_work(cli: Cli, tmp_path: Path) -> None:
    """An answer is asked again by the name of its case, also one with blanks and quotes."""
    with ModelServer(lambda _prompt, _nth: Say("no")) as server:
        cases = [{"id": "the 'first' case", "input": "one", "regex_pattern": "yes"}]
        path = bench(tmp_path, server, cases)
        for name in ("a", "b"):
            done = cli("run", path.name, *WORKERS, "-o", f"{name}.html", cwd=tmp_path)
            assert done.code == 1, done
        paste(cli, tmp_path / "a.html")
        compared = cli("compare", "last~1", "last", "-o", "compare.html", "-q", cwd=tmp_path)
        assert compared.code == 0, compared
        if commands_of(tmp_path / "compare.html"):
            paste(cli, tmp_path / "compare.html")


def test_a_page_of_turns_has_commands_that_work(cli: Cli, tmp_path: Path) -> None:
    """They print a turn, and all of them."""
    turns = [{"threadId": "t", "message": text} for text in ("Let us decide.", "ok")]
    (tmp_path / "turns.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    done = cli("run", "turns.jsonl", "--processes", "1", "-q", "-o", "page.html", cwd=tmp_path)
    assert done.code == 0, done
    paste(cli, tmp_path / "page.html")
