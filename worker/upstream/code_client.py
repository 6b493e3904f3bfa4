"""Calls a function of a file beside a bench: a client of models as plug-ins are, in a process of its own.

A process is started at the first call and kept until it has been idle for a while. One in which a call does
not end in time gets no further calls, and is ended after its other calls. Calls that have lost their process
together are made again in one of their own each: the one that ended it ends no other then.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from proctor.plugins import CallFailedError, ModelAnswer, ModelCall, Reason
from shared.code.code_file import CodeFile
from shared.code.code_process import CALLS, CodeFailedError, CodeProcess, Failure, Role

LOAD_S: Final = 60.0
"""Time that a file may take to be loaded, with all that it imports."""
IDLE_S: Final = 60.0
"""How long a process without calls is kept."""
APART: Final = 4
"""Calls with a process of their own at a time."""


_REASONS: Final[Mapping[Failure, Reason]] = {
    "raised": "refused",
    "lost": "connection_lost",
    "lost_together": "connection_lost",
    "invalid": "invalid_reply",
    "unusable": "refused",
}


class _TokenUsage(msgspec.Struct):
    """As promptfoo has it."""

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None


class _Returned(msgspec.Struct, rename="camel"):
    """What a function may return instead of a text, as promptfoo has it; other keys are ignored."""

    output: Any = None
    error: Any = None
    status: int = 0
    token_usage: _TokenUsage | None = None
    cost: float | None = None
    reasoning: str = ""
    refusal: str = ""
    finish_reason: str = ""
    tool_calls: list[dict[str, Any]] = []


class _Running:
    """A process with the number of its calls."""

    def __init__(self, process: CodeProcess) -> None:
        self.process = process
        self.calls = 0
        self.is_left = False
        """Whether it gets no further calls."""


class CodeClient:
    """Calls the function of one file.

    Args:
        file: its text.
        config: what it is given beside each call.
        environment: of the worker, of which it is given the listed variables.
    """

    def __init__(self, file: CodeFile, config: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._file, self._config, self._environment = file, config, environment
        self._running: _Running | None = None
        self._starting = asyncio.Lock()
        self._slots, self._apart = asyncio.Semaphore(CALLS), asyncio.Semaphore(APART)
        self._idle: asyncio.TimerHandle | None = None

    async def prepare(self, model: str) -> None:
        """Starts the process, so that this takes nothing of a call's time.

        Raises:
            CallFailedError: the file cannot be run.
        """
        try:
            await self._started(model)
        except CodeFailedError as error:
            raise _failed(error) from None

    async def complete(self, call: ModelCall) -> ModelAnswer:
        """Calls the function.

        Raises:
            CallFailedError: it raised, returned an error or no answer, or its process ended.
        """
        params = {"temperature": call.temperature, **call.params}
        given = {name: value for name, value in params.items() if value is not None}
        options = {"id": call.model, "label": call.model, "config": self._config, "params": given}
        arguments = [call.prompt, options, {"vars": call.vars}]
        if self._file.is_check:
            question = json.loads(call.prompt)
            arguments = [question["function"], question["output"], question["context"]]
        async with self._slots:
            try:
                returned = await self._returned(call.model, arguments)
            except CodeFailedError as error:
                if self._file.is_check and error.failure == "raised" and not error.status:
                    returned = {"pass": False, "score": 0, "reason": str(error)}
                    return _verdict(self._file, returned)
                raise _failed(error) from None
        if self._file.is_check:
            return _verdict(self._file, returned)
        return answer_of(self._file.name, returned)

    async def close(self) -> None:
        """Ends the process."""
        if self._running is not None:
            self._running.process.close()

    async def _returned(self, model: str, arguments: list[Any]) -> Any:
        """Calls the function, in a process of its own where others have lost theirs with it."""
        try:
            return await self._call(await self._started(model), arguments)
        except CodeFailedError as error:
            if error.failure != "lost_together":
                raise
        async with self._apart:
            own = _Running(await self._start(model))
            own.is_left = True
            return await self._call(own, arguments)

    async def _call(self, running: _Running, arguments: list[Any]) -> Any:
        """Calls the function in a process."""
        running.calls += 1
        if not running.is_left:
            self._stay()
        try:
            return await asyncio.wrap_future(running.process.call(arguments))
        except asyncio.CancelledError:  # out of time, or not wanted any more: it may hang
            self._leave(running)
            raise
        finally:
            running.calls -= 1
            self._rest(running)

    async def _started(self, model: str) -> _Running:
        """Returns a process that takes calls."""
        async with self._starting:
            running = self._running
            if running is None or running.is_left or running.process.has_ended:
                running = self._running = _Running(await self._start(model))
            return running

    async def _start(self, model: str) -> CodeProcess:
        """Starts a process, and waits until the file is loaded."""
        options = {"id": model, "config": self._config}
        role: Role = "check" if self._file.is_check else "model"
        process = await asyncio.to_thread(
            CodeProcess, self._file, role, self._environment, options=options, beside=self._file.beside
        )
        try:
            await asyncio.wait_for(asyncio.wrap_future(process.ready), LOAD_S)
        except BaseException as error:
            process.close()
            if isinstance(error, TimeoutError):
                raise CodeFailedError(f"{self._file.name} was not loaded in time") from None
            raise
        return process

    def _leave(self, running: _Running) -> None:
        """Gives a process no further calls."""
        running.is_left = True
        if self._running is running:
            self._running = None

    def _rest(self, running: _Running) -> None:
        """Ends a process without calls: at once if it was left, else after a while."""
        if running.calls:
            return
        if running.is_left:
            running.process.close()
        else:
            self._stay()
            self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end, running)

    def _stay(self) -> None:
        """Keeps a process that would be ended soon."""
        if self._idle is not None:
            self._idle.cancel()

    def _end(self, running: _Running) -> None:
        """Ends a process that has had no call for a while."""
        self._leave(running)
        running.process.close()


def _verdict(file: CodeFile, returned: object) -> ModelAnswer:
    """Passes on what a check returned."""
    return ModelAnswer(json.dumps({"language": file.language, "value": returned}), cost_usd=0.0)


def _failed(error: CodeFailedError) -> CallFailedError:
    """Names why code did not answer."""
    reason = "" if error.status else _REASONS[error.failure]
    return CallFailedError(str(error), status=error.status, reason=reason, wait_s=error.wait_s)


def answer_of(name: str, returned: object) -> ModelAnswer:
    """Reads what a function returned.

    Raises:
        CallFailedError: it is an error, or no answer.

    >>> answer_of("a.py", {"output": "Hi", "tokenUsage": {"prompt": 3, "completion": 1}}).output_tokens
    1
    >>> answer_of("a.py", {"output": {"city": "Paris"}}).text
    '{"city": "Paris"}'
    """
    if isinstance(returned, str):
        return ModelAnswer(returned)
    if returned is None:
        what = f"{name} returned nothing: return a text, or {{output: …}}"
        raise CallFailedError(what, reason="invalid_reply")
    try:
        found = msgspec.convert(returned, _Returned)
    except msgspec.ValidationError as error:
        what = f"{name} returned neither a text nor {{output, …}}: {error}"
        raise CallFailedError(what, reason="invalid_reply") from None
    if found.error:
        raise CallFailedError(f"{name}: {_text(found.error)}", status=found.status)
    if found.output is None and not (found.refusal or found.tool_calls) and isinstance(returned, dict):
        what = f"{name} returned no text: its object has {', '.join(returned) or 'no keys'}"
        raise CallFailedError(f"{what}; output is what is read", reason="invalid_reply")
    usage = found.token_usage or _TokenUsage()
    return ModelAnswer(
        None if found.output is None else _text(found.output),
        usage.prompt,
        usage.completion if usage.prompt is not None or usage.completion is not None else usage.total,
        found.cost,
        found.finish_reason,
        found.reasoning,
        found.refusal,
        found.tool_calls,
        is_json=isinstance(found.output, dict | list),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
