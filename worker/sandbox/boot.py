"""Starts the zygote in an isolated interpreter, which finds the standard library and this folder only.

Run as `python -I -S -E boot.py FD MEMORY_BYTES CPU_S QUICKJS`. The packages `worker` and `worker.sandbox` are
made here without their `__init__.py`, so that no other module of ours can be imported by whoever runs in a
child.
"""

import os
import sys
import types


def main() -> None:
    """Makes the two packages and hands over."""
    package = types.ModuleType("worker.sandbox")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]  # noqa: PTH100, PTH120 - pathlib is not loaded here
    sys.modules |= {"worker": types.ModuleType("worker"), "worker.sandbox": package}
    from worker.sandbox import preloaded, zygote  # noqa: PLC0415 - found only now

    preloaded.load()
    *numbers, quickjs = sys.argv[1:]
    zygote.main(quickjs, *map(int, numbers))


if __name__ == "__main__":
    main()
