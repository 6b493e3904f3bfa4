"""A producer of turns runs that a model answers, and the model: an endpoint that answers by a script."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.contracts.live_turns import LiveRun
from shared.runs import TurnRow
from shared.upstream.model_target import ModelTarget
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer, Say
from tests.support.turn_files import write_turns
from tests.support.workers import Desk

if TYPE_CHECKING:
    import redis
    from aiohttp import web

MODEL: Final = "test/parrot"
USAGE: Final = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Asked(NamedTuple):
    """One question, as it arrived."""

    at_s: float
    prompt: str
    message: str
    """The user's message that it ends with."""
    headers: Mapping[str, str]


Script = Callable[[str, int], Say]
"""Says how the n-th question about a message is met, counted from 1."""


def reply(response: str, **more: Any) -> str:
    """The JSON text that live turns are asked for."""
    return json.dumps({"response": response, **more})


def parrot(message: str, _nth: int) -> Say:
    """Repeats every message at once."""
    return Say(reply(f"re: {message}"), usage=USAGE)


class LiveModel(ModelServer):
    """A model for live turns: `with LiveModel(script) as model: …`.

    Args:
        script: what it says.
    """

    def __init__(self, script: Script = parrot) -> None:
        super().__init__(lambda prompt, nth: script(message_in(prompt), nth)._replace(usage=USAGE))
        self.in_flight = 0
        """Questions under way."""
        self.most_in_flight = 0
        """The most there ever were."""

    @property
    def asked(self) -> list[Asked]:
        """All questions, in the order in which they arrived."""
        return [
            Asked(each.at_s, each.prompt, message_in(each.prompt), each.headers) for each in self.requests
        ]

    def times(self) -> Counter[str]:
        """How often each message was asked about."""
        return Counter(each.message for each in self.asked)

    async def _answer(self, request: "web.Request") -> "web.StreamResponse":
        """Counts one request while it is met."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await super()._answer(request)
        finally:
            self.in_flight -= 1


def message_in(prompt: str) -> str:
    """The user's message that a prompt ends with."""
    return prompt.rpartition("The latest message:\n")[2]


def talks(threads: int, turns: int, *, skips: int = 0) -> list[dict[str, Any]]:
    """Turns of several threads, thread by thread; the last ones of each thread are acknowledgments.

    Args:
        threads: how many.
        turns: of each, that are worth a call.
        skips: of each, that are not.
    """
    return [
        {"threadId": f"t{thread}", "message": f"question {thread}.{number}" if number < turns else "ok"}
        for thread in range(threads)
        for number in range(turns + skips)
    ]


class LiveDesk(Desk):
    """Submits turns with a model.

    Args:
        client: of the server that the workers use.
        url: the same server's URL.
        folder: for the files.
    """

    def __init__(self, client: "redis.Redis", url: str, folder: Path) -> None:
        super().__init__(client, url)
        self.folder = folder

    def submit_live(
        self,
        turns: Sequence[dict[str, Any]],
        *,
        chunk_turns: int = 1_000,
        namespace: str = "",
        api_base: str = "",
        **settings: Any,
    ) -> str:
        """Submits turns and returns the run's id; settings are those of `LiveRun`."""
        source = Source(write_turns(self.folder / "turns.jsonl", list(turns)))
        live = LiveRun(ModelTarget(MODEL, api_base), **{"use_cache": False, **settings})
        options = SubmitOptions(live=live, chunk_turns=chunk_turns, namespace=namespace, await_disk=False)
        return submit(self.ledger, self.publisher, source, options=options).run

    def ended(self, run: str, state: str = "finished", within_s: float = 40.0) -> list[TurnRow]:
        """Waits until a run is in a final state and returns its rows in input order."""

        def is_over() -> None:
            info = self.store.info(run)
            assert info.state == state, f"{info.state}: {info.done} of {info.total}"

        eventually(is_over, within_s)
        return list(self.store.rows(run))
