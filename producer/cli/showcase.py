"""What `proctor demo` does: whole runs in a temporary data folder, and one decision of each sort told."""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

from producer.cli.context import Session
from producer.cli.params import chosen
from producer.cli.submission import Submission
from producer.cli.work import WorkOptions, work
from producer.sample_api.server import in_background
from shared.runs import TurnRow
from shared.turn_words import SummaryPolicy

PROCESSES: Final = 2
TOGETHER: Final = 8
"""Queries under way at a time: the sample API is quick, and the demo should be."""
_PEAK: Final = "f"
"""Flag of a turn at which the peak guardrail was active."""


class Shown(NamedTuple):
    """One decision, explained."""

    decision: str
    rule: str
    message: str
    why: str


def demonstrate(session: Session, *, keep: bool) -> int:
    """Decides the packaged turns, then evaluates the sample API; returns the exit code of what went wrong."""
    folder = Path(mkdtemp(prefix="proctor-demo-"))
    settings = session.settings.override(
        "demo", data_dir=folder / "data", redis_url=None, broker_url=None, embedded_idle_s=2.0
    )
    own = Session(replace(session.options, redis=None), settings)
    try:
        with as_file(files("examples") / "turns.jsonl") as path:
            code = _decide(own, path)
        if not own.options.json:
            with as_file(files("examples") / "copilot" / "data" / "evaluation_baselines.json") as path:
                code = _evaluate(own, path) or code
        if not own.options.json and not own.options.quiet:
            own.output.data("")
            own.output.note("next: `proctor init` writes a file to start from, `proctor run FILE` decides it")
        if keep:
            own.output.note(f"kept: PROCTOR_DATA_DIR={settings.data_dir} proctor runs")
        return code
    finally:
        if not keep:
            _stop_redis(own)
        own.close()
        if not keep:
            rmtree(folder, ignore_errors=True)


def _decide(session: Session, path: Path) -> int:
    """Runs the example file and explains some of its decisions."""
    output = session.output
    output.note("deciding the example conversations with a Redis and workers of our own")
    submission = Submission(session, str(path), chosen(None, "", SummaryPolicy.GUARDRAIL, ""))
    run = ""

    def begin(view: Any) -> str:
        nonlocal run
        run = submission.send(view, is_attended=True).run
        return run

    code = work(session, submission.kind(), WorkOptions(PROCESSES), begin)
    if not session.options.json and not session.options.quiet:
        messages = [json.loads(line)["message"] for line in path.read_bytes().splitlines()]
        shown = one_of_each(session.store.rows(run), messages)
        output.data("")
        output.table(("DECISION", "RULE", "MESSAGE", "WHY"), shown)
    return code


def _evaluate(session: Session, path: Path) -> int:
    """Puts the packaged queries to the sample API, which listens on a free port of the loopback only."""
    if not session.options.quiet:
        session.output.data("")
    session.output.note("putting fifty queries to a sample API of our own, on loopback")
    words = dict.fromkeys(("path", "method", "bearer_env", "start_from", "repeat", "retry_errors"))
    with in_background() as url:
        words |= {"api_url": url, "delay": 0, "concurrency": TOGETHER, "places": (), "headers": ()}
        choice = chosen(None, "", SummaryPolicy.GUARDRAIL, "", words=words)
        submission = Submission(session, str(path), choice)
        return work(
            session,
            submission.kind(),
            WorkOptions(1),
            lambda view: submission.send(view, is_attended=True).run,
        )


def one_of_each(rows: Iterable[TurnRow], messages: list[str]) -> list[Shown]:
    """Picks the first turn of each rule and the first one that was frozen at a peak, by rule."""
    found: dict[str, Shown] = {}
    for row in rows:
        sort = "frozen" if _PEAK in row.code[2:] else row.code[1:2]
        if sort in found or row.code[:1] not in "msk":
            continue
        result = json.loads(row.line)
        why = ("frozen at a peak: " if sort == "frozen" else "") + str(result["reason"])
        found[sort] = Shown(str(result["decision"]), str(result["rule"]), messages[row.index], why)
    return [found[sort] for sort in sorted(found)]


def _stop_redis(session: Session) -> None:
    """Stops the demo's own server now rather than after its idle time: its folder is about to go."""
    if "connection" in session.__dict__:
        with suppress(Exception):  # it may be gone already, and its guard stops it in any case
            session.client.shutdown(nosave=True)
