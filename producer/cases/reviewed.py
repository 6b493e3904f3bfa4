"""Puts what people said in a review in the place of the labels of the file, and counts what that changes."""

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from producer.cases.documents import ReviewFigures
from producer.cases.judging import Judging
from producer.cases.report.opened_rows import OpenedCase
from producer.review.answer_labels import Review


class ReviewTotals:
    """Takes cases one by one; without a review it returns them as they are."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self._before = Judging()
        self._added = self._changed = 0

    def add(self, case: OpenedCase) -> OpenedCase:
        """Returns the case with the label that people gave its answer."""
        if not self._review.reviewers:
            return case
        if not case.code and case.result is not None:
            self._before.add(case, case.result)
        verdict = self._review.verdicts.get(case.row.index)
        if verdict is None:
            return case
        label, before = "pass" if verdict else "fail", case.item.label
        self._added += before is None
        self._changed += before is not None and before != label
        criteria = {**case.item.criteria, "label": label}
        return case._replace(item=replace(case.item, criteria=criteria))

    def summary(self) -> ReviewFigures | UnsetType:
        """Returns what people said and what it changed; nothing without a review."""
        review = self._review
        if not review.reviewers:
            return UNSET
        return ReviewFigures(
            reviewers=list(review.reviewers),
            decided=len(review.verdicts),
            disputed=review.disputed,
            shared=review.shared,
            kappa=review.kappa,
            added=self._added,
            changed=self._changed,
            calibration_before=self._before.summary().calibration,
        )
