"""Finds the packaged examples: in a wheel they are in this package, in a checkout in the folder beside it."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def example(*parts: str) -> Traversable:
    """Returns a file or folder of the examples.

    >>> example("turns.jsonl").is_file()
    True
    """
    packaged = files("producer") / "examples"
    place: Traversable = packaged if packaged.is_dir() else Path(str(files("producer"))).parent / "examples"
    return place.joinpath(*parts)
