"""Writes what the evaluation harness prints: header, estimate, a line per query, files, summary, dry run.

The form is the document's expected output; here stand only the texts, each with its line ends, so that a test
can compare them and any command can print them.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from producer.aggregate.queries import targets
from producer.queries.documents import Metrics
from producer.queries.results import AskedQuery
from producer.report.cells import plain
from shared.contracts.queries import Baseline
from shared.contracts.query_vocabulary import confidence_of

TITLE: Final = "Waypoint Co-Pilot - Evaluation Harness"
RULE: Final = "=" * 60
QUERY_CHARS: Final = 48
"""How much of a query stands in its line."""
MIN_INDEX_DIGITS: Final = 2
FEW_KEYWORDS: Final = 2
"""A dry run lists in-scope queries that require fewer keywords than this."""
MAX_IDS: Final = 10
"""How many ids a line names."""

_SUMMARY_LABELS: Final = {
    "deflection_rate": "Deflection Rate:",
    "citation_accuracy": "Citation Acc:",
    "hallucination_rate": "Hallucination:",
    "oos_handling_rate": "OOS Handling:",
    "avg_latency_ms": "Avg Latency:",
}
_LABEL_WIDTH: Final = 16


def header(
    *,
    api_url: str,
    delay_s: int,
    start_from: str,
    dry_run: bool = False,
    title: str = TITLE,
) -> str:
    """Returns the block at the top.

    >>> print(header(api_url="http://localhost:3000", delay_s=30, start_from="Q-01").splitlines()[4])
      Delay:  30s between queries
    """
    lines = (
        RULE,
        f"  {plain(title)}",
        RULE,
        f"  API:    {plain(api_url)}",
        f"  Delay:  {delay_s}s between queries",
        f"  Start:  {plain(start_from)}",
        f"  Mode:   {'DRY RUN' if dry_run else 'LIVE'}",
        "",
    )
    return _text(lines)


def loaded(baselines: Sequence[Baseline], version: str) -> str:
    """Returns what was loaded."""
    oos = sum(baseline.is_oos for baseline in baselines)
    first = f"Loaded {len(baselines)} baselines (version: {plain(version)})"
    return _text((first, f"  {len(baselines) - oos} in-scope, {oos} out-of-scope"))


def estimate(queries: int, delay_s: int) -> str:
    r"""Returns how long the run will take, answers not counted.

    >>> estimate(50, 30)
    '  Estimated run time: ~25m 0s\n'
    """
    minutes, seconds = divmod(queries * delay_s, 60)
    return _text((f"  Estimated run time: ~{minutes}m {seconds}s",))


def query_line(query: AskedQuery, *, number: int, of: int) -> str:
    r"""Returns the line of one query that is done; what it says at the end is the verdict of all checks.

    >>> result = {"id": "Q-01", "query": "How?", "client_latency_ms": 12, "error": None, "overall_pass": True,
    ...           "response": {"confidence": {"level": "high"}}}
    >>> query_line(AskedQuery(result), number=1, of=50)
    '  [01/50] Q-01: "How?" (12ms) [high] PASS\n'
    """
    width = max(MIN_INDEX_DIGITS, len(str(of)))
    start = f'  [{number:0{width}}/{of}] {plain(query.id)}: "{plain(query.query, QUERY_CHARS)}"'
    start += f" ({query.client_ms or 0}ms)"
    if query.is_failed:
        return _text((f"{start} ERROR: {plain(query.error, 200)}",))
    level = plain(confidence_of(query.response)[0], 20) or "-"
    return _text((f"{start} [{level}] {'PASS' if query.passed else 'FAIL'}",))


def retry_line(identifier: str, *, retry: int, of: int, wait_s: float) -> str:
    r"""Returns the line of a query that is sent again.

    >>> retry_line("Q-07", retry=1, of=3, wait_s=30)
    '  Q-07: rate limited (429), retry 1/3 in 30s\n'
    """
    return _text((f"  {plain(identifier)}: rate limited (429), retry {retry}/{of} in {wait_s:g}s",))


def written_files(json_path: Path, csv_path: Path, report_path: Path) -> str:
    """Returns the list of files.

    >>> print(written_files(Path("data/r.json"), Path("data/r.csv"), Path("reports/r.md")), end="")
    Writing output files...
      JSON: data/r.json
      CSV:  data/r.csv
      Report: reports/r.md
    """
    paths = (f"  JSON: {json_path}", f"  CSV:  {csv_path}", f"  Report: {report_path}")
    return _text(("Writing output files...", *paths))


def summary(metrics: Metrics) -> str:
    """Returns the block at the end."""
    count = f"{metrics.successful_queries}/{metrics.total_queries} successful"
    lines = [
        f"  {_SUMMARY_LABELS[target.metric]:{_LABEL_WIDTH}} {target.reached}"
        f" (target: {target.wanted(decimals=1)})"
        for target in targets(metrics)
    ]
    return _text((RULE, "  EVALUATION SUMMARY", RULE, f"  {'Queries:':{_LABEL_WIDTH}} {count}", *lines, RULE))


def dry_run(baselines: Sequence[Baseline], *, delay_s: int, queries: int | None = None) -> str:
    """Returns what a dry run prints of the baselines; nothing was sent and nothing is written.

    Args:
        baselines: all of the file.
        delay_s: seconds between queries.
        queries: how many would be sent; None stands for all.
    """
    totals = {
        "must_contain": sum(len(each.must_contain) for each in baselines),
        "must_not_contain": sum(len(each.must_not_contain) for each in baselines),
        "should_contain": sum(len(each.should_contain) for each in baselines),
        "expected_docs": sum(len(each.expected_docs) for each in baselines),
        "oos_decline_signals": sum(len(each.oos_decline_signals) for each in baselines),
    }
    few = [each for each in baselines if not each.is_oos and len(each.must_contain) < FEW_KEYWORDS]
    mute = [each for each in baselines if each.is_oos and not each.oos_decline_signals]
    lines = (
        "DRY RUN: baselines are valid, no queries sent",
        "",
        "  Totals:",
        *(f"    {kind + ':':20} {total}" for kind, total in totals.items()),
        "",
        f"  In-scope with fewer than {FEW_KEYWORDS} must_contain: {_ids(few)}",
        f"  Out-of-scope without decline signals: {_ids(mute)}",
        "",
    )
    return _text(lines) + estimate(len(baselines) if queries is None else queries, delay_s)


def spans(is_in: Sequence[bool], names: Sequence[str]) -> list[str]:
    """Names the stretches of a sequence that are in something.

    >>> spans([True, True, False, True], ["Q-01", "Q-02", "Q-03", "Q-04"])
    ['Q-01 to Q-02', 'Q-04']
    """
    found = list[str]()
    for held, members in groupby(zip(is_in, names, strict=True), key=itemgetter(0)):
        stretch = [plain(name) for _, name in members]
        if held:
            found.append(stretch[0] if len(stretch) == 1 else f"{stretch[0]} to {stretch[-1]}")
    return found


def _ids(baselines: Sequence[Baseline]) -> str:
    """Returns how many there are, and which."""
    names = ", ".join(plain(baseline.id) for baseline in baselines[:MAX_IDS])
    more = ", ..." if len(baselines) > MAX_IDS else ""
    return f"{len(baselines)} ({names}{more})" if names else "0"


def _text(lines: Sequence[str]) -> str:
    """Joins lines, each with its end."""
    return "\n".join(lines) + "\n"
