"""Makes requests to `proctor serve`, whatever process it is in."""

import json
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Reply(NamedTuple):
    """What the service answered."""

    status: int
    headers: Mapping[str, str]
    body: Any


def ask(
    place: tuple[str, str], method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """Makes one request on a connection of its own; dicts are sent as JSON; a place has a URL and a token."""
    url = urlsplit(place[0])
    sent = json.dumps(body) if isinstance(body, dict) else body
    with closing(HTTPConnection(url.hostname or "", url.port, timeout=30)) as connection:
        connection.request(method, path, sent, {"Authorization": f"Bearer {place[1]}", **(headers or {})})
        response = connection.getresponse()
        text = response.read()
        is_json = response.headers.get_content_type() == "application/json"
        return Reply(response.status, dict(response.headers), json.loads(text) if is_json and text else text)
