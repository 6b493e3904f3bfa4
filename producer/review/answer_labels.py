"""Labels: what people say of answers, and the verdict that several of one answer come to; pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from re import compile as compile_pattern
from typing import Final, NamedTuple

from msgspec import Struct

from producer.cases.judge_statistics import krippendorff_alpha
from producer.text import plural
from shared.errors import UsageError

REVIEWER: Final = compile_pattern(r"[^\s/]{1,64}")
"""What reviewers may be called: their names are parts of fields in Redis."""
REVIEWER_HINT: Final = "use a name without spaces and slashes, of at most 64 characters"
NOTE_CHARS: Final = 4_000
MOST_TAGS: Final = 20
DIGEST_BYTES: Final = 8
"""A label names its answer by so many bytes of a hash: answers to one item are few."""


class Judgement(StrEnum):
    """What a reviewer decided about an answer."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    DEFER = "defer"
    """Seen, and left to others."""


class AnswerLabel(Struct, frozen=True, kw_only=True):
    """What one reviewer says of one answer."""

    position: int
    """Of the item in its run, from 0."""
    reviewer: str
    verdict: Judgement
    note: str = ""
    tags: list[str] = []
    answer: str = ""
    """Digest of the answer that was seen (`digest_of`): after a retry, the label is of an earlier answer."""
    at_ms: int = 0
    """When it was given, epoch milliseconds."""


class Review(NamedTuple):
    """What the labels of a run come to."""

    verdicts: Mapping[int, bool]
    """By position, whether the answer is good; without those on which reviewers are evenly divided."""
    reviewers: Sequence[str]
    disputed: int
    """Answers on which reviewers are evenly divided."""
    kappa: float | None
    """How far reviewers agree, beyond chance; None without answers that two of them decided."""
    shared: int
    """Answers that at least two reviewers decided."""


NO_REVIEW: Final = Review({}, (), 0, None, 0)


def digest_of(answer: str) -> str:
    """Returns what stands for an answer in its labels.

    >>> digest_of("Paris"), digest_of("")
    ('6be76756dfb79024', 'e4a6a0577479b2b4')
    """
    return blake2b(answer.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()


def checked(label: AnswerLabel) -> AnswerLabel:
    """Returns the label.

    Raises:
        UsageError: the name of the reviewer cannot be used, or a text is too long.
    """
    check_reviewer(label.reviewer)
    if len(label.note) > NOTE_CHARS:
        raise UsageError(
            f"a note has {len(label.note):,} characters", hint=f"at most {NOTE_CHARS:,} are kept"
        )
    if len(label.tags) > MOST_TAGS:
        raise UsageError(f"a label has {len(label.tags)} tags", hint=f"at most {MOST_TAGS} are kept")
    return label


def check_reviewer(name: str) -> None:
    """Refuses what no reviewer may be called.

    Raises:
        UsageError: the name cannot be used.
    """
    if not REVIEWER.fullmatch(name):
        raise UsageError(f"reviewer {name!r} cannot be used", hint=REVIEWER_HINT)


def reviewed(labels: Iterable[AnswerLabel]) -> Review:
    """Puts labels together: of each answer the verdict of most reviewers.

    Agreement is Cohen's kappa (Educational and Psychological Measurement 20, 1960, pages 37-46) where two
    people reviewed, and Krippendorff's alpha where more did, since not everybody sees every answer.

    >>> said = ["0 ann pass", "0 bob pass", "1 ann fail", "1 bob pass", "2 ann defer"]
    >>> words = (each.split() for each in said)
    >>> labels = [AnswerLabel(position=int(a), reviewer=b, verdict=Judgement(c)) for a, b, c in words]
    >>> found = reviewed(labels)
    >>> found.verdicts, found.disputed, found.shared, found.kappa
    ({0: True}, 1, 2, 0.0)
    """
    decided = defaultdict[int, dict[str, bool]](dict)
    for label in labels:
        if label.verdict is not Judgement.DEFER:
            decided[label.position][label.reviewer] = label.verdict is Judgement.PASS
    passes = {at: Counter(said.values()) for at, said in decided.items()}
    verdicts = {at: votes[True] > votes[False] for at, votes in passes.items() if votes[True] != votes[False]}
    reviewers = sorted({who for said in decided.values() for who in said})
    shared = [said for said in decided.values() if len(said) > 1]
    return Review(
        verdicts, reviewers, len(decided) - len(verdicts), _agreement(shared, reviewers), len(shared)
    )


def _agreement(shared: Sequence[Mapping[str, bool]], reviewers: Sequence[str]) -> float | None:
    """Measures agreement on answers that at least two reviewers decided."""
    if len(reviewers) == 2:  # noqa: PLR2004 - Cohen's case
        one, other = reviewers
        return cohen_kappa([(said[one], said[other]) for said in shared])
    return krippendorff_alpha([[said.get(who) for who in reviewers] for said in shared])


def cohen_kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Returns how far two reviewers agree beyond chance; None if chance alone would make them agree.

    Args:
        pairs: the verdicts of both on each answer.

    The example of https://en.wikipedia.org/wiki/Cohen%27s_kappa, fifty proposals for grants:

    >>> seen = {(True, True): 20, (True, False): 5, (False, True): 10, (False, False): 15}
    >>> cohen_kappa([pair for pair, times in seen.items() for _ in range(times)])
    0.4
    """
    if not pairs:
        return None
    n = len(pairs)
    observed = sum(one == other for one, other in pairs) / n
    first, second = (sum(each) / n for each in zip(*pairs, strict=True))
    expected = first * second + (1 - first) * (1 - second)
    return None if expected == 1 else round((observed - expected) / (1 - expected), 4)


def agreement_line(review: Review) -> str:
    """Says in one line what the labels of a run come to.

    >>> agreement_line(Review({0: True, 1: False}, ["ann", "bob"], 1, 0.4, 3))
    'pass 1 · fail 1 · evenly divided 1 · ann and bob agree with kappa 0.40 on 3 answers'
    >>> agreement_line(Review({0: True}, ["ann"], 0, None, 0))
    'pass 1 · fail 0 · by ann'
    """
    good = sum(review.verdicts.values())
    parts = [f"pass {good}", f"fail {len(review.verdicts) - good}"]
    if review.disputed:
        parts.append(f"evenly divided {review.disputed}")
    if review.kappa is None:
        return " · ".join([*parts, f"by {_names(review.reviewers)}"])
    figure = "kappa" if len(review.reviewers) == 2 else "Krippendorff's alpha"  # noqa: PLR2004 - Cohen's case
    agreed = f"{_names(review.reviewers)} agree with {figure} {review.kappa:.2f}"
    return " · ".join([*parts, f"{agreed} on {plural(review.shared, 'answer')}"])


def _names(reviewers: Sequence[str]) -> str:
    return " and ".join(reviewers) if len(reviewers) < 3 else f"{len(reviewers)} reviewers"  # noqa: PLR2004 - as people say it
