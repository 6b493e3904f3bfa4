"""The least that does the work of a run in one process, without queue, limits, retries or report.

    python -m tests.benchmarks.bare_loops turns TURNS_FILE RESULTS_FILE
    python -m tests.benchmarks.bare_loops answers ANSWERS_FILE
    python -m tests.benchmarks.bare_loops aiohttp URL IN_FLIGHT COUNT
    python -m tests.benchmarks.bare_loops litellm API_BASE IN_FLIGHT COUNT

Benchmarks compare Proctor with these. Each imports only what it uses, since its start counts too.
"""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import process_time
from typing import Any, Final

from tests.support.tree import ROOT

COMMAND: Final = (sys.executable, "-W", "ignore", "-P", "-m", "tests.benchmarks.bare_loops")
ENV: Final = {"PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def decided(turn: dict[str, Any]) -> dict[str, Any]:
    """Decides one turn by the rules, without the memento of its thread."""
    from worker.breakpoint.engine import decide_breakpoint_action, extract_breakpoint_signal_kinds  # noqa: PLC0415 - the other loops start without it

    decision = decide_breakpoint_action(
        message=turn["message"],
        signal_kinds=extract_breakpoint_signal_kinds(turn),
        context_window_pressure=turn.get("contextWindowPressure", False),
        drift_risk=turn.get("driftRisk", False),
        summary_changed=turn.get("summaryChanged", False),
    )
    return {"threadId": turn["threadId"], "messageId": turn.get("messageId"), "decision": decision}


def turns(source: str, target: str) -> None:
    """Decides the turns of a file and writes the results into another."""
    with Path(source).open("rb") as lines, Path(target).open("w", encoding="utf-8") as out:
        out.writelines(f"{json.dumps(decided(json.loads(line)))}\n" for line in lines)


def answers(source: str) -> None:
    """Reads recorded answers, parses each as JSON, searches it, and compares it with the one before."""
    pattern, before, same = re.compile(r"\d"), None, 0
    with Path(source).open("rb") as lines:
        for line in lines:
            output = json.loads(line)["output"]
            answer = json.loads(output)
            same += bool(pattern.search(output)) and answer == before
            before = answer
    print(same)


async def together(ask: Callable[[int], Awaitable[None]], in_flight: int, count: int) -> None:
    """Calls a function for each number, so many at a time, and prints the CPU time of that, in seconds."""
    places, began_s = asyncio.Semaphore(in_flight), process_time()

    async def one(number: int) -> None:
        async with places:
            await ask(number)

    await asyncio.gather(*map(one, range(count)))
    print(process_time() - began_s)


async def over_aiohttp(url: str, in_flight: int, count: int) -> None:
    """Asks a model or an API over one aiohttp session; each answer is parsed."""
    import aiohttp  # noqa: PLC0415 - the other loops start without it

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def ask(number: int) -> None:
            message = {"role": "user", "content": f"case {number}"}
            async with session.post(url, json={"model": "m", "messages": [message]}) as response:
                response.raise_for_status()
                json.loads(await response.read())

        await together(ask, in_flight, count)


async def over_litellm(api_base: str, in_flight: int, count: int) -> None:
    """Asks a model through litellm."""
    import litellm  # noqa: PLC0415 - the other loops start without it

    litellm.suppress_debug_info = True

    async def ask(number: int) -> None:
        message = {"role": "user", "content": f"case {number}"}
        await litellm.acompletion(
            "openai/m", [message], api_base=api_base, api_key="k", num_retries=0, max_retries=0
        )

    await together(ask, in_flight, count)


def main(name: str, *arguments: str) -> None:
    """Runs one of the loops."""
    if name == "turns":
        turns(*arguments)
    elif name == "answers":
        answers(*arguments)
    else:
        url, in_flight, count = arguments
        loop = {"aiohttp": over_aiohttp, "litellm": over_litellm}[name]
        asyncio.run(loop(url, int(in_flight), int(count)))


if __name__ == "__main__":
    main(*sys.argv[1:])
