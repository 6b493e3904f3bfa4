"""Prints an overview of a run: what it is, what did not pass, and where to look next."""

import shlex
from collections.abc import Sequence
from typing import Any, Final

from producer.cli.item_view import print_records
from producer.cli.presenters import closing, print_wait_reason
from producer.cli.session import Session
from producer.document import run_document
from producer.documents import AnyRun, as_json
from producer.report.cells import Size, plain
from producer.report.interfaces import TurnText
from producer.report.shown_item import ShownItem
from producer.row_reader import shown_of
from producer.text import plural
from shared.names import Outcome
from shared.runs import RunInfo

MOST: Final = 10
"""Items that are shown."""
GOOD: Final = frozenset({Outcome.PASSED, Outcome.DECIDED})


class _Found:
    """Keeps the first items that did not pass, and the first ones of all."""

    def __init__(self, info: RunInfo) -> None:
        self._shown = shown_of(info)
        self.failed = list[ShownItem]()
        self.first = list[ShownItem]()
        self.left = 0

    def page(self, rows: Sequence[Any]) -> None:
        """Takes some rows."""
        for row in rows:
            if row.code[:1] in {"x", "f", ""}:
                if len(self.failed) < MOST:
                    self.failed.append(self._shown(row))
                else:
                    self.left += 1
            elif len(self.first) < MOST:
                self.first.append(self._shown(row))

    def end(self, document: AnyRun) -> None:
        """Has nothing to add."""


def print_overview(session: Session, info: RunInfo) -> None:
    """Prints an overview of a run, whether it has ended or not; with `--json` its document.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    found = _Found(info)
    document = run_document(session.access.store, info.run, reports=[found], text=TurnText.SHOWN)
    output = session.output
    if session.options.json:
        output.data(as_json(document))
        return
    output.data(output.paint(f"{info.run}  {plain(info.title, Size.LINE)}", "bold"))
    if info.description:
        output.data(plain(info.description, Size.REASON))
    shown = found.failed or found.first
    if shown:
        output.data("")
        print_records(output, shown)
    if found.left and found.failed:
        output.data(
            f"  and {plural(found.left, 'more item')}: `{session.command('results', info.run, '--failed')}`"
        )
    print_wait_reason(session, info)
    output.data(closing(session, document, has_next=False))
    if shown:
        command = session.command("show", info.run)
        output.data(f"{output.paint('next:', 'cyan')} {command} {shlex.quote(shown[0].name)}")
