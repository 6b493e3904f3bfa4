"""Implements `proctor demo`: runs in a temporary data folder, their verdicts, and with `-v` all results."""

import json
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from importlib.resources import as_file
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

from producer.cli.local.local_workers import LocalWorkers
from producer.cli.options.run_options import ModelOptions, QueryOptions, SelectionOptions
from producer.cli.options.shared_options import SubmitChoice
from producer.cli.presenters import RunResult, Unshown, presenter_of
from producer.cli.session import Session
from producer.cli.submission import Submission, unread
from producer.cli.work import WorkOptions, work
from producer.document import EXIT_DONE, EXIT_NOT_GOOD, report_of, run_document
from producer.packaged_examples import example as packaged
from producer.report_files import ReportFile
from producer.sample_api.pace import Pace
from producer.sample_api.server import in_background
from shared.kinds import CASES, QUERIES, TURNS
from shared.runs import TurnRow

PROCESSES: Final = 2
TOGETHER: Final = 8
"""Concurrent queries: the sample API is fast, and the demo should be too."""
LATENCY_MS: Final = 100
"""Of the sample API: enough for figures that mean something."""
INDENT: Final = 9
"""Of verdicts, behind the names of kinds."""
_PEAK: Final = "f"
"""Flag of a turn at which the peak guardrail was active."""


class ShownDecision(NamedTuple):
    """One decision, explained."""

    decision: str
    rule: str
    message: str
    why: str


class _Ended(NamedTuple):
    """A run that has ended."""

    run: str
    code: int
    """Exit code; 0 also where items failed."""


def demonstrate(session: Session, *, keep: bool, reports: Path | None = None) -> int:
    """Runs one example of each kind and prints the verdicts; returns the exit code of what went wrong.

    With `-v`, the results of each run come before the verdicts, and the decisions of turns are explained.

    Args:
        session: for the settings and the terminal; its Redis is left alone.
        keep: leaves the data folder where it is.
        reports: a folder for one HTML report of each; None writes none.
    """
    if reports is not None:
        reports.mkdir(parents=True, exist_ok=True)
    folder = Path(mkdtemp(prefix="proctor-demo-"))
    settings = session.settings.override(
        "demo", data_dir=folder / "data", redis_url=None, broker_url=None, embedded_idle_s=2.0
    )
    own = Session(replace(session.options, redis=None), settings)
    workers = LocalWorkers(own, [CASES, QUERIES, TURNS], processes=PROCESSES, in_flight=None)
    try:
        own.output.note("starting an embedded Redis, two workers and a sample API with two models")
        workers.start()
        workers.wait_until_alive()
        code = _decide(own, "", reports).code if own.options.json else _run_all(own, reports)
        if keep:
            own.output.note(f"kept: PROCTOR_DATA_DIR={settings.data_dir} proctor runs")
        return code
    finally:
        workers.stop()
        if not keep:
            _stop_redis(own)
        own.close()
        if not keep:
            rmtree(folder, ignore_errors=True)


def _run_all(session: Session, reports: Path | None) -> int:
    """Runs an example of each kind; outputs without a verdict are made only where somebody sees them."""
    is_whole = session.options.verbose > 0
    ended = list[_Ended]()
    with in_background(pace=Pace.of(LATENCY_MS)) as url:
        for example in (_validate, _evaluate, _decide):
            ended.append(example(session, url, reports))
            if not is_whole:
                _print_verdict(session, ended[-1])
        outputs = [_show_outputs(session, url, reports)] if is_whole or reports is not None else []
    if is_whole and not session.options.quiet:
        session.output.data("")
        for each in ended:
            _print_verdict(session, each)
    _print_next_steps(session, reports)
    return next((each.code for each in (*ended, *outputs) if each.code), EXIT_DONE)


def _validate(session: Session, url: str, reports: Path | None) -> _Ended:
    """Runs the packaged bench; one model fails cases on purpose."""
    _begin(session, "validating the answers of two sample models; one of them fails on purpose")
    return _run_bench(session, "bench.config.yaml", url, reports)


def _evaluate(session: Session, url: str, reports: Path | None) -> _Ended:
    """Sends the packaged queries to the sample API."""
    _begin(session, "sending fifty queries to a local sample API")
    choice = SubmitChoice(
        queries=QueryOptions(api_url=url, delay=0), selection=SelectionOptions(concurrency=TOGETHER)
    )
    with _example("copilot", "data", "evaluation_baselines.json") as path:
        return _run(session, path, reports, choice)


def _decide(session: Session, _url: str, reports: Path | None) -> _Ended:
    """Runs the example turns, and with `-v` explains some of their decisions."""
    output, options = session.output, session.options
    _begin(session, "deciding which turns of example conversations need a new summary")
    with _example("turns.jsonl") as path:
        ended = _run(session, path, reports)
        if options.verbose and not options.json and not options.quiet:
            messages = [json.loads(line)["message"] for line in path.read_bytes().splitlines()]
            shown = one_of_each(session.access.store.rows(ended.run), messages)
            output.data("")
            output.table(("DECISION", "RULE", "MESSAGE", "WHY"), shown)
    return ended


def _show_outputs(session: Session, url: str, reports: Path | None) -> _Ended:
    """Runs the packaged bench without criteria."""
    _begin(session, "showing the answers of two sample models side by side")
    return _run_bench(session, "freeform.yaml", url, reports)


def _run_bench(session: Session, name: str, url: str, reports: Path | None) -> _Ended:
    """Runs a packaged bench with the models of the sample API."""
    with _example(".") as folder:
        return _run(session, folder / name, reports, SubmitChoice(models=ModelOptions(api_base=f"{url}/v1")))


def _begin(session: Session, note: str) -> None:
    """Prints the next step, with `-v`."""
    if session.options.verbose and not session.options.quiet:
        session.output.data("")
        session.output.note(note)


def _example(*parts: str) -> AbstractContextManager[Path]:
    """Finds a packaged example on disk."""
    return as_file(packaged(*parts))


def _run(session: Session, path: Path, reports: Path | None, choice: SubmitChoice | None = None) -> _Ended:
    """Runs a file as `proctor run` does, and prints its results with `-v`."""
    asked = unread(session, str(path), choice or SubmitChoice())
    submission = Submission(session, asked)
    written = [] if reports is None else [ReportFile("html", reports / f"{path.name.split('.')[0]}.html")]
    is_shown = session.options.verbose > 0 or session.options.json
    presenter = presenter_of(session, RunResult(session, is_kept=False))
    options = WorkOptions(presenter if is_shown else Unshown(presenter), PROCESSES, files=written)
    run = ""

    def begin(view: Any) -> str:
        """Submits the file."""
        nonlocal run
        run = submission.send(view, is_attended=True).run
        return run

    code = work(session, asked.kind, options, begin)
    # The examples have items that fail, to show how it looks.
    return _Ended(run, EXIT_DONE if code == EXIT_NOT_GOOD else code)


def _print_verdict(session: Session, ended: _Ended) -> None:
    """Prints the verdict on a run."""
    output = session.output
    if session.options.quiet:
        return
    document = run_document(session.access.store, ended.run)
    verdict = report_of(document).verdict
    sentence = output.folded(f"{verdict.mark} {verdict.sentence}", indent=INDENT)
    output.data(f"{document.kind:<{INDENT}}{output.painted(sentence, verdict.style)}")


def _print_next_steps(session: Session, reports: Path | None) -> None:
    """Prints what to try next."""
    if session.options.quiet:
        return
    session.output.data("")
    if reports is not None:
        session.output.note(f"next: open the pages in {reports}")
    elif session.options.verbose:
        session.output.note("next: `proctor demo -o reports` writes what you saw as pages for a browser")
    else:
        session.output.note("next: `proctor demo -v` prints all results, `-o reports` writes pages")
    session.output.note("      `proctor init` writes a file to start from, `proctor run FILE` runs it")


def one_of_each(rows: Iterable[TurnRow], messages: list[str]) -> list[ShownDecision]:
    """Returns the first turn of each rule and the first one that was frozen at a peak, by rule."""
    found: dict[str, ShownDecision] = {}
    for row in rows:
        sort = "frozen" if _PEAK in row.code[2:] else row.code[1:2]
        if sort in found or row.code[:1] not in "msk":
            continue
        result = json.loads(row.line)
        why = ("frozen at a peak: " if sort == "frozen" else "") + str(result["reason"])
        found[sort] = ShownDecision(str(result["decision"]), str(result["rule"]), messages[row.index], why)
    return [found[sort] for sort in sorted(found)]


def _stop_redis(session: Session) -> None:
    """Stops the demo's own server now rather than after its idle time: its folder is about to go."""
    if "connection" in session.access.__dict__:
        with suppress(Exception):  # it may be gone already, and its guard stops it in any case
            session.access.client.shutdown(nosave=True)
