"""Reads the threads of namespaces from Redis in pages, so that no command takes long."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import redis
from msgspec import Struct
from msgspec.json import Decoder

from shared import keys
from shared.runs.info import PATIENCE_S
from shared.runs.patience import patiently

PAGE: Final = 500
"""Keys, or fields of a hash, that Redis scans in one command."""
_BEFORE, _AFTER = keys.mementos_key("*").split("*")


class _StoredResult(Struct, rename="camel"):
    """The thread of a stored result; results of refused turns are never stored here."""

    thread_id: str


class _StoredAnswer(Struct):
    """The part of a stored answer to a request that is needed here."""

    line: _StoredResult


_decode_answer: Final = Decoder(_StoredAnswer).decode


class ThreadStore:
    """Reads threads; those added or removed meanwhile may be missing or returned twice.

    Args:
        client: connected to the ledger's server, answering bytes.
        patience_s: how long a read is retried while Redis is unavailable.
    """

    def __init__(self, client: redis.Redis, *, patience_s: float = PATIENCE_S) -> None:
        self._client: Any = client  # redis-py's own annotations mix sync and async answers
        self._patience_s = patience_s

    def namespaces(self) -> list[str]:
        """Lists the namespaces that contain threads, by name; that of a run has the run's id."""
        found, cursor = set[str](), 0
        while True:
            cursor, names = self._read("scan", cursor, keys.mementos_key("*"), PAGE)
            # The inbox key of a thread named `x:mem` matches too, but namespaces contain no colon.
            some = (name.decode().removeprefix(_BEFORE).removesuffix(_AFTER) for name in names)
            found.update(name for name in some if ":" not in name)
            if cursor == 0:
                return sorted(found)

    def count(self, namespace: str) -> int:
        """Counts the threads of a namespace; 0 when there is none of this name."""
        return int(self._read("hlen", keys.mementos_key(namespace)))

    def threads(self, namespace: str) -> Iterator[tuple[str, bytes]]:
        """Yields the threads of a namespace with their stored state, in no order."""
        for page in self._pages(keys.mementos_key(namespace)):
            for name, state in page.items():
                yield name.decode(), state

    def state(self, namespace: str, thread: str) -> bytes:
        """Reads the stored state of a thread; empty when there is no such thread."""
        found: bytes | None = self._read("hget", keys.mementos_key(namespace), thread)
        return found or b""

    def users(self, namespace: str) -> list[str]:
        """Names the open runs that use a namespace."""
        return sorted(run.decode() for run in self._read("smembers", keys.users_key(namespace)))

    def request_ids(self, namespace: str, threads: Collection[str]) -> list[str]:
        """Finds the `clientRequestId`s that were answered by some threads."""
        return [
            name.decode()
            for page in self._pages(keys.requests_key(namespace))
            for name, value in page.items()
            if _decode_answer(value).line.thread_id in threads
        ]

    def _pages(self, key: str) -> Iterator[Mapping[bytes, bytes]]:
        cursor = 0
        while True:
            cursor, page = self._read("hscan", key, cursor, None, PAGE)
            yield page
            if cursor == 0:
                return

    def _read(self, command: str, *arguments: Any) -> Any:
        return patiently(
            lambda: getattr(self._client, command)(*arguments), self._patience_s, client=self._client
        )
