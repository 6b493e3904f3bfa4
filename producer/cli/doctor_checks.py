"""Gathers the checks of `proctor doctor`, also of a server that cannot be used."""

from collections.abc import Mapping
from contextlib import closing
from typing import Final

from producer.cli.error_exit import describe
from producer.cli.plugins_view import check_plugins
from producer.cli.session import Session
from producer.service_documents import DoctorCheck, DoctorDocument
from shared import plugins
from shared.errors import ConfigError, ProctorError, RedisUnsuitableError
from shared.kinds import CASES, all_kinds
from shared.ledger.bounds import LAYOUT
from shared.server.client import RedisTarget
from shared.server.diagnostics import Diagnosis, check_machine, check_server_of, check_writes
from shared.server.requirements import acl_line, server_version

NEWEST_SERVER: Final = (8, 0)
"""Assumed version of a server that cannot be reached."""
EXIT_WELL: Final = 0
EXIT_MACHINE: Final = 1
EXIT_SERVER: Final = 3


def access_rules(session: Session) -> str:
    """Returns the ACL command for the server in use; for a current one if none can be reached."""
    url = session.settings.redis_url
    if url is None:
        return acl_line(NEWEST_SERVER)
    target = RedisTarget.parse(url)
    try:
        with closing(target.client()) as client:
            version = server_version(client.info("server"))
    except Exception as error:
        if describe(error) is None:
            raise
        version = NEWEST_SERVER
    return acl_line(version, database=target.url.db)


def diagnose(session: Session) -> DoctorDocument:
    """Runs all checks; the exit code follows from those that failed."""
    settings = session.settings
    machine = check_machine(settings.data_dir, embedded=settings.redis_url is None)
    server = _look_at_server(session)
    code = EXIT_WELL
    if any(check.status == "fail" for check in machine):
        code = EXIT_MACHINE
    if any(check.status == "fail" for check in server):
        code = EXIT_SERVER
    return DoctorDocument(checks=tuple(DoctorCheck(*check) for check in (*machine, *server)), exit=code)


def _look_at_server(session: Session) -> list[Diagnosis]:
    """Checks the server in use; an unsuitable one is checked completely too, to show everything at once."""
    try:
        connection = session.access.connection
        workers = {kind.name: session.access.count_workers(kind) for kind in all_kinds()}
        current = {kind.name: session.access.count_workers(kind, LAYOUT) for kind in all_kinds()}
        place = f"{connection.target.display}{' (embedded)' if connection.embedded else ''}"
        is_sentinels = connection.target.url.scheme == "sentinel"
        found = check_server_of(session.access.client, workers=workers, behind_sentinels=is_sentinels)
        found += check_versions(workers, current)
        found += check_plugins(frozenset(plugins.installed()), session.access.store.plugins(CASES))
        return [Diagnosis("server", "ok", place), *found, *_look_at_broker(session)]
    except RedisUnsuitableError as error:
        return [
            Diagnosis("server", "fail", error.message, error.hint),
            *_look_closer(session.settings.redis_url),
        ]
    except ConfigError:
        raise
    except ProctorError as error:
        return [Diagnosis("server", "fail", error.message, error.hint)]


def check_versions(workers: Mapping[str, int], current: Mapping[str, int]) -> list[Diagnosis]:
    """Checks whether live workers can work on all runs of this version; nothing if they can.

    >>> [check.detail for check in check_versions({"turns": 2, "cases": 2}, {"turns": 2, "cases": 1})]
    ['earlier versions: cases 1 of 2; they leave runs with checks, prompts or variables alone']
    >>> check_versions({"turns": 2}, {"turns": 2})
    []
    """
    outdated = [
        f"{kind} {number - current[kind]} of {number}"
        for kind, number in workers.items()
        if number > current[kind]
    ]
    if not outdated:
        return []
    detail = (
        f"earlier versions: {', '.join(outdated)}; they leave runs with checks, prompts or variables alone"
    )
    return [Diagnosis("versions", "warn", detail, "install this version there, and restart them")]


def _look_at_broker(session: Session) -> list[Diagnosis]:
    """Checks a separate broker; empty if the ledger's server is the broker."""
    broker = session.access.connection.broker
    if broker == session.access.connection.target:
        return []
    try:
        session.access.require_broker()
    except ProctorError as error:
        return [Diagnosis("broker", "fail", error.message, error.hint)]
    refusal = session.access.broker_refusal()
    if refusal:
        return [
            Diagnosis(
                "broker", "fail", f"{broker.display} takes no writes: {refusal}", check_writes(refusal).fix
            )
        ]
    return [Diagnosis("broker", "ok", broker.display)]


def _look_closer(url: str | None) -> list[Diagnosis]:
    """Checks a server that answers but is unsuitable."""
    if url is None:
        return []
    try:
        with closing(RedisTarget.parse(url).client()) as client:
            return check_server_of(client)
    except Exception as error:
        if describe(error) is None:
            raise
        return []
