"""Writes a run's answers as a bench of comparisons: each pair of models or prompts, by case, in both orders.

The judge is the model under test of that bench, so that its calls have limits, retries, cache, budget and
price as all calls have. A ranking is a run of its own: the first one stays as it was.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, to_builtins
from msgspec.structs import replace

from producer import kinds
from producer.cases.ranking import PairVerdict, Ranking, rank
from producer.cases.report.opened_rows import OpenedCase, opened
from producer.cases.rescore import hosted_config, model_config
from producer.cases.unknown_models import BY_FILE, unknown_model
from shared.contracts.case_run import CasePayload, CaseRun
from shared.errors import UsageError
from shared.ledger.ledger import texts_forgotten
from shared.runs import RunInfo, RunStore
from shared.upstream.model_target import DEFAULT_TIMEOUT_S, ModelTarget
from worker.validation.pairwise import CHOICES, SYSTEM, WINNER, comparison_prompt, read_choice

By = Literal["model", "prompt"]
Key = tuple[int, str, int]
"""What answers are about: case, prompt or model, and repetition."""
Questions = Mapping[Key, tuple[str, Any]]
Answers = Mapping[Key, Mapping[str, str]]

METADATA: Final = "proctor.ranking"
"""Where an item of a ranking says what it compares."""
FEWEST: Final = 2
HINT: Final = "write pairwise: {model: openai/gpt-4o-mini, criterion: Is more helpful.}, or give both options"


class ComparedPair(Struct, frozen=True):
    """What one item of a ranking compares, as its metadata have it."""

    question: str
    """Names what both answers are about."""
    first: str
    """Whose answer is shown as A."""
    second: str
    """Whose answer is shown as B."""
    by: By = "model"
    equal: list[tuple[str, str, int]] | UnsetType = UNSET
    """With the first pair: how many answers of two competitors are equal."""


class RankingTerms(NamedTuple):
    """How answers are compared: by which judge and criterion, and what is ranked."""

    model: str
    """The judge."""
    criterion: str
    """In people's words."""
    by: By = "model"
    """What is ranked."""


def comparison_of(info: RunInfo, model: str | None, criterion: str | None, by: By = "model") -> RankingTerms:
    """Returns what a run is to be ranked by: options go before what its bench says.

    Raises:
        UsageError: it is no run of cases, or neither says it.
    """
    if not kinds.of(info.kind).traits.can_rescore:
        raise UsageError(f"{info.run} is a run of {info.kind}", hint="answers of models to cases are ranked")
    if info.forgotten_ms is not None:
        raise texts_forgotten(info.run)
    written = CaseRun.from_snapshot(info.snapshot).pairwise
    found = RankingTerms(model or written.get("model", ""), criterion or written.get("criterion", ""), by)
    if not found.model or not found.criterion:
        raise UsageError(f"{info.run} does not say who compares its answers, and by what", hint=HINT)
    target = _target_of(CaseRun.from_snapshot(info.snapshot), found.model)
    where = "--model" if model else f"pairwise.model of {info.run}"
    if error := unknown_model(target, where, f"{BY_FILE}, and run it again"):
        raise error
    return found


def _target_of(run: CaseRun, model: str) -> ModelTarget:
    """Returns where a run asks a model, with the headers of judges."""
    judging = {**run.judges, **run.check_models}.get(model, ModelTarget(model))
    return replace(run.models.get(model, judging), headers=judging.headers)


def write_comparisons(store: RunStore, info: RunInfo, folder: Path, by: RankingTerms) -> Path:
    """Writes the bench of a ranking.

    Args:
        store: reads the run.
        info: the run.
        folder: where to write.
        by: the judge and the criterion.

    Raises:
        UsageError: no two models, or prompts, have different answers to the same case.
        RedisUnreachableError: Redis stays away.
    """
    run = CaseRun.from_snapshot(info.snapshot)
    questions, answers = _answers(store, info, by)
    equal = Counter(
        (one, other)
        for given in answers.values()
        for one, other in combinations(sorted(given), FEWEST)
        if given[one] == given[other]
    )
    written = 0
    with (folder / "comparisons.jsonl").open("w", encoding="utf-8") as out:
        counted = [(*pair, count) for pair, count in equal.items()]
        for judged, pair in _comparisons(questions, answers, by):
            compared = pair if written else replace(pair, equal=counted)
            case = {"input": judged, "metadata": {METADATA: to_builtins(compared)}}
            out.write(json.dumps(case, ensure_ascii=False) + "\n")
            written += 1
    if not written:
        what = "answers that differ" if equal else f"case that two {by.by}s have answered"
        raise UsageError(f"{info.run} has no {what}", hint="`proctor results` shows its answers")
    path = folder / "ranking.yaml"
    path.write_text(json.dumps(_bench(folder, run, by), ensure_ascii=False), encoding="utf-8")
    return path


def ranking_of(store: RunStore, run: str) -> tuple[By, Ranking]:
    """Reads the verdicts of a ranking's run, and ranks by them.

    Returns:
        What is ranked, and the ranking.

    Raises:
        UsageError: it is the run of something else.
        RedisUnreachableError: Redis stays away.
    """
    by: By = "model"
    names, verdicts, equal = dict[str, None](), list[PairVerdict](), Counter[tuple[str, str]]()
    for rows in store.item_pages(run, with_payload=True):
        for case in opened(rows):
            try:
                pair = convert(case.item.metadata.get(METADATA), ComparedPair)
            except ValidationError as error:
                hint = "`proctor rank RUN` makes one of a run of cases"
                raise UsageError(f"{run} is no ranking", hint=hint) from error
            reply = case.answer.raw_output
            winner = None if reply is None else read_choice(reply).winner
            names |= dict.fromkeys((pair.first, pair.second))
            for one, other, count in pair.equal or ():
                names |= dict.fromkeys((one, other))
                equal[one, other] = count
            by = pair.by
            verdicts.append(PairVerdict(pair.question, pair.first, pair.second, winner))
    if len(names) < FEWEST:
        raise UsageError(f"{run} has compared nothing", hint="`proctor results` shows why")
    return by, rank(sorted(names), verdicts, equal)


def is_ranking(store: RunStore, info: RunInfo) -> bool:
    """Whether a run is a ranking itself."""
    for rows in store.item_pages(info.run, with_payload=True):
        return any(METADATA in case.item.metadata for case in opened(rows[:1]))
    return False


def _answers(store: RunStore, info: RunInfo, by: RankingTerms) -> tuple[Questions, Answers]:
    """Reads the questions of a run, and the answers to each; the rest is not kept in memory."""
    questions, answers = dict[tuple[int, str, int], tuple[str, Any]](), defaultdict[Any, dict[str, str]](dict)
    for rows in store.item_pages(info.run, with_payload=True):
        for case in opened(rows):
            item, answer = case.item, _answer_of(case)
            if answer is not None:
                names = {"model": item.model, "prompt": item.prompt_id or ""}
                name, other = names.pop(by.by), *names.values()
                key = item.case, other, item.repeat
                prompt = item.messages or item.input
                question, first = questions.setdefault(key, (_question(item, other), prompt))
                if prompt != first and item.vars:  # each prompt has its own words for the same variables
                    questions[key] = question, item.vars
                answers[key][name] = answer
    return questions, answers


def _comparisons(
    questions: Questions, answers: Answers, by: RankingTerms
) -> Iterator[tuple[str, ComparedPair]]:
    """Yields what the judge is asked about each pair in each order; equal answers tie without it."""
    for key in sorted(questions):
        question, prompt = questions[key]
        for first, second in permutations(answers[key], FEWEST):
            if answers[key][first] == answers[key][second]:
                continue
            judged = comparison_prompt(by.criterion, prompt, answers[key][first], answers[key][second])
            yield judged, ComparedPair(question, first, second, by.by)


def _question(item: CasePayload, other: str) -> str:
    """Names what both answers are about: case, prompt or model, and repetition."""
    parts = (item.id or str(item.case + 1), other, f"#{item.repeat + 1}" if item.repeat else "")
    return "/".join(filter(None, parts))


def _answer_of(case: OpenedCase) -> str | None:
    """What a model answered, in words: its text, else its refusal or the tools that it called."""
    result = case.answer
    if result.raw_output is None or result.raw_output:
        return result.raw_output
    if result.refusal:
        return result.refusal
    return json.dumps(result.tool_calls, ensure_ascii=False) if result.tool_calls else ""


def _bench(folder: Path, run: CaseRun, by: RankingTerms) -> dict[str, Any]:
    """Writes the bench around the comparisons; JSON is YAML."""
    target = _target_of(run, by.model)
    own = model_config(by.model, target, run.prices, {}) | hosted_config(target, folder)
    winner = {"type": "object", "required": ["winner"], "properties": {"winner": {"pattern": WINNER}}}
    words = {"one_of": [*CHOICES, "Answer A", "Answer B"], "ignore_case": True}
    return {
        "name": f"{run.name}: ranking",
        "system_prompt": SYSTEM,
        "models": [by.model],
        "model_configs": {by.model: own} if own else {},
        "params": {"temperature": 0, **run.judge_params},
        "default_checks": [{"any": [{"json_schema": winner}, words], "name": "verdict"}],
        "test_cases_file": "comparisons.jsonl",
        "config": {
            "judge_model": None,
            "concurrency": run.concurrency,
            "max_cost": run.max_cost,
            **({} if run.timeout_s == DEFAULT_TIMEOUT_S else {"timeout_s": run.timeout_s}),
            "cache": run.cache,
            "json_extraction": "lenient",
        },
    }
