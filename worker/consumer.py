"""Celery's consumer, prompter after an outage: it asks for the broker every two seconds, and says so once.

Celery waits two seconds longer after each attempt, up to half a minute, and writes three lines each time. And
one moment is deadly for it: when the connection breaks while an acknowledgement is on its way, cleaning up
uses a connection that is gone, and the `AttributeError` of that ends the whole worker.
"""

import logging
from typing import Any, Final

from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from kombu import Connection

FIRST_PAUSE_S: Final = 1
"""Between the first two attempts; each later pause is longer by as much."""
LONGEST_PAUSE_S: Final = 2

logger = logging.getLogger(__name__)


class PromptConsumer(Consumer):
    """Takes wake-up calls from the broker."""

    def ensure_connected(self, conn: Connection) -> Connection:
        """Waits until the broker answers, for as long as the process lives: the ledger's patience ends it."""
        is_told = False

        def tell(error: Exception, _pause_s: float) -> None:
            nonlocal is_told
            if not is_told:
                logger.warning("the broker does not answer (%s); asking again until it does", error)
            is_told = True

        conn.ensure_connection(
            tell,
            None,  # type: ignore[arg-type] # no limit, which the stubs do not know
            interval_start=FIRST_PAUSE_S,
            interval_step=FIRST_PAUSE_S,
            interval_max=LONGEST_PAUSE_S,
            callback=maybe_shutdown,
        )
        self.first_connection_attempt = False
        return conn

    def on_connection_error_after_connected(self, exc: Any) -> None:
        """Closes what is left of a lost connection, whatever goes wrong with that."""
        logger.warning("the connection to the broker is lost (%s)", exc)
        try:
            super().on_connection_error_after_connected(exc)
        except Exception as error:  # noqa: BLE001 - the connection is lost already; a new one is made next
            self.connection = None
            logger.debug("closing the lost connection failed: %r", error)
