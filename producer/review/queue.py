"""The answers that a reviewer sees next: a sample, the most doubtful ones first. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from producer.review.answer_labels import AnswerLabel, Judgement
from shared.errors import UsageError

MOST_REVIEWERS: Final = 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that may be reviewed."""

    position: int
    """Position of the item in its run, from 0."""
    doubt: float = 0.0
    """How uncertain its verdict is, from 0 to 1; the fact `doubt` of its row."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Which answers are reviewed, and by how many people."""

    sample: int | None = None
    """Number of answers; None: all. The same for all reviewers of a run."""
    reviewers: int = 1
    """How many people see each answer."""

    def __post_init__(self) -> None:
        if self.sample is not None and self.sample < 1:
            raise UsageError(f"the sample has {self.sample} answers", hint="use 1 or more")
        if not 1 <= self.reviewers <= MOST_REVIEWERS:
            raise UsageError(f"each answer has {self.reviewers} reviewers", hint=f"use 1 to {MOST_REVIEWERS}")


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """How far a reviewer has come."""

    done: int
    """Answers of the sample that this reviewer has labelled, deferred ones included."""
    total: int
    """Answers assigned to this reviewer, labelled or not."""
    next: Sequence[int]
    """Positions of the answers that are left, in order."""


def progress(
    candidates: Iterable[Candidate], labels: Iterable[AnswerLabel], queue: Queue, *, run: str, reviewer: str
) -> ReviewProgress:
    """Returns the answers that a reviewer still has to label, in order.

    The most doubtful ones come first: judges disagree, or the score is near its bound. An answer that enough
    others have decided is left out, and so is one that this reviewer deferred.

    Args:
        candidates: the answers that a filter selects.
        labels: all labels of the run.
        queue: size of the sample, and number of reviewers.
        run: id of the run, which decides the sample.
        reviewer: whose progress is returned.

    >>> answers = [Candidate(0), Candidate(1, doubt=0.9), Candidate(2), Candidate(3)]
    >>> said = [AnswerLabel(position=0, reviewer="bob", verdict=Judgement.PASS)]
    >>> progress(answers, said, Queue(), run="r", reviewer="ann").next[0]
    1
    >>> [progress(answers, said, Queue(), run="r", reviewer=who).total for who in ("ann", "bob")]
    [3, 4]
    """
    sample = sampled(candidates, queue.sample, run)
    mine, decided = set[int](), Counter[int]()
    for label in labels:
        if label.reviewer == reviewer:
            mine.add(label.position)
        elif label.verdict is not Judgement.DEFER:
            decided[label.position] += 1
    done = sum(candidate.position in mine for candidate in sample)
    left = [each for each in sample if each.position not in mine and decided[each.position] < queue.reviewers]
    order = _order(run)
    left.sort(key=lambda each: (-each.doubt, order(each.position)))
    return ReviewProgress(done, done + len(left), [each.position for each in left])


def sampled(candidates: Iterable[Candidate], size: int | None, run: str) -> list[Candidate]:
    """Returns a sample that depends only on the run; a larger sample contains every smaller one.

    >>> few, more = (sampled(map(Candidate, range(50)), size, "r") for size in (5, 10))
    >>> len(few), {each.position for each in few} < {each.position for each in more}
    (5, True)
    """
    order = _order(run)
    return sorted(candidates, key=lambda candidate: order(candidate.position))[:size]


def _order(run: str) -> Callable[[int], bytes]:
    """Returns a sort key that puts positions in a pseudo-random order, which is always the same."""

    def key(position: int) -> bytes:
        return blake2b(f"{run} {position}".encode(), digest_size=8).digest()

    return key
