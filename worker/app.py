"""The Celery app of all workers: `celery -A worker.app inspect ping`, `… flower`, `… worker`.

Importing this connects to nothing and starts nothing: without a URL in the environment, the app is set to the
place where the data folder's embedded server is, or will be.
"""

import os

from celery import signals

from shared.broker import App, make_app
from shared.kinds import import_kinds
from shared.server.client import RedisTarget
from shared.server.embedded.server_places import socket_path
from shared.settings import Settings
from worker.lifecycle import Lifecycle
from worker.logs import keep_logs
from worker.tasks.execute_chunk import register_tasks
from worker.transport import guard_transports


def broker_of(settings: Settings) -> RedisTarget:
    """Returns the broker that the settings name.

    Raises:
        ConfigError: a URL names no server.

    >>> broker_of(Settings.from_environment({"PROCTOR_REDIS_URL": "redis://db.example"})).celery_url
    'redis://db.example:6379/0'
    """
    url = settings.broker_url or settings.redis_url or f"unix://{socket_path(settings.data_dir)}"
    return RedisTarget.parse(url)


def make_worker_app(settings: Settings) -> App:
    """Makes the app with our tasks and our part in the life of a worker."""
    guard_transports()
    made = make_app(broker_of(settings))
    made.conf.worker_consumer = "worker.consumer:PromptConsumer"
    signals.setup_logging.connect(keep_logs)
    register_tasks(made)
    made.steps["worker"].add(Lifecycle)
    return made


import_kinds(os.environ)
app = make_worker_app(Settings.from_environment())
