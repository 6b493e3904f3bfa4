"""The language that producer and worker both speak; it imports nothing of ours but itself."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_CONTRACTS = frozenset({"ThreadMementoSignalItem", "ThreadMementoSignalKind", "ThreadMementoSignals"})


def __getattr__(name: str) -> Any:
    """Hands on the signal contracts lazily, so that importing `shared` does not import pydantic."""
    if name in _CONTRACTS:
        return getattr(import_module("shared.contracts.turns"), name)
    raise AttributeError(f"module 'shared' has no attribute {name!r}")
