"""Runs in a process of its own: loads one Python file, calls its function and answers, a line of JSON each.

Run as `python -I host.py` by `keeper.py`. The first line on 0 says what is loaded, each further one is a
call; the first line on 3 says whether it was loaded. Plain functions run in threads, coroutines on one loop.
"""

import asyncio
import importlib.util
import inspect
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

REPLIES_FD = 3
MODULE = "proctor_code"
"""What the file is called as a module."""
LOAD = 0
"""The number that answers whether the file was loaded."""
THREADS = 64
"""Calls of plain functions at a time; whoever calls keeps to it."""
USUAL = {
    "model": "call_api",
    "prompt": "create_prompt",
    "cases": "generate_tests",
    "check": "get_assert",
}
"""What functions are called whose name is not given, by what they are for."""


class NoFunctionError(Exception):
    """The file has no such function."""


def answer(reply: dict[str, Any]) -> None:
    """Writes one line."""
    try:
        line = json.dumps(reply, allow_nan=False)
    except (TypeError, ValueError) as error:
        line = json.dumps({"id": reply.get("id"), "error": f"what it returned is no JSON: {error}"})
    _write(line.encode() + b"\n")


_lock = threading.Lock()


def _write(data: bytes) -> None:
    with _lock:
        while data:
            data = data[os.write(REPLIES_FD, data) :]


def load(path: str, name: str, role: str) -> Callable[..., Any]:
    """Loads the function of a file; of a check, what calls the one that each call names.

    Args:
        path: of the file.
        name: of the function; empty: the usual one, or the only one.
        role: what it is for, as in `USUAL`.
    """
    sys.path.insert(0, os.path.dirname(path))  # noqa: PTH120 - pathlib is not needed for a word
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    if role == "check":
        return lambda called, *given: (found := chosen(module, called or name, role))(*accepted(found, given))
    return chosen(module, name, role)


def chosen(module: ModuleType, name: str, role: str) -> Callable[..., Any]:
    """Finds a function by its name, also one of a class; without a name the usual or the only one."""
    own = [
        each
        for each, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not each.startswith("_")
    ]
    if not name:
        name = own[0] if len(own) == 1 else USUAL[role]
    found: Any = module
    for step in name.split("."):
        found = getattr(found, step, None)
    if not callable(found):
        file = os.path.basename(str(module.__file__))  # noqa: PTH119 - pathlib is not needed for a word
        has = f"it has {', '.join(own)}; {file}:{own[0]} names one" if own else "it has none"
        raise NoFunctionError(f"no function {name}: {has}")
    usable: Callable[..., Any] = found
    return usable


def accepted(function: Callable[..., Any], arguments: Sequence[Any]) -> Sequence[Any]:
    """Returns as many of the arguments as a function takes."""
    try:
        kinds = [each.kind for each in inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return arguments
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return arguments
    taken = sum(
        kind in {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD} for kind in kinds
    )
    return arguments[:taken]


def failure(error: BaseException) -> dict[str, Any]:
    """Says what an exception was; the status of a reply, where a client's exception has one."""
    replied = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(replied, "status_code", None)
    headers = getattr(replied, "headers", None) or {}
    wait = str(headers.get("retry-after") or headers.get("Retry-After") or "")
    words = "".join(traceback.format_exception_only(error)).strip() or type(error).__name__
    file = getattr(sys.modules.get(MODULE), "__file__", None)
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    return {
        "error": str(error) if isinstance(error, NoFunctionError) else words,
        "line": lines[-1] if lines else None,
        "status": status if isinstance(status, int) else 0,
        "is_connection": isinstance(error, OSError),
        "wait_s": float(wait) if wait.replace(".", "", 1).isdecimal() else None,
    }


async def serve(function: Callable[..., Any], lines: "asyncio.Queue[bytes]") -> None:
    """Answers calls until their end."""
    threads, tasks = ThreadPoolExecutor(THREADS), set[asyncio.Task[None]]()
    loop = asyncio.get_running_loop()

    async def one(call: dict[str, Any]) -> None:
        """Answers one call with its value or its error."""
        arguments = accepted(function, call["arguments"])
        try:
            if inspect.iscoroutinefunction(function):
                value = await function(*arguments)
            else:
                value = await loop.run_in_executor(threads, lambda: function(*arguments))
                if inspect.isawaitable(value):
                    value = await value
            if inspect.isgenerator(value):
                value = await loop.run_in_executor(threads, list, value)
        except BaseException as error:  # noqa: BLE001 - whatever it raises is its answer, `sys.exit` too
            answer({"id": call["id"], **failure(error)})
        else:
            answer({"id": call["id"], "value": value})

    while line := await lines.get():
        task = loop.create_task(one(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def main() -> None:
    """Loads and serves."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    calls = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123, ASYNC230 - what it reads from stdin is no call
        os.dup2(nothing.fileno(), 0)
    start = json.loads(calls.readline())
    try:
        function = load(start["path"], start["function"], start["role"])
    except BaseException as error:  # noqa: BLE001 - whatever its import raises
        answer({"id": LOAD, **failure(error)})
        return

    def read() -> None:
        for line in calls:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        os._exit(0)

    answer({"id": LOAD, "value": None})
    threading.Thread(target=read, daemon=True).start()
    await serve(function, lines)


if __name__ == "__main__":
    asyncio.run(main())
