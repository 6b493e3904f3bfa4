"""Runs over HTTP: what is wanted of one that is submitted, and which belong to a caller."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, Self

from producer import api
from producer.access import Access
from producer.load.source import Source
from producer.options import SubmitOptions, SubmittedRun
from shared.errors import InputError, UnknownRunError
from shared.kinds import Kind, all_kinds

FILE: Final = "input"
"""What a body is called that is submitted as a run and has no name."""
MOST_NAME_CHARS: Final = 200


class WantedRun(NamedTuple):
    """What a request wants of the run that it submits."""

    namespace: str
    name: str
    kind: Kind | None
    key: str
    """The idempotency key of the caller; empty: none."""

    @classmethod
    def of(cls, query: Mapping[str, str], namespace: str, key: str) -> Self:
        """Reads the query of a request.

        Raises:
            InputError: it breaks the contract.
        """
        name, kind = query.get("name", ""), query.get("kind")
        found = next((each for each in all_kinds() if each.name == kind), None)
        if kind is not None and found is None:
            raise InputError(f"kind is one of {', '.join(map(str, all_kinds()))}")
        if len(name) > MOST_NAME_CHARS:
            raise InputError(f"name: {len(name):,} characters", hint=f"use up to {MOST_NAME_CHARS}")
        return cls(namespace, name, found, key)


def submit_content(access: Access, content: bytes, wanted: WantedRun) -> SubmittedRun:
    """Submits the content of a file from a folder with nothing else in it: files that it names are missing.

    Raises:
        InputError: it breaks its contract.
    """
    key = f"{wanted.namespace}:{wanted.key}" if wanted.key else ""
    options = SubmitOptions(
        name=wanted.name, idempotency_key=key, origin=wanted.name or "HTTP", namespace=wanted.namespace
    )
    with TemporaryDirectory(prefix="proctor-serve-") as folder:
        path = Path(folder) / FILE
        path.write_bytes(content)
        source = Source(path)
        source.name = wanted.name or FILE  # in messages: the folder is nobody's
        return api.submit(access, api.plan(source, options, kind=wanted.kind))


def own_run(access: Access, run: str, namespace: str) -> str:
    """Returns a run of a namespace.

    Raises:
        UnknownRunError: there is none, or it is of another namespace, which is nobody else's business.
    """
    unknown = UnknownRunError(f"no run is called {run}", run=run)
    try:
        info = access.impatient_store.info(run)
    except UnknownRunError:
        raise unknown from None
    if info.namespace != namespace:
        raise unknown
    return run
