"""The messages of a case, as its model is sent them; workers send them, and reports show them."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.contracts.case_run import CasePayload


def messages_as_sent(
    payload: CasePayload, system: str, image_urls: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Puts together the messages of a case.

    Args:
        payload: the case.
        system: the run's system message, for a case without one of its own; empty for none.
        image_urls: what stands for its images, in the last message.

    >>> messages_as_sent(CasePayload(0, "m", "Hi"), "Answer.")
    [{'role': 'system', 'content': 'Answer.'}, {'role': 'user', 'content': 'Hi'}]
    >>> messages_as_sent(CasePayload(0, "m", "Hi", system=""), "Answer.", ["data:…"])[0]["content"][1]
    {'type': 'image_url', 'image_url': {'url': 'data:…'}}
    """
    text = system if payload.system is None else payload.system
    first = [{"role": "system", "content": text}] if text else []
    turns = payload.messages or [{"role": "user", "content": payload.input}]
    return [*first, *map(dict, turns[:-1]), _with_images(turns[-1], image_urls)]


def _with_images(message: Mapping[str, Any], urls: Sequence[str]) -> dict[str, Any]:
    """Adds images to a message."""
    if not urls:
        return dict(message)
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    return {
        **message,
        "content": [*parts, *({"type": "image_url", "image_url": {"url": url}} for url in urls)],
    }
