"""The HTTP service: routes, tokens, bounds, deadlines, drain; what a request means is in other modules."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Final, TypeVar
from uuid import uuid4

import msgspec
from aiohttp import hdrs, web

from producer import api_async
from producer.access import Access
from producer.documents import as_json
from producer.following.events import as_line
from producer.serve.chat_packets import ChatPacket, read_packet, reply_of
from producer.serve.event_streams import (
    KEEP_ALIVE,
    PieceQueue,
    StreamedTurn,
    event_of,
    stream,
    wants_events,
    with_pauses,
)
from producer.serve.gatherer import Gatherer, Waiting
from producer.serve.metrics import ServeMetrics, route_of
from producer.serve.micro_runs import MicroRuns, ServedTurn
from producer.serve.openapi import LONGEST_WAIT_S, SHORTEST_WAIT_S, openapi_document
from producer.serve.replies import (
    AcceptedReply,
    DrainingError,
    ErrorReply,
    QueueFullError,
    ServiceError,
    of_error,
    of_http,
    of_turn,
    of_turns,
    refused,
    reply,
)
from producer.serve.run_requests import WantedRun, own_run, submit_content
from producer.serve.thread_requests import decide_only, names_etag, read_thread, remove_thread_soon
from producer.serve.tokens import Tokens
from producer.serve.turn_bodies import MOST_TURNS, AcceptedTurn, read_turns
from producer.service_documents import SubmitDocument
from shared.codecs.live_pieces import LivePiece
from shared.contracts.live_turns import LiveRun
from shared.errors import InfrastructureError, InputError, ProctorError
from shared.kinds import Kind
from shared.ledger import Keep

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics", "/openapi.json"})
"""What is answered without a token."""
NAMESPACE: Final = web.RequestKey("namespace", str)

logger = logging.getLogger(__name__)

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How turns are taken."""

    tokens: Tokens
    summary_policy: str
    live: LiveRun | None = None
    """The model that answers turns; None: turns are decided only."""
    deadline_s: float = 30.0
    """How long a caller waits for decisions unless it says otherwise."""
    max_waiting: int = 10_000
    """Turns that may wait for decisions; more are answered with 429."""
    max_body_bytes: int = 4 << 20
    grace_s: float = 10.0
    """How long turns that were accepted may take after the service was asked to end."""
    keep: Keep = field(default_factory=Keep)
    on_run: Callable[[Kind], object] = bool
    """Called in a thread with the kind of a run that was submitted."""


class Service:
    """Answers requests.

    Args:
        access: access to Redis, connected.
        options: how turns are taken.
        on_request: called with each request before it is answered.
    """

    def __init__(
        self, access: Access, options: ServeOptions, on_request: Callable[[web.Request], object] = bool
    ) -> None:
        self._access, self._options, self._on_request = access, options, on_request
        self._metrics = ServeMetrics(
            lambda: sum(each.waiting for each in self._gatherers.values()),
            lambda: sum(each.queued for each in self._gatherers.values()),
        )
        self._gatherers = {
            name: Gatherer(
                MicroRuns(access, name, options.summary_policy, options.keep, options.live),
                options.max_waiting,
                1 if options.live else MOST_TURNS,
                self._metrics.micro_run.observe,
            )
            for name in options.tokens.namespaces
        }
        self._is_draining = False

    def routes(self) -> list[web.RouteDef]:
        """Returns what is served."""
        return [
            web.route(hdrs.METH_GET, "/healthz", self.health),
            web.route(hdrs.METH_GET, "/readyz", self.readiness),
            web.route(hdrs.METH_GET, "/metrics", self.metrics),
            web.route(hdrs.METH_GET, "/openapi.json", self.openapi),
            web.route(hdrs.METH_POST, "/v1/turns", self.turns),
            web.route(hdrs.METH_GET, "/v1/turns/{turn}", self.turn),
            web.route(hdrs.METH_POST, "/v1/chat", self.chat),
            web.route(hdrs.METH_GET, "/v1/threads/{thread}", self.thread),
            web.route(hdrs.METH_DELETE, "/v1/threads/{thread}", self.remove_thread),
            web.route(hdrs.METH_POST, "/v1/runs", self.submit_run),
            web.route(hdrs.METH_GET, "/v1/runs/{run}", self.run),
            web.route(hdrs.METH_GET, "/v1/runs/{run}/events", self.run_events),
        ]

    def start(self) -> None:
        """Begins to take turns."""
        for gatherer in self._gatherers.values():
            gatherer.start()

    async def drain(self) -> None:
        """Takes no more turns, and waits for those that were accepted."""
        self._is_draining = True
        waits = (each.drain(self._options.grace_s) for each in self._gatherers.values())
        await asyncio.gather(*waits)

    async def close(self) -> None:
        """Ends all work."""
        await asyncio.gather(*(each.close() for each in self._gatherers.values()))

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answers a request, then counts and logs it."""
        began_s = monotonic()
        self._on_request(request)
        try:
            response = await self._answered(request, handler)
        except ProctorError as error:
            response = of_error(error)
        except web.HTTPException as error:
            response = of_http(error, self._options.max_body_bytes)
        except Exception:
            logger.exception("request failed", extra={"method": request.method, "route": route_of(request)})
            response = refused("internal", "the service failed on this request; its log has the reason", 500)
        self._metrics.requested(request, response.status)
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "request",
                extra={
                    "method": request.method,
                    "route": route_of(request),
                    "namespace": request.get(NAMESPACE, ""),
                    "status": response.status,
                    "ms": round((monotonic() - began_s) * 1000, 1),
                },
            )
        return response

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Finds the namespace of a request by its token, and answers it."""
        if request.path in OPEN_PATHS:
            return await handler(request)
        namespace = self._options.tokens.namespace_of(request.headers.get(hdrs.AUTHORIZATION))
        if namespace is None:
            response = refused(
                "unauthorized",
                "no known token",
                401,
                "send the header `Authorization: Bearer TOKEN`",
                headers={hdrs.WWW_AUTHENTICATE: "Bearer"},
            )
            response.force_close()  # an idle connection costs an open file
            return response
        request[NAMESPACE] = namespace
        return await handler(request)

    async def health(self, _request: web.Request) -> web.Response:
        """Says that the process answers."""
        return reply(b'{"status":"ok"}')

    async def readiness(self, _request: web.Request) -> web.Response:
        """Says whether turns are taken: Redis answers, and the service is not about to end."""
        self._refuse_at_end()
        if not all(each.is_running for each in self._gatherers.values()):
            raise InfrastructureError(
                "the service has failed, and decides no more turns", hint="start it again"
            )
        await asyncio.to_thread(self._access.impatient_store.list, limit=1)
        return reply(b'{"status":"ready"}')

    async def metrics(self, request: web.Request) -> web.Response:
        """Answers what Prometheus scrapes."""
        return self._metrics.page(request.headers.get(hdrs.ACCEPT, ""))

    async def openapi(self, _request: web.Request) -> web.Response:
        """Describes the service."""
        return reply(msgspec.json.encode(openapi_document()))

    async def turns(self, request: web.Request) -> web.StreamResponse:
        """Decides turns, and waits for the decisions."""
        gatherer, waits, deadline_s = self._open_gatherer(request), _waits(request), self._deadline_s(request)
        body = read_turns(await self._body(request, deadline_s))
        if not waits:
            waiting = self._accept(gatherer, body.turns, is_kept=True)
            ids = await _within(waiting.ids, deadline_s)
            return self._late(waiting, deadline_s) if ids is None else reply(AcceptedReply(ids), 202)
        if wants_events(request):
            if body.is_list:
                raise InputError("body: events are of one turn", hint="send a turn, or take JSON")
            [turn] = body.turns
            return await self._streamed(request, gatherer, turn, deadline_s, lambda found, _: of_turn(found))
        waiting = self._accept(gatherer, body.turns)
        found = await _within(waiting.results, deadline_s)
        if found is None:
            return self._late(waiting, deadline_s)
        return of_turns(found) if body.is_list else of_turn(found[0])

    async def turn(self, request: web.Request) -> web.Response:
        """Answers how a turn ended for whose decision nobody waited."""
        runs = self._gatherers[request[NAMESPACE]].runs
        async with self._deadline(request):
            found = await asyncio.to_thread(runs.kept_result, path_of(request).turn)
        return of_turn(found) if found else reply(b'{"status":"pending"}', 202)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Decides the turn of a packet, as the document's server does."""
        gatherer, deadline_s = self._open_gatherer(request), self._deadline_s(request)
        packet, turn = read_packet(await self._body(request, deadline_s))
        finished = partial(_of_packet, packet, request[NAMESPACE])
        if packet.is_stored and wants_events(request):
            return await self._streamed(request, gatherer, turn, deadline_s, finished)
        if not packet.is_stored:
            policy = self._options.summary_policy
            async with self._deadline(request):
                found = await asyncio.to_thread(decide_only, self._access, request[NAMESPACE], turn, policy)
            return finished(found, f"{uuid4()}.0")
        waiting = self._accept(gatherer, [turn])
        decided = await _within(waiting.results, deadline_s)
        if decided is None:
            return self._late(waiting, deadline_s)
        [id_], [found] = await waiting.ids, decided
        return finished(found, id_)

    async def thread(self, request: web.Request) -> web.Response:
        """Answers the state of a thread."""
        thread = path_of(request).thread
        async with self._deadline(request):
            found = await asyncio.to_thread(read_thread, self._access, request[NAMESPACE], thread)
        if names_etag(request.headers.get(hdrs.IF_NONE_MATCH, ""), found.etag):
            return web.Response(status=304, headers={hdrs.ETAG: f'"{found.etag}"'})
        return reply(found, headers={hdrs.ETAG: f'"{found.etag}"'})

    async def remove_thread(self, request: web.Request) -> web.Response:
        """Removes a thread."""
        condition = request.headers.get(hdrs.IF_MATCH, "*")
        thread = path_of(request).thread
        async with self._deadline(request):
            await remove_thread_soon(self._access, request[NAMESPACE], thread, condition)
        return web.Response(status=204)

    async def submit_run(self, request: web.Request) -> web.Response:
        """Submits a file as a run: the body is its content."""
        self._refuse_at_end()
        wanted = WantedRun.of(request.query, request[NAMESPACE], request.headers.get("Idempotency-Key", ""))
        content = await self._body(request, self._deadline_s(request))
        async with self._deadline(request):
            submitted = await asyncio.to_thread(submit_content, self._access, content, wanted)
        await asyncio.to_thread(self._options.on_run, submitted.kind)
        location = f"/v1/runs/{submitted.run}"
        return reply(SubmitDocument.of(submitted), 202, headers={hdrs.LOCATION: location})

    async def run(self, request: web.Request) -> web.Response:
        """Answers the document of a run."""
        run = await self._own_run(request)
        async with self._deadline(request):
            document = await api_async.report(self._access, run)
        return reply(as_json(document).encode())

    async def run_events(self, request: web.Request) -> web.StreamResponse:
        """Sends the events of a run until it has ended."""
        run = await self._own_run(request)
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionResetError):  # its caller has left
            try:
                async for event in with_pauses(api_async.follow(self._access, run)):
                    await response.write(
                        KEEP_ALIVE if event is None else f"data: {as_line(event)}\n\n".encode()
                    )
            except ProctorError as error:
                await response.write(event_of("error", of_error(error)))
            await response.write_eof()
        return response

    def _deadline_s(self, request: web.Request) -> float:
        """Reads how long a caller waits, before anything of its request counts.

        Raises:
            HTTPBadRequest: that is no time to wait.
        """
        text = request.query.get("timeout_s")
        if text is None:
            return self._options.deadline_s
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not SHORTEST_WAIT_S <= seconds <= LONGEST_WAIT_S:
            what = f"timeout_s is a number of seconds from {SHORTEST_WAIT_S:g} to {LONGEST_WAIT_S:g}"
            raise web.HTTPBadRequest(reason=what)
        return seconds

    async def _body(self, request: web.Request, within_s: float) -> bytes:
        """Reads the body of a request, which a caller has to send within its deadline."""
        try:
            # Most come with the head, and a timer would be a tenth of the work.
            if request.content.is_eof():
                return await request.read()
            async with asyncio.timeout(within_s):
                return await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout(reason="the body did not come within the deadline") from None
        except web.RequestPayloadError:
            raise web.HTTPBadRequest(reason="the body is not encoded as its headers say") from None

    @asynccontextmanager
    async def _deadline(self, request: web.Request) -> AsyncIterator[None]:
        """Ends what waits for Redis at the deadline of a caller.

        Raises:
            HTTPGatewayTimeout: it is over.
        """
        deadline_s = self._deadline_s(request)
        try:
            async with asyncio.timeout(deadline_s):
                yield
        except TimeoutError:
            raise web.HTTPGatewayTimeout(
                reason=f"Redis did not answer within {deadline_s:g} s; a change may still be made"
            ) from None

    async def _own_run(self, request: web.Request) -> str:
        """Returns the run of a request, which is of its namespace."""
        async with self._deadline(request):
            return await asyncio.to_thread(own_run, self._access, path_of(request).run, request[NAMESPACE])

    def _open_gatherer(self, request: web.Request) -> Gatherer:
        """Returns what takes the turns of a request.

        Raises:
            DrainingError: the service is about to end.
            InputError: the request has a condition where none is read.
        """
        self._refuse_at_end()
        if hdrs.IF_MATCH in request.headers:
            what = "If-Match: a turn has its condition in the body"
            raise InputError(what, hint="send thread_memento_etag with the turn or packet")
        return self._gatherers[request[NAMESPACE]]

    async def _streamed(
        self,
        request: web.Request,
        gatherer: Gatherer,
        turn: AcceptedTurn,
        deadline_s: float,
        finished: Callable[[ServedTurn, str], web.Response],
    ) -> web.StreamResponse:
        """Decides a turn, and sends its answer while it is written."""
        pieces = PieceQueue()
        waiting = self._accept(gatherer, [turn], on_piece=pieces.put)
        streamed = StreamedTurn(
            waiting,
            pieces,
            deadline_s,
            lambda found: finished(found, waiting.ids.result()[0]),
            lambda: self._late(waiting, deadline_s),
        )
        return await stream(request, streamed)

    def _refuse_at_end(self) -> None:
        if self._is_draining:
            raise DrainingError("the service ends")

    def _accept(
        self,
        gatherer: Gatherer,
        turns: Sequence[AcceptedTurn],
        *,
        is_kept: bool = False,
        on_piece: Callable[[LivePiece], None] | None = None,
    ) -> Waiting:
        """Accepts turns, and counts them.

        Raises:
            QueueFullError: too many turns wait.
            DrainingError: the service has begun to end while the body came.
        """
        self._refuse_at_end()
        if gatherer.is_full:
            raise QueueFullError(f"{gatherer.waiting:,} turns wait", hint="send again after a moment")
        waiting = gatherer.accept(turns, is_kept=is_kept, on_piece=on_piece)
        self._metrics.accepted(waiting)
        return waiting

    def _late(self, waiting: Waiting, deadline_s: float) -> web.Response:
        """Says that turns will be decided later than their caller waits, or that nobody knows whether."""
        self._metrics.late(waiting)
        waiting.is_kept = True
        if waiting.ids.done() and not waiting.ids.exception():
            what = f"no decision within {deadline_s:g} s; the turns count, and are decided later"
            hint = "GET /v1/turns/ID of each of the ids has the result"
            return reply(ErrorReply(ServiceError("deadline", what, hint), ids=waiting.ids.result()), 504)
        what = f"Redis did not take the turns within {deadline_s:g} s; they may still be decided"
        return refused("deadline", what, 504, "send them again, with the same clientRequestId")


async def _within(future: "asyncio.Future[T]", seconds: float) -> T | None:
    """Waits for what a future has; None if it takes longer."""
    done, _ = await asyncio.wait([future], timeout=seconds)
    return future.result() if done else None


def _of_packet(packet: ChatPacket, namespace: str, found: ServedTurn, row_id: str) -> web.Response:
    """Makes the response to a packet whose turn has ended."""
    return of_turn(found) if found.problem else reply(reply_of(packet, namespace, found, row_id))


class Named(msgspec.Struct, frozen=True):
    """What stands in the path of a request."""

    turn: str = ""
    thread: str = ""
    run: str = ""


def path_of(request: web.Request) -> Named:
    """Reads what stands in the path of a request."""
    return msgspec.convert(dict(request.match_info), Named)


def _waits(request: web.Request) -> bool:
    """Reads whether a caller waits for decisions.

    Raises:
        HTTPBadRequest: it says neither.
    """
    text = request.query.get("wait", "1")
    if text not in {"0", "1"}:
        raise web.HTTPBadRequest(reason="wait is 0 or 1")
    return text == "1"
