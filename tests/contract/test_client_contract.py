"""The shipped contract of clients, kept by code beside a bench and by the example; code that misbehaves."""

import asyncio
import importlib
import inspect
import json
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest

from proctor.plugins import CallFailedError, ModelAnswer, ModelCall
from proctor.testing.client_contract import CONTRACT, Behaviour, Clause, Subject
from shared.code.code_file import CodeFile
from shared.code.code_process import CodeFailedError, CodeProcess
from shared.upstream.failure_reasons import FailureReason
from shared.upstream.model_target import ModelTarget
from tests.support.eventually import eventually
from tests.support.tree import ROOT
from worker.upstream.chat import ModelRequest
from worker.upstream.code_client import CodeClient
from worker.upstream.failures import UpstreamError
from worker.upstream.hosted_models import HostedModels

PYTHON: Final = """
import json, time
from types import SimpleNamespace

def call_api(prompt, options, context):
    told = json.load(open(options["config"]["told"]))
    with open(options["config"]["log"], "a") as log:
        log.write(json.dumps(prompt) + "\\n")
    time.sleep(told["after_s"])
    if told["status"] != 200:
        headers = {} if told["wait_s"] is None else {"Retry-After": str(told["wait_s"])}
        error = RuntimeError(told["text"])
        error.response = SimpleNamespace(status_code=told["status"], headers=headers)
        raise error
    if not told["is_answer"]:
        return 7
    usage = {"tokenUsage": {"prompt": 11, "completion": 3}} if told["has_usage"] else {}
    return {"output": prompt if told["text"] is None else told["text"], **usage}
"""
JAVASCRIPT: Final = """
const fs = require('fs');
module.exports = class {
  constructor(options) { this.config = options.config; }
  id() { return 'mine'; }
  async callApi(prompt, context, options) {
    const told = JSON.parse(fs.readFileSync(this.config.told));
    fs.appendFileSync(this.config.log, JSON.stringify(prompt) + '\\n');
    await new Promise((resolve) => setTimeout(resolve, told.after_s * 1000));
    if (told.status !== 200) {
      throw Object.assign(new Error(told.text), {
        status: told.status, headers: told.wait_s === null ? {} : { 'retry-after': told.wait_s },
      });
    }
    if (!told.is_answer) return 7;
    const tokenUsage = told.has_usage ? { prompt: 11, completion: 3 } : undefined;
    return { output: told.text ?? prompt, tokenUsage };
  }
};
"""
SOURCES: Final = {"provider.py": PYTHON, "provider.js": JAVASCRIPT}


def code_file(name: str, source: str, *env: str) -> CodeFile:
    language = "python" if name.endswith(".py") else "javascript"
    if language == "javascript" and shutil.which("node") is None:
        pytest.skip("node is missing: apt-get install nodejs")
    return CodeFile(language, name, source, sha256(source.encode()).hexdigest(), env=list(env))


class CodeSubject:
    """Code whose behaviour stands in a file."""

    def __init__(self, name: str, folder: Path) -> None:
        self._file = code_file(name, SOURCES[name])
        self._told, self._log = folder / "told.json", folder / "log"

    def client(self) -> CodeClient:
        return CodeClient(
            self._file, {"told": str(self._told), "log": str(self._log)}, {"PATH": "/usr/bin:/bin"}
        )

    def behave(self, behaviour: Behaviour) -> None:
        self._told.write_text(json.dumps(asdict(behaviour)))
        self._log.write_text("")

    def asked(self) -> list[str]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]


@pytest.fixture(scope="module")
def example() -> Iterator[Any]:
    """The module that the example package tests itself with."""
    folder = str(ROOT / "examples" / "manners")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("test_manners")
    finally:
        sys.path.remove(folder)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_code_keeps_the_contract(clause: Clause, name: str, tmp_path: Path) -> None:
    """As every client of models does."""
    run(clause, CodeSubject(name, tmp_path))


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
def test_the_example_keeps_the_contract(clause: Clause, example: Any) -> None:
    """As it says itself, to whoever has installed it."""
    with contextmanager(inspect.unwrap(example.desk))() as desk:
        run(clause, desk)


def run(clause: Clause, subject: Subject) -> None:
    async def within_time() -> None:
        async with asyncio.timeout(30):
            await clause(subject)

    asyncio.run(within_time())


def test_the_contract_finds_a_client_that_blocks_the_loop(tmp_path: Path) -> None:
    """A clause that nothing can break would be none."""

    class Blocking:
        def __init__(self, client: CodeClient) -> None:
            self._client, self.close = client, client.close

        async def complete(self, call: ModelCall) -> ModelAnswer:
            if call.prompt == "text 3":
                threading.Event().wait(0.3)
            return await self._client.complete(call)

    class Broken(CodeSubject):
        def client(self) -> Any:
            return Blocking(super().client())

    [clause] = [each for each in CONTRACT if each.__name__ == "calls_do_not_wait_for_each_other"]
    with pytest.raises(AssertionError, match="a call blocks it"):
        run(clause, Broken("provider.py", tmp_path))


def ask(
    file: CodeFile,
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    allow_code: bool = True,
    timeout_s: float = 5.0,
) -> str:
    """Asks code as a worker does."""

    async def asking() -> str:
        models = HostedModels(environment, allow_code=allow_code)
        target = ModelTarget("mine", file.place, timeout_s=timeout_s, code=file)
        try:
            await models.prepare(target)
            return (await models.complete(ModelRequest(target, "", "Hi"))).text
        finally:
            await models.close()

    return asyncio.run(asking())


def test_a_worker_without_permission_runs_nothing(tmp_path: Path) -> None:
    """The run ends with one line, and nothing of the file was executed."""
    marker = tmp_path / "executed"
    file = code_file("a.py", f"open({str(marker)!r}, 'w')\ndef call_api(prompt): return 'Hi'")
    with pytest.raises(UpstreamError, match="PROCTOR_ALLOW_CODE=1") as refused:
        ask(file, allow_code=False)
    assert (refused.value.reason, refused.value.ends_run) == (FailureReason.FORBIDDEN, True)
    assert not marker.exists()


def test_code_has_the_listed_variables_only() -> None:
    """Keys of the worker are not among them; a secret in an error is taken out of it."""
    source = "import os\ndef call_api(prompt): return ' '.join(sorted(os.environ))"
    secrets = {"OPENAI_API_KEY": "sk-0123456789", "MINE_TOKEN": "tok-0123456789", "PATH": "/usr/bin"}
    seen = ask(code_file("a.py", source, "MINE_TOKEN", "NOT_SET"), secrets).split()
    assert {"MINE_TOKEN", "PATH"} <= set(seen) <= {"MINE_TOKEN", "PATH", "LC_CTYPE"}
    telling = "import os\ndef call_api(prompt): raise ValueError(os.environ['MINE_TOKEN'])"
    with pytest.raises(UpstreamError, match=r"a.py: ValueError: \*\*\*"):
        ask(code_file("a.py", telling, "MINE_TOKEN"), secrets)


@pytest.mark.parametrize(
    ("source", "reason", "words"),
    [
        ("import time\ndef call_api(prompt): time.sleep(99)", FailureReason.TIMEOUT, "no answer within"),
        ("import os\ndef call_api(prompt): os._exit(3)", FailureReason.CONNECTION_LOST, "exit code 3"),
        ("def call_api(prompt): return 'x' * (9 << 20)", FailureReason.INVALID_REPLY, "more than 8 MiB"),
        (
            "import os\ndef call_api(prompt): os.write(3, b'7\\n')",
            FailureReason.INVALID_REPLY,
            "no answer to",
        ),
        ("import sys\ndef call_api(prompt): sys.exit(1)", FailureReason.REFUSED, "SystemExit"),
        ("import nosuch", FailureReason.REFUSED, "No module named 'nosuch'"),
        ("def one(): ...\ndef two(): ...", FailureReason.REFUSED, "no function call_api: it has one, two"),
        ("def call_api(prompt): return {1}", FailureReason.REFUSED, "no JSON"),
        ("def call_api(prompt): raise OSError('reset')", FailureReason.CONNECTION_LOST, "OSError: reset"),
        (
            "def call_api(prompt): return {'error': 'no', 'status': 503}",
            FailureReason.SERVER_ERROR,
            "a.py: no",
        ),
        (
            "def call_api(prompt): return {'tokenUsage': {}, 'text': 'Hi'}",
            FailureReason.INVALID_REPLY,
            "a.py returned no text: its object has tokenUsage, text; output is what is read",
        ),
        (
            "def call_api(prompt): pass",
            FailureReason.INVALID_REPLY,
            "a.py returned nothing: return a text, or {output: …}",
        ),
        ("def one(): ...\ndef two(): ...", FailureReason.REFUSED, "a.py: no function call_api"),
        ("def one(): ...\ndef two(): ...", FailureReason.REFUSED, "; a.py:one names one"),
        ("\ndef call_api(prompt):\n    return int('x')", FailureReason.REFUSED, "'x' (line 3)"),
    ],
)
def test_what_code_does_wrong_has_a_reason(source: str, reason: FailureReason, words: str) -> None:
    """The process of each is gone afterwards, and the worker goes on."""
    with pytest.raises(UpstreamError) as failed:
        ask(code_file("a.py", source), timeout_s=0.5 if reason is FailureReason.TIMEOUT else 10)
    assert failed.value.reason is reason, failed.value.message
    assert words in failed.value.message


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", "import os\ndef call_api(prompt): return os.environ['MINE_TOKEN']"),
        ("a.js", "module.exports = () => { throw new Error('set MINE_TOKEN') }"),
    ],
)
def test_a_variable_that_is_set_but_not_listed_is_named(name: str, source: str) -> None:
    """Where an error names it: people have it in their shell, and wonder why the code has not."""
    environment = {"PATH": "/usr/bin:/usr/local/bin", "MINE_TOKEN": "tok-0123456789"}
    with pytest.raises(
        UpstreamError, match=r"MINE_TOKEN is set, but code gets it only with env: \[MINE_TOKEN\]"
    ):
        ask(code_file(name, source), environment)


@pytest.mark.parametrize(
    ("name", "source", "imported"),
    [
        (
            "a.py",
            "from lib.words import up\ndef call_api(prompt): return up(prompt)",
            {"lib/words.py": "def up(text): return text.upper()"},
        ),
        (
            "a.js",
            "const { up } = require('./lib/words'); module.exports = up",
            {"lib/words.js": "exports.up = (text) => text.toUpperCase()"},
        ),
    ],
)
def test_code_finds_what_has_travelled_with_it(name: str, source: str, imported: dict[str, str]) -> None:
    """On a machine that has not its folder."""
    file = msgspec.structs.replace(code_file(name, source), imported=imported)
    assert file.beside is None
    assert ask(file, {"PATH": "/usr/bin:/usr/local/bin"}) == "HI"


def test_a_call_that_fails_leaves_the_others_alone() -> None:
    """One that hangs costs no other call: its process ends after these."""
    waiting = "time.sleep(60 if prompt == 'hang' else 0.6)"
    source = f"import time\ndef call_api(prompt):\n    {waiting}\n    return prompt"

    async def asking() -> tuple[object, str, str]:
        client = CodeClient(code_file("a.py", source), {}, {})

        async def call(text: str, within_s: float) -> str:
            message = {"role": "user", "content": text}
            answer = await asyncio.wait_for(client.complete(ModelCall("m", [message])), within_s)
            return answer.text or ""

        try:
            await client.prepare("m")
            hanging, other = asyncio.create_task(call("hang", 0.3)), asyncio.create_task(call("a", 5))
            await asyncio.wait([hanging])
            return hanging.exception(), await call("b", 5), await other
        finally:
            await client.close()

    error, after, other = asyncio.run(asking())
    assert isinstance(error, TimeoutError)
    assert (after, other) == ("b", "a")


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("os._exit(3)", "connection_lost"),
        ("return 'x' * (9 << 20)", "invalid_reply"),
        ("os.write(3, b'7\\n')", "invalid_reply"),
    ],
)
def test_a_call_that_ends_its_process_costs_the_others_nothing(does: str, reason: str) -> None:
    """Those under way are made again, each in a process of its own, so that the guilty one is known."""
    source = f"""
import os, time
def call_api(prompt):
    time.sleep(0.2 if prompt == "bad" else 0.6)
    if prompt == "bad":
        {does}
    return prompt
"""

    async def asking() -> list[object]:
        client = CodeClient(code_file("a.py", source), {}, {})
        try:
            await client.prepare("m")
            calls = [ModelCall("m", [{"role": "user", "content": text}]) for text in ("a", "bad", "b")]
            return list(await asyncio.gather(*map(client.complete, calls), return_exceptions=True))
        finally:
            await client.close()

    first, failed, last = asyncio.run(asking())
    assert isinstance(failed, CallFailedError)
    assert failed.reason == reason
    assert [getattr(each, "text", each) for each in (first, last)] == ["a", "b"]


def test_what_code_has_started_ends_with_it(tmp_path: Path) -> None:
    """Also in a session of its own, and with its parent gone; also when the code ends by itself."""
    pids = tmp_path / "pids"
    shell = f"echo $$ >> {pids}; exec sleep 60"
    for end in ("return 'ok'", "os._exit(1)"):
        source = f"""
import os, subprocess
def call_api(prompt):
    subprocess.Popen(["sh", "-c", {shell!r}], start_new_session=True)
    os.system("sleep 0.1")
    {end}
"""
        with suppress(UpstreamError):
            ask(code_file("a.py", source))

    def all_are_gone() -> None:
        found = pids.read_text().split()
        assert len(found) == 2
        assert not any(Path("/proc", pid).exists() for pid in found)

    eventually(all_are_gone)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", "def call_api(prompt): return len('x' * (200 << 20))"),
        ("a.js", "module.exports = () => { const all = []; for (;;) all.push(new Array(1e6).fill(1)); };"),
    ],
)
def test_memory_is_bounded(name: str, source: str) -> None:
    """Too much of it fails the call, and perhaps ends the process, but nothing else."""
    process = CodeProcess(code_file(name, source), "model", {"PATH": "/usr/bin"}, memory_bytes=96 << 20)
    try:
        process.ready.result(20)
        with pytest.raises(CodeFailedError, match=r"MemoryError|heap|exit code"):
            process.call(["Hi", {}, {}]).result(30)
    finally:
        process.close()


def test_what_code_prints_breaks_nothing() -> None:
    """However much it is, and wherever it goes."""
    source = """
import sys
def call_api(prompt):
    for out in (sys.stdout, sys.stderr):
        out.write('{"id": 1}\\n' * 200_000)
    return input("?")
"""
    with pytest.raises(UpstreamError, match="EOFError"):
        ask(code_file("a.py", source))


def test_errors_of_clients_are_told_by_status_or_reason() -> None:
    """What follows from a failure is the same as for every other model."""

    class Failing(HostedModels):
        def _made(self, _target: ModelTarget) -> object:  # type: ignore[override] # a client of a test
            class Client:
                async def complete(self, _call: ModelCall) -> None:
                    raise CallFailedError("wait", status=429, wait_s=7)

            return Client()

    target = ModelTarget("mine", "plugin:a", plugin="a")
    with pytest.raises(UpstreamError) as failed:
        asyncio.run(Failing({}).complete(ModelRequest(target, "", "Hi")))
    assert (failed.value.reason, failed.value.wait_s) == (FailureReason.RATE_LIMITED, 7)
