"""Starts a worker process, or with `--supervise` a supervisor of several: `python -m worker`."""

import gc
import sys
from importlib import import_module
from pathlib import Path

import shared
import worker

USAGE_EXIT = 2


def mixed_installation() -> str:
    """Returns a message if `shared` and `worker` come from different installations; empty otherwise.

    Both are common names: a folder called `shared/` earlier in Python's path would be imported instead of
    ours.
    """
    places = {package.__name__: Path(next(iter(package.__path__))).parent for package in (shared, worker)}
    if len(set(places.values())) == 1:
        return ""
    return (
        f"`shared` was found in {places['shared']} and `worker` in {places['worker']}: "
        "start from another folder, or with `python -P`"
    )


def main() -> int:
    """Runs the command line and returns the exit code."""
    # Until everything is imported: collections find nothing then, and cost a sixth of the imports.
    gc.disable()
    mistake = mixed_installation()
    if mistake:
        sys.stderr.write(f"error: {mistake}\n")
        return USAGE_EXIT
    # Imported by name and only now: with a foreign `shared` the import itself would fail, in a traceback.
    code: int = import_module("worker.start").start(sys.argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
