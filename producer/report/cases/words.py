"""The words of a cases run that all its reports share: figures as the document prints them, and headlines."""

from collections.abc import Mapping
from typing import Any, Final

from producer.aggregate.turns import share
from producer.text import duration, plural

FREEFORM: Final = "freeform"
SMALL_USD: Final = 0.01
NONE: Final = "-"


def seconds(latency_ms: float | None) -> str:
    """Writes a latency as the document does.

    >>> seconds(450), seconds(12_345), seconds(None)
    ('0.45s', '12.35s', '-')
    """
    return NONE if latency_ms is None else f"{latency_ms / 1000:.2f}s"


def dollars(cost_usd: float | None) -> str:
    """Writes a cost; small ones with four decimals.

    >>> dollars(0.0002), dollars(1.5), dollars(0.0), dollars(None)
    ('$0.0002', '$1.50', '$0.00', 'unknown')
    """
    if cost_usd is None:
        return "unknown"
    return f"${cost_usd:.4f}" if 0 < cost_usd < SMALL_USD else f"${cost_usd:.2f}"


def percent(rate: float) -> str:
    """Writes a pass rate.

    >>> percent(66.6666)
    '66.7%'
    """
    return f"{rate:.1f}%"


def headline(document: Mapping[str, Any]) -> str:
    """Says in one line what the run is and how far it came."""
    counts, summary = document["counts"], document["summary"]
    what = f"{plural(summary['cases'], 'case')} by {plural(len(summary['models_asked']), 'model')}"
    if summary["repeat"] > 1:
        what += f", {summary['repeat']} times"
    text = f"{document['state']}: {what}"
    if summary["duration_s"] is None:
        done = counts["passed"] + counts["failed"] + counts["error"]
        return f"{text}, {done:,} of {counts['total']:,} done ({share(done, counts['total']):.0f} %)"
    return f"{text} in {duration(summary['duration_s'])}"


def by_pass_rate(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Sorts the models of a summary: the best first, then by name."""
    return sorted(document["summary"]["models"], key=lambda model: (-model["pass_rate"], model["model"]))


def by_latency(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Sorts the models of a summary: the fastest first, by the 95th percentile; those without one last."""
    models = document["summary"]["models"]
    return sorted(models, key=lambda model: (model["latency_ms"].get("p95", float("inf")), model["model"]))


def remarks(document: Mapping[str, Any]) -> list[str]:
    """Names outcomes, cost, tokens and the judge, as far as there is something to tell."""
    counts, summary = document["counts"], document["summary"]
    tokens = sum(model["prompt_tokens"] + model["completion_tokens"] for model in summary["models"])
    cached = sum(model["cached"] for model in summary["models"])
    unknown = sum(model["cost_unknown"] for model in summary["models"])
    cost = f"cost {dollars(summary['known_cost_usd'])}"
    if unknown:
        cost = (
            f"{cost} and {plural(unknown, 'call')} of unknown price"
            if summary["known_cost_usd"]
            else "cost unknown"
        )
    told = [f"passed {counts['passed']:,}", f"failed {counts['failed']:,}", f"errors {counts['error']:,}"]
    told += [f"never asked {counts['skipped']:,}"] * bool(counts["skipped"])
    told += [cost, f"tokens {tokens:,}"]
    told += [f"from the cache {cached:,}"] * bool(cached)
    told += [f"asked again {summary['retried']:,}"] * bool(summary["retried"])
    judge = summary["judge"]
    votes = f" by {judge['calls']:,} votes" if len(judge["judges"]) > 1 else ""
    told += [f"judged {judge['judged'] if votes else judge['calls']:,}{votes}"] * bool(judge["calls"])
    told += [f"judge not reached {judge['unreached']:,}"] * bool(judge["unreached"])
    return told
