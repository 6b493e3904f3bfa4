"""Whatever is wrong with the input or with Redis: one clear line and the right exit code, or nothing lost."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.cli import Cli, Done
from tests.support.fake_redis import FakeRedis
from tests.support.processes import Processes
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT
from tests.support.trial import Trial, woven_turns

if TYPE_CHECKING:
    import redis

EXAMPLE: Final = ROOT / "examples" / "turns.jsonl"
SIGNAL: Final = {"endMessageId": "m", "kind": "pivot", "confidence": "high", "source": "model"}


def turn(**keys: Any) -> str:
    """A line of a turns file."""
    return json.dumps({"threadId": "t", "message": "hi", **keys}) + "\n"


GOOD: Final = turn()
BAD: Final[dict[str, tuple[str | bytes, str]]] = {
    "malformed line": (GOOD + '{"threadId": "t", "message": \n', ":2: not valid JSON"),
    "unknown key": (GOOD + turn(signls={}), ":2: signls: unknown key"),
    "nine signals": (
        GOOD + turn(signals={"updatedAt": "2026-02-01T00:00:00Z", "items": [SIGNAL] * 9}),
        ":2: signals.items: 9 items, at most 8",
    ),
    "naive datetime": (GOOD + turn(ts="2026-02-01T00:00:00"), ":2: ts: time without a zone"),
    "a message that is too long": (GOOD + turn(message="x" * 20_001), ":2: message: 20,001 characters"),
    "an empty message": (GOOD + turn(message=""), ":2: message: is empty"),
    "null": (GOOD + turn(messageId=None), ":2: messageId: null is not a value here"),
    "empty file": (b"", ": is empty"),
    "blank lines": (b"\n\n  \n", ": is empty"),
    "binary file": (b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)), ": is a binary file"),
}


@pytest.fixture
def redis_cli(processes: Processes) -> Cli:
    """The command line on the session's Redis."""
    return Cli(processes)


@pytest.fixture
def server(new_redis_server: Callable[..., RedisServer]) -> RedisServer:
    """A server of the test's own, to be killed."""
    return new_redis_server()


@pytest.fixture
def own_trial(server: RedisServer, processes: Processes) -> Iterator[Trial]:
    """Runs on the server of the test's own."""
    with Trial.on(server, processes) as made:
        yield made


def is_one_clear_error(done: Done, code: int, words: str) -> None:
    """Asserts an exit code, one `error:` line with these words, at most a hint, and nothing else."""
    assert done.code == code, done
    assert done.out == "", done
    error, *rest = done.err.splitlines()
    assert error.startswith("error: "), done
    assert words in error, done
    assert all(line.startswith("hint: ") for line in rest), done
    assert len(rest) <= 1, done


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_line(
    redis_cli: Cli, redis_client: "redis.Redis", tmp_path: Path, name: str
) -> None:
    """Each kind of bad input is exit code 2 and one line with file, place and reason; nothing is left."""
    content, words = BAD[name]
    file = tmp_path / "turns.jsonl"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    is_one_clear_error(redis_cli("run", file), 2, f"{file}{words}")
    assert redis_client.keys("proctor:run:*") == []


def test_a_directory_and_a_missing_file_are_one_clear_line(redis_cli: Cli, tmp_path: Path) -> None:
    """What is no file is named, with exit code 2."""
    is_one_clear_error(redis_cli("run", tmp_path), 2, f"{tmp_path}: is a directory")
    is_one_clear_error(
        redis_cli("submit", tmp_path / "no.jsonl"), 2, f"{tmp_path / 'no.jsonl'}: no such file"
    )


def test_a_repeated_request_gets_its_first_result(cli: Cli, tmp_path: Path) -> None:
    """A `clientRequestId` again: with the same content the first result, without a trace; else an error."""
    asked = {"clientRequestId": "r", "messageId": "m"}
    file, out = tmp_path / "turns.jsonl", tmp_path / "out.jsonl"
    file.write_text(turn(**asked) + turn() + turn(**asked) + turn(clientRequestId="r", message="other"))
    done = cli("run", file, "-o", out, "--json")
    assert done.code == 1, done
    first, second, again, other = [json.loads(line) for line in out.read_text().splitlines()]
    assert (first["cached"], again["cached"]) == (False, True)
    assert again["result"] == first["result"]
    assert (second["result"]["etag"], other["result"]["etag"]) == ("2", "2")
    assert (other["outcome"], other["error"]["code"]) == ("error", "idempotency_conflict")
    assert json.loads(done.out)["counts"] == {
        **dict.fromkeys(("passed", "failed", "skipped"), 0),
        "total": 4,
        "decided": 3,
        "error": 1,
    }
    traces = cli("results", first["run_id"], "--traces").out.splitlines()
    assert [json.loads(line)["transmissionId"][-2:] for line in traces] == [":0", ":1"]


@pytest.mark.parametrize(
    "command",
    [
        *(["watch"], ["results"], ["report"], ["cancel"], ["pause"], ["resume"], ["retry"]),
        *(["runs", "show"], ["runs", "rm", "--yes"]),
    ],
    ids=" ".join,
)
def test_an_unknown_run_is_one_clear_line(redis_cli: Cli, command: list[str]) -> None:
    """Every command that takes a run says that there is none of this id, with exit code 2."""
    is_one_clear_error(redis_cli(*command, "run-nobody"), 2, "no run is called 'run-nobody'")


def test_a_server_that_is_too_old_is_one_clear_line(redis_cli: Cli) -> None:
    """Redis 5 answers and cannot carry the ledger: exit code 3, with its version and the one needed."""
    with FakeRedis({"redis_version": "5.0.14"}) as old:
        done = redis_cli("run", EXAMPLE, "--redis", old.url)
    is_one_clear_error(done, 3, "5.0.14")
    assert "6.2" in done.err


@pytest.mark.parametrize("command", [["run", EXAMPLE], ["submit", EXAMPLE], ["status"]], ids=lambda c: c[0])
def test_an_unreachable_redis_is_reported_within_seconds(redis_cli: Cli, command: list[str]) -> None:
    """A URL where nobody answers is exit code 3 after five seconds, and not a minute."""
    begun_at = monotonic()
    done = redis_cli(*command, "--redis", "redis://127.0.0.1:1/0")
    assert monotonic() - begun_at < 5 + 5  # a busy machine may need some seconds to start a program
    is_one_clear_error(done, 3, "127.0.0.1:1")


@pytest.mark.chaos
def test_a_run_waits_for_redis_and_goes_on(server: RedisServer, own_trial: Trial) -> None:
    """Redis is killed in the middle of `proctor run` and comes back: the command ends as ever."""
    trial = own_trial
    file, out = trial.file(woven_turns(300, 100)), trial.processes.folder / "out.jsonl"
    command = trial.cli.start("run", file, "-o", out)
    run = trial.only_run()
    trial.middle(run, 0.05)
    server.kill()
    command.wait_for("Redis")
    server.start()
    assert command.wait(90) == 0, command.output_text()
    assert "Traceback" not in command.errors
    trial.check(run, file)


@pytest.mark.chaos
def test_a_run_whose_redis_stays_away_ends_in_time(server: RedisServer, own_trial: Trial) -> None:
    """After `PROCTOR_PATIENCE_S` without Redis, `proctor run` is exit code 3 and one line that says why."""
    trial = own_trial
    trial.processes.env["PROCTOR_PATIENCE_S"] = "2"
    command = trial.cli.start("run", trial.file(woven_turns(600, 100)))
    trial.middle(trial.only_run(), 0.05)
    server.kill()
    assert command.wait(30) == 3, command.output_text()
    assert len([line for line in command.errors.splitlines() if line.startswith("error: ")]) == 1
    assert "Traceback" not in command.errors
