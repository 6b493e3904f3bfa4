"""Celery's consumer with faster reconnects: it tries the broker every two seconds, and logs that once.

It also waits for a broker that refuses writes (out of memory, its disk is full, its replicas are away): kombu
treats such a refusal as an error of the channel, which would end the worker. If access rules deny a right,
the worker ends with an error that names it. Messages that are no wake-ups are rejected before Celery handles
them (`worker.message_checks`).

Celery's own consumer waits two seconds longer after each attempt, up to half a minute, and writes three lines
each time. In two situations it uses a connection that is gone, and the resulting `AttributeError` ends the
worker: cleaning up, when the connection breaks while an acknowledgement is on its way; and
acknowledging over a new connection what came over the old one.
"""

import logging
from collections.abc import Callable
from functools import partial
from threading import Event
from time import monotonic
from typing import Any, Final

from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from kombu import Connection

from shared.kinds import all_kinds
from shared.ledger.calls import denied, is_denial
from worker.lifecycle import exit_with
from worker.message_checks import log_rejected, why_rejected

FIRST_PAUSE_S: Final = 1
"""Between the first two attempts; each later pause is longer by as much."""
LONGEST_PAUSE_S: Final = 2
REFUSED_AGAIN_S: Final = 60.0
"""A refusal is logged again when the last one is longer ago than this."""

logger = logging.getLogger(__name__)


class PromptConsumer(Consumer):
    """Takes wake-up calls from the broker."""

    _refused_s = -REFUSED_AGAIN_S
    """Time when the broker last refused a command, on the monotonic clock."""

    def ensure_connected(self, conn: Connection) -> Connection:
        """Waits until the broker answers; only the time limit of the ledger ends the process."""
        is_logged = False

        def log_error(error: Exception, _pause_s: float) -> None:
            nonlocal is_logged
            _end_if_denied(error)
            if not is_logged:
                logger.warning("broker away", extra={"reason": f"the broker does not answer ({error})"})
            is_logged = True

        conn.ensure_connection(
            log_error,
            None,  # type: ignore[arg-type] # no limit, which is missing in the stubs
            interval_start=FIRST_PAUSE_S,
            interval_step=FIRST_PAUSE_S,
            interval_max=LONGEST_PAUSE_S,
            callback=maybe_shutdown,
        )
        self.first_connection_attempt = False
        return conn

    def create_task_handler(self, *arguments: Any, **options: Any) -> Callable[[Any], None]:
        """Makes the message handler, which rejects messages that are no wake-ups."""
        known: Any = self  # incomplete stubs
        take: Callable[[Any], None] = super().create_task_handler(*arguments, **options)
        queues = known.app.amqp.queues.consume_from
        tasks = {kind.task for kind in all_kinds() if kind.name in queues}

        def receive(message: Any) -> None:
            if reason := why_rejected(message, tasks):
                log_rejected(reason, str(message.delivery_info.get("routing_key")))
                message.reject_log_error(logger, known.connection_errors)
            else:
                take(message)

        return receive

    def call_soon_ack(self, p: Any, *args: Any, **kwargs: Any) -> Any:
        """Acknowledges a message, if that is still possible."""
        acknowledge = partial(_acknowledge, p)
        return super().call_soon_ack(acknowledge, *args, **kwargs)  # type: ignore[misc] # unknown to the stubs

    def on_connection_error_before_connected(self, exc: Any) -> None:
        """Waits when the broker refuses what a new connection begins with."""
        _end_if_denied(exc)
        if not self._waits_after_refusal(exc):
            super().on_connection_error_before_connected(exc)

    def on_connection_error_after_connected(self, exc: Any) -> None:
        """Closes what is left of a lost connection, whatever goes wrong with that."""
        _end_if_denied(exc)
        if not self._waits_after_refusal(exc):
            logger.warning("broker away", extra={"reason": f"the connection to the broker is lost ({exc})"})
        try:
            super().on_connection_error_after_connected(exc)
        except Exception as error:  # noqa: BLE001 - the connection is lost already; a new one is made next
            self.connection = None
            logger.debug("connection not closed", extra={"reason": repr(error)})

    def _waits_after_refusal(self, error: Exception) -> bool:
        """Waits if the broker answered with a refusal; returns whether it did."""
        known: Any = self  # both are missing in the stubs
        if not isinstance(error, known.channel_errors) or isinstance(error, known.connection_errors):
            return False
        now_s = monotonic()
        if now_s - self._refused_s >= REFUSED_AGAIN_S:
            logger.warning(
                "broker refuses commands", extra={"reason": f"{error}; trying until it accepts them"}
            )
        self._refused_s = now_s
        Event().wait(LONGEST_PAUSE_S)
        return True


def _end_if_denied(error: Exception) -> None:
    """Ends the process if the broker's access rules refuse a command, which waiting does not resolve."""
    if is_denial(error):
        exit_with(denied(error))


def _acknowledge(acknowledge: Callable[..., None], log: object, _errors: object, **options: Any) -> None:
    """Calls `message.ack_log_error` or `message.reject_log_error`; a failure has no effect.

    The broker delivers the message again, and a claim then finds nothing to do.
    """
    if acknowledge.__self__.channel.closed:  # type: ignore[attr-defined] # a bound method of the message
        logger.debug("wake-up not acknowledged", extra={"reason": "its connection is gone"})
        return
    try:
        acknowledge(log, (), **options)  # no errors for it to log, at length, by itself
    except Exception as error:  # noqa: BLE001 - the next read from the connection detects the loss
        _end_if_denied(error)
        logger.warning("wake-up not acknowledged", extra={"reason": str(error)})
