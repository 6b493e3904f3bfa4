"""Imports structlog without rich, which it loads wherever that is installed, to draw tracebacks.

Workers draw none. Rich takes 90 ms of processor time, in each worker process and in each supervisor.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import structlog
else:
    loaded = sys.modules.get("rich")
    sys.modules["rich"] = None  # an import of it fails, which structlog takes for its absence
    structlog = import_module("structlog")
    if loaded is None:
        del sys.modules["rich"]
    else:
        sys.modules["rich"] = loaded

__all__ = ["structlog"]
