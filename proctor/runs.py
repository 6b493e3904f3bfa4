"""Runs of the ledger: their verdict, their rows, and how two of them compare."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from proctor.errors import GateError
from proctor.program import document, lines

if TYPE_CHECKING:
    from os import PathLike

VERDICTS: Final[Mapping[int, "Verdict"]] = {0: "passed", 1: "failed", 3: "aborted", 4: "incomplete"}
"""By the exit code in a run's document."""
ENDED: Final = (0, 1, 3, 4)
"""Exit codes of commands that waited for a run."""
FINAL_STATES: Final = ("finished", "cancelled", "aborted", "incomplete")
REQUIREMENT: Final = re.compile(r"\s*(?P<metric>[^<>=]+?)\s*(?P<relation><=|>=|<|>)\s*(?P<bound>\S+)\s*")
BROKEN_BY: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""The relation that fails a requirement."""
COLUMNS: Final = (
    "item_id",
    "outcome",
    "status",
    "model",
    "case_id",
    "prompt_id",
    "repeat_index",
    "score",
    "output",
    "reason",
    "latency_ms",
    "cost_usd",
    "cached",
)
"""Columns of a table of rows; tags and metadata follow."""

Verdict = Literal["passed", "failed", "incomplete", "aborted"]


@dataclass(frozen=True)
class CheckResult:
    """What one check found."""

    name: str
    check: str
    """Its kind."""
    passed: bool | None
    """None: it was not asked."""
    score: float | None
    reason: str


@dataclass(frozen=True, repr=False)
class Row:
    """The result of one item: a case put to one model, a query, or a turn."""

    line: Mapping[str, Any] = field(repr=False)
    """The line of `proctor results --format jsonl`, whole."""

    @property
    def item_id(self) -> str:
        """Names the item within its run."""
        return str(self.line["item_id"])

    @property
    def index(self) -> int:
        """Position in its run, from 0."""
        return int(self.line["index"])

    @property
    def outcome(self) -> str:
        """Is `passed`, `failed`, `error` or `skipped`; of turns also `decided`."""
        return str(self.line["outcome"])

    @property
    def passed(self) -> bool:
        """Whether the item passed, or a turn was decided."""
        return self.outcome in ("passed", "decided")

    @property
    def result(self) -> Mapping[str, Any]:
        """The result of its kind; empty where there is only an error."""
        return self.line.get("result") or {}

    @property
    def error(self) -> Mapping[str, Any] | None:
        """`code` and `message` of an item without an answer."""
        return self.line.get("error")

    @property
    def reason(self) -> str:
        """Why it did not pass; empty when it did."""
        if self.passed:
            return ""
        if self.error:
            return str(self.error.get("message") or self.error.get("code"))
        return str(self.result.get("message") or self.result.get("error") or self.result.get("status") or "")

    @property
    def output(self) -> str | None:
        """The answer to a case; None where there is none."""
        return self.result.get("raw_output")

    @property
    def model(self) -> str | None:
        """The model that was asked."""
        return self.result.get("model")

    @property
    def case_id(self) -> str | None:
        """The id of the case in its bench."""
        return self.result.get("case_id") or self.result.get("id")

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """What the model of a case was sent."""
        return list(self.line.get("messages") or [])

    @property
    def score(self) -> float | None:
        """Mean score of the checks of a case."""
        return self.result.get("score")

    @property
    def checks(self) -> list[CheckResult]:
        """What each check of a case found."""
        return [
            CheckResult(each["name"], each["check"], each["passed"], each["score"], each["reason"])
            for each in self.result.get("checks") or []
            if isinstance(each, Mapping) and "name" in each
        ]

    @property
    def tags(self) -> list[str]:
        """The tags of a case."""
        return list(self.result.get("tags") or [])

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of a case."""
        return self.result.get("metadata") or {}

    @property
    def latency_ms(self) -> int | None:
        """How long the answer took."""
        return self.line.get("latency_ms")

    @property
    def cost_usd(self) -> float | None:
        """What the answer cost; None where that is not known."""
        return self.line.get("cost_usd")

    def __repr__(self) -> str:
        return f"Row({self.item_id!r}, outcome={self.outcome!r}, output={self.output!r})"

    def cells(self) -> dict[str, Any]:
        """Returns the row as a table has it: one value a column."""
        known = {**self.result, **self.line, "output": self.output, "reason": self.reason}
        known["case_id"] = self.case_id
        return {name: known.get(name) for name in COLUMNS} | {
            "tags": ", ".join(self.tags),
            **{f"metadata.{name}": value for name, value in self.metadata.items()},
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """How run B compares with the earlier run A."""

    document: Mapping[str, Any] = field(repr=False)
    """What `proctor compare --json` prints."""

    @property
    def verdict(self) -> str:
        """The verdict in words, such as `no significant difference`."""
        return str(self.document["verdict"])

    @property
    def is_regression(self) -> bool:
        """Whether B is significantly worse."""
        return bool(self.document["regressions"])

    @property
    def counts(self) -> Mapping[str, int]:
        """How many pairs were fixed, broken, changed, unchanged, and are in one run only."""
        return dict(self.document["counts"])

    def __repr__(self) -> str:
        return f"Comparison({str(self)!r})"

    def __str__(self) -> str:
        counts = self.counts
        return f"{self.verdict}: {counts['broken']} broken, {counts['fixed']} fixed of {counts['pairs']}"


@dataclass(frozen=True)
class Run:
    """A run by its id; what is read of it comes from the ledger each time."""

    id: str
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Its document when it was last read; empty after `submit`."""

    @property
    def kind(self) -> str:
        """Is `cases`, `queries` or `turns`."""
        return str(self._known()["kind"])

    @property
    def state(self) -> str:
        """The state in which it was last read, such as `running` or `finished`."""
        return str(self._known()["state"])

    @property
    def counts(self) -> Mapping[str, int]:
        """Items by outcome, and their `total`."""
        return dict(self._known()["counts"])

    @property
    def summary(self) -> Mapping[str, Any]:
        """The summary of its kind: rates, models, checks, costs."""
        return dict(self._known()["summary"])

    @property
    def pass_rate(self) -> float | None:
        """Share of all items that passed; None for a run without items."""
        rate = self.summary["rates"].get("pass_rate")
        return None if rate is None else rate["value"]

    @property
    def cost_usd(self) -> float | None:
        """What it cost; None where that is not known."""
        return self.summary.get("cost_usd")

    @property
    def verdict(self) -> Verdict | None:
        """How it ended: `passed` when every item did, or its gates hold; None before its end."""
        known = self._known()
        return VERDICTS[known["exit"]] if known["state"] in FINAL_STATES else None

    @property
    def rows(self) -> Iterator[Row]:
        """The results in input order, read one by one."""
        return self.select()

    def select(self, *items: str, failed: bool = False, errors: bool = False) -> Iterator[Row]:
        """Yields some of the results.

        Args:
            items: names of items, such as the id of a case; none: all.
            failed: only what did not pass.
            errors: only what ended in an error.

        Raises:
            ProctorError: there is no such run or item.
        """
        chosen = [*(f"--item={item}" for item in items)]
        chosen += ["--failed"] if failed else []
        chosen += ["--errors"] if errors else []
        return map(Row, lines(["results", self.id, "--format=jsonl", *chosen]))

    def refreshed(self) -> "Run":
        """Reads the run again.

        Raises:
            ProctorError: it does not exist any more.
        """
        return Run(self.id, document(["runs", "show", self.id]))

    def wait(self) -> "Run":
        """Waits for its end.

        Raises:
            ProctorError: there is no such run.
        """
        return Run(self.id, document(["watch", self.id, "-q"], accepts=ENDED))

    def cancel(self) -> None:
        """Cancels it; results that are there stay."""
        document(["cancel", self.id])

    def compare(self, other: "Run | str", *, metric: str | None = None) -> Comparison:
        """Compares this run, as B, with an earlier one, A.

        Raises:
            ProctorError: one of them is gone, or they have no items in common.
        """
        metrics = [] if metric is None else [f"--metric={metric}"]
        return Comparison(document(["compare", getattr(other, "id", str(other)), self.id, *metrics]))

    def assert_gate(self, *requirements: str) -> None:
        """Raises unless each requirement holds, such as `pass_rate>=0.9` or `check:polite.pass_rate>0.95`.

        Raises:
            GateError: one does not hold.
            ValueError: there is none, or one is not written as a requirement.
            ProctorError: it names no metric of the run.
        """
        if not requirements:
            raise ValueError("name a requirement, such as pass_rate>=0.9")
        gates = [f"--fail-on={broken_by(requirement)}" for requirement in requirements]
        judged = document(["watch", self.id, "-q", *gates], accepts=ENDED)["gates"]
        if missed := [gate["text"] for gate in judged if not gate["met"]]:
            raise GateError(f"{self.id}: {'; '.join(missed)}")

    def report(self, path: "str | PathLike[str]") -> None:
        """Writes a report; the suffix is its format: .html, .md, .json, .jsonl, .csv or .xml."""
        document(["report", self.id, f"--output={path}"])

    def to_pandas(self) -> Any:
        """Returns the rows as a data frame of pandas, which must be installed."""
        return import_module("pandas").DataFrame([row.cells() for row in self.rows])

    def to_polars(self) -> Any:
        """Returns the rows as a data frame of polars, which must be installed."""
        cells = [row.cells() for row in self.rows]
        return import_module("polars").DataFrame(cells, infer_schema_length=None)

    def _known(self) -> Mapping[str, Any]:
        return self.document or self.refreshed().document

    def __str__(self) -> str:
        counts = self.counts
        good, total = counts.get("passed", 0) + counts.get("decided", 0), counts["total"]
        others = [f"{counts[name]:,} {name}" for name in ("failed", "error", "skipped") if counts.get(name)]
        return ", ".join([f"{self.id}: {good:,} of {total:,} passed", *others])

    def _repr_html_(self) -> str:
        """Shows it in a notebook."""
        from proctor.run_html import html_of  # noqa: PLC0415 - start-up: only notebooks need it

        return html_of(self.refreshed())


def runs() -> list[Run]:
    """Lists the runs of the ledger, the newest first.

    Raises:
        ProctorError: Redis cannot be reached.
    """
    return [Run(each["run_id"]) for each in document(["runs", "list"])["runs"]]


def broken_by(requirement: str) -> str:
    """Returns the gate that fails when a requirement does not hold.

    Raises:
        ValueError: it is not written as one.

    >>> broken_by("pass_rate >= 90%"), broken_by("cost_usd<2")
    ('pass_rate<90%', 'cost_usd>=2')
    """
    found = REQUIREMENT.fullmatch(requirement)
    if found is None:
        raise ValueError(f"{requirement!r} is not a requirement: write it as pass_rate>=0.9")
    return f"{found['metric']}{BROKEN_BY[found['relation']]}{found['bound']}"
