"""Sets up what a worker process says: one readable line per event on standard error, under its node name.

    12:30:05 turns-1.4711 info: nothing left to do

Celery's own lines about every single task are left out: Flower shows tasks, and a line for each chunk would
be thousands a second.
"""

import logging
import sys
from typing import Final

QUIET: Final = ("celery.worker.strategy", "celery.app.trace", "celery.worker.request", "celery.bootsteps")
"""Loggers that write for every task, or about Celery's own steps; their warnings stay."""


class LevelInWords(logging.Formatter):
    """Writes the level in small letters, as our other messages do."""

    def format(self, record: logging.LogRecord) -> str:
        """Writes one line, and a traceback below it where there is one."""
        record.levelword = record.levelname.lower()
        return super().format(record)


def set_up_logs(name: str) -> None:
    """Sends every record of this process to standard error.

    Args:
        name: the node name; its host is left out, as the log is read on the host.
    """
    handler = logging.StreamHandler(sys.stderr)
    node = name.partition("@")[0]
    handler.setFormatter(LevelInWords(f"%(asctime)s {node} %(levelword)s: %(message)s", datefmt="%H:%M:%S"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # Python's and Celery's warnings are for programmers; one of them complains of root, which JSON makes moot.
    logging.captureWarnings(capture=True)
    logging.getLogger("py.warnings").setLevel(logging.ERROR)
    for quiet in QUIET:
        logging.getLogger(quiet).setLevel(logging.WARNING)
