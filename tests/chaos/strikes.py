"""What faults do to a cluster: signals to processes, trouble with Redis, its disk and clock, or wake-ups."""

import base64
import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import psutil

from shared.keys import PREFIX
from shared.kinds import all_kinds
from tests.chaos.cluster import Cluster
from tests.support.eventually import pause
from tests.support.invariants import UNACKED, UNACKED_INDEX
from tests.support.processes import ENDED
from tests.support.tree import ROOT

Act = Callable[[Cluster], object]
QUEUES: Final = tuple(f"{PREFIX}{kind}" for kind in all_kinds())
"""The broker's lists of wake-ups."""
SETTLED_S: Final = 0.3
"""What processes that stand still have sent has arrived by then."""
HOUR: Final = 3600
WRONG_CLOCK: Final = ROOT / "tests" / "support" / "wrong_clock"
"""On PYTHONPATH it sets the clock of a process."""


def nothing(_cluster: Cluster) -> None:
    """Does nothing: the setup itself is the fault, or the programs recover by themselves."""


def all_workers(cluster: Cluster) -> list[psutil.Process]:
    """The worker processes of `proctor worker`."""
    found = []
    for supervisor in cluster.supervisors:
        supervisor.tree()  # remembered, should they lose their parent
        with suppress(psutil.NoSuchProcess):
            found += psutil.Process(supervisor.pid).children()
    return [process for process in found if process.status() not in ENDED]


def one_worker(cluster: Cluster) -> list[psutil.Process]:
    """Picks a worker process."""
    return [cluster.chance.choice(all_workers(cluster))]


def supervisors(cluster: Cluster) -> list[psutil.Process]:
    """The supervisors of `proctor worker`."""
    all_workers(cluster)  # known from now on, whoever their parent will be
    return [psutil.Process(each.pid) for each in cluster.supervisors if each.is_running()]


def commands(cluster: Cluster) -> list[psutil.Process]:
    """Every `proctor run`."""
    for each in cluster.commands.values():
        each.tree()  # known from now on, whoever their parent will be
    return [psutil.Process(each.pid) for each in cluster.commands.values()]


def embedded_server(cluster: Cluster) -> list[psutil.Process]:
    return [psutil.Process(int(cluster.client.info("server")["process_id"]))]


def guard(cluster: Cluster) -> list[psutil.Process]:
    """The parent of the embedded server."""
    return embedded_server(cluster)[0].parents()[:1]


def killed(whom: Callable[[Cluster], list[psutil.Process]]) -> Act:
    """Makes a strike that kills a server, which cannot be asked anything while it stands still."""

    def strike(cluster: Cluster) -> None:
        for process in whom(cluster):
            process.kill()

    return strike


def signalled(whom: Callable[[Cluster], list[psutil.Process]], number: signal.Signals) -> Act:
    """Makes a strike that sends a signal; all stand still while the calls under way are counted."""

    def strike(cluster: Cluster) -> None:
        cluster.victims = victims = whom(cluster)
        family = [*victims, *(child for each in victims for child in each.children(recursive=True))]
        for process in family:
            process.suspend()
        pause(SETTLED_S)
        cluster.count_begun()
        for process in victims:
            process.send_signal(number)
        if number == signal.SIGKILL:
            pause(SETTLED_S)  # whoever dies with its parent is not to begin anything before
        for process in family:
            if number != signal.SIGSTOP or process not in victims:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    return strike


def thawed(cluster: Cluster) -> None:
    """Lets the processes go on that the last fault has stopped."""
    for process in cluster.victims:
        with suppress(psutil.NoSuchProcess):
            process.resume()


def drained(cluster: Cluster) -> None:
    """Waits until the supervisors have ended in good order, and starts workers anew."""
    for supervisor in cluster.supervisors:
        assert supervisor.wait() == 0, supervisor.output_text()
    cluster.start_workers()


def resumed(cluster: Cluster) -> None:
    """Continues every run in the way its command would have advised."""
    for workload in cluster.workloads:
        options = ("--processes", "1")
        cluster.commands[workload.name] = cluster.cli.start("resume", cluster.runs[workload.name], *options)


def disk_limited(cluster: Cluster, limit: int) -> None:
    """Bounds the size of files that Redis writes: beyond it the server behaves as on a full disk."""
    psutil.Process(cluster.server.pid).rlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def data_lost(cluster: Cluster) -> None:
    """Kills Redis and starts it on an empty disk."""
    cluster.server.kill()
    shutil.rmtree(cluster.server.folder / "appendonlydir")
    cluster.server.start()


def connections_killed(cluster: Cluster) -> None:
    """Has Redis close every connection but the one that says so."""
    for kind in ("normal", "pubsub"):
        cluster.client.client_kill_filter(skipme=True, _type=kind)


def wakes_deleted(cluster: Cluster) -> None:
    """Empties the broker, also of what was fetched and not acknowledged."""
    cluster.client.delete(*QUEUES, UNACKED, UNACKED_INDEX)


def wakes_multiplied(cluster: Cluster) -> None:
    """Makes five of each wake-up."""
    for queue in QUEUES:
        if found := cluster.client.lrange(queue, 0, -1):
            cluster.client.rpush(queue, *(4 * found))


def _envelope(body: object) -> str:
    """A message as Celery's, but for its body."""
    encoded = base64.b64encode(json.dumps(body).encode()).decode()
    message = {
        "body": encoded,
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"id": "x", "task": "proctor.turns.evaluate", "lang": "py"},
        "properties": {
            "body_encoding": "base64",
            "correlation_id": "x",
            "delivery_info": {"exchange": "", "routing_key": "turns"},
            "delivery_mode": 2,
            "delivery_tag": f"garbage {encoded}",
            "priority": 0,
        },
    }
    return json.dumps(message)


GARBAGE: Final = (
    "not JSON",
    "{}",
    "[]",
    '{"body": "!", "properties": {}}',
    _envelope(None),
    _envelope([[], {"run": "no such run", "first": 1, "chunk": {}, "items": "x"}, {}]),
)
"""Messages that nobody has sent, from bytes to a wake-up for a run that is not there."""


def garbage_sent(cluster: Cluster) -> None:
    """Puts what nobody can read in front of every wake-up."""
    for queue in QUEUES:
        cluster.client.rpush(queue, *GARBAGE)


def clock_moved(seconds: int) -> Act:
    """Makes a strike that sets the server's clock."""
    return lambda cluster: cluster.clock.write_text(f"{seconds:+d}\n")


def workers_join(clock_s: int) -> Act:
    """Makes a strike in which workers join whose wall clock is wrong."""

    def strike(cluster: Cluster) -> None:
        path = f"{WRONG_CLOCK}{os.pathsep}{cluster.env['PYTHONPATH']}"
        cluster.start_workers(PYTHONPATH=path, WRONG_CLOCK_S=str(clock_s))

    return strike


def submits_killed(*, after: bool) -> Act:
    """Makes a strike that kills every `proctor submit` before, or just after, its run is sealed."""

    def strike(cluster: Cluster) -> None:
        for workload in cluster.workloads:
            cluster.kill_at_seal(workload, after=after)

    return strike
