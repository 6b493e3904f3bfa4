"""Explains why a run was aborted: what was called, where that is written, and what helps."""

import json
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from producer.cli.output import printable
from producer.sample_api import DEFAULT_PORT
from shared.contracts.case_run import SNAPSHOT_KEY, CaseRun
from shared.contracts.query_run import SNAPSHOT_KEY as QUERIES_KEY
from shared.contracts.query_run import QueryRun
from shared.kinds import Storage
from shared.names import Outcome
from shared.runs import RunInfo, RunStore
from shared.upstream.addresses import shown_url, with_path
from shared.upstream.failure_reasons import FailureReason

CHAT_PATH: Final = "/chat/completions"
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
NOT_REACHED: Final = frozenset({FailureReason.ABSENT.model_code, FailureReason.UNREACHABLE.api_code})
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


def explain_abort(store: RunStore, info: RunInfo) -> Abort:
    """Explains why a run was aborted.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    if info.kind.storage is Storage.MAILBOXES:
        return Abort(store.wait_reason(info.run))
    last = b""
    for page in store.item_pages(info.run):
        last = next((row.line for row in reversed(page) if row.outcome is Outcome.ERROR), last)
    error = json.loads(last)["error"] if last else {}
    why = printable(str(error.get("message") or ""))
    if error.get("code") not in NOT_REACHED:
        return Abort(why)
    called = _called(info)
    places = "; ".join(place for each in called if (place := _place(each, why)))
    hints = dict.fromkeys(hint for each in called for hint in _hints(each))
    return Abort(why + (f" ({places})" if places else ""), tuple(hints))


def _called(info: RunInfo) -> list[Called]:
    """Returns what a run calls, each address once."""
    if QUERIES_KEY in info.snapshot:
        return [Called(QueryRun.from_snapshot(info.snapshot).api_url)]
    run = CaseRun.from_snapshot(info.snapshot) if SNAPSHOT_KEY in info.snapshot else None
    found = {
        endpoint.api_base: Called(
            endpoint.api_base, with_path(endpoint.api_base, CHAT_PATH), run.written_at.get(model, "")
        )
        for model, endpoint in (run.models.items() if run else ())
        if run and endpoint.api_base
    }
    return list(found.values())


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
