"""Explains why a run was aborted or a model not reached: what was called, where it is written, what helps."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec

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
    hints = dict.fromkeys(hint for each in called for hint in _hints(each))
    return Abort(_explained(why, called), tuple(hints))


class _Model(msgspec.Struct):
    """What is read of the payload of an item."""

    model: str


_MODELS: Final = msgspec.json.Decoder(_Model)


def unreached(store: RunStore, info: RunInfo) -> list[str]:
    """Explains for each model of a cases run that was not reached what was called and where it is written.

    Raises:
        RedisUnreachableError: Redis stays away.
    """
    if SNAPSHOT_KEY not in info.snapshot:
        return []
    found = dict[str, str]()
    for page in store.item_pages(info.run, with_payload=True):
        for row in page:
            if row.outcome is not Outcome.ERROR or not any(code.encode() in row.line for code in NOT_REACHED):
                continue
            error = json.loads(row.line)["error"]
            if error["code"] in NOT_REACHED:
                found.setdefault(_MODELS.decode(row.payload).model, printable(str(error["message"])))
    run = CaseRun.from_snapshot(info.snapshot)
    return [
        _explained(why, [_called_for(run, model)] if run.models[model].api_base else [])
        for model, why in found.items()
    ]


def _explained(why: str, called: Sequence[Called]) -> str:
    """Writes an error with what was called and where that is written."""
    places = "; ".join(place for each in called if (place := _place(each, why)))
    return why + (f" ({places})" if places else "")


def _called_for(run: CaseRun, model: str) -> Called:
    """Returns what is called for a model that has an `api_base`."""
    base = run.models[model].api_base
    return Called(base, with_path(base, CHAT_PATH), run.written_at.get(model, ""))


def _called(info: RunInfo) -> list[Called]:
    """Returns what a run calls, each address once."""
    if QUERIES_KEY in info.snapshot:
        return [Called(QueryRun.from_snapshot(info.snapshot).api_url)]
    run = CaseRun.from_snapshot(info.snapshot) if SNAPSHOT_KEY in info.snapshot else None
    found = {
        endpoint.api_base: _called_for(run, model)
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
