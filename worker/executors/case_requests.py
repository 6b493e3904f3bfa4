"""Makes the request of a case to its model: conversation, images, options and headers."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from shared.contracts.case_run import CasePayload, CaseRun, Image
from shared.contracts.merged_options import split_temperature
from shared.contracts.sent_messages import messages_as_sent
from shared.upstream.model_target import ModelTarget
from worker.upstream.chat import ModelReply, ModelRequest

IMAGES_KEPT: Final = 16
"""Images that a run's engine keeps in memory."""
_decode: Final = msgspec.msgpack.Decoder(Image).decode

NO_VARS: Final[Mapping[str, Any]] = {}
ReadFile = Callable[[str], bytes | None]
"""Reads a file of the run by its name."""


class ImageMissingError(Exception):
    """An image of a run is not there: the run was removed."""


class ImageUrls:
    """The images of a run as data URLs.

    Args:
        read: reads a file of the run.
    """

    def __init__(self, read: ReadFile) -> None:
        self._read = read
        self.url = lru_cache(IMAGES_KEPT)(self._url)

    def _url(self, name: str) -> str:
        """Makes the data URL of an image.

        Raises:
            ImageMissingError: it is not there.
        """
        stored = self._read(name)
        if stored is None:
            raise ImageMissingError(name)
        image = _decode(stored)
        return f"data:{image.media_type};base64,{b64encode(image.data).decode()}"


def model_request(
    run: CaseRun, payload: CasePayload, image_urls: list[str], variables: Mapping[str, Any] = NO_VARS
) -> ModelRequest:
    """Makes the request to the model under test.

    Args:
        run: the settings.
        payload: the item.
        image_urls: the data URLs of its images.
        variables: of the case, for an application that is asked with them.

    >>> item = CasePayload(0, "m", "Hi", messages=[{"role": "user", "content": "Hi"}])
    >>> run = CaseRun("bench", "Answer.", {"m": ModelTarget("m")}, calls={"m": {"": {"params": {"seed": 1}}}})
    >>> request = model_request(run, item, [])
    >>> [message["role"] for message in request.messages], request.parameters
    (['system', 'user'], {'seed': 1})
    """
    call = run.calls.get(payload.model, {}).get(payload.prompt_id or "", {})
    temperature, parameters = split_temperature(call.get("params", {}), run.temperature)
    system = run.system_prompt if payload.system is None else payload.system
    is_plain = payload.messages is None and not image_urls
    messages = [] if is_plain else messages_as_sent(payload, system, image_urls)
    target = _target(run, payload.model, call)
    return ModelRequest(
        target,
        "" if messages else system,
        "" if messages else payload.input,
        messages=messages,
        temperature=temperature,
        parameters=parameters,
        is_streamed=run.stream,
        repeat=payload.repeat,
        vars=variables if target.http or target.is_hosted else NO_VARS,
    )


def as_asked(request: ModelRequest, reply: ModelReply) -> ModelReply:
    """Takes an answer for the JSON value that the request has a schema of, as far as it is one.

    >>> form = {"response_format": {"type": "json_schema"}}
    >>> request = ModelRequest(ModelTarget("m"), "", "", parameters=form)
    >>> as_asked(request, ModelReply('{"a": 1}', 5)).is_json, as_asked(request, ModelReply("Hi", 5)).is_json
    (True, False)
    """
    wanted = request.parameters.get("response_format")
    if not isinstance(wanted, Mapping) or wanted.get("type") != "json_schema":
        return reply
    try:
        is_json = isinstance(msgspec.json.decode(reply.text), dict | list)
    except (ValueError, RecursionError):
        return reply
    return msgspec.structs.replace(reply, is_json=is_json)


def any_target(run: CaseRun, model: str) -> ModelTarget:
    """Returns where all calls of a model under test go, whatever their prompt."""
    return _target(run, model, next(iter(run.calls.get(model, {}).values()), {}))


def _target(run: CaseRun, model: str, call: Mapping[str, Any]) -> ModelTarget:
    """Returns a model under test with the headers of a call."""
    target, headers = run.models[model], call.get("headers")
    return msgspec.structs.replace(target, headers=headers) if headers else target
