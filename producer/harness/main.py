"""Runs the evaluation harness: argparse, the document's text and files, and the queue behind it.

What the document leaves unsaid: every result is stored as it comes, so that Ctrl-C, a crash or an API that
goes away lose none; files are written after Ctrl-C and without the API too, with what there is.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from producer.aggregate.queries import calculate_metrics
from producer.cli.context import Session
from producer.cli.crew import Crew
from producer.cli.errors import EXIT_INTERRUPTED, describe
from producer.cli.options import GlobalOptions
from producer.harness.earlier import Earlier, earlier_results
from producer.harness.follow import Lines, results_of
from producer.load.baselines import BASELINES_PATH, Baselines, baselines_or_exit, start_at
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.report.queries import console
from producer.report.queries.files import (
    OutputPaths,
    write_report_md,
    write_results_csv,
    write_results_json,
)
from producer.report.queries.to_json import run_config
from producer.submit import submit
from shared.errors import InputError, ProctorError
from shared.names import Kind, RunState
from shared.query_run import QueryRun
from shared.query_settings import api_url, delay_s
from shared.query_words import DEFAULT_API_URL, DEFAULT_DELAY_S
from shared.runs import RunInfo

EXIT_FINISHED: Final = 0
EXIT_BAD_INPUT: Final = 1
EXIT_UNREACHABLE: Final = 3


class Asked(NamedTuple):
    """What the command line and the environment say."""

    delay_s: int
    """Seconds between queries."""
    api_url: str
    """Base URL."""
    start_from: str | None
    """Id of the first query; None for the first of all."""
    is_dry: bool
    """Whether nothing is to be sent."""
    folder: Path
    """Where `data/` and `reports/` are."""


def read_command_line(arguments: Sequence[str] | None, environment: Mapping[str, str]) -> Asked:
    """Reads the document's four options.

    Raises:
        SystemExit: help was asked for, or the command line cannot be understood.
        ConfigError: a value cannot be used.
    """
    parser = argparse.ArgumentParser(prog="evaluation_harness.py")
    parser.add_argument(
        "--delay",
        type=int,
        help=f"Seconds between API calls (default: {DEFAULT_DELAY_S}, from EVAL_DELAY_SECONDS env)",
    )
    parser.add_argument("--start-from", help="Resume from a specific query ID (e.g., Q-15)")
    parser.add_argument(
        "--dry-run", action="store_true", help="Load baselines and validate, don't send queries"
    )
    parser.add_argument("--api-url", help=f"API base URL (default: {DEFAULT_API_URL}, from EVAL_API_URL env)")
    parser.add_argument("--out", type=Path, default=Path(), help=argparse.SUPPRESS)
    found = parser.parse_args(arguments)
    return Asked(
        delay_s(found.delay, environment),
        api_url(found.api_url, environment),
        found.start_from,
        found.dry_run,
        found.out,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs an evaluation as the document has it.

    Args:
        arguments: without the program's name; None reads the process's own.

    Returns:
        0 finished, 1 bad baselines or unknown `--start-from`, 3 API or Redis not reachable, 130 Ctrl-C.
    """
    try:
        return _evaluate(read_command_line(arguments, os.environ))
    except (ProctorError, OSError, KeyboardInterrupt) as error:
        failure = describe(error)
        if failure is None:
            raise
        sys.stderr.write(f"Error: {failure.message}\n" + (f"  {failure.hint}\n" if failure.hint else ""))
        return failure.exit


def _evaluate(asked: Asked) -> int:
    """Does what was asked for."""
    baselines = baselines_or_exit()
    try:
        queries = start_at(baselines.queries, asked.start_from)
    except InputError as error:
        sys.stderr.write(f"Error: {error.message}\n  {error.hint}\n")
        return EXIT_BAD_INPUT
    first = queries[0]["id"]
    _write(
        console.header(api_url=asked.api_url, delay_s=asked.delay_s, start_from=first, dry_run=asked.is_dry)
    )
    _write(console.loaded(baselines.queries, baselines.version) + "\n")
    if asked.is_dry:
        _write(console.dry_run(baselines.queries, delay_s=asked.delay_s))
        return EXIT_FINISHED
    _write(console.estimate(len(queries), asked.delay_s) + "\nSending queries...\n\n")
    session = Session(GlobalOptions())
    try:
        return _Evaluation(session, asked, baselines, first).run()
    finally:
        session.close()


class _Evaluation:
    """One evaluation through the queue."""

    def __init__(self, session: Session, asked: Asked, baselines: Baselines, first: str) -> None:
        self._session, self._asked, self._baselines, self._first = session, asked, baselines, first
        self._ids = [query["id"] for query in baselines.queries]
        self._earlier = Earlier("", [])
        self._crew = Crew(session, Kind.QUERIES, processes=1, in_flight=None)

    def run(self) -> int:
        """Sends the queries, writes the files, and returns the exit code."""
        session, asked = self._session, self._asked
        if not session.count_workers(Kind.QUERIES):
            self._end_orphans()
            self._crew.start()
        self._earlier = earlier_results(session.store, self._baselines.queries, self._first, asked.api_url)
        run = self._submit()
        lines = Lines(session.store, run, self._ids, self._ids.index(self._first), _write)
        try:
            info = lines.follow(self._crew)
        except KeyboardInterrupt:
            # Ended rather than left: the next evaluation must not find this one still at work.
            session.ledger.control(run, RunState.CANCELLED)
            self._crew.stop()
            info = session.store.info(run)
            lines.catch_up(info)
            self._write_files(info)
            self._tell_where_to_go_on("Interrupted", info)
            return EXIT_INTERRUPTED
        finally:
            self._crew.stop()
        self._write_files(info)
        if info.state == RunState.FINISHED:
            return EXIT_FINISHED
        self._tell_where_to_go_on(f"The run is {info.state}", info)
        return EXIT_UNREACHABLE

    def _end_orphans(self) -> None:
        """Ends runs to the same API that a killed evaluation left: our worker would go on with them."""
        for info in self._session.store.list(kind=Kind.QUERIES, state=RunState.RUNNING):
            if QueryRun.from_snapshot(info.snapshot).api_url == self._asked.api_url:
                self._session.ledger.control(info.run, RunState.CANCELLED)

    def _submit(self) -> str:
        asked, settings = self._asked, self._session.settings
        run = QueryRun(
            api_url=asked.api_url,
            delay_s=asked.delay_s,
            start_from=self._first,
            continues=self._earlier.run,
        )
        options = SubmitOptions(
            queries=run,
            results_ttl_s=settings.results_ttl_s,
            max_backlog_items=settings.max_backlog_items,
            patience_s=settings.patience_s,
            await_disk=False,  # the baselines are a file; nothing is lost that cannot be submitted again
        )
        self._session.require_broker()
        source, publisher = Source(BASELINES_PATH), self._session.publisher
        return submit(self._session.ledger, publisher, source, kind=Kind.QUERIES, options=options).run

    def _write_files(self, info: RunInfo) -> None:
        """Writes the three files and prints which, and the summary."""
        asked, paths = self._asked, OutputPaths.under(self._asked.folder)
        results = [*self._earlier.results, *results_of(self._session.store, info.run)]
        metrics = calculate_metrics(results)
        config = run_config(
            delay_s=asked.delay_s,
            api_url=asked.api_url,
            start_from=self._first,
            version=self._baselines.version,
        )
        write_results_json(
            results, metrics, config, run_id=info.run, began_ms=info.created_ms, path=paths.json
        )
        write_results_csv(results, path=paths.csv)
        write_report_md(results, metrics, info.run, notes=self._notes(results), path=paths.report)
        _write("\n" + console.written_files(*paths) + "\n" + console.summary(metrics))

    def _notes(self, results: Sequence[Mapping[str, Any]]) -> list[str]:
        """Says what a reader must know before trusting the numbers."""
        notes = []
        if self._earlier.results:
            last = self._earlier.results[-1]["id"]
            notes.append(f"results up to {last} are from {self._earlier.run}, which this run continues")
        if len(results) < len(self._ids):
            notes.append(f"partial: {len(results)} of {len(self._ids)} queries are in it")
        return notes

    def _tell_where_to_go_on(self, what: str, info: RunInfo) -> None:
        """Names the query to start from next time: the first one without an answer."""
        sent = {result["id"] for result in results_of(self._session.store, info.run) if not result["error"]}
        left = [name for name in self._ids[self._ids.index(self._first) :] if name not in sent]
        hint = f"; continue with --start-from {left[0]}" if left else ""
        sys.stderr.write(f"{what}: results so far are kept{hint}\n")


def _write(text: str) -> None:
    """Prints at once, also into a pipe: people watch this for half an hour."""
    sys.stdout.write(text)
    sys.stdout.flush()
