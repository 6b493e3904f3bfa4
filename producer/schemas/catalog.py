"""The JSON Schemas by name: outputs from the types that are printed, inputs from the contracts.

Only `proctor config schema` and tests import this.
"""

from collections.abc import Mapping
from typing import Any, Final

from producer import service_documents
from producer.aggregate.comparison import CompareDocument
from producer.aggregate.turn_shares import SharesDocument
from producer.cases.data_difference import DataDifference
from producer.cases.documents import CasesRun, CasesSummary
from producer.cases.ranking import RankDocument
from producer.cases.results import CaseLine
from producer.documents import Notification
from producer.queries.documents import QueriesReport, QueriesRun, QueriesSummary, QueryLine
from producer.schemas.structs import ByTag, Document, schema_of_struct, title_of
from producer.turns.documents import Memento, TraceLine, TurnLine, TurnsRun, TurnsSummary
from shared.errors import UsageError

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_RUNS: Final[Mapping[str, Any]] = {"turns": TurnsRun, "cases": CasesRun, "queries": QueriesRun}
_LINES: Final[Mapping[str, Any]] = {"turns": TurnLine, "cases": CaseLine, "queries": QueryLine}
_POSTED: Final[Mapping[str, Any]] = {
    "turns": Notification[TurnsSummary],
    "cases": Notification[CasesSummary],
    "queries": Notification[QueriesSummary],
}


def _of_kinds(title: str, types: Mapping[str, Any], **constants: str) -> ByTag:
    """A document of a run of any kind."""
    forms = {kind: Document(struct, constants={"kind": kind, **constants}) for kind, struct in types.items()}
    return ByTag(title, "kind", forms)


def _report(kind: str) -> Document:
    """The JSON report of a run."""
    title = f"A {kind} run as .json: the document of run, and every result."
    return Document(_RUNS[kind], title, {"kind": kind}, {"results": (_LINES[kind],)})


OUTPUTS: Final[Mapping[str, Document | ByTag]] = {
    "cache": Document(service_documents.CacheDocument),
    "cache-clear": Document(service_documents.CacheCleared),
    "compare": Document(CompareDocument),
    "compare-streams": Document(SharesDocument),
    "config": Document(service_documents.ConfigDocument),
    "data-diff": Document(DataDifference),
    "dead": Document(service_documents.DeadDocument),
    "dead-discard": Document(service_documents.DeadDiscarded),
    "dead-show": Document(service_documents.DeadItemDocument),
    "decide": Document(service_documents.DecideDocument),
    "doctor": Document(service_documents.DoctorDocument),
    "error": Document(service_documents.ErrorDocument),
    "labels": Document(service_documents.LabelsDocument),
    "labels-import": Document(service_documents.LabelsImported),
    "limits": Document(service_documents.LimitsDocument),
    "limits-reset": Document(service_documents.LimitsReset),
    "limits-set": Document(service_documents.LimitsSet),
    "limits-unset": Document(service_documents.LimitsUnset),
    "line-cases": Document(CaseLine),
    "line-labels": Document(service_documents.LabelRow),
    "line-events": ByTag(
        "A line of run --jsonl and watch --jsonl: one event.",
        "event",
        {
            "loading": Document(service_documents.LoadingEvent),
            "submitted": Document(service_documents.SubmittedEvent),
            "failure": Document(service_documents.FailureEvent),
            "waiting": Document(service_documents.WaitingEvent),
            "progress": Document(service_documents.ProgressEvent),
            "finished": _of_kinds("", _RUNS, event="finished"),
            "error": Document(service_documents.ErrorEvent),
        },
    ),
    "line-queries": Document(QueryLine),
    "line-traces": Document(TraceLine),
    "line-turns": Document(TurnLine),
    "models": Document(service_documents.ModelsDocument),
    "notify": _of_kinds("What --notify posts to a webhook when a run has ended.", _POSTED),
    "plugins": Document(service_documents.PluginsDocument),
    "rank": Document(RankDocument),
    "report": Document(service_documents.ReportDocument),
    "report-cases": _report("cases"),
    "report-queries": Document(QueriesReport),
    "report-turns": _report("turns"),
    "retry": Document(service_documents.RetryDocument),
    "run": _of_kinds(
        "What run, watch, resume, retry, rescore and runs show print with --json: one run.", _RUNS
    ),
    "runs": Document(service_documents.RunsDocument),
    "runs-forget": Document(service_documents.TextsForgotten),
    "runs-rm": Document(service_documents.RunsRemoved),
    "schemas": Document(service_documents.SchemasDocument),
    "show": Document(service_documents.ItemsDocument, lists={"items": tuple(_LINES.values())}),
    "state": Document(service_documents.StateDocument),
    "status": Document(service_documents.StatusDocument),
    "submit": Document(service_documents.SubmitDocument),
    "threads": Document(service_documents.ThreadsDocument),
    "threads-rm": Document(service_documents.ThreadsRemoved),
    "threads-show": Document(service_documents.ThreadDocument, parts={"memento": Memento}),
    "validate": Document(service_documents.ValidateDocument),
    "validate-list": Document(service_documents.ListDocument),
}
"""What Proctor prints and writes; the docstrings of the types are the titles."""

_INPUTS: Final[Mapping[str, str]] = {
    "input-turns": "A line of a file of turns.",
    "input-bench": "A configuration of test cases, in YAML or JSON.",
    "input-outputs": "A line of recorded outputs (--outputs).",
    "input-baselines": "A file of baselines of queries.",
}
"""Their titles."""


def names() -> dict[str, str]:
    """Returns the titles of all schemas by name.

    >>> names()["run"][:16], "input-turns" in names()
    ('What run, watch,', True)
    """
    return {name: title_of(output) for name, output in OUTPUTS.items()} | dict(_INPUTS)


def list_of(titles: Mapping[str, str]) -> service_documents.SchemasDocument:
    """Returns the list as programs get it."""
    listed = (service_documents.ListedSchema(*each) for each in titles.items())
    return service_documents.SchemasDocument(schemas=tuple(listed))


def schema_of(name: str) -> dict[str, Any]:
    """Returns a schema that needs no other file.

    Raises:
        UsageError: there is none of this name.

    >>> sorted(schema_of("report")["$defs"])
    ['JudgedGate', 'WrittenFile']
    """
    head = {"$schema": DIALECT, "$id": f"urn:proctor:1:{name}"}
    if name in OUTPUTS:
        return {**head, **schema_of_struct(OUTPUTS[name])}
    if name in _INPUTS:
        from producer.schemas.inputs import schema_of_input  # noqa: PLC0415 - only inputs need pydantic

        return {**head, "title": _INPUTS[name], **schema_of_input(name)}
    raise UsageError(f"there is no schema {name}", hint="`proctor config schema` lists them")
