"""The calls of `producer.api` as coroutines: what waits for files or Redis runs in threads of the loop.

`follow` is read with `async for`. Before tasks share an `Access`, one of them calls its `connect`.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence

from producer import api
from producer.access import Access
from producer.aggregate.gates import Gate
from producer.documents import AnyRun
from producer.following.events import Event, FinishedEvent, Narrator
from producer.following.follower import Follower
from producer.forecasts import FileContents
from producer.load.source import Source
from producer.options import SubmitOptions, SubmittedRun
from producer.report_files import ReportTarget
from producer.turns.retry import Retried
from shared.kinds import Kind


async def plan(
    source: Source,
    options: SubmitOptions | None = None,
    *,
    kind: Kind | None = None,
    gates: Sequence[Gate] = (),
    access: Access | None = None,
) -> api.Plan:
    """As `api.plan`."""
    return await asyncio.to_thread(api.plan, source, options, kind=kind, gates=gates, access=access)


async def check(source: Source, options: SubmitOptions, *, kind: Kind | None = None) -> FileContents:
    """As `api.check`."""
    return await asyncio.to_thread(api.check, source, options, kind=kind)


async def submit(access: Access, plan: api.Plan) -> SubmittedRun:
    """As `api.submit`; a task that is cancelled meanwhile leaves the submit to its thread."""
    return await asyncio.to_thread(api.submit, access, plan)


async def retry(
    access: Access,
    run: str,
    *,
    indexes: Collection[int] | None = None,
    errors: bool = True,
    is_anew: bool = False,
) -> Retried:
    """As `api.retry`."""
    return await asyncio.to_thread(api.retry, access, run, indexes=indexes, errors=errors, is_anew=is_anew)


async def control(access: Access, run: str, action: str) -> str:
    """As `api.control`."""
    return await asyncio.to_thread(api.control, access, run, action)


async def follow(
    access: Access, run: str, *, timeout_s: float | None = None, gates: Sequence[Gate] = ()
) -> AsyncIterator[Event]:
    """As `api.follow`; it is cancelled with its task, within the time of one look at Redis."""
    narrator = Narrator()
    async for progress in Follower(access, run, timeout_s=timeout_s):
        for event in narrator.told(progress):
            yield event
    yield FinishedEvent(document=await report(access, run, gates=gates))


async def report(
    access: Access,
    run: str,
    files: Sequence[ReportTarget] = (),
    *,
    gates: Sequence[Gate] = (),
    with_text: bool = True,
) -> AnyRun:
    """As `api.report`."""
    return await asyncio.to_thread(api.report, access, run, files, gates=gates, with_text=with_text)
