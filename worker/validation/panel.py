"""A panel of judges: what each has said, and what more than half of them say; one judge is a panel of one."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from shared.thresholds import reaches
from worker.validation.case_verdict import JudgeReply
from worker.validation.display import cut, escape_surrogates

REPLY_CHARS: Final = 4_000
"""Characters of a single judge's reply, or of why there is none, that are kept."""
VOTE_CHARS: Final = 200
"""Characters of the reply of each judge of a panel that are kept."""
Verdict = Literal["pass", "fail", "unclear"]
_LINE_ENDS: Final = str.maketrans({"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


class JudgePrompt(NamedTuple):
    """The two messages to a judge."""

    system: str
    """System message: the role of the judge."""
    user: str
    """The question, with what is judged as data."""
    form: Mapping[str, Any] | None = None
    """JSON Schema of the reply, for judges whose provider can keep to one; None: it is read as it comes."""
    shared_chars: int = 0
    """So many characters of the question, from its start, are the same for every output."""


def json_line(value: Any) -> str:
    r"""Writes a value as one line of JSON with sorted keys, in which nothing can pose as another line.

    >>> json_line({"b": 1, "a": "x\u2028"})
    '{"a": "x\\u2028", "b": 1}'
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False).translate(_LINE_ENDS)


class Opinion(NamedTuple):
    """What the reply of a judge says."""

    verdict: Verdict
    """In a word."""
    score: float | None
    """As a number from 0 to 1; None: the reply has none, and decides nothing."""
    reason: str = ""
    """In the judge's words, or why there is no score."""


class Vote(NamedTuple):
    """What one judge said, or why it could not be asked."""

    model: str
    """The judge; empty where nothing is known of it."""
    opinion: Opinion | None = None
    """What it said; None: it could not be asked."""
    reply: str = ""
    """Its reply, word for word."""
    call: Mapping[str, Any] = {}
    """Tokens, cost and the like of the call."""
    unreachable: str = ""
    """Why it could not be asked."""

    @property
    def verdict(self) -> Verdict | None:
        """Its opinion in a word; None: it could not be asked."""
        return None if self.opinion is None else self.opinion.verdict

    @property
    def score(self) -> float | None:
        """Its opinion as a number; None without one."""
        return None if self.opinion is None else self.opinion.score

    def words(self, most: int) -> dict[str, Any]:
        """Its reply beside what is known of its call, as they are stored."""
        return {**self.call, "reply": escape_surrogates(self.reply, most)}

    def blame(self, most: int) -> str:
        """Names the judge that could not be asked, and why.

        >>> Vote("m", unreachable="no route").blame(9), Vote("m", unreachable="m needs KEY").blame(99)
        ('m: no route', 'm needs KEY')
        """
        return blamed(self.model, cut(self.unreachable, most))


def vote_of(model: str, reply: JudgeReply, opinion: Opinion) -> Vote:
    """The vote of a judge that has replied."""
    return Vote(model, opinion, reply.text, reply.detail)


def blamed(model: str, why: str) -> str:
    """Names the model that could not be asked before the reason, unless the reason begins with it."""
    return why if why.startswith((f"{model} ", f"{model}: ")) else f"{cut(model)}: {why}"


class Decision(NamedTuple):
    """What a panel decides."""

    score: float
    """The greatest score that more than half of the whole panel reach."""
    is_certain: bool
    """Whether it is the same whatever the judges would say that gave no score."""
    is_waiting: bool
    """Whether one of these could not be asked."""


def decide(votes: Sequence[Vote], at_least: float | None = None) -> Decision:
    """Decides by more than half of the whole panel.

    A judge without a score, because its reply has none or because it could not be asked, changes nothing
    where the others are a majority without it.

    Args:
        votes: one of each judge.
        at_least: the score that matters; None: the score itself has to be certain.

    >>> yes, no, gone = Vote("a", Opinion("pass", 1.0)), Vote("b", Opinion("fail", 0.0)), Vote("c")
    >>> decide([yes, no, yes]).score, decide([yes, no]).score
    (1.0, 0.0)
    >>> decide([yes, gone, yes]).is_certain, decide([yes, no, gone])
    (True, Decision(score=0.0, is_certain=False, is_waiting=True))
    """
    scores = [vote.score for vote in votes]
    least = majority_score([0.0 if score is None else score for score in scores])
    most = majority_score([1.0 if score is None else score for score in scores])
    is_certain = least == most or (
        at_least is not None and (reaches(least, at_least) or not reaches(most, at_least))
    )
    return Decision(least, is_certain, any(vote.opinion is None for vote in votes))


def majority_score(scores: Sequence[float]) -> float:
    """The greatest score that more than half of the scores reach.

    >>> majority_score([0.2, 0.9, 0.5]), majority_score([0.2, 0.9]), majority_score([0.4])
    (0.5, 0.2, 0.4)
    """
    return sorted(scores)[(len(scores) - 1) // 2]
