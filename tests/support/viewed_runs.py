"""Puts runs of cases into a ledger, judged by the real pipeline without workers, for pages to show."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession

from producer.access import Access
from producer.load.chunks import TYPICAL_CASE, dictionary_of
from producer.view.web_server import running
from shared.codecs.item_rows import pack_item
from shared.codecs.packing import DICTIONARY, Packing
from shared.ledger import ChunkPlan, Row
from shared.ledger.ledger import Ledger
from shared.runs import RunStore
from shared.settings import Settings
from tests.support.case_pages import GOOD, WRONG, rows_of, run_info
from tests.support.ledger_runs import open_run
from tests.support.loop_thread import LoopThread

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from pathlib import Path

    import redis

TOKEN = "token-of-the-test"  # noqa: S105 - of a server that lives as long as a test
WORKER = "worker@test"
CHUNK = 500
OUTPUTS = (GOOD, WRONG, GOOD, None)


def cases_run(
    client: "redis.Redis",
    run: str,
    *,
    cases: int = 8,
    outputs: Sequence[str | None] = OUTPUTS,
    models: Sequence[str] = ("acme/quick",),
    name: str = "",
    source: str = "bench.yaml",
    done: int | None = None,
) -> str:
    """Puts a run into the ledger; `done`: how many of its items have a result, all by default."""
    ledger = Ledger(client, patience_s=5.0)
    ledger.tick(WORKER, ["cases"], 1)
    own = {**run_info(models, cases).snapshot, "source": source}
    snapshot: dict[str, Any] = {**own, **({"name": name} if name else {})}
    rows = list(rows_of(models, cases, outputs))
    text = json.dumps(snapshot).encode()
    token = open_run(ledger, run, "cases", snapshot=text)
    dictionary = dictionary_of((row.payload for row in rows), len(rows), TYPICAL_CASE)
    for file, content in dictionary.items():
        ledger.load_file(run, token, file, content)
    packing = Packing(dictionary.get(DICTIONARY, b""))
    for at in range(0, len(rows), CHUNK):
        items = {str(row.index): packing.pack(row.payload) for row in rows[at : at + CHUNK]}
        ledger.load(run, token, items, {str(at // CHUNK): ChunkPlan(f"case {at + 1}", list(items))})
    ledger.seal(run, token, len(rows), "digest")
    answered = rows[:done]
    for at in range(0, len(answered), CHUNK):
        answer(client, run, answered[at : at + CHUNK])
    return run


def answer(client: "redis.Redis", run: str, rows: Sequence[Any]) -> None:
    """Commits results of one chunk, as a worker does."""
    ledger = Ledger(client, patience_s=5.0)
    chunk = str(rows[0].index // CHUNK)
    claim = ledger.claim(run, chunk, f"claim {chunk}", WORKER)
    assert claim.status == "ok"
    packing = RunStore(client).packing(run)
    generations = {item.index: item.generation for item in claim.items}
    values = [Row(str(row.index), generations[str(row.index)], pack_item(row, packing)) for row in rows]
    tally = {word: sum(row.outcome.value == word for row in rows) for word in ("passed", "failed", "error")}
    ledger.commit(run, chunk, f"claim {chunk}", values, back=True, tally=tally)


def access_to(url: str, folder: "Path") -> Access:
    """The way to a server."""
    settings = Settings.from_environment({"PROCTOR_DATA_DIR": str(folder / "data")})
    return Access(settings.override("test", redis_url=url, patience_s=2.0))


@contextmanager
def served(access: Access, *, port: int = 0) -> Iterator[str]:
    """Serves pages from a thread while the block runs; yields the address of the first one."""
    address = list[str]()

    async def serve(ready: "Callable[[], None]", stop: "asyncio.Event") -> None:
        async with running(access.connect(), TOKEN, port) as found:
            address.append(found)
            ready()
            await stop.wait()

    server = LoopThread(serve, "the page server")
    try:
        yield address[0]
    finally:
        server.stop()


async def get(address: str, **headers: str) -> tuple[int, str]:
    """Status and text of a page."""
    async with ClientSession() as session, session.get(address, headers=headers) as found:
        return found.status, await found.text()


def at(address: str, path: str, **query: Any) -> str:
    """Another address of the same server, with its token."""
    base, words = (
        address.split("/?", maxsplit=1)[0],
        "".join(f"&{name}={value}" for name, value in query.items()),
    )
    return f"{base}{path}?token={TOKEN}{words}"


async def told(address: str, wanted: str) -> dict[str, Any]:
    """Listens until a message contains a text."""
    async with ClientSession() as session, session.get(address) as found:
        assert found.headers["Content-Type"].startswith("text/event-stream")
        async for line in found.content:
            if line.startswith(b"data: ") and wanted in line.decode():
                message: dict[str, Any] = json.loads(line[6:])
                return message
    raise AssertionError(f"the stream ended without {wanted}")
