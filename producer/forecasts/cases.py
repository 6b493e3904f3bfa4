"""What is in a configuration of cases, and the calls and the cost of a run of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from producer.cases.checks import walk
from producer.cases.load import PlannedRun, plan_run
from producer.cases.unknown_models import doubtful_models, refuse_unknown_models
from producer.forecasts import (
    OWN_API,
    FileContents,
    Forecast,
    MissingKeys,
    assumption,
    missing_keys,
    model_warnings,
)
from producer.service_documents import FileCounts, RunEstimate, ValidateDocument
from producer.text import cost, count, plural
from shared.contracts.case_run import FREEFORM, CasePayload, CaseRun
from shared.upstream.prices import ANSWER_LIMITS, SERVICE_TIER, cost_of
from shared.upstream.usage import Usage, estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from producer.load.source import Source
    from producer.options import SubmitOptions
    from shared.contracts.checks import Check
    from shared.upstream.model_target import ModelTarget

ANSWER_TOKENS: Final = 256
"""Assumed length of an answer without a reference and without a limit."""
JUDGE_TOKENS: Final = 90
"""Length of the instructions of a judge or a rubric."""
VERDICT_TOKENS: Final = 5
"""Assumed length of a judge's verdict."""

_JUDGE_KEYS: Final = frozenset({"judge_model", "judge_models"})
"""Settings that name judges."""


@dataclass(slots=True)
class _Bill:
    """Adds up the cost of calls."""

    run: CaseRun
    tier: str = ""
    """The service tier that judges are asked in."""
    usd: float | None = 0.0
    calls: int = 0
    is_cached: bool = True
    """Whether equal questions are asked once."""
    asked_once: set[str] = field(default_factory=set)
    """Questions that are the same for all outputs."""

    def add(self, model: str, usage: Usage, *, times: int) -> None:
        """Adds equal calls."""
        target = self.run.models.get(model) or self.run.judges.get(model) or self.run.check_models.get(model)
        each = cost_of(target.model if target else model, usage, self.run.prices)
        self.usd = None if self.usd is None or each is None else self.usd + each * times
        self.calls += times

    def add_once(self, model: str, usage: Usage, question: Any, *, times: int) -> None:
        """Adds equal calls, unless the same question was added before: the cache has its reply."""
        key = json.dumps([model, question])
        if key not in self.asked_once:
            self.add(model, usage, times=times)
        if self.is_cached:
            self.asked_once.add(key)


def contents(source: Source, options: SubmitOptions) -> FileContents:
    """Checks a whole configuration and returns the planned run with its estimate.

    Raises:
        InputError: it breaks the contract.
        ProctorError: see `producer.cases.load.plan_run`.
    """
    plan = _planned(source, options)
    doubtful, estimate = doubtful_models(plan, options.cases), estimated(plan)
    warnings = [*plan.warnings, *model_warnings(_targets(plan), os.environ), *doubtful]
    text = "\n".join(_lines(source.name, plan, estimate))
    return FileContents(_document(source.name, plan, estimate), text, warnings)


def forecast(source: Source, options: SubmitOptions) -> Forecast:
    """Returns what a run of cases is going to send.

    Raises:
        ProctorError: see `producer.cases.load.plan_run`.
    """
    plan = _planned(source, options)
    found = estimated(plan)
    costs = {
        "models": (found.calls, found.cost_usd),
        "judges": (found.judge_calls, found.judge_cost_usd),
        "checks": (found.check_calls, found.check_cost_usd),
    }
    known = [usd for calls, usd in costs.values() if calls and usd is not None]
    return Forecast(
        found.calls,
        _shape(plan),
        more={"judges": found.judge_calls, "checks": found.check_calls},
        cost_usd=sum(known) if known else None,
        answer_tokens=found.assumed_answer_tokens,
        unpriced=[whom for whom, (calls, usd) in costs.items() if calls and usd is None],
        warnings=[*model_warnings(_targets(plan), os.environ), *doubtful_models(plan, options.cases)],
        missing=_missing_keys(plan),
        items=plan.total,
        plan=plan,
    )


def _planned(source: Source, options: SubmitOptions) -> PlannedRun:
    """Reads a run of which each model can be called."""
    plan = plan_run(source, options.cases)
    refuse_unknown_models(plan, options.cases)
    return plan


def _under_test(plan: PlannedRun) -> Iterator[ModelTarget]:
    """Yields the models under test that a run calls, with the headers of their requests."""
    run = plan.run
    for model, target in {} if run.recorded else run.models.items():
        headers = [call.get("headers", {}) for call in run.calls.get(model, {}).values()]
        for sent in headers or [{}]:
            yield msgspec.structs.replace(target, headers=sent)


def _judging(plan: PlannedRun, judges: Iterable[str]) -> Iterator[ModelTarget]:
    """Yields judges and the models of checks, as far as the cases need them."""
    run = plan.run
    called = {name: run.judges[name] for name in judges if plan.facts.has_expected}
    yield from {**called, **{name: run.check_models[name] for name in plan.facts.check_models}}.values()


def _targets(plan: PlannedRun) -> Iterator[ModelTarget]:
    """Yields all models that a run calls, with the headers of their requests."""
    yield from _under_test(plan)
    yield from _judging(plan, plan.run.judges)


def _missing_keys(plan: PlannedRun) -> MissingKeys | None:
    """Returns what keeps a run from its verdicts.

    The judge that nobody has named is asked only about answers that do not equal what was expected: a run
    can do without it, and is only warned.
    """
    if lacking := plan.bench.lacking:
        return MissingKeys(lacking.message, (), lacking.hint)
    is_named = _JUDGE_KEYS & plan.bench.settings.model_fields_set
    under_test = list(_under_test(plan))
    judging = list(_judging(plan, plan.run.judges if is_named else ()))
    found = missing_keys([*under_test, *judging], os.environ)
    return found._replace(remedy=OWN_API) if found and missing_keys(judging, os.environ) else found


def estimated(plan: PlannedRun) -> RunEstimate:
    """Estimates the calls and the cost of a run."""
    run = plan.run
    judge_tier = run.judge_params.get(SERVICE_TIER, "")
    called = {name for name, target in run.models.items() if not (run.recorded or target.is_echo)}
    models, judges, checks = (_Bill(run, judge_tier, is_cached=run.cache) for _ in range(3))
    prompt_tokens, is_assumed = 0, False
    for item in plan.asked:
        asked_of, times = plan.models_of(item), item.repeat
        system = run.system_prompt if item.system is None else item.system
        prompt = estimate_text_tokens(system) + estimate_text_tokens(_text_of(item))
        known = _known_tokens(item.expected, item.reference)
        prompt_tokens += prompt * len(called.intersection(asked_of)) * times
        checks_of_item = item.checks if run.check_models else ()
        answers = len(run.models) * max(1, len(plan.prompts))
        for model in asked_of:
            most = _most_tokens(run, model, item.prompt_id or "")
            is_assumed = is_assumed or (known is None and most is None and model in called)
            bounds = [tokens for tokens in (known, most) if tokens is not None]
            answer = min(bounds, default=ANSWER_TOKENS)
            if model in called:
                tier = _params(run, model, item.prompt_id or "").get(SERVICE_TIER, "")
                models.add(model, Usage(prompt, answer, service_tier=tier), times=times)
            for judge in run.judges if item.expected is not None else ():
                verdict = Usage(JUDGE_TOKENS + 2 * answer, VERDICT_TOKENS, service_tier=judge_tier)
                judges.add(judge, verdict, times=times)
            if checks_of_item:
                _add_checks(checks, item, checks_of_item, Usage(prompt, answer), answers=answers)
    return RunEstimate(
        models.calls,
        judges.calls,
        prompt_tokens,
        models.usd,
        checks.calls,
        judges.usd,
        checks.usd,
        ANSWER_TOKENS if is_assumed else None,
    )


def _add_checks(
    bill: _Bill, item: CasePayload, checks: Sequence[Check], call: Usage, *, answers: int
) -> None:
    """Adds what the checks of a case ask about an answer.

    Args:
        bill: is added to.
        item: the case with its prompt.
        checks: those of the case.
        call: tokens of question and answer.
        answers: how many models and prompts the case is put to.
    """
    from worker.validation.checks import (  # noqa: PLC0415 - start-up: only benches with checks need it
        CHECK_KINDS,
        AsksJudges,
    )

    prompt, answer = call.input_tokens or 0, call.output_tokens or 0
    for check in walk(checks):
        kind = CHECK_KINDS[check.check]
        asks = kind.asks
        argument = estimate_text_tokens(check.argument)
        usage = Usage(argument + answer, 0)
        if isinstance(asks, AsksJudges):
            size = argument + JUDGE_TOKENS + prompt + answer * (answers if kind.compares else 1)
            usage = Usage(size, asks.reply_tokens, service_tier=bill.tier)
            if kind.compares:
                for model in check.models:
                    bill.add_once(model, usage, [item.case, check.argument], times=item.repeat)
                continue
            if asks.before is not None and (first := asks.before.check(check)) is not None:
                size = estimate_text_tokens(first.argument) + JUDGE_TOKENS
                before = Usage(size, asks.before.asks.reply_tokens, service_tier=bill.tier)
                times = 1 if bill.is_cached else item.repeat
                bill.add_once(first.models[0], before, first.argument, times=times)
        for model in check.models:
            bill.add(model, usage, times=item.repeat)


def _most_tokens(run: CaseRun, model: str, prompt: str) -> int | None:
    """Returns the tokens that an answer may have by the options of its call; None without a limit."""
    params = _params(run, model, prompt)
    given = [params[name] for name in ANSWER_LIMITS if isinstance(params.get(name), int)]
    return min(given, default=None)


def _params(run: CaseRun, model: str, prompt: str) -> Mapping[str, Any]:
    """Returns the options of the calls of a model with a prompt."""
    params: Mapping[str, Any] = run.calls.get(model, {}).get(prompt, {}).get("params", {})
    return params


def _text_of(item: CasePayload) -> str:
    """All that is sent but the system message."""
    return item.input if item.messages is None else json.dumps(item.messages, ensure_ascii=False)


def _known_tokens(expected: Mapping[str, Any] | None, reference: str | None) -> int | None:
    """Estimates the tokens of an answer, as many as the expected one has; None where none is expected."""
    if expected is not None:
        return estimate_text_tokens(expected)
    return estimate_text_tokens(reference) if reference else None


def _document(name: str, plan: PlannedRun, estimate: RunEstimate) -> ValidateDocument:
    """Returns the answer for programs."""
    run = plan.run
    return ValidateDocument(
        file=name,
        kind="cases",
        counts=FileCounts(
            total=plan.total,
            cases=run.cases,
            models=len(run.models),
            prompts=len(run.prompts) or UNSET,
            repeat=run.repeat,
            recorded=UNSET if plan.outputs is None else len(plan.outputs),
        ),
        mode=run.mode,
        models=tuple(run.models),
        judge_model=run.judge_model,
        judge_models=tuple(run.judges),
        variables=tuple(plan.bench.variables) or UNSET,
        estimate=estimate,
    )


def _lines(name: str, plan: PlannedRun, estimate: RunEstimate) -> list[str]:
    """The answer for people."""
    run = plan.run
    lines = [f"{name}: {_shape(plan)} = {plural(plan.total, 'item')}; nothing was sent"]
    is_shown = run.mode == FREEFORM
    lines.append(f"mode      {run.mode}{': outputs are shown, nothing is checked' if is_shown else ''}")
    lines.append(f"models    {', '.join(run.models)}")
    if plan.bench.variables:
        lines.append(f"variables {', '.join(plan.bench.variables)}")
    if estimate.judge_calls:
        names = ", ".join(run.judges)
        word = "judge     " if len(run.judges) == 1 else "judges    "
        lines.append(f"{word}{names}, at most {plural(estimate.judge_calls, 'call')}")
    if estimate.check_calls:
        names = ", ".join(run.check_models)
        lines.append(f"checks    {names}, at most {plural(estimate.check_calls, 'call')}")
    if plan.outputs is not None:
        if estimate.judge_calls or estimate.check_calls:
            lines.append(f"cost      {_cost_in_words(estimate)}")
        lines.append(f"outputs   {count(len(plan.outputs))} recorded; no model under test is called")
        return lines
    most = "at most " if plan.quorums else ""
    lines.append(
        f"calls     {most}{count(estimate.calls)}, about {count(estimate.prompt_tokens)} tokens of prompts"
    )
    lines.append(f"cost      {_cost_in_words(estimate)}")
    return lines


def _shape(plan: PlannedRun) -> str:
    """What the number of items is a product of."""
    run = plan.run
    factors = [plural(run.cases, "case"), plural(len(run.models), "model")]
    if run.prompts:
        factors.append(plural(len(run.prompts), "prompt"))
    fewest, most = min(plan.facts.repeats), max(plan.facts.repeats)
    factors.append(plural(most, "repeat") if fewest == most else f"{fewest} to {plural(most, 'repeat')}")
    shape = " × ".join(factors)  # noqa: RUF001 - a product
    return shape if plan.is_whole else f"a part of {shape}"


def _cost_in_words(estimate: RunEstimate) -> str:
    """Words the cost of a run, and what is not in it.

    >>> _cost_in_words(RunEstimate(2, 2, 54, 0.0006, 4, None, 0.0002))
    'at most about $0.0006, checks at most $0.0002 more, judge not counted'
    """
    if estimate.cost_usd is None:
        return "unknown: give prices in model_configs, or --price"
    assumed = assumption(estimate.assumed_answer_tokens)
    parts = [f"at most about {cost(estimate.cost_usd)}{assumed}"] if estimate.calls else []
    more = (
        ("judge", estimate.judge_calls, estimate.judge_cost_usd),
        ("checks", estimate.check_calls, estimate.check_cost_usd),
    )
    parts += [f"{whom} at most {cost(usd)} more" for whom, calls, usd in more if calls and usd is not None]
    parts += [f"{whom} not counted" for whom, calls, usd in more if calls and usd is None]
    return ", ".join(parts) or "nothing"
