"""Publishes wake-ups: the settings of the Celery app, and publishing in batches.

Celery delivers, the ledger decides. A message only names a chunk; a lost one is repeated by the overdue rule
of the ledger, and a duplicate has no effect. Therefore publishing never raises while the broker is
unavailable: wake-ups that it does not accept are kept and sent with the next batch.
"""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import msgspec
from celery import Celery
from kombu.exceptions import KombuError
from kombu.utils.uuid import uuid

from shared.kinds import TURNS, all_kinds, kind_named
from shared.ledger.calls import denied, is_denial
from shared.names import SERVED_PREFIX
from shared.queues import CONNECT_TIMEOUT_S, WakeQueues

if TYPE_CHECKING:
    from kombu import Connection

    from shared.ledger import Wake
    from shared.server.client import RedisTarget

KEPT_WAKES: Final = 10_000
"""Wake-ups kept while the broker is unavailable; older ones are left to the overdue rule."""
RETRY_S: Final = 0.2
"""Pause between two attempts of a caller that waits."""

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # commands report it themselves; workers have a handler


class App(Celery):
    """A Celery app together with the queues of its broker."""

    wake_queues: WakeQueues


def make_app(target: "RedisTarget") -> App:
    """Makes the Celery app that workers, producers and Flower share; connects to nothing.

    Args:
        target: the broker.
    """
    app = App("proctor", set_as_current=False)
    app.wake_queues = WakeQueues(target)
    app.conf.update(settings(target))
    return app


def settings(target: "RedisTarget") -> dict[str, object]:
    """Lists every Celery setting that differs from the default."""
    return {
        **_CONNECTION_SETTINGS,
        **_TASK_SETTINGS,
        **_WORKER_SETTINGS,
        **WakeQueues(target).celery_settings(),
        "task_routes": {kind.task: {"queue": kind.name} for kind in all_kinds()},
        "task_default_queue": TURNS.name,
    }


_CONNECTION_SETTINGS: Final[dict[str, object]] = {
    "broker_connection_timeout": CONNECT_TIMEOUT_S,
    "broker_connection_retry": True,
    "broker_connection_retry_on_startup": True,
    "broker_channel_error_retry": True,  # a full Redis is waited for, see worker/consumer.py
    "broker_connection_max_retries": None,  # the ledger's patience ends a worker, not a count
}

_TASK_SETTINGS: Final[dict[str, object]] = {
    "accept_content": ["json"],  # never pickle
    "result_accept_content": ["json"],
    "task_serializer": "json",
    "event_serializer": "json",
    "enable_utc": True,
    "timezone": "UTC",
    "result_backend": None,  # results go to the ledger; Flower has the task's value from its event
    "task_ignore_result": True,
    "task_create_missing_queues": False,
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_acks_on_failure": True,
    "task_acks_on_timeout": False,
    "task_track_started": True,
    "task_send_sent_event": True,
    "task_publish_retry": False,  # the publisher keeps what was not taken
}

_WORKER_SETTINGS: Final[dict[str, object]] = {
    "worker_pool": "threads",
    "worker_prefetch_multiplier": 1,
    "worker_eta_task_limit": 50,
    "worker_send_task_events": True,
    "worker_enable_remote_control": True,
    "worker_hijack_root_logger": False,
    "worker_redirect_stdouts": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "worker_enable_prefetch_count_reduction": False,  # a chunk that still runs is no reason to fetch less
}


class _Kept(NamedTuple):
    """A wake-up call that the broker has not taken yet."""

    wake: "Wake"
    task_id: str


class Publisher:
    """Publishes wake-ups, many in one round trip; safe to share between threads.

    Args:
        app: made by `make_app`.
        patience_s: how long one call of `publish` goes on while the broker is away. A worker passes 0 and
            lets its steward's `flush` send what was kept; a producer waits.
    """

    def __init__(self, app: App, *, patience_s: float = 0.0) -> None:
        self._app = app
        self._patience_s = patience_s
        self._kept: deque[_Kept] = deque(maxlen=KEPT_WAKES)
        self._sending = threading.Lock()
        self._pause = threading.Event()
        self._is_away = False
        # Asked of the transport once; reading them connects to nothing.
        self._errors = _errors_of(app.connection_for_write())

    def publish(self, wakes: "Sequence[Wake]") -> None:
        """Publishes wake-up calls, also those that earlier calls could not.

        Never raises for an unavailable broker: the ledger publishes unclaimed wake-ups again.

        Args:
            wakes: as a ledger call returned them.

        Raises:
            RedisDeniedError: the broker's access rules refuse it.
        """
        self._kept.extend(_Kept(wake, uuid()) for wake in wakes)
        deadline = monotonic() + self._patience_s
        while not self.flush() and monotonic() < deadline:
            self._pause.wait(RETRY_S)

    def flush(self) -> bool:
        """Tries once to send what is kept; returns whether nothing is left.

        Raises:
            RedisDeniedError: the broker's access rules refuse it; no waiting mends that.
        """
        if not self._kept:
            return True
        with self._sending:
            batch = [self._kept.popleft() for _ in range(len(self._kept))]
            try:
                self._send(batch)
            except self._errors as error:
                # Delivery is uncertain: some may have arrived. A second copy finds its chunk claimed.
                self._kept.extendleft(reversed(batch))
                if is_denial(error):
                    raise denied(error) from error
                self._note(error)
                return False
        self._note(None)
        return True

    def forget_deliveries(self, older_than_s: float) -> int:
        """Removes stored deliveries that no worker acknowledged; see `WakeQueues`.

        Never raises for an unavailable broker: the next call does it.
        """
        try:
            return self._app.wake_queues.forget_deliveries(older_than_s)
        except self._errors as error:
            if is_denial(error):
                raise denied(error) from error
            return 0

    def follow_master(self) -> bool:
        """Publishes to the server that sentinels name; returns whether it is another since the last call."""
        return self._app.wake_queues.follow_master()

    def _send(self, batch: Sequence[_Kept]) -> None:
        amqp, queues = self._app.amqp, self._app.wake_queues
        served = [each for each in batch if each.wake.run.startswith(SERVED_PREFIX)]
        if served:
            queues.put(TURNS, [served_message(each.wake, each.task_id) for each in served])
        if len(served) == len(batch):
            return
        with self._app.producer_pool.acquire(block=True) as producer, queues.batch(producer):
            for (name, run, chunk, items, first), task_id in batch:
                if run.startswith(SERVED_PREFIX):
                    continue
                kind = kind_named(name)
                message = amqp.as_task_v2(
                    task_id,
                    kind.task,
                    # Flower cuts what is long: what people read comes first.
                    kwargs={"run": run, "first": first, "chunk": chunk, "items": items},
                    create_sent_event=True,
                    ignore_result=True,
                )
                amqp.send_task_message(
                    producer,
                    kind.task,
                    message,
                    queue=kind.name,
                    declare=[],  # a list is made by its first element
                )

    def _note(self, error: Exception | None) -> None:
        if error is not None and not self._is_away:
            logger.warning("broker away", extra={"reason": str(error), "waiting": len(self._kept)})
        elif error is None and self._is_away:
            logger.info("broker back")
        self._is_away = error is not None


def served_message(wake: "Wake", task_id: str) -> bytes:
    """Writes the message of a wake-up of served turns as Celery and kombu do, for a tenth of their CPU.

    Nobody is told that it was sent: most of them are taken without Celery (`worker.talk`).
    """
    arguments = {"run": wake.run, "first": wake.first, "chunk": wake.chunk, "items": wake.items}
    return msgspec.json.encode(
        {
            "body": msgspec.json.encode(((), arguments, {})),  # bytes are written as base64
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": {
                "lang": "py",
                "task": TURNS.task,
                "id": task_id,
                "root_id": task_id,
                "argsrepr": "()",
                "kwargsrepr": repr(arguments),
                "ignore_result": True,
            },
            "properties": {
                "correlation_id": task_id,
                "delivery_tag": task_id,
                "delivery_mode": 2,
                "delivery_info": {"exchange": "", "routing_key": TURNS.name},
                "priority": 0,
                "body_encoding": "base64",
            },
        }
    )


def _errors_of(connection: "Connection") -> tuple[type[Exception], ...]:
    """Lists what using a connection to the broker may raise; connects to nothing."""
    transport = (*connection.connection_errors, *connection.channel_errors)
    return (KombuError, *cast("tuple[type[Exception], ...]", transport))
