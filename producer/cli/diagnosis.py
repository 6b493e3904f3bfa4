"""Gathers the checks of `proctor doctor`, also of a server that cannot be used."""

from contextlib import closing
from typing import Final

from producer.cli.context import Session
from producer.cli.errors import describe
from producer.load.detect import LOADERS
from shared.checks import Check, check_machine, check_server_of
from shared.errors import ConfigError, ProctorError, RedisUnsuitableError
from shared.target import RedisTarget

EXIT_WELL: Final = 0
EXIT_MACHINE: Final = 1
EXIT_SERVER: Final = 3


def diagnose(session: Session) -> tuple[list[Check], int]:
    """Looks at everything and returns what was found with the exit code it stands for."""
    settings = session.settings
    machine = check_machine(settings.data_dir, embedded=settings.redis_url is None)
    server = _look_at_server(session)
    code = EXIT_WELL
    if any(check.status == "fail" for check in machine):
        code = EXIT_MACHINE
    if any(check.status == "fail" for check in server):
        code = EXIT_SERVER
    return [*machine, *server], code


def _look_at_server(session: Session) -> list[Check]:
    """Looks at the server in use; one that is unfit is looked at all the same, to tell everything at once."""
    try:
        connection = session.connection
        workers = {kind.value: session.count_workers(kind) for kind in LOADERS}
        place = f"{connection.target.display}{' (embedded)' if connection.embedded else ''}"
        return [Check("server", "ok", place), *check_server_of(session.client, workers=workers)]
    except RedisUnsuitableError as error:
        return [Check("server", "fail", error.message, error.hint), *_look_closer(session.settings.redis_url)]
    except ConfigError:
        raise
    except ProctorError as error:
        return [Check("server", "fail", error.message, error.hint)]


def _look_closer(url: str | None) -> list[Check]:
    """Looks at a server that answers but is unfit."""
    if url is None:
        return []
    try:
        with closing(RedisTarget.parse(url).client()) as client:
            return check_server_of(client)
    except Exception as error:
        if describe(error) is None:
            raise
        return []
