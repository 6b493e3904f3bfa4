"""Explains why a run was aborted or a model not reached: what was called, where it is written, what helps."""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from producer.aggregate.cases import NOT_REACHED as MODEL_NOT_REACHED
from producer.cases.documents import CasesSummary
from producer.cli.output import printable
from producer.documents import AnyRun
from producer.sample_api import DEFAULT_PORT
from shared.contracts.case_run import SNAPSHOT_KEY, CaseRun
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import SNAPSHOT_KEY as QUERIES_KEY
from shared.contracts.query_run import QueryRun
from shared.kinds import Storage
from shared.names import Outcome
from shared.runs import RunInfo, RunStore
from shared.upstream.addresses import shown_url, with_path
from shared.upstream.failure_reasons import FailureReason

CHAT_PATH: Final = "/chat/completions"
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
NOT_REACHED: Final = MODEL_NOT_REACHED | {FailureReason.UNREACHABLE.api_code}
"""Codes of errors for which the address is to be looked at."""


class Called(NamedTuple):
    """An address that a run calls."""

    base: str
    """As it is configured."""
    url: str = ""
    """What is called there; empty where the error names it."""
    written_at: str = ""
    """File and line, or the option."""


class Abort(NamedTuple):
    """Why a run was aborted."""

    why: str
    """The error of the item that ended it."""
    hints: tuple[str, ...] = ()
    """What helps, beside continuing it."""


def explain_abort(store: RunStore, info: RunInfo, document: AnyRun) -> Abort:
    """Explains why a run was aborted.

    Args:
        store: reads the run.
        info: the run.
        document: of the run.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    if info.kind.storage is Storage.MAILBOXES:
        live, why = LiveRun.from_snapshot(info.snapshot), store.wait_reason(info.run)
        base = live.target.api_base if live else ""
        return Abort(
            _explained(why, [Called(base, with_path(base, CHAT_PATH), "--api-base")] if base else [])
        )
    last = b""
    for page in store.item_pages(info.run):
        last = next((row.line for row in reversed(page) if row.outcome is Outcome.ERROR), last)
    error = json.loads(last)["error"] if last else {}
    why = printable(str(error.get("message") or ""))
    if error.get("code") not in NOT_REACHED:
        return Abort(why)
    called = _called(info, document)
    hints = dict.fromkeys(hint for each in called for hint in _hints(each))
    return Abort(_explained(why, called), tuple(hints))


def unreached(info: RunInfo, document: AnyRun) -> list[str]:
    """Explains for each model and judge that was not reached what was called and where it is written."""
    found = _not_reached(document)
    if not found:
        return []
    run = CaseRun.from_snapshot(info.snapshot)
    return [_explained(printable(why), _called_for(run, model)) for model, why in found.items()]


def _not_reached(document: AnyRun) -> Mapping[str, str]:
    """Returns what was not reached, with the first error of each; nothing of runs without models."""
    return (document.summary.not_reached or {}) if isinstance(document.summary, CasesSummary) else {}


def _explained(why: str, called: Sequence[Called]) -> str:
    """Writes an error with what was called and where that is written."""
    places = "; ".join(place for each in called if (place := _place(each, why)))
    return why + (f" ({places})" if places else "")


def _called_for(run: CaseRun, model: str) -> list[Called]:
    """Returns what is called for a model or judge; nothing for one without an `api_base`."""
    target = {**run.check_models, **run.judges, **run.models}.get(model)
    base = target.api_base if target else ""
    return [Called(base, with_path(base, CHAT_PATH), run.written_at.get(model, ""))] if base else []


def _called(info: RunInfo, document: AnyRun) -> list[Called]:
    """Returns what a run calls and did not reach, each address once."""
    if QUERIES_KEY in info.snapshot:
        return [Called(QueryRun.from_snapshot(info.snapshot).api_url)]
    if SNAPSHOT_KEY not in info.snapshot:
        return []
    run = CaseRun.from_snapshot(info.snapshot)
    called = (each for model in _not_reached(document) for each in _called_for(run, model))
    return list({each.base: each for each in called}.values())


def _place(called: Called, why: str) -> str:
    """Names what was called, where an error does not, and where that is written.

    >>> _place(Called("http://h/v1?a=b", "http://h/v1/chat/completions?a=b", "bench.yaml:4"), "no")
    'http://h/v1/chat/completions, api_base at bench.yaml:4'
    """
    url, written = shown_url(called.url), called.written_at
    if written and not written.startswith("--"):
        written = f"api_base at {written}"
    return ", ".join(part for part in (url if url not in why else "", written) if part)


def _hints(called: Called) -> list[str]:
    """Returns what may be wrong with an address.

    >>> _hints(Called("http://localhost:3000", "http://localhost:3000/chat/completions"))[0]
    'most servers want /v1: http://localhost:3000/v1'
    >>> _hints(Called("http://localhost:3000"))
    ['`proctor sample-api` serves samples there']
    """
    parts, hints = urlsplit(called.base), list[str]()
    if called.url and not parts.path.strip("/"):
        hints.append(f"most servers want /v1: {with_path(urlunsplit(parts._replace(query='')), '/v1')}")
    if parts.hostname in LOCAL and parts.port == DEFAULT_PORT:
        hints.append("`proctor sample-api` serves samples there")
    return hints
