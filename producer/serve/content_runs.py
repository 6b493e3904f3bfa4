"""Submits what a request holds as a run: the content of a file of any kind."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from producer import api
from producer.access import Access
from producer.load.source import Source
from producer.options import SubmitOptions, SubmittedRun

FILE: Final = "input"


def submit_content(
    access: Access, content: bytes, namespace: str, *, name: str, idempotency_key: str
) -> SubmittedRun:
    """Submits the content of a file from a folder with nothing else in it: files that it names are missing.

    Raises:
        InputError: it breaks its contract.
    """
    key = f"{namespace}:{idempotency_key}" if idempotency_key else ""
    options = SubmitOptions(name=name, idempotency_key=key, origin=name or "HTTP", namespace=namespace)
    with TemporaryDirectory(prefix="proctor-serve-") as folder:
        path = Path(folder) / FILE
        path.write_bytes(content)
        source = Source(path)
        source.name = name or FILE  # in messages: the folder is nobody's
        return api.submit(access, api.plan(source, options))
