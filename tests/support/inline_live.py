"""A worker of live turns inside the test: the worker's own code, with a model that is a function."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.contracts.live_turns import LiveRun
from shared.kinds import TURNS
from shared.ledger import Wake
from shared.ledger.ledger import Ledger
from shared.runs import RunStore
from shared.settings import Settings
from shared.upstream.model_target import ModelTarget
from shared.upstream.usage import Usage
from tests.support.eventually import eventually
from tests.support.turn_files import write_turns
from worker.executors.chunk import ChunkRunner, ChunkSummary
from worker.executors.turns import make_executor
from worker.process import WorkerProcess
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.model_caller import ModelCaller

if TYPE_CHECKING:
    import redis

Answers = Callable[[str], Awaitable[str]]


async def parrot(message: str) -> str:
    """Repeats a message, a moment later."""
    await asyncio.sleep(0.002)
    return f"re: {message}"


class InlineLive:
    """Publisher, worker and model in one; chunks are worked on when the test says so.

    Args:
        client: of an empty server.
        folder: for files.
        answer: the model.
        in_flight: questions at a time.
    """

    def __init__(
        self, client: "redis.Redis", folder: Path, answer: Answers = parrot, *, in_flight: int = 100
    ) -> None:
        self.client, self.folder, self.answer = client, folder, answer
        self.ledger = Ledger(client, patience_s=5.0)
        self.store = RunStore(client, patience_s=5.0)
        self.wakes = list[Wake]()
        self.asked = list[str]()
        publisher: Any = self
        self.process = WorkerProcess(
            "inline@test",
            {TURNS: 2},
            ledger=self.ledger,
            publisher=publisher,
            settings=Settings(data_dir=folder),
            in_flight=in_flight,
        )
        upstream = self.process.upstream
        vars(upstream)["models"] = ModelCaller(
            upstream.gate,
            self,
            upstream.cache,
            upstream.budget,
            upstream.contacts,
            key_of=lambda _: "",
        )
        self._runner = ChunkRunner(self.process, {TURNS: make_executor(self.process, self.store)})

    def publish(self, wakes: Sequence[Wake]) -> None:
        """Takes wake-ups, as a publisher does."""
        self.wakes += wakes

    async def prepare(self, target: ModelTarget) -> None:
        """Has nothing to do before a first call."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answers, as a client does."""
        message = request.user.rpartition("The latest message:\n")[2]
        self.asked.append(message)
        return ModelReply(await self.answer(message), 2, usage=Usage(10, 5))

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Has no embeddings: no turn asks for one."""
        return EmbeddingReply([b"" for _ in request.texts], 2)

    def submit(self, turns: Sequence[dict[str, Any]], **options: Any) -> str:
        """Submits turns and returns the run's id."""
        source = Source(write_turns(self.folder / "turns.jsonl", list(turns)))
        live = LiveRun(ModelTarget("m", api_base="http://localhost/v1"), use_cache=False)
        made = SubmitOptions(**{"live": live, "await_disk": False, **options})
        return submit(self.ledger, self, source, options=made).run

    def work(self) -> list[ChunkSummary]:
        """Works on what is published until nothing is left."""
        done = list[ChunkSummary]()
        while self.wakes:
            done.append(self._runner.run(self.wakes.pop(0)))
        return done

    def close(self) -> None:
        """Ends the worker, and closes its loop, which a process leaves to its end."""
        loop = self.process.loop.run(_loop_it_runs_on())
        self.process.close()

        def has_stopped() -> None:
            assert not loop.is_running()

        eventually(has_stopped, 5)
        loop.close()


async def _loop_it_runs_on() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()
