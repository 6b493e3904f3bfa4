"""Implements `proctor demo`: runs in a temporary data folder, and an explained decision of each rule."""

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

from producer.cli.options.case_options import SelectionOptions
from producer.cli.options.model_options import ModelOptions
from producer.cli.options.query_options import QueryOptions
from producer.cli.options.shared_options import SubmitChoice
from producer.cli.report_files import ReportFile
from producer.cli.session import Session
from producer.cli.submission import Submission
from producer.cli.work import WorkOptions, work
from producer.document import EXIT_DONE, EXIT_NOT_GOOD, run_document
from producer.report.run_verdict import verdict_of
from producer.sample_api.server import in_background
from shared.runs import TurnRow

PROCESSES: Final = 2
TOGETHER: Final = 8
"""Concurrent queries: the sample API is fast, and the demo should be too."""
INDENT: Final = 9
"""Of verdicts, behind the names of kinds."""
_PEAK: Final = "f"
"""Flag of a turn at which the peak guardrail was active."""


class Shown(NamedTuple):
    """One decision, explained."""

    decision: str
    rule: str
    message: str
    why: str


def demonstrate(session: Session, *, keep: bool, reports: Path | None = None) -> int:
    """Runs one example of each kind; returns the exit code of what went wrong.

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
    try:
        code, turns = _decide(own, reports)
        if not own.options.json:  # one document is what `--json` prints
            with in_background() as url:
                freeform_code, _ = _show_outputs(own, url, reports)
                queries_code, queries = _evaluate(own, url, reports)
                cases_code, cases = _validate(own, url, reports)
            code = cases_code or queries_code or freeform_code or code
            _print_verdicts(own, (turns, queries, cases))
            _print_next_steps(own, reports)
        if keep:
            own.output.note(f"kept: PROCTOR_DATA_DIR={settings.data_dir} proctor runs")
        return code
    finally:
        if not keep:
            _stop_redis(own)
        own.close()
        if not keep:
            rmtree(folder, ignore_errors=True)


def _decide(session: Session, reports: Path | None) -> tuple[int, str]:
    """Runs the example turns and explains some of their decisions; returns the exit code and the run's id."""
    output = session.output
    output.note("deciding the turns of example conversations with an embedded Redis and workers")
    with _example("turns.jsonl") as path:
        code, run = _run(session, path, reports, processes=PROCESSES)
        if not session.options.json and not session.options.quiet:
            messages = [json.loads(line)["message"] for line in path.read_bytes().splitlines()]
            shown = one_of_each(session.store.rows(run), messages)
            output.data("")
            output.table(("DECISION", "RULE", "MESSAGE", "WHY"), shown)
    return code, run


def _show_outputs(session: Session, url: str, reports: Path | None) -> tuple[int, str]:
    """Runs the packaged bench without criteria; returns as `_decide` does."""
    _begin(session, "showing the answers of two sample models side by side")
    return _run_bench(session, "freeform.yaml", url, reports)


def _evaluate(session: Session, url: str, reports: Path | None) -> tuple[int, str]:
    """Sends the packaged queries to the sample API; returns as `_decide` does."""
    _begin(session, "sending fifty queries to a local sample API")
    choice = SubmitChoice(
        queries=QueryOptions(api_url=url, delay=0), selection=SelectionOptions(concurrency=TOGETHER)
    )
    with _example("copilot", "data", "evaluation_baselines.json") as path:
        code, run = _run(session, path, reports, choice=choice)
    return _unless_failed(code), run


def _validate(session: Session, url: str, reports: Path | None) -> tuple[int, str]:
    """Runs the packaged bench; one model fails cases on purpose. Returns as `_decide` does."""
    _begin(session, "validating the answers of two sample models; one of them fails on purpose")
    return _run_bench(session, "bench.config.yaml", url, reports)


def _run_bench(session: Session, name: str, url: str, reports: Path | None) -> tuple[int, str]:
    """Runs a packaged bench with the models of the sample API."""
    choice = SubmitChoice(models=ModelOptions(api_base=f"{url}/v1"))
    with _example(".") as folder:
        code, run = _run(session, folder / name, reports, choice=choice)
    return _unless_failed(code), run


def _unless_failed(code: int) -> int:
    """Returns an exit code, and 0 for items that failed: the examples have some, to show how it looks."""
    return EXIT_DONE if code == EXIT_NOT_GOOD else code


def _begin(session: Session, note: str) -> None:
    """Prints the next step."""
    if not session.options.quiet:
        session.output.data("")
    session.output.note(note)


def _example(*parts: str) -> AbstractContextManager[Path]:
    """Finds a packaged example on disk."""
    return as_file(files("examples").joinpath(*parts))


def _run(
    session: Session,
    path: Path,
    reports: Path | None,
    *,
    processes: int = 1,
    choice: SubmitChoice | None = None,
) -> tuple[int, str]:
    """Runs a file as `proctor run` does; returns the exit code and the run's id."""
    submission = Submission(session, str(path), choice or SubmitChoice())
    written = [] if reports is None else [ReportFile("html", reports / f"{path.name.split('.')[0]}.html")]
    run = ""

    def begin(view: Any) -> str:
        """Submits the file."""
        nonlocal run
        run = submission.send(view, is_attended=True).run
        return run

    return work(session, submission.kind(), WorkOptions(processes, files=written, is_kept=False), begin), run


def _print_verdicts(session: Session, runs: Sequence[str]) -> None:
    """Prints the verdict on each run."""
    output = session.output
    if session.options.quiet:
        return
    output.data("")
    for run in runs:
        document = run_document(session.store, run)
        verdict = verdict_of(document)
        sentence = output.folded(f"{verdict.mark} {verdict.sentence}", indent=INDENT)
        output.data(f"{document['kind']:<{INDENT}}{output.painted(sentence, verdict.style)}")


def _print_next_steps(session: Session, reports: Path | None) -> None:
    """Prints what to try next."""
    if session.options.quiet:
        return
    session.output.data("")
    if reports is None:
        session.output.note("next: `proctor demo -o reports` writes what you saw as pages for a browser")
    else:
        session.output.note(f"next: open the pages in {reports}")
    session.output.note("      `proctor init` writes a file to start from, `proctor run FILE` runs it")


def one_of_each(rows: Iterable[TurnRow], messages: list[str]) -> list[Shown]:
    """Returns the first turn of each rule and the first one that was frozen at a peak, by rule."""
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
