"""Answers of models that were given before: identical requests are answered once, over the whole fleet.

    find ── hit ────► the answer, with the figures of the call that brought it
      ├── lead ───► the model is called; `end` keeps the answer, or another caller leads
      └── follow ─► another caller leads already: waits for that, up to two seconds, then the item is parked

Errors are never kept. A lead that dies loses its place one lease later, by the ledger clock.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import count
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar
from uuid import uuid4

import msgspec

from shared.clock import now_ms
from shared.codecs.parked_items import ParkedState, WaitReason
from shared.settings import CACHE_TTL_S
from shared.templates.rendered_requests import texts_in_request
from shared.templates.template_texts import names_in_templates
from shared.upstream.http_mapping import HttpMapping
from worker.outcomes import Deferred
from worker.upstream.chat import ModelReply, ModelRequest
from worker.upstream.constants import WAIT_MS, draw_park_ms
from worker.upstream.embeddings import EmbeddingReply
from worker.upstream.script_batcher import ScriptBatcher, ScriptFailedError

VERSION: Final = 3
"""Part of every digest: raised when answers are stored in another form."""
MOST_BYTES: Final = 256 * 1024
"""Longer answers are not kept: an ordinary one has some thousand bytes, and memory is dear."""
POLL_S: Final = 0.25
"""How often followers look for the answer of another process."""

_encode = msgspec.msgpack.Encoder().encode


def is_kept(reply: ModelReply) -> bool:
    """Returns whether an answer is short enough to be found again.

    >>> is_kept(ModelReply("Hi", 5)), is_kept(ModelReply("Hi" * MOST_BYTES, 5))
    (True, False)
    """
    return len(_encode(reply)) <= MOST_BYTES


Reply = TypeVar("Reply", ModelReply, EmbeddingReply)


class Lead(NamedTuple):
    """The right to ask for an answer alone."""

    digest: str
    """Digest of the request."""
    token: str
    """Unique."""


def digest_of(identity: Mapping[str, Any]) -> str:
    """Returns the key under which a reply is kept.

    Args:
        identity: what identical requests have in common.
    """
    # Python's own writer takes halves of characters too, which hostile text may hold.
    return sha256(json.dumps({"version": VERSION, **identity}, sort_keys=True).encode()).hexdigest()


def identity_of(request: ModelRequest) -> dict[str, Any]:
    """Returns what identical requests have in common.

    The key that pays and the time limit are not part of it, the number of the repetition is.

    >>> from shared.upstream.model_target import ModelTarget
    >>> one = ModelRequest(ModelTarget("m"), "", "Hello", parameters={"a": 1, "b": 2})
    >>> other = ModelRequest(ModelTarget("m", timeout_s=1), "", "Hello", parameters={"b": 2, "a": 1})
    >>> identity_of(one) == identity_of(other)
    True
    >>> identity_of(one) == identity_of(ModelRequest(ModelTarget("m"), "Hello", ""))
    False
    >>> len(digest_of(identity_of(ModelRequest(ModelTarget("m"), "", chr(0xD800)))))
    64
    """
    identity: dict[str, Any] = {
        **request.target.place,
        "system": request.system,
        "user": request.user,
        "temperature": request.temperature,
        "parameters": dict(request.parameters),
        "stream": request.is_streamed,
        "repeat": request.repeat,
    }
    if request.target.http is not None:
        identity["vars"] = _named_vars(request.vars, request.target.http)
    elif request.target.is_hosted:  # code may look at any of them
        identity["vars"] = dict(request.vars)
    if request.messages:
        identity["messages"] = [*request.messages]
    # Of the variables of workers the names are part of it, and not the values.
    if headers := request.target.headers:
        identity["headers"] = sorted((name.lower(), value) for name, value in headers.items())
    return identity


def _named_vars(variables: Mapping[str, Any], mapping: HttpMapping) -> dict[str, Any]:
    """Returns the variables that a request to an application may name; checks alone may name others."""
    names = names_in_templates(texts_in_request(mapping.request))
    named = {name: value for name, value in variables.items() if name in names}
    return named or (dict(variables) if "vars" in names else {})


class ResponseCache:
    """Finds and keeps answers for the coroutines of one process.

    Args:
        scripts: runs this package's scripts.
        ttl_s: how long an answer is kept.
    """

    def __init__(self, scripts: ScriptBatcher, *, ttl_s: int = CACHE_TTL_S) -> None:
        self._scripts = scripts
        self._ttl_s = ttl_s
        self._process = uuid4().hex[:12]
        self._serials = count(1)
        self._leads: dict[str, Lead] = {}
        self._ended: dict[str, asyncio.Event] = {}
        scripts.every(scripts.renew_s, self._renew)

    async def find(self, identity: Mapping[str, Any], reply_type: type[Reply]) -> Reply | Lead:
        """Looks for an answer; waits up to two seconds for one that is under way.

        Args:
            identity: what identical requests have in common.
            reply_type: what their answers are.

        Raises:
            Deferred: another caller still asks.
            RedisUnreachableError: Redis stayed away for longer than the ledger's patience.
        """
        lead = Lead(digest_of(identity), f"{self._process}:{next(self._serials)}")
        try:
            return await self._look_up(lead, reply_type)
        except Deferred:
            raise
        except BaseException:  # cancelled, perhaps after the lead was given
            self.end(lead, None)
            raise

    def end(self, lead: Lead, reply: ModelReply | EmbeddingReply | None) -> None:
        """Ends a lead; to be called whatever came of it.

        Args:
            lead: from `find`.
            reply: the answer; None when there is none.
        """
        value = b"" if reply is None else _encode(reply)
        if len(value) > MOST_BYTES:
            value = b""
        self._scripts.post("keep_answer", lead.digest, lead.token, value, self._ttl_s)
        if self._leads.pop(lead.token, None) is not None:
            ended = self._ended.pop(lead.digest, None)
            if ended is not None:
                ended.set()

    async def _look_up(self, lead: Lead, reply_type: type[Reply]) -> Reply | Lead:
        deadline = monotonic() + WAIT_MS / 1000
        while True:
            match await self._scripts.run("look_up", lead.digest, lead.token):
                case [b"hit", bytes(value)]:
                    found: Reply = msgspec.msgpack.decode(value, type=reply_type)
                    return msgspec.structs.replace(found, is_cached=True)
                case [b"lead"]:
                    self._leads[lead.token] = lead
                    self._ended.setdefault(lead.digest, asyncio.Event())
                    return lead
                case [b"follow"] if monotonic() >= deadline:
                    raise Deferred(now_ms() + draw_park_ms(), ParkedState(WaitReason.IDENTICAL_CALL))
                case [b"follow"]:
                    await self._wait_for_lead(lead.digest, deadline)
                case answer:
                    raise ScriptFailedError(f"look_up.lua answered {answer!r}")

    async def _wait_for_lead(self, digest: str, deadline: float) -> None:
        """Waits until the lead of this process has ended, or for a moment when it is another's."""
        ended = self._ended.get(digest)
        left_s = max(0.0, deadline - monotonic())
        if ended is None:
            await asyncio.sleep(min(POLL_S, left_s))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await ended.wait()

    def _renew(self) -> None:
        """Renews the leads that are under way; in the batcher's thread."""
        flat = [text for lead in list(self._leads.values()) for text in lead]
        if flat:
            self._scripts.caller.run("renew_leads", *flat)
