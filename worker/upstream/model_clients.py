"""Chooses who calls a model: an `api_base` is called directly, named providers through litellm.

litellm is imported before the first call of a named provider: 2.5 to 5 seconds and 170 MB that a worker of
turns, queries or local models never pays, and that no call's time or limit pays either.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from shared.upstream.failure_reasons import FailureReason
from worker.upstream.chat import Destination, ModelReply, ModelRequest
from worker.upstream.direct_client import DirectClient
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest
from worker.upstream.failures import UpstreamError

if TYPE_CHECKING:
    import aiohttp

    from worker.upstream.litellm_client import LitellmClient

_WITHOUT: Final = re.compile(r"(o1|o3|o4|gpt-5)(?!\d)(?!-chat)", re.ASCII)
"""Beginnings of the names of models that reason and take none (OpenAI's)."""
_REFUSED: Final = re.compile(
    r"unsupported|not support|doesn.t support|only the default|deprecated|not permitted|unrecognized",
    re.IGNORECASE | re.ASCII,
)


class ModelClients:
    """The model clients of one process, as one.

    Args:
        session: returns the process's HTTP session; called on the loop.
        environment: holds the keys.
    """

    def __init__(
        self,
        session: "Callable[[], aiohttp.ClientSession]",
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._environment = environment
        self._session = session
        self._direct = DirectClient(session, environment)
        self._named: LitellmClient | None = None
        self._untempered: set[tuple[str, str]] = set()

    async def prepare(self, request: Destination) -> None:
        """Loads litellm and makes it ready, where a request is the first that needs it."""
        if not request.api_base:
            await self._litellm().prepare(request.model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Makes one call.

        Raises:
            UpstreamError: there is no answer.
        """
        place = request.model, request.api_base
        if request.temperature is not None and (place in self._untempered or not takes_temperature(place[0])):
            request = replace(request, temperature=None)
        try:
            return await self._complete(request)
        except UpstreamError as error:
            if request.temperature is None or not refuses_temperature(error):
                raise
            self._untempered.add(place)
            return await self._complete(replace(request, temperature=None))

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Makes one call for embeddings.

        Raises:
            UpstreamError: there are none.
        """
        if request.api_base:
            return await self._direct.embed(request)
        return await self._litellm().embed(request)

    async def _complete(self, request: ModelRequest) -> ModelReply:
        if request.api_base:
            return await self._direct.complete(request)
        return await self._litellm().complete(request)

    def _litellm(self) -> "LitellmClient":
        if self._named is None:
            from worker.upstream.litellm_client import LitellmClient  # noqa: PLC0415 - only where it is needed

            self._named = LitellmClient(self._session, self._environment)
        return self._named

    async def close(self) -> None:
        """Closes what litellm has opened; the session is the process's."""
        if self._named is not None:
            await self._named.close()


def takes_temperature(model: str) -> bool:
    """Tells whether a model may be sent a temperature, as far as its name says.

    >>> [takes_temperature(model) for model in ("openai/o3-mini", "gpt-5", "gpt-5-chat-latest", "gpt-4o")]
    [False, False, True, True]
    """
    return _WITHOUT.match(model.rpartition("/")[2]) is None


def refuses_temperature(error: UpstreamError) -> bool:
    """Tells whether a request was refused because it had a temperature at all.

    >>> refuses_temperature(UpstreamError(FailureReason.REFUSED, "Unsupported parameter: 'temperature'"))
    True
    >>> refuses_temperature(UpstreamError(FailureReason.REFUSED, "temperature has to be 2 at most"))
    False
    """
    return (
        error.reason is FailureReason.REFUSED
        and "temperature" in error.message.lower()
        and _REFUSED.search(error.message) is not None
    )
