"""Writes everything about one answer as HTML, as the panel of a report shows it, for a page of its own."""

from collections.abc import Callable

from producer.cases.report.html_answer import answer_of, asked_of
from producer.cases.report.html_images import TEMPLATE, PageImages
from producer.cases.report.opened_rows import opened
from producer.cases.report.wording import FREEFORM
from producer.report.cells import Size
from producer.report.html.rendering import fill
from producer.report.interfaces import ReadFile
from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CaseRun
from shared.runs import RunInfo


def html_of_cases(info: RunInfo, read: ReadFile) -> Callable[[ItemRow], bytes]:
    """Returns what writes an answer, given its row with its input.

    Args:
        info: the run.
        read: reads the images of the run.
    """
    run = CaseRun.from_snapshot(info.snapshot)

    def html(row: ItemRow) -> bytes:
        [case] = opened([row])
        images = PageImages()
        images.read = read
        shown = answer_of(case, run, Size.WHOLE, images, run_id=info.run, is_freeform=run.mode == FREEFORM)
        asked = list(asked_of(case, run, Size.WHOLE, images))
        return fill(TEMPLATE, "answer", shown._replace(asked=asked)) + b"".join(images.pieces())

    return html
