"""Asks the paid checks of a case, one question after the other, each as every model is asked.

    which check is next, and whether it still matters     worker/validation/paid_checks.py, pure
    what is asked, and what the reply means               worker/validation/checks/{similar,rubric}.py, pure

What has been answered is paid for: it is in the cache, or kept here until all checks are done. The row of a
check that could not be asked to the end has the votes that came, and a retry asks only the other judges.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from shared.codecs.parked_items import History, ParkedState
from shared.contracts.case_run import CaseRun
from shared.contracts.checks import Check
from shared.upstream.prices import cost_of
from worker.executors.case_judges import Ask, NoReply, ask_judges, ask_together, requests_to
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest, estimate_tokens
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest, estimate_embedding
from worker.validation.case_verdict import CheckResult
from worker.validation.checks.kind import Score, unavailable
from worker.validation.checks.rubric import judges_of, panel_score, recorded_votes, rubric_prompt
from worker.validation.checks.similar import score_without_asking, similarity_score, texts_of
from worker.validation.display import cut
from worker.validation.paid_checks import Rules, close, next_check, skip_open
from worker.validation.panel import blamed
from worker.validation.scoring import Question, result_of

Embed: TypeAlias = Callable[[EmbeddingRequest, CallsMade], Awaitable[EmbeddingReply]]
"""Embeds texts on behalf of the run."""
Evaluate: TypeAlias = Callable[[Check, Mapping[bytes, Score]], Awaitable[tuple[Score, Sequence[Question]]]]
"""Evaluates a check with the answers so far; also returns what has to be asked before its score is known."""
Reply: TypeAlias = ModelReply | EmbeddingReply


class ChecksAsked(NamedTuple):
    """All checks of a case, asked as far as they mattered."""

    rows: list[CheckResult]
    """In the order of the case."""
    replies: list[Reply]
    """Replies that came for them."""
    unavailable: str = ""
    """Which check could not be asked, and why; empty when all could."""
    over: str = ""
    """Why it was not asked, where the cost cap has been reached; empty below it."""


@dataclass(frozen=True, slots=True)
class CheckDesk:
    """How the checks of one case are evaluated and asked."""

    run: CaseRun
    rules: Rules
    evaluate: Evaluate
    ask: Ask
    embed: Embed
    parked: ParkedState
    """Why the item waited before, if it did."""
    may_park: bool
    """Whether a model that cannot be asked soon may park the case; else it is waited for."""


@dataclass(slots=True)
class _Asking:
    """The checks of one case while they are asked, with what is known so far."""

    checks: Sequence[Check]
    rows: list[CheckResult]
    prices: list[float | None]
    """Cost of asking each check, by its position; None where that is not known."""
    questions: dict[int, Sequence[Question]] = field(default_factory=dict)
    """Questions to ask, by the position of their check, the cheapest first."""
    answers: dict[bytes, Score] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)
    costs: dict[int, list[float | None]] = field(default_factory=dict)
    """Cost of each reply, by the position of its check."""
    unavailable: dict[int, str] = field(default_factory=dict)
    """Why a check has no score although all was asked, by its position."""
    over: str = ""
    """Why models are not asked any more, where the cost cap has been reached."""
    votes: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    """Votes of an earlier result, by question, as rows name it, and by judge."""


async def ask_checks(checks: Sequence[Check], rows: Sequence[CheckResult], desk: CheckDesk) -> ChecksAsked:
    """Asks the paid checks that matter, the cheapest first.

    Args:
        checks: those of the case.
        rows: what is known of each; those that were not asked yet, or not to the end, are open.
        desk: how they are evaluated and asked.

    Raises:
        Deferred: a model cannot be asked soon.
        CheckUnusableError: a pattern or function inside of one cannot be run, whatever the output.
    """
    state = _Asking(checks, list(rows), [None] * len(rows))
    for place in [place for place, row in enumerate(rows) if row.is_open]:
        _take_votes(place, state)
        await _evaluate(place, state, desk)
    while (at := next_check(checks, state.rows, state.prices, desk.rules)) is not None:
        if any(question.key in state.answers for question in state.questions[at]):
            await _evaluate(at, state, desk)  # its texts were embedded together with those of another
        while state.questions[at]:
            await _ask(at, state.questions[at][0], state, desk)
            await _evaluate(at, state, desk)
        if at in state.unavailable and checks[at].weight > 0:
            return _without(at, state)
    return ChecksAsked(close(state.rows, desk.rules), state.replies)


def _take_votes(at: int, state: _Asking) -> None:
    """Takes over the votes that the row of an open check has from an earlier result, with what they cost."""
    row = state.rows[at]
    if row.cost_usd is not None:
        state.costs[at] = [row.cost_usd]
    for each in row.detail.get("judged", ()):
        state.votes[each["question"]] = {vote["model"]: vote for vote in each["votes"] if vote["verdict"]}


async def _evaluate(at: int, state: _Asking, desk: CheckDesk) -> None:
    """Finds the score of a check, or what has to be asked for it."""
    check = state.checks[at]
    score, questions = await desk.evaluate(check, state.answers)
    prices = [_price(question, desk.run) for question in questions]
    order = sorted(range(len(questions)), key=lambda place: prices[place] or 0.0)
    state.questions[at] = [questions[place] for place in order]
    state.prices[at] = None if None in prices else sum(price for price in prices if price is not None)
    if state.questions[at]:
        return
    costs = state.costs.get(at, [])
    if score.unavailable:
        state.unavailable[at] = score.unavailable
    state.rows[at] = result_of(check, score, None if score.unavailable and not costs else _cost(costs))


def _cost(costs: Sequence[float | None]) -> float | None:
    """The sum of some costs; None where one is not known."""
    return None if None in costs else sum((cost for cost in costs if cost is not None), 0.0)


async def _ask(at: int, question: Question, state: _Asking, desk: CheckDesk) -> None:
    """Asks one question; afterwards it is answered, or will not be."""
    if question.check.check == "similar":
        await _ask_similar(at, question, state, desk)
    else:
        await _ask_rubric(at, question, state, desk)


async def _ask_rubric(at: int, question: Question, state: _Asking, desk: CheckDesk) -> None:
    """Asks the judges of a rubric that have no vote yet, all at the same time."""
    recorded = state.votes.setdefault(question.key.hex(), {})
    requests = [each for each in rubric_requests(question, desk.run) if each.model not in recorded]
    votes, replies, over = await ask_judges(
        requests, desk.ask, _earlier(question, desk.parked), may_park=desk.may_park, check=_digest(question)
    )
    state.over = over or state.over
    state.replies += replies
    state.costs.setdefault(at, []).extend(reply.cost_usd for reply in replies)
    given = recorded | {each["model"]: each for each in recorded_votes(question.check, votes)}
    in_order = [given[judge] for judge in dict.fromkeys(judges_of(question.check))]
    score = panel_score(question.check, in_order)
    if score is None:
        why = "; ".join(blamed(vote.judge, cut(vote.why)) for vote in votes if not vote.reply)
        is_known = any(vote["verdict"] for vote in in_order)
        score = unavailable(why, **({"votes": in_order} if is_known else {}))
    state.answers[question.key] = score


async def _ask_similar(at: int, question: Question, state: _Asking, desk: CheckDesk) -> None:
    """Embeds the texts of all checks of this kind that ask the same model, by one request."""
    together = []
    for each in _of_same_model(question, state):
        known = score_without_asking(each.subject.text)
        if known is None:
            together.append(each)
        else:
            state.answers[each.key] = known
    if question not in together:
        return
    request, earlier = embedding_request(together, desk.run), _earlier(question, desk.parked)
    ask = partial(desk.embed, request)
    asked = await ask_together([ask], earlier, may_park=desk.may_park, check=_digest(question))
    state.over = asked.over or state.over
    [reply] = asked.ends
    if isinstance(reply, NoReply):
        missing = unavailable(blamed(request.model, reply.why))
        state.answers |= {each.key: missing for each in together}
        return
    state.replies.append(reply)
    state.costs.setdefault(at, []).append(reply.cost_usd)
    vectors = dict(zip(request.texts, reply.vectors, strict=True))
    for each in together:
        output, text = texts_of(each.check, each.subject.text)
        pair = vectors[output], vectors[text]
        state.answers[each.key] = similarity_score(each.check, each.subject.text, pair)


def _of_same_model(question: Question, state: _Asking) -> list[Question]:
    """The open questions of `similar` to the same model, this one first."""
    model = question.check.options["model"]
    others = [
        each
        for questions in state.questions.values()
        for each in questions
        if each.check.check == "similar" and each.check.options["model"] == model and each.key != question.key
    ]
    return [question, *others]


def rubric_requests(question: Question, run: CaseRun) -> list[ModelRequest]:
    """Makes the request to each judge of a rubric; repetitions share answers to equal outputs."""
    prompt = rubric_prompt(question.check, question.subject)
    judges = (run.check_models[judge] for judge in dict.fromkeys(judges_of(question.check)))
    return requests_to(judges, prompt, run)


def embedding_request(questions: Sequence[Question], run: CaseRun) -> EmbeddingRequest:
    """Makes one request of the texts of some questions to the same model, each text once."""
    model = questions[0].check.options["model"]
    texts = [text for each in questions for text in texts_of(each.check, each.subject.text)]
    return EmbeddingRequest(run.check_models[model], list(dict.fromkeys(texts)))


def _price(question: Question, run: CaseRun) -> float | None:
    """What a question may cost, by the length of its texts; None where a price is not known."""
    if question.check.check == "similar":
        request = embedding_request([question], run)
        return cost_of(request.model, estimate_embedding(request).tokens, 0, run.prices)
    total = 0.0
    for grading in rubric_requests(question, run):
        size = estimate_tokens(grading)
        price = cost_of(grading.model, size.prompt, size.answer, run.prices)
        if price is None:
            return None
        total += price
    return total


def _earlier(question: Question, parked: ParkedState) -> tuple[History, ...]:
    """What the calls of a question went through before the case was parked."""
    return parked.judges if parked.check == _digest(question) else ()


def _digest(question: Question) -> str:
    """Identifies a question within its case."""
    return question.key[:8].hex()


def _without(at: int, state: _Asking) -> ChecksAsked:
    """The rows of a case with a check that has no verdict; its row has the votes that came and their cost."""
    name = cut(state.rows[at].name)
    rows = skip_open(state.rows, f"not asked: {name} could not be asked")
    why = f"check {name} could not be asked: {state.unavailable[at]}"
    return ChecksAsked(rows, state.replies, why, state.over)
