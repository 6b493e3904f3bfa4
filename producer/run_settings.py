"""The settings of a run that its document shows, read from the run's snapshot."""

from typing import Any

from producer.aggregate.call_totals import NO_CALLS
from shared.contracts.case_run import GIT_KEY, CaseRun
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.contracts.turn_vocabulary import SIGNALS_ONCE
from shared.runs import RunInfo


def turn_settings(info: RunInfo) -> dict[str, Any]:
    """Returns the settings of a turns run."""
    live = LiveRun.from_snapshot(info.snapshot)
    return {
        **({"model": live.model, "live": live.live.value} if live else {}),
        "threads": info.threads,
        "summary_policy": info.snapshot.get("summary_policy", ""),
        **({SIGNALS_ONCE: True} if info.snapshot.get(SIGNALS_ONCE) else {}),
        "namespace": info.namespace,
    }


def case_settings(info: RunInfo) -> dict[str, Any]:
    """Returns the settings of a cases run."""
    run = CaseRun.from_snapshot(info.snapshot)
    return {
        "name": run.name,
        "git": info.snapshot.get(GIT_KEY),
        "mode": run.mode,
        "cases": run.cases,
        "repeat": run.repeat,
        "paid_usd": info.paid_usd,
        "models_asked": list(run.models),
        **({"prompts_asked": list(run.prompts)} if run.prompts else {}),
        "judge_model": run.judge_model,
        "judge_models": list(run.judges),
        "concurrency": run.concurrency,
    }


def query_settings(info: RunInfo) -> dict[str, Any]:
    """Returns the settings of a queries run."""
    run = QueryRun.from_snapshot(info.snapshot)
    return {
        "api_url": run.api_url,
        "delay_s": run.delay_s,
        "concurrency": run.concurrency,
        **({"fold_apostrophes": True} if run.fold_apostrophes else {}),
    }


def summary_before_results(info: RunInfo) -> dict[str, Any]:
    """Returns what the summary of a run has before the run has results."""
    return {"calls": dict(NO_CALLS)} if LiveRun.from_snapshot(info.snapshot) else {}
