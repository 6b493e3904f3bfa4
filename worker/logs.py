"""Sets up what a worker process says: one readable line per event on standard error, under its node name.

    12:30:05 turns-1.4711 info: nothing left to do

Celery's own lines about every single task are left out: Flower shows tasks, and a line for each chunk would
be thousands a second.
"""

import logging
import sys
from typing import Final

LEAST: Final = {
    "celery.worker.strategy": logging.WARNING,
    "celery.app.trace": logging.WARNING,
    # Acknowledgements that fail while the broker is away: the ledger decides, not they.
    "celery.worker.request": logging.CRITICAL + 1,
    "celery.worker.consumer.consumer": logging.ERROR,  # our consumer says what it has to say
    "celery.apps.worker": logging.WARNING,
    # Warnings for programmers; one of them complains of root, which JSON messages make moot.
    "py.warnings": logging.ERROR,
}
"""The least level that is written of loggers which say too much."""


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
    logging.captureWarnings(capture=True)
    for logger, level in LEAST.items():
        logging.getLogger(logger).setLevel(level)
