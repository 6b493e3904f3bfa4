"""A run in four calls, sync and async: planned, submitted, followed and reported without a command line."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from textwrap import dedent

import pytest

from producer import api, api_async
from producer.access import Access
from producer.aggregate.gates import parse_gate
from producer.documents import AnyRun, WrittenFile, as_json
from producer.following.events import Event, FinishedEvent, as_line
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.report_files import ReportFile, ReportStream
from shared.errors import InputError, UnknownRunError, UsageError
from shared.kinds import CASES, TURNS
from shared.settings import Settings
from tests.support.benches import HEAD, write
from tests.support.processes import Processes
from tests.support.schemas import hold
from tests.support.tree import ROOT
from tests.support.turn_files import turn_lines, write_turns
from tests.support.workers import start_worker

RECORDED = '{"case": 0, "model": "m", "output": "yes"}\n{"case": 1, "model": "m", "output": "no"}\n'


@pytest.fixture(autouse=True)
def _silence(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No call prints."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def access(redis_url: str, tmp_path: Path) -> Iterator[Access]:
    """The way to the session's server."""
    settings = Settings.from_environment({"PROCTOR_DATA_DIR": str(tmp_path / "data")})
    with Access(settings.override("test", redis_url=redis_url)) as opened:
        yield opened


@pytest.fixture
def turns(tmp_path: Path) -> Source:
    """A file of 200 turns in 20 threads."""
    return Source(write_turns(tmp_path / "turns.jsonl", turn_lines(20, 10)))


def words(events: Sequence[Event]) -> list[str]:
    """The names of events, each line of which fits the schema of `--jsonl`."""
    return [hold("line-events", as_line(event))["event"] for event in events]


def last(events: Sequence[Event]) -> FinishedEvent:
    """The event with the run's document, which no other event follows."""
    assert [word for word in words(events) if word == "finished"] == ["finished"]
    end = events[-1]
    assert isinstance(end, FinishedEvent)
    return end


def test_a_run_of_turns_in_four_calls(
    access: Access, turns: Source, processes: Processes, tmp_path: Path
) -> None:
    """Planned, submitted, followed and written to a path and to an open file."""
    plan = api.plan(turns)
    assert (plan.kind, plan.forecast) == (TURNS, None)
    start_worker(processes, "-Q", "turns")
    submitted = api.submit(access, plan)
    events = list(api.follow(access, submitted.run, gates=[parse_gate("error_rate>0.5")]))
    assert words(events)[0] == "submitted"
    document = last(events).document
    assert (document.counts.total, document.exit, document.missed_gates) == (200, 0, [])
    out, path = BytesIO(), tmp_path / "turns.md"
    written = api.report(access, submitted.run, [ReportStream("jsonl", out), ReportFile("md", path)])
    assert len(out.getvalue().splitlines()) == 200
    assert submitted.run in path.read_text()
    assert written.files == (WrittenFile("md", str(path)),)


@pytest.mark.usefixtures("turns")
def test_the_program_of_the_docstring_runs(redis_url: str, processes: Processes, tmp_path: Path) -> None:
    """What the module shows can be copied: it prints the events and writes the report."""
    start_worker(processes, "-Q", "turns")
    lines = (api.__doc__ or "").splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("    from "))
    last = max(at for at, line in enumerate(lines) if line.startswith("        "))
    program = dedent("\n".join(lines[first : last + 1]))
    environment = {**os.environ, "PROCTOR_REDIS_URL": redis_url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"event": "finished"' in done.stdout
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


def test_a_plan_is_read_checked_and_priced(access: Access, tmp_path: Path) -> None:
    """Calls, cost and what will probably fail are values; what was read is submitted without the file."""
    price = "{api_base: 'http://localhost:1/v1', prices: {prompt_per_million: 1, completion_per_million: 2}}"
    path = write(
        tmp_path, f"{HEAD}model_configs: {{m: {price}}}\ntest_cases: [{{input: Hi}}, {{input: Ho}}]\n"
    )
    plan = api.plan(Source(path))
    assert plan.kind == CASES
    forecast = plan.forecast
    assert forecast is not None
    assert (forecast.calls, forecast.items) == (2, 2)
    assert forecast.cost_usd
    path.unlink()
    assert api.submit(access, plan).total == 2


def test_a_plan_of_what_failed_before(access: Access, tmp_path: Path) -> None:
    """Any caller can limit a run to it: the first run is of everything, and one without failures, too."""
    own = "model_configs: {m: {api_base: 'http://localhost:1/v1'}}\n"
    path, notes = write(tmp_path, f"{HEAD}{own}test_cases: [{{input: Hi}}]\n"), list[str]()
    options = SubmitOptions(last_failed=True, on_note=notes.append)
    run = api.submit(access, api.plan(Source(path), options, access=access)).run
    assert api.plan(Source(path), options, access=access).options.cases.only is None
    assert notes == [
        f"--last-failed: there is no earlier run of {path}; all of it is run",
        f"--last-failed: none of the 1 case of {run} failed; all of the file is run",
    ]
    with pytest.raises(UsageError, match="needs the way to Redis"):
        api.plan(Source(path), options)
    with pytest.raises(UnknownRunError):
        asyncio.run(api_async.retry(access, "run-none"))


def test_a_check_says_what_is_in_a_file(turns: Source) -> None:
    """The contents are a document and a sentence."""
    found = api.check(turns, SubmitOptions())
    assert hold("validate", as_json(found.document))["counts"] == {
        "total": 200,
        "chunks": 1,
        "threads": 20,
    }
    assert found.text.endswith("nothing was sent")


@pytest.mark.parametrize("call", [api.plan, lambda source: api.check(source, SubmitOptions())])
def test_a_bad_file_is_an_error_with_file_and_line(call: object, tmp_path: Path) -> None:
    """What is wrong is raised with its place, before anything is sent."""
    path = write(tmp_path, HEAD + "test_cases:\n  - {input: Hi}\n  - {input: 5}\n")
    with pytest.raises(InputError, match=rf"{path}:\d+: test_cases\[1\].input"):
        call(Source(path))  # type: ignore[operator]  # both take a source


def test_a_bad_line_is_found_by_the_submit(access: Access, tmp_path: Path) -> None:
    """A file of turns is read while it is submitted; nothing of a broken one is left."""
    path = tmp_path / "turns.jsonl"
    path.write_text('{"threadId": "t", "message": "ok"}\n{"threadId": 1}\n')
    with pytest.raises(InputError, match=r"turns\.jsonl:2: "):
        api.submit(access, api.plan(Source(path)))
    assert access.store.list(limit=5) == []


def test_what_does_not_fit_is_an_error(access: Access, turns: Source) -> None:
    """A gate, a run and a format that do not exist are errors of the one tree."""
    with pytest.raises(UsageError, match="similarity"):
        api.plan(turns, gates=[parse_gate("similarity>1")])
    with pytest.raises(UnknownRunError):
        next(api.follow(access, "run-none"))
    run = api.submit(access, api.plan(turns)).run
    with pytest.raises(UsageError, match="cannot be written as nothing"):
        api.report(access, run, [ReportStream("nothing", BytesIO())])


def test_a_closed_follow_can_be_taken_up_again(access: Access, turns: Source, processes: Processes) -> None:
    """To stop following does nothing to the run; the next one begins with its present state."""
    run = api.submit(access, api.plan(turns)).run
    events = api.follow(access, run)
    assert [next(events).event, next(events).event] == ["submitted", "waiting"]
    events.close()  # type: ignore[attr-defined]  # a generator
    start_worker(processes, "-Q", "turns")
    assert last(list(api.follow(access, run))).document.state == "finished"
    ended = list(api.follow(access, run))
    assert words(ended) == ["submitted", "progress", "finished"]


def test_a_time_limit_ends_the_run(access: Access, turns: Source) -> None:
    """Without a worker nothing happens; the limit ends the run as incomplete."""
    run = api.submit(access, api.plan(turns)).run
    assert last(list(api.follow(access, run, timeout_s=0.1))).document.state == "incomplete"


def test_several_tasks_follow_one_run(access: Access, turns: Source, processes: Processes) -> None:
    """A server plans, submits and follows in one loop: each task gets the end, a cancelled one ends alone."""

    async def gathered(run: str) -> list[Event]:
        return [event async for event in api_async.follow(access, run)]

    async def work() -> tuple[list[list[Event]], AnyRun]:
        access.connect()
        plan = await api_async.plan(turns)
        run = (await api_async.submit(access, plan)).run
        cancelled, *tasks = (asyncio.create_task(gathered(run)) for _ in range(3))
        await asyncio.sleep(0.2)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await asyncio.to_thread(start_worker, processes, "-Q", "turns")
        found = await asyncio.gather(*tasks)
        out = BytesIO()
        document = await api_async.report(access, run, [ReportStream("html", out)])
        assert out.getvalue().startswith(b"<!doctype html>")
        return found, document

    found, document = asyncio.run(work())
    ends = [last(events).document for events in found]
    assert [end.counts.total for end in ends] == [200, 200]
    assert [end.state for end in [*ends, document]] == ["finished"] * 3


def test_failed_items_are_put_back_to_work(access: Access, tmp_path: Path, processes: Processes) -> None:
    """A retry names what it put back; where every item has an answer there is nothing to retry."""
    write(tmp_path, RECORDED, "outputs.jsonl")
    bench = write(tmp_path, HEAD + "config: {judge_model: null}\ntest_cases: [{input: Hi}, {input: Ho}]\n")
    options = SubmitOptions()
    options = SubmitOptions(cases=type(options.cases)(outputs=str(tmp_path / "outputs.jsonl")))
    run = api.submit(access, api.plan(Source(bench), options)).run
    start_worker(processes, "-Q", "cases")
    last(list(api.follow(access, run)))
    with pytest.raises(UsageError, match="nothing to retry"):
        api.retry(access, run)
    assert api.retry(access, run, indexes=[1]).items == 1
    assert last(list(api.follow(access, run))).document.state == "finished"
