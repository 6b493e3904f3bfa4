"""Runs the evaluation harness: argparse, the document's text and files, and the queue behind it.

In addition to the document, every result is stored when it arrives, so that Ctrl-C, a crash or an unavailable
API lose none; files with the existing results are written in these cases too.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import to_builtins

from producer import env_files
from producer.aggregate.queries import metrics_of
from producer.api import Plan, submit
from producer.cli.error_exit import EXIT_INTERRUPTED, describe
from producer.cli.local.local_workers import LocalWorkers
from producer.cli.options.global_options import GlobalOptions
from producer.cli.output import is_lost, usable_streams
from producer.cli.session import Session
from producer.harness.earlier import NOTHING, earlier_results, owner_of, unfinished_runs
from producer.harness.query_progress import Lines, queries_of
from producer.load.baselines import BASELINES_PATH, Baselines, baselines_or_exit
from producer.load.source import Source
from producer.options import SubmitOptions
from producer.queries.load import start_at
from producer.queries.report import console
from producer.queries.report.files import (
    OutputPaths,
    write_report_md,
    write_results_csv,
    write_results_json,
)
from producer.queries.report.to_json import run_config
from shared.contracts.query_environment import api_url, delay_s
from shared.contracts.query_run import QueryRun
from shared.contracts.query_vocabulary import DEFAULT_API_URL, DEFAULT_DELAY_S
from shared.errors import ConfigError, InfrastructureError, InputError, ProctorError
from shared.kinds import QUERIES
from shared.names import RunState
from shared.redaction import redactor_of
from shared.runs import RunInfo

EXIT_FINISHED: Final = 0
EXIT_BAD_INPUT: Final = 1
EXIT_UNREACHABLE: Final = 3


class HarnessOptions(NamedTuple):
    """Options of the command line and the environment."""

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


def read_command_line(arguments: Sequence[str] | None, environment: Mapping[str, str]) -> HarnessOptions:
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
    return HarnessOptions(
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
    with usable_streams():
        try:
            env_files.load((), os.environ, warn=_warn)
            return _evaluate(read_command_line(arguments, os.environ))
        except (ProctorError, OSError, KeyboardInterrupt) as error:
            failure = describe(error)
            if failure is None:
                raise
            hint = f"  {failure.hint}\n" if failure.hint and not is_lost(error) else ""
            sys.stderr.write(f"Error: {failure.message}\n{hint}")
            return failure.exit


def _warn(warning: str) -> None:
    """Warns as the document does."""
    sys.stderr.write(f"Warning: {warning}\n")


def _evaluate(options: HarnessOptions) -> int:
    """Runs an evaluation or a dry run."""
    baselines = baselines_or_exit()
    try:
        queries = start_at(baselines.queries, options.start_from)
    except InputError as error:
        sys.stderr.write(f"Error: {error.message}\n  {error.hint}\n")
        return EXIT_BAD_INPUT
    first = queries[0].id
    _write(
        console.header(
            api_url=options.api_url, delay_s=options.delay_s, start_from=first, dry_run=options.is_dry
        )
    )
    _write(console.loaded(baselines.queries, baselines.version) + "\n")
    if options.is_dry:
        _write(console.dry_run(baselines.queries, delay_s=options.delay_s, queries=len(queries)))
        return EXIT_FINISHED
    OutputPaths.under(options.folder).check()
    _write(console.estimate(len(queries), options.delay_s) + "\nSending queries...\n\n")
    session = Session(GlobalOptions())
    try:
        return _Evaluation(session, options, baselines, first).run()
    finally:
        session.close()


class _Evaluation:
    """One evaluation through the queue."""

    def __init__(self, session: Session, options: HarnessOptions, baselines: Baselines, first: str) -> None:
        self._access, self._options, self._baselines, self._first = session.access, options, baselines, first
        self._ids = [query.id for query in baselines.queries]
        self._owner = owner_of(options.folder)
        self._earlier = NOTHING
        self._local_workers = LocalWorkers(session, [QUERIES], processes=1, in_flight=None)

    def run(self) -> int:
        """Sends the queries, writes the files, and returns the exit code."""
        access, options = self._access, self._options
        self._cancel_orphans()
        if not access.count_workers(QUERIES):
            self._local_workers.start()
        self._earlier = earlier_results(access.store, self._baselines.queries, self._first, options.api_url)
        if self._earlier.results:
            _write(f"  Keeping {self._from_earlier(self._earlier.results)}\n\n")
        run = self._submit()
        lines = Lines(access.store, run, self._ids, self._ids.index(self._first), _write)
        try:
            info = lines.follow(self._local_workers)
        except KeyboardInterrupt:
            # Ended rather than left: the next evaluation must not find this one still at work.
            access.ledger.control(run, RunState.CANCELLED)
            self._local_workers.interrupt(run)
            info = access.store.info(run)
            lines.catch_up(info)
            self._write_files(info)
            self._print_resume_hint("Interrupted", info)
            return EXIT_INTERRUPTED
        finally:
            self._local_workers.stop()
        self._write_files(info)
        if info.state == RunState.FINISHED:
            return EXIT_FINISHED
        self._print_resume_hint(f"The run is {info.state}", info)
        return EXIT_UNREACHABLE

    def _cancel_orphans(self) -> None:
        """Cancels runs of killed evaluations of this folder, which workers would continue."""
        access, options = self._access, self._options
        for info in unfinished_runs(access.store, self._baselines.queries, self._owner, options.api_url):
            access.ledger.control(info.run, RunState.CANCELLED)
            sys.stderr.write(
                f"Ended {info.run}, which an earlier evaluation left when it was killed;"
                f" its {info.done} of {info.total} results are kept\n"
            )

    def _submit(self) -> str:
        options, settings = self._options, self._access.settings
        run = QueryRun(
            api_url=options.api_url,
            delay_s=options.delay_s,
            start_from=self._first,
            continues=self._earlier.run,
            owner=self._owner,
        )
        submit_options = SubmitOptions(
            queries=run,
            redactor=redactor_of(settings),
            results_ttl_s=settings.results_ttl_s,
            max_backlog_items=settings.max_backlog_items,
            patience_s=settings.patience_s,
            await_disk=False,  # the baselines are a file; nothing is lost that cannot be submitted again
        )
        return submit(self._access, Plan(Source(BASELINES_PATH), QUERIES, submit_options)).run

    def _write_files(self, info: RunInfo) -> None:
        """Writes the three files and prints which, and the summary.

        Raises:
            ConfigError: a file cannot be written; the others are, and the run is kept.
            InfrastructureError: the same, because a disk is full.
        """
        paths = OutputPaths.under(self._options.folder)
        own = queries_of(self._access.store, info.run)
        found = self._earlier.results | {
            name: query.result.keys for name, query in own.items() if query.result
        }
        results = [found[name] for name in self._ids if name in found]
        kept = {name: result for name, result in self._earlier.results.items() if name not in own}
        metrics, notes = metrics_of(results), self._notes(kept, len(results))
        shown = [own[name].shown.keys if name in own else found[name] for name in self._ids if name in found]
        writers = self._writers(info, results, shown, to_builtins(metrics), paths=paths, notes=notes)
        failures = [failure for write in writers if (failure := _failure_of(write))]
        _write("\n" + console.written_files(*paths) + "\n" + console.summary(metrics))
        _write("".join(f"  Note: {note}\n" for note in notes))
        if failures:
            hint = f"nothing is lost: `proctor report {info.run} -o FILE` writes a report of the run"
            raise type(failures[0])("; ".join(error.message for error in failures), hint=hint)

    def _writers(
        self,
        info: RunInfo,
        results: Sequence[Mapping[str, Any]],
        shown: Sequence[Mapping[str, Any]],
        metrics: dict[str, Any],
        *,
        paths: OutputPaths,
        notes: Sequence[str],
    ) -> tuple[Callable[[], object], ...]:
        """Returns functions that write the three files; the report uses the displayed form of results."""
        options = self._options
        config = run_config(
            delay_s=options.delay_s,
            api_url=options.api_url,
            start_from=self._first,
            version=self._baselines.version,
        )
        return (
            partial(
                write_results_json,
                results,
                metrics,
                config,
                run_id=info.run,
                began_ms=info.created_ms,
                path=paths.json,
            ),
            partial(write_results_csv, results, path=paths.csv),
            partial(write_report_md, shown, metrics, info.run, notes=notes, path=paths.report),
        )

    def _notes(self, kept: Mapping[str, object], results: int) -> list[str]:
        """Returns notes about earlier and missing results."""
        notes = [f"{self._from_earlier(kept)}, which this run continues"] if kept else []
        if results < len(self._ids):
            notes.append(f"partial: {results} of {len(self._ids)} queries are in it")
        return notes

    def _from_earlier(self, kept: Mapping[str, object]) -> str:
        """Describes which results are those of an earlier run."""
        names = ", ".join(console.spans([name in kept for name in self._ids], self._ids))
        results = "result" if len(kept) == 1 else "results"
        return f"{len(kept)} earlier {results} ({names}) of {self._earlier.run}"

    def _print_resume_hint(self, what: str, info: RunInfo) -> None:
        """Names the query to start from next time: the first one that has no result."""
        own = queries_of(self._access.store, info.run)
        if info.state == RunState.ABORTED and own and next(reversed(own.values())).code:
            own.popitem()  # the query that could not connect
        answered = self._earlier.results.keys() | own.keys()
        left = [name for name in self._ids[self._ids.index(self._first) :] if name not in answered]
        hint = f"; continue with --start-from {left[0]}" if left else ""
        sys.stderr.write(f"{what}: results so far are kept in {info.run}{hint}\n")


def _failure_of(write: Callable[[], object]) -> ProctorError | None:
    """Writes a file; returns what went wrong."""
    try:
        write()
    except (ConfigError, InfrastructureError) as error:
        return error
    return None


def _write(text: str) -> None:
    """Prints at once, also into a pipe: people watch this for half an hour."""
    sys.stdout.write(text)
    sys.stdout.flush()
