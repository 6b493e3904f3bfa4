"""Checks a configuration of cases without sending anything, and estimates calls and cost of a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from producer.cli.error_exit import SCHEMA_VERSION
from producer.load.case_checks import calls_of
from producer.load.case_load import PlannedRun, plan_run
from producer.text import count, plural
from shared.contracts.case_run import FREEFORM
from shared.upstream.prices import cost_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from producer.cli.session import Session
    from producer.load.conversations import Conversation
    from producer.load.source import Source
    from producer.options import SubmitOptions

CHARS_A_TOKEN: Final = 4
"""Average length of a token, the usual estimate."""
ANSWER_TOKENS: Final = 250
"""Assumed length of an answer without a reference."""


class Estimate(NamedTuple):
    """Expected calls and cost of a run."""

    calls: int
    """Calls of the models under test; cached answers save some."""
    judge_calls: int
    """At most."""
    prompt_tokens: int
    """About, of the models under test."""
    cost_usd: float | None
    """About, without the judge; None where a price is not known."""
    check_calls: int = 0
    """By checks that call a model, at most."""


def print_estimate(session: Session, source: Source, options: SubmitOptions) -> int:
    """Checks a whole configuration and prints the planned run with its estimate.

    Raises:
        InputError: it breaks the contract.
        ProctorError: see `producer.load.case_load.plan_run`.
    """
    plan = plan_run(source, options.cases)
    for warning in plan.warnings:
        options.on_warning(warning)
    estimate = estimated(plan)
    if session.options.json:
        session.output.data(json.dumps(_document(source.name, plan, estimate)))
    else:
        session.output.data("\n".join(_lines(source.name, plan, estimate)))
    return 0


def estimated(plan: PlannedRun) -> Estimate:
    """Estimates the calls and the cost of a run."""
    run = plan.run
    often = max(1, len(plan.prompts)) * run.repeat
    judged = sum(case.entry.expected is not None for _, case in plan.cases)
    judge_calls = judged * len(run.models) * often * len(run.judges)
    check_calls = sum(calls_of(case.checks) for _, case in plan.cases) * len(run.models) * often
    if run.recorded:
        return Estimate(0, judge_calls, 0, 0.0, check_calls)
    sent = list(plan.conversations())
    prompts = [_tokens(said.system) + _tokens(_text_of(said)) for *_, said in sent]
    answers = [_answer_tokens(case.entry.expected, case.entry.reference) for _, _, case, _ in sent]
    costs = [cost_of(model, sum(prompts), sum(answers), run.prices) for model in run.models]
    known = [cost for cost in costs if cost is not None]
    return Estimate(
        plan.total,
        judge_calls,
        sum(prompts) * len(run.models) * run.repeat,
        sum(known) * run.repeat if len(known) == len(costs) else None,
        check_calls,
    )


def _text_of(sent: Conversation) -> str:
    """All that is sent but the system message."""
    return sent.input if sent.messages is None else json.dumps(list(sent.messages), ensure_ascii=False)


def _tokens(text: str) -> int:
    """About how many tokens a text has."""
    return -(-len(text) // CHARS_A_TOKEN)


def _answer_tokens(expected: Mapping[str, Any] | None, reference: str | None) -> int:
    """Estimates the tokens of an answer: as many as the expected one has."""
    if expected is not None:
        return _tokens(json.dumps(expected))
    return _tokens(reference) if reference else ANSWER_TOKENS


def _document(name: str, plan: PlannedRun, estimate: Estimate) -> dict[str, Any]:
    """The answer for programs."""
    run = plan.run
    return {
        "schema_version": SCHEMA_VERSION,
        "file": name,
        "kind": "cases",
        "counts": {
            "total": plan.total,
            "cases": run.cases,
            "models": len(run.models),
            **({"prompts": len(run.prompts)} if run.prompts else {}),
            "repeat": run.repeat,
            **({"recorded": len(plan.outputs)} if run.recorded else {}),
        },
        "mode": run.mode,
        "models": list(run.models),
        "judge_model": run.judge_model,
        "judge_models": list(run.judges),
        "estimate": estimate._asdict(),
        "exit": 0,
    }


def _lines(name: str, plan: PlannedRun, estimate: Estimate) -> list[str]:
    """The answer for people."""
    run = plan.run
    shape = f"{plural(run.cases, 'case')} × {plural(len(run.models), 'model')}"  # noqa: RUF001 - a product
    shape += f" × {plural(len(run.prompts), 'prompt')}" * bool(run.prompts)  # noqa: RUF001 - same
    shape += f" × {plural(run.repeat, 'repeat')}"  # noqa: RUF001 - same
    lines = [f"{name}: {shape} = {plural(plan.total, 'item')}; nothing was sent"]
    lines.append(
        f"mode      {run.mode}" + (": outputs are shown, nothing is checked" * (run.mode == FREEFORM))
    )
    lines.append(f"models    {', '.join(run.models)}")
    if estimate.judge_calls:
        names = ", ".join(run.judges)
        word = "judge     " if len(run.judges) == 1 else "judges    "
        lines.append(f"{word}{names}, at most {plural(estimate.judge_calls, 'call')}")
    if estimate.check_calls:
        names = ", ".join(run.check_models)
        lines.append(f"checks    {names}, at most {plural(estimate.check_calls, 'call')}")
    if run.recorded:
        lines.append(f"outputs   {count(len(plan.outputs))} recorded; no model under test is called")
        return lines
    if estimate.cost_usd is None:
        cost = "unknown: give prices in model_configs, or --price"
    else:
        cost = f"about ${estimate.cost_usd:.4f}, judge not counted"
    lines.append(
        f"calls     {count(estimate.calls)}, about {count(estimate.prompt_tokens)} tokens of prompts"
    )
    lines.append(f"cost      {cost}")
    return lines
