"""Describes the service in OpenAPI 3.1, with the schemas of its contracts."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from pydantic.json_schema import models_json_schema

from producer.schemas.catalog import schema_of
from producer.serve.chat_packets import ChatPacket, ChatReply
from producer.serve.replies import AcceptedReply, ErrorReply
from producer.serve.thread_requests import ThreadReply
from producer.service_documents import SubmitDocument
from producer.turns.documents import TurnResult
from shared.contracts.turns import Turn
from shared.kinds import all_kinds

VERSION: Final = "1"
REF: Final = "#/components/schemas/{}"
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"

SHORTEST_WAIT_S: Final = 0.01
LONGEST_WAIT_S: Final = 300.0
"""Bounds of `timeout_s`."""

Object = Mapping[str, Any]


def openapi_document() -> dict[str, Any]:
    """Returns the document.

    >>> sorted(openapi_document()["paths"])[:3]
    ['/healthz', '/metrics', '/openapi.json']
    """
    schemas = _schemas()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Proctor",
            "version": VERSION,
            "description": "Turns of conversations are decided while people talk.",
        },
        "security": [{"token": []}],
        "paths": _PATHS,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }


def _schemas() -> dict[str, Any]:
    """Collects the schemas of what is sent and answered."""
    _, sent = models_json_schema(
        [(Turn, "validation"), (ChatPacket, "validation")], ref_template=REF.format("{model}")
    )
    _, answered = msgspec.json.schema_components(
        [ErrorReply, AcceptedReply, ThreadReply, ChatReply, SubmitDocument, TurnResult],
        ref_template=REF.format("{name}"),
    )
    several = {
        "type": "object",
        "properties": {
            "results": {"type": "array", "items": {"anyOf": [_ref("TurnResult"), _ref("ErrorReply")]}}
        },
        "required": ["results"],
    }
    body = {
        "oneOf": [
            _ref("Turn"),
            {
                "type": "object",
                "properties": {
                    "turns": {"type": "array", "items": _ref("Turn"), "minItems": 1, "maxItems": 500}
                },
                "required": ["turns"],
                "additionalProperties": False,
            },
        ]
    }
    run = _with_parts("RunDocument", schema_of("run"))
    either = {"anyOf": [_ref("TurnResult"), _ref("TurnResults")]}
    return {**sent["$defs"], **answered, **run, "TurnBody": body, "TurnResults": several, "TurnReply": either}


def _with_parts(name: str, schema: Object) -> dict[str, Any]:
    """Returns a schema that is complete in itself as several of this document."""
    inner = msgspec.json.encode(schema).replace(b'"#/$defs/', f'"{REF.format(name)}.'.encode())
    moved: dict[str, Any] = msgspec.json.decode(inner)
    parts: dict[str, Any] = moved.pop("$defs")
    del moved["$schema"]
    return {name: moved, **{f"{name}.{part}": each for part, each in parts.items()}}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": REF.format(name)}


def _answers(*named: tuple[int, str, str]) -> dict[str, Any]:
    """Lists responses: status, description, schema (empty: no body)."""
    every = [*named, (401, "No known token.", "ErrorReply")]
    return {
        str(status): {
            "description": text,
            **({"headers": {_HEADERS[status][0]: _HEADERS[status][1]}} if status in _HEADERS else {}),
            **({"content": {JSON: {"schema": _ref(name)}}} if name else {}),
        }
        for status, text, name in every
    }


def _with_header(answers: dict[str, Any], status: int, name: str, header: Object) -> dict[str, Any]:
    """Says that a response has a header."""
    return answers | {str(status): {**answers[str(status)], "headers": {name: header}}}


def _answered(text: str, name: str) -> dict[str, Any]:
    """Describes the reply to what a model may answer: a document, or events."""
    events = (
        "Server-sent events, if `Accept` has them: `decision` {decision}, `delta` {text}, `restart` {},"
        " and at the end `done` with the document or `error`."
    )
    written = {"schema": {"type": "string", "description": events}}
    return {"200": {"description": text, "content": {JSON: {"schema": _ref(name)}, EVENTS: written}}}


def _sends(name: str) -> dict[str, Any]:
    return {"required": True, "content": {JSON: {"schema": _ref(name)}}}


def _parameter(name: str, where: str, text: str, schema: Object | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "in": where,
        "description": text,
        "required": where == "path",
        "schema": schema or {"type": "string", "minLength": 1},
    }


def _linked(
    answers: dict[str, Any], status: int, operation: str, parameter: str, place: str
) -> dict[str, Any]:
    """Says that what one response names can be asked for by another operation."""
    link = {"operationId": operation, "parameters": {parameter: f"$response.body#{place}"}}
    return answers | {str(status): {**answers[str(status)], "links": {operation: link}}}


_RETRY: Final[Object] = {"description": "Seconds.", "schema": {"type": "integer"}}
_ETAG: Final[Object] = {"description": "State of the thread.", "schema": {"type": "string"}}
_LOCATION: Final[Object] = {"description": "Path of the run.", "schema": {"type": "string"}}
_HEADERS: Final = {304: ("ETag", _ETAG), 429: ("Retry-After", _RETRY), 503: ("Retry-After", _RETRY)}
"""Headers of responses with these statuses."""
_ERRORS: Final = (
    (400, "The request breaks the contract.", "ErrorReply"),
    (429, "Too many turns wait; send again after `Retry-After`.", "ErrorReply"),
    (503, "Redis is away, or the service ends.", "ErrorReply"),
)
_BODY: Final = (
    (408, "The body did not come within the deadline.", "ErrorReply"),
    (413, "The body is too large.", "ErrorReply"),
)
_LATE: Final = (504, "Not done before the deadline; turns with `ids` count all the same.", "ErrorReply")
_CONFLICT: Final = (409, "The thread is in another state, or the request id has other content.", "ErrorReply")
_REFUSED: Final = (422, "The turn could not be decided.", "ErrorReply")
_OPEN: Final[list[Any]] = []
_TIMEOUT: Final = _parameter(
    "timeout_s",
    "query",
    "How long to wait.",
    {"type": "number", "minimum": SHORTEST_WAIT_S, "maximum": LONGEST_WAIT_S},
)
_THREAD: Final = _parameter("thread", "path", "Id of the thread.")
_RUN: Final = _parameter("run", "path", "Id of the run.")
_KINDS: Final[Object] = {"enum": [kind.name for kind in all_kinds()]}
_ANY: Final[Object] = {"schema": {}}

_PATHS: Final[Object] = {
    "/healthz": {
        "get": {
            "operationId": "isAlive",
            "summary": "The process answers.",
            "security": _OPEN,
            "responses": {"200": {"description": "It does."}},
        }
    },
    "/readyz": {
        "get": {
            "operationId": "isReady",
            "summary": "Turns are taken.",
            "security": _OPEN,
            "responses": {"200": {"description": "They are."}, "503": {"description": "They are not."}},
        }
    },
    "/metrics": {
        "get": {
            "operationId": "getMetrics",
            "summary": "What Prometheus scrapes.",
            "security": _OPEN,
            "responses": {"200": {"description": "In its text format, or OpenMetrics."}},
        }
    },
    "/openapi.json": {
        "get": {
            "operationId": "getDescription",
            "summary": "This document.",
            "security": _OPEN,
            "responses": {"200": {"description": "OpenAPI 3.1."}},
        }
    },
    "/v1/turns": {
        "post": {
            "operationId": "decideTurns",
            "summary": "Decide one turn, or several.",
            "parameters": [
                _parameter("wait", "query", "0: answer when they are stored.", {"enum": ["0", "1"]}),
                _TIMEOUT,
            ],
            "requestBody": _sends("TurnBody"),
            "responses": _linked(
                _answers(
                    (202, "Stored; with `wait=0`.", "AcceptedReply"),
                    _CONFLICT,
                    _REFUSED,
                    _LATE,
                    *_BODY,
                    *_ERRORS,
                ),
                202,
                "getTurn",
                "turn",
                "/ids/0",
            )
            | _answered("The result, or `results` in the order of the turns.", "TurnReply"),
        }
    },
    "/v1/turns/{turn}": {
        "get": {
            "operationId": "getTurn",
            "summary": "The result of a turn for whose decision nobody waits.",
            "parameters": [_parameter("turn", "path", "Its id."), _TIMEOUT],
            "responses": _answers(
                (200, "The result.", "TurnResult"),
                (202, "Not decided yet.", ""),
                (404, "There is no such turn, or its time is over.", "ErrorReply"),
                _CONFLICT,
                _REFUSED,
                _LATE,
                *_ERRORS,
            ),
        }
    },
    "/v1/chat": {
        "post": {
            "operationId": "decidePacket",
            "summary": "Decide the turn of a packet.",
            "parameters": [_TIMEOUT],
            "requestBody": _sends("ChatPacket"),
            "responses": _answers(
                _CONFLICT,
                _REFUSED,
                _LATE,
                *_BODY,
                *_ERRORS,
            )
            | _answered("Decision, memento, affect and trace.", "ChatReply"),
        }
    },
    "/v1/threads/{thread}": {
        "get": {
            "operationId": "getThread",
            "summary": "The state of a thread.",
            "parameters": [
                _THREAD,
                _parameter("If-None-Match", "header", "Answer 304 in this state.", {"type": "string"}),
                _TIMEOUT,
            ],
            "responses": _with_header(
                _answers(
                    (200, "Its memento; the etag is also a header.", "ThreadReply"),
                    (304, "As `If-None-Match` has it.", ""),
                    (404, "There is no such thread.", "ErrorReply"),
                    _LATE,
                    *_ERRORS,
                ),
                200,
                "ETag",
                _ETAG,
            ),
        },
        "delete": {
            "operationId": "removeThread",
            "summary": "Remove a thread.",
            "parameters": [_THREAD, _parameter("If-Match", "header", "Only in this state."), _TIMEOUT],
            "responses": _answers(
                (204, "It is gone.", ""),
                (404, "There is no such thread.", "ErrorReply"),
                (409, "Turns of the namespace are being decided.", "ErrorReply"),
                (412, "It is in another state.", "ErrorReply"),
                _LATE,
                *_ERRORS,
            ),
        },
    },
    "/v1/runs": {
        "post": {
            "operationId": "submitRun",
            "summary": "Submit the content of a file as a run.",
            "parameters": [
                _parameter("name", "query", "What people call the run."),
                _parameter("kind", "query", "What the file describes [default: detected].", _KINDS),
                _parameter("Idempotency-Key", "header", "The same key again returns the same run."),
                _TIMEOUT,
            ],
            "requestBody": {"required": True, "content": {"application/octet-stream": _ANY}},
            "responses": _linked(
                _with_header(
                    _answers((202, "Submitted.", "SubmitDocument"), _CONFLICT, _LATE, *_BODY, *_ERRORS),
                    202,
                    "Location",
                    _LOCATION,
                ),
                202,
                "getRun",
                "run",
                "/run_id",
            ),
        }
    },
    "/v1/runs/{run}": {
        "get": {
            "operationId": "getRun",
            "summary": "The document of a run.",
            "parameters": [_RUN, _TIMEOUT],
            "responses": _answers(
                (200, "As `proctor runs show --json` prints it.", "RunDocument"),
                (404, "There is no such run.", "ErrorReply"),
                _LATE,
                *_ERRORS,
            ),
        }
    },
    "/v1/runs/{run}/events": {
        "get": {
            "operationId": "followRun",
            "summary": "The events of a run until its end, as server-sent events.",
            "parameters": [_RUN, _TIMEOUT],
            "responses": {
                **_answers((404, "There is no such run.", "ErrorReply"), _LATE, *_ERRORS),
                "200": {"description": "An event in each `data`.", "content": {"text/event-stream": _ANY}},
            },
        }
    },
}
