"""Starts one worker process, or the supervisor of several, as given on the command line."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from shared.errors import ProctorError, UsageError
from shared.kinds import Kind, import_kinds
from shared.server.connection import check_listening
from shared.server.in_use import resolve_target
from shared.settings import Settings, variable_of
from worker.command_line import Options, read_options
from worker.logs import set_up_logs
from worker.parent_watch import die_with_parent, on_stdin_end

INTERRUPTED_EXIT: Final = 130
COLLECT_AFTER: Final = (50_000, 20, 100)
"""Thresholds of the garbage collector, see `gc.set_threshold`. Python's own look through all that is under
way after each 700 new objects: among 500 in flight, a query cost 770 us of CPU with them, 460 with these."""


def start(arguments: Sequence[str]) -> int:
    """Runs until stopped.

    Args:
        arguments: of the command line, without the program's name.

    Returns:
        The exit code: 0 ended as asked, 1 Celery failed, 2 usage or configuration, 3 Redis unreachable.
    """

    def run() -> int:
        import_kinds(os.environ)
        options = read_options(arguments)
        if options.unsandboxed_validators:
            os.environ[variable_of("unsafe_validators")] = "1"  # where the sandbox looks
        return _supervise(options) if options.supervise else _work(options)

    return _reporting(run)


def _reporting(run: Callable[[], int]) -> int:
    try:
        return run()
    except ProctorError as error:
        sys.stderr.write(f"error: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"hint: {error.hint}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT


def _supervise(options: Options) -> int:
    settings = Settings.from_environment()
    set_up_logs(f"supervisor.{os.getpid()}", settings)
    # Imported by name: a worker process needs no supervisor.
    supervisor = import_module("worker.supervisor")
    _slots(options, settings)
    if import_module("worker.forking").IS_SAFE:
        import_module("worker.kinds").preload(options.kinds)
    gc.freeze()  # what is shared with the workers is not touched by their collections
    gc.enable()
    # Checked here first, so that a wrong URL gives one line and one exit code, not one per process; and after
    # the imports, during which the embedded server starts.
    connection = resolve_target(settings)
    if connection.embedded:
        supervisor.keep_embedded_server(settings, connection.lease)
    code: int = supervisor.supervise(options, settings, lambda child: _reporting(lambda: _work(child)))
    return code


def _slots(options: Options, settings: Settings) -> dict[Kind, int]:
    registry = import_module("worker.kinds")
    slots: dict[Kind, int] = registry.slots_for(
        options.kinds, options.in_flight or settings.in_flight, settings.turn_slots
    )
    if not slots:
        requested, known = ",".join(map(str, options.kinds)), ", ".join(map(str, registry.executed_kinds()))
        raise UsageError(f"-Q {requested}: this version works on {known} only")
    return slots


def _work(options: Options) -> int:
    """Becomes one Celery worker; its imports cost half a second, which a fork of the supervisor has done."""
    if options.stop_on_eof:
        die_with_parent()
    settings = Settings.from_environment()
    set_up_logs(options.name, settings)
    connection = resolve_target(settings)
    with connection.broker.client() as client:
        check_listening(client)
    lifecycle = import_module("worker.lifecycle")
    if options.stop_on_eof:
        on_stdin_end(lifecycle.exit_now)
    slots = _slots(options, settings)
    app = import_module("worker.app").app
    celery_worker = app.Worker(
        hostname=options.name,
        queues=[kind.name for kind in slots],
        pool="threads",
        concurrency=import_module("worker.kinds").threads_for(slots),
        without_mingle=True,
        without_gossip=True,
        quiet=True,
        loglevel="INFO",
        redis=connection,
        in_flight=options.in_flight or settings.in_flight,
        burst=options.burst,
    )
    _calm_the_collector()
    celery_worker.start()
    return int(celery_worker.exitcode or 0)


def _calm_the_collector() -> None:
    """Makes the garbage collector run rarely, and excludes permanent objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
