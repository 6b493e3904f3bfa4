"""A producer of turns runs that a model answers, and the model: an endpoint that says what it is told."""

import ast
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.live_run import LiveRun
from shared.runs import TurnRow
from tests.support.eventually import eventually
from tests.support.scripted_api import ScriptedApi, Step
from tests.support.turn_files import write_turns
from tests.support.workers import Desk

if TYPE_CHECKING:
    import redis

MODEL = "test/parrot"
PROMPT_TOKENS, ANSWER_TOKENS = 10, 5


class Asked(NamedTuple):
    """One question, as it arrived."""

    at_s: float
    prompt: str
    message: str
    """The user's message that it ends with."""
    headers: Mapping[str, str]


Script = Callable[[str, int], Step]
"""Says how the n-th question about a message is met, counted from 1."""


def reply(response: str, **more: Any) -> dict[str, Any]:
    """The body of a completion whose text is the JSON that live turns are asked for."""
    return completion(json.dumps({"response": response, **more}))


def completion(text: str) -> dict[str, Any]:
    """The body of a completion."""
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": PROMPT_TOKENS,
            "completion_tokens": ANSWER_TOKENS,
            "total_tokens": PROMPT_TOKENS + ANSWER_TOKENS,
        },
    }


def parrot(message: str, _nth: int) -> Step:
    """Repeats every message at once."""
    return Step(body=reply(f"re: {message}"))


class LiveModel:
    """An OpenAI-compatible endpoint: `with LiveModel(script) as model: …`."""

    def __init__(self, script: Script = parrot) -> None:
        self._script = script
        self._times = Counter[str]()
        self._api = ScriptedApi(lambda body, _nth: self._answer(body))

    def __enter__(self) -> Self:
        self._api.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._api.__exit__(*error)

    @property
    def url(self) -> str:
        """For `api_base`."""
        return f"{self._api.url}/v1"

    @property
    def in_flight(self) -> int:
        """Questions under way."""
        return self._api.in_flight

    @property
    def most_in_flight(self) -> int:
        """The most there ever were."""
        return self._api.most_in_flight

    @property
    def asked(self) -> list[Asked]:
        """All questions, in the order in which they arrived."""
        return [
            Asked(each.at_s, prompt := prompt_in(each.body), message_in(prompt), each.headers)
            for each in self._api.requests
        ]

    def times(self) -> Counter[str]:
        """How often each message was asked about."""
        return Counter(each.message for each in self.asked)

    def _answer(self, body: str) -> Step:
        message = message_in(prompt_in(ast.literal_eval(body)))
        self._times[message] += 1
        return self._script(message, self._times[message])


def prompt_in(body: Any) -> str:
    """The last message of a request."""
    return str(body["messages"][-1]["content"])


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
        **settings: Any,
    ) -> str:
        """Submits turns and returns the run's id; settings are those of `LiveRun`."""
        source = Source(write_turns(self.folder / "turns.jsonl", list(turns)))
        live = LiveRun(**{"model": MODEL, "use_cache": False, **settings})
        options = SubmitOptions(live=live, chunk_turns=chunk_turns, namespace=namespace, await_disk=False)
        return submit(self.ledger, self.publisher, source, options=options).run

    def ended(self, run: str, state: str = "finished", within_s: float = 40.0) -> list[TurnRow]:
        """Waits until a run is in a final state and returns its rows in input order."""

        def is_over() -> None:
            info = self.store.info(run)
            assert info.state == state, f"{info.state}: {info.done} of {info.total}"

        eventually(is_over, within_s)
        return list(self.store.rows(run))
