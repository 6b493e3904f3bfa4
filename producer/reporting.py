"""Writes the reports of a run: in one pass over its results, or little by little while it goes on."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from threading import Event
from time import monotonic
from typing import Final

from producer import kinds
from producer.access import Access
from producer.aggregate.gates import Gate
from producer.atomic_file import atomic_file
from producer.document import document_of, run_document, totals_of
from producer.documents import AnyRun, WrittenFile
from producer.report.formats import format_of
from producer.report.interfaces import Report
from producer.report_files import ReportFile, ReportTarget, reports_of
from shared.runs import RunInfo
from shared.runs.growing import GrowingRun
from shared.runs.pages import Page

ASK_EVERY_S: Final = 0.02
"""Polling interval for the next chunk."""


def write_reports(
    access: Access,
    info: RunInfo,
    files: Sequence[ReportTarget],
    more: Sequence[Report] = (),
    *,
    gates: Sequence[Gate] = (),
    with_text: bool = True,
) -> AnyRun:
    """Writes reports in one pass over the results and returns the run's document.

    A file appears under its name when it is complete; until then an existing file is kept.

    Args:
        access: access to Redis.
        info: the run.
        files: the reports.
        more: further reports that read the results.
        gates: conditions that fail the run.
        with_text: whether they contain the texts of turns.

    Raises:
        InfrastructureError: a disk is full; the hint is how to write them later.
        UsageError: a report cannot be written for another reason.
        RedisUnreachableError: Redis stays away.
    """
    with reports_of(info.run, _on_disk(files), is_final=info.is_final), ExitStack() as stack:
        return run_document(
            access.store,
            info.run,
            reports=[*open_reports(stack, info, files), *more],
            files=_named(files),
            gates=gates,
            with_text=with_text,
        )


def open_reports(stack: ExitStack, info: RunInfo, files: Sequence[ReportTarget]) -> list[Report]:
    """Opens reports; files appear under their names when the stack is closed without an error.

    Raises:
        UsageError: runs of this kind are not written so.
        OSError: a report cannot be written.
    """
    writers = [format_of(info.kind, file.format) for file in files]
    return [
        write(stack.enter_context(atomic_file(file.path)) if isinstance(file, ReportFile) else file.out, info)
        for write, file in zip(writers, files, strict=True)
    ]


def _on_disk(files: Sequence[ReportTarget]) -> list[ReportFile]:
    return [file for file in files if isinstance(file, ReportFile)]


def _named(files: Sequence[ReportTarget]) -> list[WrittenFile]:
    """Returns the files that the document of the run names."""
    return [WrittenFile(file.format, str(file.path)) for file in _on_disk(files)]


class _UnfinishedError(Exception):
    """Closes report files that are not to appear."""


class IncrementalReports:
    """Reports that are written while the run is in progress.

    Args:
        access: access to Redis.
        info: the run.
        files: what to write.
        gates: conditions that fail the run.
        with_text: whether reports contain the texts of turns.
    """

    def __init__(
        self,
        access: Access,
        info: RunInfo,
        files: Sequence[ReportFile],
        *,
        gates: Sequence[Gate] = (),
        with_text: bool = True,
    ) -> None:
        self._access, self._files, self._gates = access, files, gates
        self._growing = GrowingRun(info.run, with_payload=bool(files))
        self._is_withheld = bool(files) and not with_text
        self._totals = totals_of(info.kind)
        self._stack = ExitStack()
        with reports_of(info.run, files, is_final=info.is_final):
            self._reports = open_reports(self._stack, info, files)
        self._is_lost = False
        self._pause = Event()

    @classmethod
    def of(
        cls,
        access: Access,
        run: str,
        files: Sequence[ReportFile],
        *,
        gates: Sequence[Gate] = (),
        with_text: bool = True,
    ) -> "IncrementalReports | None":
        """Begins to write, if the results of this run can be read before its end."""
        info = access.store.info(run)
        can_begin = kinds.of(info.kind).traits.is_read_early and not info.generation
        return cls(access, info, files, gates=gates, with_text=with_text) if can_begin else None

    def gather(self, within_s: float) -> None:
        """Reads new results for some time, or until all were read.

        A report that cannot be written now does not end the run: all of them are written anew at its end.

        Raises:
            RedisUnreachableError: Redis is unavailable; the next call continues from the same position.
        """
        deadline = monotonic() + within_s
        while (left_s := deadline - monotonic()) > 0:
            pages = None if self._is_lost else self._growing.next(self._access.impatient_store)
            try:
                for page in pages or ():
                    self._take(page)
            except OSError:
                self._is_lost = True
                self.discard()
            if pages is None:
                self._pause.wait(min(ASK_EVERY_S, left_s))
                if self._growing.is_read:
                    return

    def end(self, info: RunInfo) -> AnyRun | None:
        """Reads the rest and puts the reports in their places; returns the document of the run.

        Args:
            info: the run, which has ended.

        Returns:
            None if all of it must be read anew, because turns were retried meanwhile or a report could not be
            written; nothing was written.

        Raises:
            InfrastructureError: a disk is full.
            RedisUnreachableError: Redis stays away.
        """
        pages = None if self._is_lost else self._growing.rest(self._access.store, info)
        if pages is None:
            self.discard()
            return None
        with reports_of(info.run, self._files, is_final=info.is_final):
            return self._end(info, pages)

    def _end(self, info: RunInfo, pages: Iterable[Page]) -> AnyRun:
        """Reads the last pages and closes the reports."""
        for page in pages:
            self._take(page)
        document = document_of(info, self._totals, files=_named(self._files), gates=self._gates)
        for report in self._reports:
            report.end(document)
        self._stack.close()
        return document

    def discard(self) -> None:
        """Removes reports that are not complete."""
        with suppress(_UnfinishedError, OSError):  # a full disk takes nothing, and is to keep nothing either
            self._stack.__exit__(_UnfinishedError, _UnfinishedError(), None)

    def _take(self, page: Page) -> None:
        if self._is_withheld:
            from producer.turns.report.opened_rows import withheld  # noqa: PLC0415 - start-up: only --no-text needs it

            page = withheld(page)
        self._totals.add(page)
        for report in self._reports:
            report.page(page)
