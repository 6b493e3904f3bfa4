"""Keeps the embedded server there while a supervisor runs, even when its guard was killed with it.

Worker processes only wait for a Redis that is away, as they would for anybody's; an embedded server is ours,
and nobody else brings it back. (Its guard does, while the guard lives.)
"""

import threading
from typing import Final

from shared.errors import ProctorError
from shared.server.client import Closeable, resolve_target
from shared.settings import Settings

LOOK_S: Final = 2.0
"""How often it is looked after."""


def keep_server(settings: Settings, lease: Closeable) -> None:
    """Looks after the embedded server, from a thread of its own, until the process ends.

    Args:
        settings: which data folder's server it is.
        lease: holds the server now; it is replaced whenever the server was looked after.
    """

    def look_after(held: Closeable) -> None:
        pause = threading.Event()
        while True:
            pause.wait(LOOK_S)
            try:
                fresh = resolve_target(settings).lease
            except ProctorError:
                continue  # the worker processes say what is wrong
            held.close()
            held = fresh

    threading.Thread(target=look_after, args=(lease,), name="keeper", daemon=True).start()
