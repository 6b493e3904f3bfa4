"""Asks what costs money for a case, one question after the other, each as every model is asked.

    the judges of stage 4, where they may still accept    worker/validation/pipeline.py, pure
    which check is next, and whether it still matters     worker/validation/check_verdict.py, pure
    what is asked, and what the reply means               `asks` of the kind of check, pure

What has been answered is paid for: it is in the cache, or kept here until all checks are done. The row of a
check that could not be asked to the end has the votes that came, and a retry asks only the other judges.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from shared.codecs.item_rows import ItemRow
from shared.codecs.parked_items import History, ParkedState
from shared.contracts.case_run import CaseRun
from shared.contracts.checks import Check
from shared.names import RunState
from shared.upstream.model_target import ModelTarget
from shared.upstream.prices import cost_of
from shared.upstream.usage import Usage
from worker.executors.case_criteria import checks_of
from worker.executors.case_judges import Ask, NoReply, ask_judges, ask_together, requests_to
from worker.executors.case_results import JudgedCase, with_earlier_checks
from worker.upstream.attempts import CallsMade
from worker.upstream.chat import ModelReply, ModelRequest, TokenEstimate, estimate_tokens
from worker.upstream.embeddings import EmbeddingReply, EmbeddingRequest, estimate_embedding
from worker.validation.case_verdict import CheckResult
from worker.validation.check_verdict import FAILED_BEFORE, Rules, close, next_check, skip_open, with_checks
from worker.validation.checks.equivalent import EQUIVALENT
from worker.validation.checks.kind import AsksEmbeddings, AsksJudges, Score, unavailable
from worker.validation.checks.rubric import stored_vote
from worker.validation.checks.table import CHECK_KINDS
from worker.validation.display import cut
from worker.validation.panel import Vote, blamed
from worker.validation.pipeline import judge_question, with_judge
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
class Desk:
    """How the judges and checks of one case are asked, and its checks evaluated."""

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
    votes: dict[str, dict[str, Vote]] = field(default_factory=dict)
    """Votes of an earlier result, by question, as rows name it, and by judge."""


async def ask_paid(judged: JudgedCase, earlier: Sequence[ItemRow], desk: Desk) -> JudgedCase:
    """Asks the judges of stage 4 and the paid checks, as far as they matter, and lets all checks decide.

    Args:
        judged: the case with the verdict of its stages and free checks.
        earlier: its earlier result, if it is retried; checks that were asked for it are not asked again.
        desk: how models are asked.

    Raises:
        Deferred: a model cannot be asked soon.
        CheckUnusableError: a pattern or function inside of a check cannot be run, whatever the output.
    """
    payload, rules = judged.payload, desk.rules
    if judged.result.awaits_judge and desk.run.judges:
        question = judge_question(payload.expected, judged.result)
        panel = await _ask_panel(question, EQUIVALENT, desk.run.judges, {}, desk, repeat=payload.repeat)
        is_unjudged = panel.score.value is None
        judged = judged._replace(
            result=with_judge(judged.result, panel.score),
            replies=panel.replies,
            is_unjudged=is_unjudged,
            ends_run=RunState.INCOMPLETE if panel.over and is_unjudged else None,
        )
    rows: Sequence[CheckResult] = judged.result.checks
    if not judged.result.passed and not rules.is_always:
        rows = skip_open(rows, FAILED_BEFORE)
    if not any(row.is_open for row in rows):
        return judged._replace(result=with_checks(judged.result, rules.at_least, rows))
    rows, kept_usd = with_earlier_checks(earlier, rows)
    asked = await ask_checks(checks_of(payload), rows, desk)
    is_over = bool(asked.over and asked.unavailable)
    return judged._replace(
        result=with_checks(judged.result, rules.at_least, asked.rows),
        replies=[*judged.replies, *asked.replies],
        is_unjudged=judged.is_unjudged or bool(asked.unavailable),
        unavailable=asked.unavailable,
        kept_usd=kept_usd,
        ends_run=judged.ends_run or (RunState.INCOMPLETE if is_over else None),
    )


async def ask_checks(checks: Sequence[Check], rows: Sequence[CheckResult], desk: Desk) -> ChecksAsked:
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
        votes = [stored_vote(vote) for vote in each["votes"] if vote["verdict"]]
        state.votes[each["question"]] = {vote.model: vote for vote in votes}


async def _evaluate(at: int, state: _Asking, desk: Desk) -> None:
    """Finds the score of a check, or what has to be asked for it."""
    check = state.checks[at]
    score, questions = await desk.evaluate(check, state.answers)
    prices = {question: _price(question, desk.run) for question in questions}
    state.questions[at] = sorted(questions, key=lambda question: prices[question] or 0.0)
    state.prices[at] = _cost(list(prices.values()))
    if state.questions[at]:
        return
    costs = state.costs.get(at, [])
    if score.unavailable:
        state.unavailable[at] = score.unavailable
    state.rows[at] = result_of(check, score, None if score.unavailable and not costs else _cost(costs))


def _cost(costs: Sequence[float | None]) -> float | None:
    """The sum of some costs; None where one is not known."""
    return None if None in costs else sum((cost for cost in costs if cost is not None), 0.0)


async def _ask(at: int, question: Question, state: _Asking, desk: Desk) -> None:
    """Asks one question; afterwards it is answered, or will not be."""
    match question.asks:
        case AsksEmbeddings() as asks:
            await _ask_embeddings(at, question, asks, state, desk)
        case AsksJudges() as asks:
            recorded = state.votes.setdefault(question.key.hex(), {})
            panel = await _ask_panel(question, asks, _judges_of(question, desk.run), recorded, desk)
            state.over = panel.over or state.over
            state.replies += panel.replies
            state.costs.setdefault(at, []).extend(reply.cost_usd for reply in panel.replies)
            state.answers[question.key] = panel.score


class _Panel(NamedTuple):
    """What a panel says."""

    score: Score
    replies: list[ModelReply]
    over: str
    """Why judges were not asked, where the cost cap has been reached; empty below it."""


async def _ask_panel(
    question: Question,
    asks: AsksJudges,
    judges: Mapping[str, ModelTarget],
    recorded: Mapping[str, Vote],
    desk: Desk,
    *,
    repeat: int = 0,
) -> _Panel:
    """Asks the judges that have no vote yet, all at the same time."""
    check = question.check
    kind = CHECK_KINDS.get(check.check)  # stages ask judges too, and are none
    is_shared = kind is not None and kind.compares
    missing = [target for judge, target in judges.items() if judge not in recorded]
    votes, replies, over = await ask_judges(
        requests_to(missing, asks.prompt(check, question.subject), desk.run, repeat=repeat),
        partial(asks.read, check),
        partial(_share_of, len(question.subject.rivals), desk.ask) if is_shared else desk.ask,
        _earlier(question, desk.parked),
        may_park=desk.may_park,
        check=_digest(question),
    )
    given = {**recorded, **{vote.model: vote for vote in votes}}
    return _Panel(asks.score(check, [given[judge] for judge in judges]), replies, over)


async def _share_of(answers: int, ask: Ask, request: ModelRequest, calls: CallsMade) -> ModelReply:
    """Asks what is asked once about several answers; each of them has an equal share of the cost."""
    reply = await ask(request, calls)
    return reply if reply.cost_usd is None else replace(reply, cost_usd=reply.cost_usd / answers)


async def _ask_embeddings(
    at: int, question: Question, asks: AsksEmbeddings, state: _Asking, desk: Desk
) -> None:
    """Embeds the texts of all checks of this kind that ask the same model, by one request."""
    together = []
    for each in _of_same_model(question, state):
        known = asks.known(each.subject.text)
        if known is None:
            together.append(each)
        else:
            state.answers[each.key] = known
    if question not in together:
        return
    request, earlier = embedding_request(asks, together, desk.run), _earlier(question, desk.parked)
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
        output, text = asks.texts(each.check, each.subject.text)
        pair = vectors[output], vectors[text]
        state.answers[each.key] = asks.score(each.check, each.subject.text, pair)


def _of_same_model(question: Question, state: _Asking) -> list[Question]:
    """The open questions of the same kind to the same model, this one first."""
    asks, models = question.asks, question.check.models
    asked = (each for questions in state.questions.values() for each in questions)
    same = (each for each in asked if each.asks is asks and each.check.models == models)
    return [question, *(each for each in same if each.key != question.key)]


def _judges_of(question: Question, run: CaseRun) -> dict[str, ModelTarget]:
    """Whom a check asks."""
    return {judge: run.check_models[judge] for judge in question.check.models}


def embedding_request(asks: AsksEmbeddings, questions: Sequence[Question], run: CaseRun) -> EmbeddingRequest:
    """Makes one request of the texts of some questions to the same model, each text once."""
    [model] = questions[0].check.models
    texts = [text for each in questions for text in asks.texts(each.check, each.subject.text)]
    return EmbeddingRequest(run.check_models[model], list(dict.fromkeys(texts)))


def _price(question: Question, run: CaseRun) -> float | None:
    """What a question may cost, by the length of its texts; None where a price is not known."""
    match question.asks:
        case AsksEmbeddings() as asks:
            request = embedding_request(asks, [question], run)
            return _cost_of_size(request.model, estimate_embedding(request), run)
        case AsksJudges() as asks:
            prompt = asks.prompt(question.check, question.subject)
            requests = requests_to(_judges_of(question, run).values(), prompt, run)
            return _cost([_cost_of_size(each.model, estimate_tokens(each), run) for each in requests])


def _cost_of_size(model: str, size: TokenEstimate, run: CaseRun) -> float | None:
    """What a call of some size costs; None where its price is not known."""
    return cost_of(model, Usage(size.prompt, size.answer, service_tier=size.tier), run.prices)


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
