"""What plug-ins are written against: clients of models, and how checks and prompts are registered.

    [project.entry-points."proctor.checks"]
    polite = "my_package:polite"            # polite(output, argument, context) -> bool, or a score

    [project.entry-points."proctor.clients"]
    mine = "my_package:Client"              # a class as `ModelClient`

    [project.entry-points."proctor.prompts"]
    short = "my_package:short"              # short({"vars": …, "config": …}) -> text or messages

`proctor.testing.client_contract` has the tests that every client of models passes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Reason = Literal[
    "",
    "rate_limited",
    "timeout",
    "unreachable",
    "connection_lost",
    "server_error",
    "unauthorised",
    "refused",
    "invalid_reply",
]
"""Why there is no answer; empty: the status says so, and without one it is `refused`."""


@dataclass(frozen=True)
class ModelCall:
    """One question to a model."""

    model: str
    """What the bench calls it."""
    messages: Sequence[Mapping[str, Any]]
    """The conversation in OpenAI's form, the system message first."""
    temperature: float | None = None
    """None leaves it to the model."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Other options of the call, such as `max_tokens`."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the case."""

    @property
    def prompt(self) -> str:
        """The user's message alone; a conversation as JSON, as promptfoo's providers are given it."""
        if len(self.messages) == 1 and isinstance(self.messages[0].get("content"), str):
            return str(self.messages[0]["content"])
        return json.dumps(list(self.messages), ensure_ascii=False)


@dataclass(frozen=True)
class ModelAnswer:
    """One answer; what is not known is None, never zero."""

    text: str | None
    """None, if it only calls tools or refuses."""
    input_tokens: int | None = None
    """All tokens of the question."""
    output_tokens: int | None = None
    """All tokens of the answer."""
    cost_usd: float | None = None
    """What the call cost; the prices of the bench go before."""
    finish_reason: str = ""
    """`stop`, `length`, `tool_calls` or `content_filter`, if it is known."""
    reasoning: str = ""
    """What the model thought before it answered; never judged."""
    refusal: str = ""
    """Why it does not answer."""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    """Each `{name, arguments}`, or in OpenAI's form."""
    is_json: bool = False
    """Whether `text` is an object or a list as JSON, which checks in JavaScript receive as a value."""


class CallFailedError(Exception):
    """A call brought no answer.

    Args:
        message: what happened, for people; secrets of the environment are taken out of it.
        status: HTTP status of the reply; 429 and 5xx are called again, 401 and 403 end the run.
        reason: goes before the status.
        wait_s: how long the provider asks to wait.
    """

    def __init__(
        self, message: str, *, status: int = 0, reason: Reason = "", wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.reason, self.wait_s = message, status, reason, wait_s


class ModelClient(Protocol):
    """Calls a model; a worker process makes one for each `config`, and uses it from one event loop.

    Limits, retries, cache, budget and the time limit are around it: it makes one call, and is cancelled when
    that takes too long.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Takes the `config` of the model in the bench; makes no call."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        """Makes one call, without blocking the loop.

        Raises:
            CallFailedError: there is no answer. Any other exception is a mistake of the client: it is not
                called again.
        """
        ...

    async def close(self) -> None:
        """Ends what it has opened."""
