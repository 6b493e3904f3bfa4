"""Stage 4: what judges say about an object that is not the expected one; a single judge is a panel of one.

PASS needs more than half of the whole panel. A judge who says neither PASS nor FAIL has not passed anything;
one that could not be asked has no verdict, and the others decide only when they are a majority without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from shared.contracts.case_vocabulary import CaseStatus, Stage
from worker.validation.case_verdict import JudgeReply, StageResult, ValidationResult, failed, passed, skipped
from worker.validation.display import cut, escape_surrogates
from worker.validation.judge import Verdict, read_verdict

REPLY_CHARS: Final = 4_000
"""Characters of a single judge's reply, or of why there is none, that are kept."""
VOTE_CHARS: Final = 200
"""Characters of the reply of each judge of a panel that are kept."""


class Vote(NamedTuple):
    """The reply of one judge, or why it could not be asked."""

    judge: str
    """Its name; empty where nothing is known of it."""
    reply: JudgeReply | None
    """Its reply; None: it could not be asked."""
    why: str = ""
    """Why it could not be asked."""

    @property
    def verdict(self) -> Verdict | None:
        """What its first word is; None without a reply."""
        return None if self.reply is None else read_verdict(self.reply.text)


class Tally(NamedTuple):
    """How a panel voted."""

    passed: int = 0
    failed: int = 0
    unclear: int = 0
    missing: int = 0
    """Judges that could not be asked."""

    @property
    def judges(self) -> int:
        """The whole panel."""
        return sum(self)

    @property
    def verdict(self) -> Verdict | None:
        """What the panel says; `unclear` without a majority, None when judges are missing for one.

        >>> Tally(2, 1).verdict, Tally(1, 2).verdict, Tally(1, 1).verdict, Tally(1, 0, 2).verdict
        ('pass', 'fail', 'unclear', 'unclear')
        >>> Tally(2, 0, 0, 1).verdict, Tally(1, 1, 0, 1).verdict, Tally(0, 1, 1, 1).verdict
        ('pass', None, 'unclear')
        """
        majority = self.judges // 2 + 1
        if self.passed >= majority:
            return "pass"
        if self.failed >= majority:
            return "fail"
        is_open = self.missing and self.failed + self.unclear < majority
        return None if is_open else "unclear"


def tally_of(votes: Sequence[Vote]) -> Tally:
    """Counts votes.

    >>> tally_of([Vote("a", JudgeReply("PASS")), Vote("b", JudgeReply("Well")), Vote("c", None, "no route")])
    Tally(passed=1, failed=0, unclear=1, missing=1)
    """
    verdicts = [vote.verdict for vote in votes]
    return Tally(*(verdicts.count(verdict) for verdict in ("pass", "fail", "unclear", None)))


def with_votes(result: ValidationResult, votes: Sequence[Vote]) -> ValidationResult:
    """Stage 4: a panel decides about an object that is not the expected one.

    Args:
        result: as it stands after stage 3; one that awaits no judge is returned as it is.
        votes: one of each judge, in the order of the panel; at least one.
    """
    if not result.awaits_judge:
        return result
    tally, detail = tally_of(votes), _detail(votes)
    verdict = tally.verdict
    if verdict is None:
        note = _why_open(votes, tally)
        return replace(
            result,
            message=f"{result.message}; {note}",
            stages=_stages(result, StageResult(Stage.FUZZY, *skipped(note, **detail, unreachable=True))),
            awaits_judge=False,
        )
    is_pass, detail = verdict == "pass", {**detail, "verdict": verdict}
    note = _note(votes, tally, verdict)
    finding = passed(note, **detail) if is_pass else failed(note, **detail)
    message = f"passed by fuzzy match: {note}; {result.message}" if is_pass else f"{result.message}; {note}"
    return replace(
        result,
        status=CaseStatus.PASSED if is_pass else CaseStatus.FAILED_FUZZY,
        passed=is_pass,
        decided_by=Stage.FUZZY,
        message=message,
        stages=_stages(result, StageResult(Stage.FUZZY, *finding)),
        used_fuzzy_match=is_pass,
        awaits_judge=False,
    )


def with_reply(result: ValidationResult, reply: str | JudgeReply) -> ValidationResult:
    """Stage 4 with a single judge: its first word decides about an object that is not the expected one."""
    given = JudgeReply(reply) if isinstance(reply, str) else reply
    return with_votes(result, [Vote("", given)])


def without_reply(result: ValidationResult, why: str) -> ValidationResult:
    """Stage 4 when the judge cannot be reached: strict equality has the last word, and the result says so."""
    return with_votes(result, [Vote("", None, why)])


def _stages(result: ValidationResult, last: StageResult) -> tuple[StageResult, ...]:
    """The stages with another last one."""
    return (*result.stages[:-1], last)


def _note(votes: Sequence[Vote], tally: Tally, verdict: Verdict) -> str:
    """Describes how a panel decided."""
    if len(votes) > 1:
        if verdict == "unclear":
            numbers = zip(("PASS", "FAIL", "neither", "nothing"), tally, strict=True)
            counts = ", ".join(f"{number} said {word}" for word, number in numbers if number)
            return f"no majority of the {tally.judges} judges: {counts}"
        number, verb = (tally.passed, "find") if verdict == "pass" else (tally.failed, "do not find")
        return f"{number} of {tally.judges} judges {verb} the two objects equivalent"
    if verdict == "unclear":
        word = cut(votes[0].reply.text) if votes[0].reply else ""
        return f"the judge said neither PASS nor FAIL first: {word or 'nothing'}"
    verb = "finds" if verdict == "pass" else "does not find"
    return f"the judge {verb} the two objects equivalent"


def _why_open(votes: Sequence[Vote], tally: Tally) -> str:
    """Names who could not be asked."""
    if len(votes) == 1:
        return f"the judge could not be asked: {cut(votes[0].why, REPLY_CHARS)}"
    missing = "; ".join(blamed(vote.judge, cut(vote.why, VOTE_CHARS)) for vote in votes if not vote.reply)
    count = f"{tally.missing} of {tally.judges} judges could not be asked"
    return f"{count}, and the others are no majority: {missing}"


def blamed(model: str, why: str) -> str:
    """Names the model that could not be asked before the reason, unless the reason begins with it.

    >>> blamed("m", "no route"), blamed("m", "m needs the variable KEY")
    ('m: no route', 'm needs the variable KEY')
    """
    return why if why.startswith((f"{model} ", f"{model}: ")) else f"{cut(model)}: {why}"


def _detail(votes: Sequence[Vote]) -> dict[str, Any]:
    """What is kept of the judges' words and calls: a single one's own, a panel's sums with each vote."""
    if len(votes) == 1:
        [vote] = votes
        return {} if vote.reply is None else _said(vote.reply, REPLY_CHARS)
    details = [vote.reply.detail for vote in votes if vote.reply]
    costs = [each.get("cost_usd") for each in details]
    return {
        "model": ", ".join(vote.judge for vote in votes),
        "token_usage": _tokens([each.get("token_usage") for each in details]),
        "cost_usd": None if None in costs else sum(cost for cost in costs if cost is not None),
        "latency_ms": max((each.get("latency_ms") or 0 for each in details), default=None),
        "cached": bool(details) and all(each.get("cached") for each in details),
        "reply": "; ".join(f"{vote.judge}: {_words(vote)}" for vote in votes),
        "votes": [_vote(vote) for vote in votes],
    }


def _said(reply: JudgeReply, most: int) -> dict[str, Any]:
    """One judge's words, beside what is known of its call."""
    return {**reply.detail, "reply": escape_surrogates(reply.text, most)}


def _vote(vote: Vote) -> dict[str, Any]:
    """One vote of a panel, as it is stored."""
    if vote.reply is None:
        return {"model": vote.judge, "verdict": None, "unreachable": cut(vote.why, VOTE_CHARS)}
    return {"model": vote.judge, **_said(vote.reply, VOTE_CHARS), "verdict": vote.verdict}


def _words(vote: Vote) -> str:
    """The reply of a judge, in a line."""
    return "could not be asked" if vote.reply is None else cut(vote.reply.text) or "nothing"


def _tokens(usages: Sequence[Mapping[str, int | None] | None]) -> dict[str, int] | None:
    """Adds up tokens; None where none were counted.

    >>> _tokens([{"prompt_tokens": 3, "completion_tokens": None}, {"prompt_tokens": 2}, None])
    {'prompt_tokens': 5, 'completion_tokens': 0}
    """
    known = [usage for usage in usages if usage]
    names = dict.fromkeys(name for usage in known for name in usage)
    return {name: sum(usage.get(name) or 0 for usage in known) for name in names} or None
