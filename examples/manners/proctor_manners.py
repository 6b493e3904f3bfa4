"""An example of plug-ins: a check, a client of models and a prompt, registered in pyproject.toml."""

from collections.abc import Mapping
from typing import Any

import aiohttp

from proctor.plugins import CallFailedError, ModelAnswer, ModelCall


def polite(output: str, argument: Any, context: Mapping[str, Any]) -> tuple[float, str]:
    """Checks that no rude word is in the output: `{plugin.polite: {rude: [stupid]}}`, or alone."""
    rude = (argument or {}).get("rude", ["stupid", "nonsense"])
    found = [word for word in rude if word in output.lower()]
    return (0.0, f"{found[0]} is rude") if found else (1.0, "")


def please(context: Mapping[str, Any]) -> str:
    """Makes the prompt of a case: `prompts: [{plugin: please}]`."""
    return f"{context['vars']['question']} {context['config'].get('words', 'Please.')}"


class SupportDesk:
    """Asks an application by `POST {"query": …}`: `{name: desk, plugin: support-desk, config: {url: …}}`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._url = str(config["url"])
        self._session: aiohttp.ClientSession | None = None

    async def complete(self, call: ModelCall) -> ModelAnswer:
        """Makes one call; limits, retries, cache and the time limit are around it."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with self._session.post(self._url, json={"query": call.prompt}) as response:
                reply = await response.json(content_type=None)
        except aiohttp.ClientConnectorError as error:
            raise CallFailedError(str(error), reason="unreachable") from error
        except (aiohttp.ClientError, OSError) as error:
            raise CallFailedError(str(error), reason="connection_lost") from error
        except ValueError as error:
            raise CallFailedError(f"no JSON: {error}", reason="invalid_reply") from error
        if response.status != 200:
            wait = response.headers.get("Retry-After", "")
            wait_s = float(wait) if wait.isdecimal() else None
            raise CallFailedError(str(reply.get("error")), status=response.status, wait_s=wait_s)
        if not isinstance(reply.get("answer"), str):
            raise CallFailedError("the reply has no answer", reason="invalid_reply")
        usage = reply.get("usage") or {}
        return ModelAnswer(reply["answer"], usage.get("input"), usage.get("output"))

    async def close(self) -> None:
        """Closes its connections."""
        if self._session is not None:
            await self._session.close()
